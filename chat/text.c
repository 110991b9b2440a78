/* text.c: lists that grow, and reasons. */
#include "chat.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

bool chat_fail(chat_why *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return false;
}

bool chat_flush(chat_why *why)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    return chat_fail(why, "cannot write standard output%s%s", errno ? ": " : "",
                     errno ? strerror(errno) : "");
}

/* Room for n more items of `size` bytes behind *count; false when memory is out. */
static bool grow(void **at, size_t count, size_t *room, size_t n, size_t size)
{
    if (n <= *room - count)
        return true;
    if (n > SIZE_MAX / 2 - count)
        return false;
    size_t wanted = *room ? *room : 64;
    while (wanted < count + n)
        wanted *= 2;
    if (wanted > SIZE_MAX / 2 / size)
        return false;
    void *more = realloc(*at, wanted * size);
    if (!more)
        return false;
    *at = more;
    *room = wanted;
    return true;
}

void chat_bytes_add(chat_bytes *b, const void *data, size_t n)
{
    void *at = b->at;
    if (n == 0 || b->failed)
        return;
    b->failed = !grow(&at, b->n, &b->room, n, 1);
    b->at = at;
    if (!b->failed) {
        memcpy(b->at + b->n, data, n);
        b->n += n;
    }
}

void chat_bytes_free(chat_bytes *b)
{
    free(b->at);
    *b = (chat_bytes){0};
}

void chat_tokens_add(chat_tokens *t, int32_t token)
{
    void *at = t->at;
    if (t->failed)
        return;
    t->failed = !grow(&at, t->n, &t->room, 1, sizeof *t->at);
    t->at = at;
    if (!t->failed)
        t->at[t->n++] = token;
}

void chat_tokens_free(chat_tokens *t)
{
    free(t->at);
    *t = (chat_tokens){0};
}

void chat_parts_add(chat_parts *p, const char *text, size_t n, bool trusted)
{
    void *at = p->at;
    if (n == 0 || p->failed)
        return;
    size_t start = p->text.n;
    chat_bytes_add(&p->text, text, n);
    p->failed = p->text.failed || !grow(&at, p->n, &p->room, 1, sizeof *p->at);
    p->at = at;
    if (p->failed)
        return;
    /* neighbours of one kind are one part: a token's name may be written by two of them */
    if (p->n && p->at[p->n - 1].trusted == trusted)
        p->at[p->n - 1].end = p->text.n;
    else
        p->at[p->n++] = (chat_part){start, p->text.n, trusted};
}

void chat_parts_free(chat_parts *p)
{
    chat_bytes_free(&p->text);
    free(p->at);
    *p = (chat_parts){0};
}
