/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - growing text, and a JSON writer on top of it.
 *
 * A text buffer owns malloc memory.  Running out of memory is sticky: appends become no-ops, `failed` is set, and
 * str_take() returns NULL.  So writers need no check per call.
 */
#ifndef PTXGEN_STR_H
#define PTXGEN_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    char *text; /* NUL-terminated when not NULL */
    size_t length, capacity;
    bool failed;
};

void str_finish(struct str *s); /* frees; the buffer is empty again */
void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t length);
void str_addc(struct str *s, char c);
void str_printf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_vprintf(struct str *s, const char *format, va_list ap);
char *str_take(struct str *s); /* the text, owned by the caller (free); "" for an empty buffer; NULL if out of memory */

/* JSON.  Commas, indentation and escapes are the writer's business:
 *     json_object(&j);  json_key(&j, "name");  json_string(&j, "dot");  json_end(&j);   */
struct json {
    struct str *out;
    int depth;
    bool pretty;
    bool after_key;
    uint64_t nonempty;      /* bit d: something was written at depth d */
    uint64_t is_array;      /* bit d: depth d is an array */
    uint64_t has_container; /* bit d: something at depth d is an array or object */
};
void json_init(struct json *j, struct str *out, bool pretty);
void json_object(struct json *j);
void json_array(struct json *j);
void json_end(struct json *j);
void json_key(struct json *j, const char *key);
void json_string(struct json *j, const char *s); /* NULL writes null; invalid UTF-8 becomes U+FFFD */
void json_stringn(struct json *j, const char *s, size_t length);
void json_int(struct json *j, int64_t x);
void json_uint(struct json *j, uint64_t x);
void json_double(struct json *j, double x); /* shortest text that reads back; inf and nan as strings */
void json_bool(struct json *j, bool x);
void json_null(struct json *j);
/* Members of an object. */
void json_put_text(struct json *j, const char *key, const char *value); /* or NULL */
void json_put_int(struct json *j, const char *key, int64_t value);
void json_put_double(struct json *j, const char *key, double value);
void json_put_bool(struct json *j, const char *key, bool value);

/* Shortest decimal text that strtod() reads back as the same double ("0.1", "1e+20", "inf", "-inf", "nan"). */
void str_double(struct str *s, double x);

/* The nearest of `count` names to `name`, for "did you mean", or NULL when none is near. */
const char *str_nearest(const char *name, const char *const *names, int count);

#endif
