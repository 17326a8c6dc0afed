/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - the JSON writer of str.h.
 *
 * Pretty form: every member of an object on a line of its own; scalars of an array stay on one line, objects and
 * arrays in an array begin new ones.
 */
#include "str.h"
#include "utf8.h"

#include <math.h>
#include <string.h>

void json_init(struct json *j, struct str *out, bool pretty)
{
    memset(j, 0, sizeof *j);
    j->out = out;
    j->pretty = pretty;
}

static uint64_t bit(int depth) { return UINT64_C(1) << (depth & 63); }

static void line(struct json *j)
{
    str_addc(j->out, '\n');
    for (int i = 0; i < j->depth; i++)
        str_add(j->out, "  ");
}

/* Before any value: the comma, and the line break or space that belongs there. */
static void begin_value(struct json *j, bool container)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->depth == 0)
        return;
    if (j->nonempty & bit(j->depth))
        str_add(j->out, j->pretty && !container ? ", " : ",");
    if (j->pretty && container) {
        line(j);
        j->has_container |= bit(j->depth);
    }
    j->nonempty |= bit(j->depth);
}

static void open_container(struct json *j, char bracket, bool array)
{
    begin_value(j, true);
    str_addc(j->out, bracket);
    if (j->depth >= 63) /* deeper texts would lose commas; none of ours is */
        j->out->failed = true;
    j->depth++;
    j->nonempty &= ~bit(j->depth);
    j->has_container &= ~bit(j->depth);
    j->is_array = array ? j->is_array | bit(j->depth) : j->is_array & ~bit(j->depth);
}

void json_object(struct json *j) { open_container(j, '{', false); }
void json_array(struct json *j) { open_container(j, '[', true); }

void json_end(struct json *j)
{
    const bool array = j->is_array & bit(j->depth);
    const bool broken = (j->nonempty & bit(j->depth)) && (!array || (j->has_container & bit(j->depth)));
    j->depth--;
    if (j->pretty && broken)
        line(j);
    str_addc(j->out, array ? ']' : '}');
}

static void quoted(struct str *out, const char *s, size_t length)
{
    str_addc(out, '"');
    for (size_t i = 0; i < length;) {
        uint32_t code;
        const int n = utf8_decode(s + i, length - i, &code);
        if (n == 0)
            str_add(out, UTF8_REPLACEMENT);
        else if (code == '"' || code == '\\')
            str_printf(out, "\\%c", (char)code);
        else if (code == '\n')
            str_add(out, "\\n");
        else if (code < 0x20 || code == 0x7f)
            str_printf(out, "\\u%04x", code);
        else
            str_addn(out, s + i, (size_t)n);
        i += n ? (size_t)n : 1;
    }
    str_addc(out, '"');
}

void json_key(struct json *j, const char *key)
{
    if (j->nonempty & bit(j->depth))
        str_addc(j->out, ',');
    j->nonempty |= bit(j->depth);
    if (j->pretty)
        line(j);
    quoted(j->out, key, strlen(key));
    str_add(j->out, j->pretty ? ": " : ":");
    j->after_key = true;
}

void json_stringn(struct json *j, const char *s, size_t length)
{
    begin_value(j, false);
    quoted(j->out, s, length);
}

void json_string(struct json *j, const char *s)
{
    if (s == NULL)
        json_null(j);
    else
        json_stringn(j, s, strlen(s));
}

void json_int(struct json *j, int64_t x)
{
    begin_value(j, false);
    str_printf(j->out, "%lld", (long long)x);
}

void json_uint(struct json *j, uint64_t x)
{
    begin_value(j, false);
    str_printf(j->out, "%llu", (unsigned long long)x);
}

void json_double(struct json *j, double x)
{
    begin_value(j, false);
    const bool number = isfinite(x);
    if (!number)
        str_addc(j->out, '"');
    str_double(j->out, x);
    if (!number)
        str_addc(j->out, '"');
}

void json_bool(struct json *j, bool x)
{
    begin_value(j, false);
    str_add(j->out, x ? "true" : "false");
}

void json_null(struct json *j)
{
    begin_value(j, false);
    str_add(j->out, "null");
}

void json_put_text(struct json *j, const char *key, const char *value)
{
    json_key(j, key);
    json_string(j, value);
}

void json_put_int(struct json *j, const char *key, int64_t value)
{
    json_key(j, key);
    json_int(j, value);
}

void json_put_double(struct json *j, const char *key, double value)
{
    json_key(j, key);
    json_double(j, value);
}

void json_put_bool(struct json *j, const char *key, bool value)
{
    json_key(j, key);
    json_bool(j, value);
}
