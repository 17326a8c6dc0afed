/* SPDX-License-Identifier: Apache-2.0 */
/* simt.c - running generated host code. */
#include "simt_impl.h"

static host_kernel entry_of(void *user, int case_index, int kernel) { return host_entry(user, case_index, kernel); }

int simt_run(struct host_code *h, const struct run_args *args, struct simt_control *control,
             const struct simt_options *o, struct simt_report *out)
{
    const struct simt_code code = { host_program(h), entry_of, h };
    (o->guard ? simt_run_guarded : simt_run_code)(&code, args, control, o, out);
    if (out->what == SIMT_CHECK && host_failure(h, out->case_index))
        report_plain(out, SIMT_CHECK, "%s", host_failure(h, out->case_index));
    return out->what;
}
