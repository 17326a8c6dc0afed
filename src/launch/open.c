/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - from the public program object to the data that the launcher walks. */
#include "launch_stages.h"

static ptxgen_status load_stages(ptxgen_session *s, ptxgen_gpu *gpu, const struct prog_stages *p,
                                 struct ptxgen_program *const *stage, ptxgen_loaded **out)
{
    ptxgen_loaded *l = launch_new_stages(gpu, p);
    ptxgen_status status = l ? PTXGEN_OK : PTXGEN_NO_MEMORY;

    for (int i = 0; i < p->nstages && status == PTXGEN_OK; i++)
        status = launch_load(s, gpu, ptxgen_program_data(stage[i]), &l->stages->stage[i]);
    if (status == PTXGEN_OK)
        *out = l;
    else
        ptxgen_loaded_destroy(l);
    return status;
}

ptxgen_status ptxgen_load(ptxgen_session *s, ptxgen_gpu *gpu, const ptxgen_program *program, ptxgen_loaded **out)
{
    struct ptxgen_program *const *stage;
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, gpu, program, out);
    const struct prog_stages *p = ptxgen_program_stages(program, &stage);
    return p ? load_stages(s, gpu, p, stage, out) : launch_load(s, gpu, ptxgen_program_data(program), out);
}
