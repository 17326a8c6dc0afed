/* SPDX-License-Identifier: Apache-2.0 */
/* versions.c - which driver loads which PTX.
 *
 * A driver compiles PTX up to the version that came with its CUDA release.  The releases' first Linux drivers are from
 * the CUDA release notes, "CUDA driver versions".
 */
#include "program/ptx_versions.h"
#include "launch_impl.h"

static const struct {
    int cuda;
    const char *release;
} rows[] = {
    { 9000, "384.81" },  { 9010, "390.46" },  { 9020, "396.26" },  { 10000, "410.48" }, { 10010, "418.39" },
    { 10020, "440.33" }, { 11000, "450.36" }, { 11010, "455.23" }, { 11020, "460.27" }, { 11030, "465.19" },
    { 11040, "470.42" }, { 11050, "495.29" }, { 11060, "510.39" }, { 11070, "515.43" }, { 11080, "520.61" },
    { 12000, "525.60" }, { 12010, "530.30" }, { 12020, "535.54" }, { 12030, "545.23" }, { 12040, "550.54" },
    { 12050, "555.42" }, { 12060, "560.28" }, { 12070, "565.57" }, { 12080, "570.26" }, { 12090, "575.51" },
    { 13000, "580.65" }, { 13010, "590.44" },
};

int ptx_of_driver(int version)
{
    int ptx = 0;

    for (int p = 60; ptx_oldest_cuda(p) != 0 && ptx_oldest_cuda(p) <= version; p++)
        ptx = p;
    return ptx;
}

int driver_of_ptx(int ptx, const char **release)
{
    int cuda = ptx_oldest_cuda(ptx);

    *release = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].cuda == cuda)
            *release = rows[i].release;
    return *release ? cuda : 0;
}
