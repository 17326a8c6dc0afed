/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_room.h - is there memory to compile with? */
#ifndef PTXGEN_LLVM_ROOM_H
#define PTXGEN_LLVM_ROOM_H

#include "base/session.h"

/* False after a diagnostic: a limit of the process leaves too little. */
bool llvm_room(struct ptxgen_session *s);
/* May so many threads compile at once? */
bool llvm_room_for(int threads);

#endif
