/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - "seed:7,race,weak,resident:3". */
#include "simt_impl.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 64 };

static const struct mode {
    const char *name;
    size_t offset; /* of the bool */
} modes[] = {
    { "race", offsetof(struct simt_options, race) },     { "weak", offsetof(struct simt_options, weak) },
    { "stale", offsetof(struct simt_options, stale) },   { "uninit", offsetof(struct simt_options, uninit) },
    { "bounds", offsetof(struct simt_options, bounds) }, { "late", offsetof(struct simt_options, late) },
    { "guard", offsetof(struct simt_options, guard) },
};
enum { NMODES = sizeof modes / sizeof *modes };

static bool *flag(struct simt_options *o, const struct mode *m) { return (bool *)((char *)o + m->offset); }

void simt_options_default(struct simt_options *o)
{
    *o = (struct simt_options){ .seed = 0, .resident = 2, .sms = 4, .bounds = true };
}

/* "name" or "no-name"; false when there is no such mode. */
static bool set_mode(struct simt_options *o, const char *word, size_t length)
{
    const bool off = length > 3 && memcmp(word, "no-", 3) == 0;
    word += off ? 3 : 0;
    length -= off ? 3 : 0;
    for (int i = 0; i < NMODES; i++) {
        if (strlen(modes[i].name) == length && memcmp(modes[i].name, word, length) == 0) {
            *flag(o, &modes[i]) = !off;
            return true;
        }
    }
    if (length != 3 || memcmp(word, "all", 3) != 0 || off)
        return false;
    for (int i = 0; i < NMODES; i++)
        *flag(o, &modes[i]) |= strcmp(modes[i].name, "guard") != 0;
    return true;
}

/* Decimal digits only; false when there are others or too many. */
static bool number(const char *text, size_t length, uint64_t *out)
{
    if (length == 0 || length > 19)
        return false;
    *out = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    }
    return true;
}

static const char *set_number(struct simt_options *o, const char *word, size_t name, size_t length)
{
    uint64_t n;
    if (!number(word + name + 1, length - name - 1, &n))
        return "simt: a number is expected after ':'";
    if (name == 4 && memcmp(word, "seed", 4) == 0) {
        o->seed = n;
        return NULL;
    }
    int *count = name == 8 && memcmp(word, "resident", 8) == 0 ? &o->resident
                 : name == 3 && memcmp(word, "sms", 3) == 0    ? &o->sms
                                                               : NULL;
    if (!count)
        return "simt: only seed, resident and sms take a number";
    if (n < 1 || n > COUNT_MAX)
        return "simt: resident and sms are 1 to 64";
    *count = (int)n;
    return NULL;
}

const char *simt_options_parse(const char *text, struct simt_options *o)
{
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        const char *colon = memchr(text, ':', length);
        if (colon) {
            const char *wrong = set_number(o, text, (size_t)(colon - text), length);
            if (wrong)
                return wrong;
        } else if (!set_mode(o, text, length)) {
            return "simt: modes are seed:N, resident:N, sms:N, race, weak, stale, uninit, bounds, late, guard and all; "
                   "no-MODE turns one off";
        }
        text += length;
        text += *text == ',';
    }
    return NULL;
}

void report_modes(const struct simt_options *o, char *text, size_t size)
{
    struct simt_options defaults, copy = *o;
    simt_options_default(&defaults);
    int used = snprintf(text, size, "seed:%" PRIu64, o->seed);
    for (int i = 0; i < NMODES && (size_t)used < size; i++) {
        const bool on = *flag(&copy, &modes[i]);
        if (on != *flag(&defaults, &modes[i]))
            used += snprintf(text + used, size - (size_t)used, ",%s%s", on ? "" : "no-", modes[i].name);
    }
    if (o->resident != defaults.resident && (size_t)used < size)
        used += snprintf(text + used, size - (size_t)used, ",resident:%d", o->resident);
    if (o->sms != defaults.sms && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ",sms:%d", o->sms);
}
