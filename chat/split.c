/* split.c: cuts text into the words within which bytes are merged. The rule is the one named
 * "smollm": every number character stands alone, and what lies between them is cut as GPT-2 does:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * A number ends the text that \s+(?!\S) sees, so white space before one is not shared with it. */
#include "chat.h"

typedef enum class { END, LETTER, NUMBER, SPACE, OTHER } class;

/* What stands at `at`, and its size; NUMBER and the end of text are alike for what precedes. */
static class look(const char *text, size_t n, size_t at, uint32_t *c, size_t *size)
{
    *size = 0;
    *c = 0;
    if (at >= n)
        return END;
    *c = chat_utf8_next(text + at, n - at, size);
    return chat_is_letter(*c)   ? LETTER
           : chat_is_number(*c) ? NUMBER
           : chat_is_space(*c)  ? SPACE
                                : OTHER;
}

/* 's 't 're 've 'm 'll 'd: the length, or 0. */
static size_t contraction(const char *text, size_t n)
{
    if (n < 2 || text[0] != '\'')
        return 0;
    if (strchr("stmd", text[1]) && text[1])
        return 2;
    if (n < 3)
        return 0;
    return !memcmp(text + 1, "re", 2) || !memcmp(text + 1, "ve", 2) || !memcmp(text + 1, "ll", 2)
               ? 3
               : 0;
}

/* Past the run of one class that begins at `at`. */
static size_t run_of(class kind, const char *text, size_t n, size_t at)
{
    uint32_t c;
    size_t size;
    while (look(text, n, at, &c, &size) == kind)
        at += size;
    return at;
}

/* White space: all of it before a number or the end, else all but the last, which the next word
 * takes along when it is a blank. */
static size_t spaces_at(const char *text, size_t n, size_t at)
{
    size_t end = at, last = at, size = 0;
    uint32_t c;
    class kind;
    while ((kind = look(text, n, end, &c, &size)) == SPACE) {
        last = end;
        end += size;
    }
    return (kind == LETTER || kind == OTHER) && last > at ? last - at : end - at;
}

size_t chat_split_next(const char *text, size_t n, size_t at)
{
    uint32_t c, next;
    size_t size, after;
    class kind = look(text, n, at, &c, &size);
    if (kind == END || kind == NUMBER)
        return size;
    size_t word = contraction(text + at, n - at);
    if (word)
        return word;
    if (kind == LETTER || kind == OTHER)
        return run_of(kind, text, n, at) - at;
    class behind = look(text, n, at + size, &next, &after);
    if (c == ' ' && (behind == LETTER || behind == OTHER))
        return run_of(behind, text, n, at + size) - at;
    return spaces_at(text, n, at);
}
