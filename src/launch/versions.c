/* SPDX-License-Identifier: Apache-2.0 */
/* versions.c - which driver loads which PTX.
 *
 * A driver compiles PTX up to the version that came with its CUDA release (PTX ISA manual, "Release notes"; CUDA
 * release notes, "CUDA driver versions").  The second column is the first Linux driver of that release.
 */
#include "launch_impl.h"

static const struct {
    int ptx, cuda;
    const char *release;
} rows[] = {
    { 60, 9000, "384.81" },  { 61, 9010, "390.46" },  { 62, 9020, "396.26" },  { 63, 10000, "410.48" },
    { 64, 10010, "418.39" }, { 65, 10020, "440.33" }, { 70, 11000, "450.36" }, { 71, 11010, "455.23" },
    { 72, 11020, "460.27" }, { 73, 11030, "465.19" }, { 74, 11040, "470.42" }, { 75, 11050, "495.29" },
    { 76, 11060, "510.39" }, { 77, 11070, "515.43" }, { 78, 11080, "520.61" }, { 80, 12000, "525.60" },
    { 81, 12010, "530.30" }, { 82, 12020, "535.54" }, { 83, 12030, "545.23" }, { 84, 12040, "550.54" },
    { 85, 12050, "555.42" }, { 86, 12070, "565.57" }, { 87, 12080, "570.26" }, { 88, 12090, "575.51" },
    { 90, 13000, "580.65" }, { 91, 13010, "590.44" },
};
enum { ROWS = sizeof rows / sizeof *rows };

int ptx_of_driver(int version)
{
    int ptx = 0;

    for (int i = 0; i < ROWS && rows[i].cuda <= version; i++)
        ptx = rows[i].ptx;
    return ptx;
}

int driver_of_ptx(int ptx, const char **release)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].ptx >= ptx) {
            *release = rows[i].release;
            return rows[i].cuda;
        }
    *release = NULL;
    return 0;
}
