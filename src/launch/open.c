/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - from the public program object to the data that the launcher walks. */
#include "base/session.h"
#include "launch_impl.h"

ptxgen_status ptxgen_load(ptxgen_session *s, ptxgen_gpu *gpu, const ptxgen_program *program, ptxgen_loaded **out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, gpu, program, out);
    return launch_load(s, gpu, ptxgen_program_data(program), out);
}
