/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - which device and architecture the options mean. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "ptxgen/launch.h"

int device_ordinal(const char *device, int *ordinal)
{
    int64_t n = 0;
    if (strncmp(device, "cuda", 4) != 0 ||
        (device[4] && (device[4] != ':' || parse_count(device + 5, &n) || n > 1023))) {
        return fail(EXIT_USAGE, "--device %s: expected auto, cpu, cuda or cuda:N", device);
    }
    *ordinal = (int)n;
    return EXIT_OK;
}

static int native_arch(ptxgen_session *s, const struct options *o, const char **arch)
{
    ptxgen_gpu_info info;
    int ordinal = 0;
    int status = o->device && !strncmp(o->device, "cuda", 4) ? device_ordinal(o->device, &ordinal) : EXIT_OK;
    if (status != EXIT_OK) {
        return status;
    }
    ptxgen_status asked = ptxgen_gpu_query(s, ordinal, &info);
    if (asked != PTXGEN_OK) {
        fail_call(s, asked, "--arch=native");
        return fail(EXIT_DEVICE,
                    "--arch=native asks the GPU of this machine; name an architecture, as in --arch=sm_90");
    }
    *arch = ptxgen_gpu_arch(&info);
    return *arch ? EXIT_OK
                 : fail(EXIT_DEVICE, "--arch=native: no code can be generated for %s, sm_%d", info.name, info.sm);
}

int choose_arch(ptxgen_session *s, const struct options *o, const char **arch)
{
    *arch = o->arch;
    return o->arch && !strcmp(o->arch, "native") ? native_arch(s, o, arch) : EXIT_OK;
}

char *usual_tuning(const struct options *o)
{
    char *path = o->tuning || o->plan ? NULL : ptxgen_tuning_path();
    if (path && access(path, R_OK) == 0) {
        return path;
    }
    free(path);
    return NULL;
}
