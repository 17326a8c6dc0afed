/* SPDX-License-Identifier: Apache-2.0 */
/* standalone.c - runs a fuzz target over files and folders, without a fuzzer: the corpus as an ordinary test. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One file, copied to memory of its exact size so that a sanitizer sees a read past the end. */
static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        return 0;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    int ok = data && fread(data, 1, size, f) == size;
    fclose(f);
    if (ok) {
        /* Said before, so that the last line names the file of a crash. */
        printf("%s\n", path);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
    }
    free(data);
    return ok;
}

static int run_folder(const char *path)
{
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, alphasort), run = 0;
    for (int i = 0; i < n; i++) {
        char *file = NULL;
        if (entry[i]->d_name[0] != '.' && asprintf(&file, "%s/%s", path, entry[i]->d_name) > 0)
            run += run_file(file);
        free(file);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return run;
}

int main(int argc, char **argv)
{
    int run = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        run += stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? run_folder(argv[i]) : run_file(argv[i]);
    }
    printf("%d inputs\n", run);
    return run > 0 ? 0 : 1;
}
