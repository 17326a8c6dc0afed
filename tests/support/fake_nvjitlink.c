/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvjitlink.c - in place of NVIDIA's JIT linker in the tests: "assembles" to the option that it was given, refuses
 * sm_75. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char option[64], name[64];
static const char log_text[] = "fatal: no such architecture";
int nvJitLinkCreate(void **link, uint32_t count, const char **options);
int nvJitLinkDestroy(void **link);
int nvJitLinkAddData(void *link, int type, const void *data, size_t length, const char *file);
int nvJitLinkComplete(void *link);
int nvJitLinkGetLinkedCubinSize(void *link, size_t *length);
int nvJitLinkGetLinkedCubin(void *link, void *out);
int nvJitLinkGetErrorLogSize(void *link, size_t *length);
int nvJitLinkGetErrorLog(void *link, char *out);

int nvJitLinkCreate(void **link, uint32_t count, const char **options)
{
    if (count != 1)
        return 2;
    snprintf(option, sizeof option, "%s", options[0]);
    *link = option;
    return 0;
}
int nvJitLinkDestroy(void **link) { return *link != option; }
int nvJitLinkAddData(void *link, int type, const void *data, size_t length, const char *file)
{
    snprintf(name, sizeof name, "%s", file);
    return link != option || type != 2 || strlen(data) + 1 != length;
}
int nvJitLinkComplete(void *link) { return link != option || strcmp(option, "-arch=sm_75") == 0 ? 6 : 0; }
int nvJitLinkGetLinkedCubinSize(void *link, size_t *length)
{
    *length = strlen(option);
    return link != option;
}
int nvJitLinkGetLinkedCubin(void *link, void *out)
{
    memcpy(out, option, strlen(option));
    return link != option;
}
int nvJitLinkGetErrorLogSize(void *link, size_t *length)
{
    *length = sizeof log_text;
    return link != option;
}
int nvJitLinkGetErrorLog(void *link, char *out)
{
    memcpy(out, log_text, sizeof log_text);
    return link != option;
}
