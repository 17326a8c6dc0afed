/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_room.h - are there LLVM and memory to compile with? */
#ifndef PTXGEN_LLVM_ROOM_H
#define PTXGEN_LLVM_ROOM_H

#include "base/session.h"

/* False after a diagnostic: LLVM cannot be loaded, or a limit of the process leaves too little. */
bool llvm_room(struct ptxgen_session *s);
/* May so many threads compile at once? */
bool llvm_room_for(int threads);

#endif
