/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c - how libFuzzer changes texts that are mostly numbers: plans, tuning files, journals. */
#include "fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* One number of the text becomes another that is likely to matter: a fuzzer that changes bytes seldom finds its way past
 * the parser.  The new size; 0: there is no number. */
static size_t change_number(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static const char *const number[] = { "0",     "1",     "2",   "3",          "4",          "5",
                                          "7",     "8",     "16",  "31",         "32",         "33",
                                          "64",    "96",    "128", "256",        "512",        "1024",
                                          "1025",  "65536", "-1",  "2147483647", "4294967296", "9223372036854775807",
                                          "1e300", "0.5",   "nan", "true",       "n" };
    const char *with = number[seed / 7 % (sizeof number / sizeof *number)];
    const size_t length = strlen(with), from = size ? seed % size : 0;
    for (size_t k = 0; k < size; k++) {
        const size_t begin = (from + k) % size;
        size_t end = begin;
        while (end < size && data[end] >= '0' && data[end] <= '9')
            end++;
        if (end == begin || (begin > 0 && data[begin - 1] >= '0' && data[begin - 1] <= '9'))
            continue;
        if (size - (end - begin) + length > most)
            return 0;
        memmove(data + begin + length, data + end, size - end);
        memcpy(data + begin, with, length);
        return size - (end - begin) + length;
    }
    return 0;
}

/* Mostly that. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    const size_t changed = seed % 4 ? change_number(data, size, most, seed / 4) : 0;
    return changed ? changed : LLVMFuzzerMutate(data, size, most);
}
