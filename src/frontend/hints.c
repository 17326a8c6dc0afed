/* SPDX-License-Identifier: Apache-2.0 */
/* hints.c - how to write what the language does not have under a word. */
#include "frontend_impl.h"

static const struct {
    const char *place, *words, *hint;
} rows[] = {
#define HINT(place, words, says, starts, shows) { place, words, says ": " shows },
#define ADVICE(place, words, says)              { place, words, says },
#include "hints.def"
#undef HINT
#undef ADVICE
};

static bool among(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; n && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

const char *way_out(const char *place, const char *word)
{
    static const char *const others[] = { "operator", "a spec", "an output", "a function" };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].place, place) && among(rows[i].words, word))
            return rows[i].hint;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i], place))
            return way_out("kind", word);
    return NULL;
}
