/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - where the arrays of a call lie: at addresses of their types, and outputs where nothing else is.
 *
 * An output may have the memory of an input, element for element, where each element is read by nobody else.  What the
 * problem's text says of both decides: neighbours, at(), offsets and computed places are read or written elsewhere.
 */
#include <string.h>

#include "native.h"

/* ---- addresses --------------------------------------------------------------------------------------------------- */
size_t alignment_of(const ptxgen_array_info *a)
{
    size_t most = 1;

    for (int i = 0; i < a->field_count; i++)
        if (ptxgen_type_size(a->field_type[i]) > most)
            most = ptxgen_type_size(a->field_type[i]);
    return most;
}

/* Of an array that was taken: its shape is that of the spec. */
static int64_t bytes_of(const struct call *c, int i)
{
    const ptxgen_array_info *a = &c->f->slot[i].info;
    int64_t bytes = (int64_t)a->element_size;

    for (int d = 0; d < a->rank; d++) {
        const int64_t n = a->size_add[d] + (a->size_index[d] < 0 ? 0 : c->size[a->size_index[d]]);
        if (n <= 0 || __builtin_mul_overflow(bytes, n, &bytes))
            return 0;
    }
    return bytes;
}

static bool aligned(const struct call *c, int i)
{
    const ptxgen_array_info *a = &c->f->slot[i].info;
    const size_t unit = c->f->slot[i].alignment;

    return ((uintptr_t)c->pointer[i] & (unit - 1)) == 0 || bytes_of(c, i) == 0 ||
           refuse("array '%s' begins at an address that is no multiple of %zu, as its type asks for; give a copy",
                  a->name, unit);
}

/* ---- an output in an input's memory ------------------------------------------------------------------------------ */
/* The rest of the line "HEAD NAME: " of the text; NULL: there is none. */
static const char *line_of(const char *text, const char *head, const char *name)
{
    const size_t length = strlen(name), nhead = strlen(head);

    for (const char *at = strstr(text, head); at; at = strstr(at + 1, head))
        if (strncmp(at + nhead, name, length) == 0 && at[nhead + length] == ':')
            return at + nhead + length + 1;
    return NULL;
}

/* " f32[m, n] …": the length of the declaration. */
static size_t declared(const char *line)
{
    const size_t end = strcspn(line, "\n"), bracket = strcspn(line, "]");

    return bracket < end ? bracket + 1 : end;
}

static bool ends_with(const char *line, size_t from, const char *end)
{
    return strcspn(line, "\n") == from + strlen(end) && strncmp(line + from, end, strlen(end)) == 0;
}

static bool element_for_element(const char *text, const char *input, const char *output)
{
    const char *in = line_of(text, "\ninput ", input), *out = line_of(text, "\noutput ", output);
    const size_t ni = in ? declared(in) : 0, no = out ? declared(out) : 0;

    return in && out && ni == no && strncmp(in, out, ni) == 0 && ends_with(in, ni, "") &&
           (ends_with(out, no, " per element") || ends_with(out, no, " per element, from its segment's result"));
}

/* May output o have the memory of input i? Read from the problem's text once. */
static bool in_place(Function *f, int i, int o)
{
    enum { UNKNOWN, YES, NO };
    unsigned char *known = &f->in_place[i * f->outputs + o];

    if (*known == UNKNOWN) {
        char *text = ptxgen_problem_text(f->problem);
        if (text == NULL)
            return PyErr_NoMemory() != NULL;
        *known = element_for_element(text, f->slot[i].info.name, f->slot[f->inputs + o].info.name) ? YES : NO;
        ptxgen_free(text);
    }
    return *known == YES;
}

static bool apart(struct call *c, int i, int out)
{
    Function *f = c->f;
    const int64_t n = bytes_of(c, i), m = bytes_of(c, out);
    const char *a = c->pointer[i], *b = c->pointer[out];

    if (n == 0 || m == 0 || a + n <= b || b + m <= a)
        return true;
    if (i >= f->inputs)
        return refuse("outputs '%s' and '%s' share memory", f->slot[i].info.name, f->slot[out].info.name);
    if (a == b && n == m && in_place(f, i, out - f->inputs))
        return true;
    return PyErr_Occurred() ? false
                            : refuse("output '%s' shares memory with input '%s', whose elements are read after others "
                                     "are written; give other memory, or a copy",
                                     f->slot[out].info.name, f->slot[i].info.name);
}

/* "f32[k - 1]" at k = 0 */
static bool negative(const struct call *c, int i)
{
    const ptxgen_array_info *a = &c->f->slot[i].info;

    for (int d = 0; d < a->rank; d++) {
        const int64_t n = a->size_add[d] + (a->size_index[d] < 0 ? 0 : c->size[a->size_index[d]]);
        if (n < 0)
            return !refuse("output '%s' would have %lld elements in dimension %d, at %s = %lld", a->name, (long long)n,
                           d, ptxgen_problem_size_name(c->f->problem, a->size_index[d]),
                           (long long)c->size[a->size_index[d]]);
    }
    return false;
}

bool call_places(struct call *c)
{
    const int inputs = c->f->inputs, arrays = inputs + c->f->outputs;

    for (int i = 0; i < arrays; i++)
        if ((i >= inputs && negative(c, i)) || (c->pointer[i] && !aligned(c, i)))
            return false;
    for (int out = inputs; out < arrays && c->out; out++)
        for (int i = 0; i < out; i++)
            if (c->pointer[i] && !apart(c, i, out))
                return false;
    return true;
}
