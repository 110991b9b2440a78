/* buf.c: text that grows while it is written. */
#include "base/base.h"

#include <stdlib.h>

#define OWNED 65536u /* texts from this size on move to an arena without a copy */

static bool room(oi_buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more < b->cap - b->n) /* strictly: the NUL needs a byte */
        return true;
    size_t want = b->cap ? b->cap : 256;
    while (want - b->n <= more) {
        if (want > SIZE_MAX / 2) {
            b->failed = true;
            return false;
        }
        want *= 2;
    }
    char *grown = realloc(b->text, want);
    if (!grown) {
        b->failed = true;
        return false;
    }
    b->text = grown;
    b->cap = want;
    return true;
}

void oi_buf_add(oi_buf *b, const char *text, size_t n)
{
    if (!room(b, n))
        return;
    if (n)
        memcpy(b->text + b->n, text, n);
    b->n += n;
    b->text[b->n] = '\0';
}

void oi_buf_puts(oi_buf *b, const char *text)
{
    oi_buf_add(b, text, strlen(text));
}

void oi_buf_putc(oi_buf *b, char c)
{
    oi_buf_add(b, &c, 1);
}

void oi_buf_fill(oi_buf *b, char c, size_t n)
{
    if (!room(b, n))
        return;
    memset(b->text + b->n, c, n);
    b->n += n;
    b->text[b->n] = '\0';
}

void oi_buf_printf(oi_buf *b, const char *fmt, ...)
{
    if (!room(b, 0))
        return;
    va_list args;
    const size_t left = b->cap - b->n; /* mostly enough: then it is formatted once */
    va_start(args, fmt);
    const int n = vsnprintf(b->text + b->n, left, fmt, args);
    va_end(args);
    if (n < 0 || !room(b, (size_t)n)) {
        b->failed = true;
        return;
    }
    va_start(args, fmt);
    if ((size_t)n >= left)
        vsnprintf(b->text + b->n, (size_t)n + 1, fmt, args);
    va_end(args);
    b->n += (size_t)n;
}

oi_status oi_buf_take(oi_buf *b, char **out)
{
    oi_buf_add(b, "", 0);
    if (b->failed) {
        oi_buf_free(b);
        return OI_ERR_ENV;
    }
    *out = b->text;
    *b = (oi_buf){0};
    return OI_OK;
}

void oi_buf_free(oi_buf *b)
{
    free(b->text);
    *b = (oi_buf){0};
}

void oi_free(void *text)
{
    free(text);
}

typedef struct copy_args {
    const oi_buf *b;
    oi_arena *a;
    char *text;
} copy_args;

static void copy(void *ctx)
{
    copy_args *x = ctx;
    if (x->b->n < OWNED) {
        x->text = oi_arena_text(x->a, x->b->text ? x->b->text : "", x->b->n);
        return;
    }
    oi_arena_own(x->a, x->b->text, x->b->n + 1);
    x->text = x->b->text;
}

/* The inner guard is what keeps the buffer from being lost when the arena jumps away. */
char *oi_buf_to_arena(oi_buf *b, oi_arena *a)
{
    copy_args x = {b, a, NULL};
    oi_status status = b->failed ? OI_ERR_ENV : oi_arena_guard(a, copy, &x);
    if (x.text && x.text == b->text)
        *b = (oi_buf){0};
    oi_buf_free(b);
    if (status != OI_OK)
        oi_arena_fail(a);
    return x.text;
}
