/* measure.c: what gcc and the linker made of a C program: how much stack a call can need at most,
 * and how many bytes of flash the whole is.
 *
 * gcc writes a call graph with the stack of every function (-fcallgraph-info=su). The longest chain
 * of calls is the answer. Emitted code has no recursion, no calls through pointers and no arrays of
 * variable length, so there is one. Functions of the compiler's own library have no figure and get
 * one allowance each. */
#include "emit/c/c.h"

#include <stdio.h>
#include <stdlib.h>

#define LIBRARY_STACK 128 /* more than any function of libgcc saves; they are leaves */

typedef struct call {
    uint32_t from, to;
} call;

typedef struct function {
    const char *name;
    uint64_t own, worst; /* bytes */
    bool is_known, is_done, is_open;
} function;

typedef struct calls {
    oi_arena *arena;
    oi_map ids;
    OI_VEC(function) functions;
    OI_VEC(call) list;
    bool is_unbounded; /* a cycle, or a frame whose size varies */
} calls;

/* -- reading -- */

/* The text between quotes after `key`, or NULL. */
static const char *quoted(calls *c, const char *line, size_t n, const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i + len < n; i++)
        if (memcmp(line + i, key, len) == 0) {
            const char *from = line + i + len, *to = memchr(from, '"', n - i - len);
            return to ? oi_arena_text(c->arena, from, (size_t)(to - from)) : NULL;
        }
    return NULL;
}

static uint32_t find(calls *c, const char *name)
{
    uint32_t id = oi_map_get(&c->ids, name);
    if (id != OI_MAP_NONE)
        return id;
    id = (uint32_t)c->functions.n;
    *OI_PUSH(c->arena, &c->functions) = (function){.name = name};
    oi_map_set(&c->ids, name, id);
    return id;
}

/* "name\nfile.c:1:2\n32 bytes (static)": the figure, where there is one. */
static void read_node(calls *c, const char *title, const char *label)
{
    uint32_t id = find(c, title); /* may move the list */
    function *f = &c->functions.at[id];
    const char *at = strstr(label, " bytes (");
    if (!at)
        return;
    const char *digits = at;
    while (digits > label && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    f->own = strtoull(digits, NULL, 10);
    f->is_known = true;
    c->is_unbounded |= strncmp(at, " bytes (static)", 15) != 0 && !strstr(at, "bounded");
}

static void read_line(calls *c, const char *line, size_t n)
{
    const char *title = quoted(c, line, n, "title: \""), *label = quoted(c, line, n, "label: \"");
    const char *from = quoted(c, line, n, "sourcename: \"");
    const char *to = quoted(c, line, n, "targetname: \"");
    if (from && to) {
        uint32_t a = find(c, from), b = find(c, to);
        *OI_PUSH(c->arena, &c->list) = (call){a, b};
    } else if (n > 5 && memcmp(line, "node:", 5) == 0 && title && label) {
        read_node(c, title, label);
    }
}

static bool read_calls(calls *c, const char *dir, const char *name)
{
    char path[4096], *text = NULL;
    size_t n = 0;
    if (snprintf(path, sizeof path, "%s/%s.ci", dir, name) >= (int)sizeof path ||
        oi_file_read(path, 64u << 20, &text, &n, NULL) != OI_OK)
        return false;
    for (const char *p = text, *end = text + n; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        read_line(c, p, (size_t)(stop - p));
        p = stop + 1;
    }
    free(text);
    return true;
}

/* -- the worst chain -- */

static uint64_t worst_of(calls *c, uint32_t id)
{
    function *f = &c->functions.at[id];
    if (f->is_done)
        return f->worst;
    if (f->is_open) { /* it calls itself in the end */
        c->is_unbounded = true;
        return 0;
    }
    f->is_open = true;
    uint64_t below = 0;
    for (size_t i = 0; i < c->list.n; i++)
        if (c->list.at[i].from == id) {
            uint64_t w = worst_of(c, c->list.at[i].to);
            below = w > below ? w : below;
        }
    f->worst = (f->is_known ? f->own : LIBRARY_STACK) + below;
    f->is_done = true;
    return f->worst;
}

/* -- flash: what a loader would write -- */

static uint32_t word_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The bytes of all segments that are loaded, from the program headers of a 32-bit ELF file. */
static uint64_t image_bytes(const char *dir, const char *name)
{
    char path[4096], *text = NULL;
    size_t n = 0;
    uint64_t all = 0;
    if (snprintf(path, sizeof path, "%s/%s.elf", dir, name) >= (int)sizeof path ||
        oi_file_read(path, 1u << 30, &text, &n, NULL) != OI_OK)
        return 0;
    const unsigned char *p = (const unsigned char *)text;
    if (n >= 52 && memcmp(p, "\177ELF\1\1", 6) == 0) {
        uint64_t at = word_at(p + 28), each = word_at(p + 42) & 0xffff;
        uint64_t count = word_at(p + 44) & 0xffff;
        for (uint64_t i = 0; i < count && each >= 32 && at + each <= n; i++, at += each)
            if (word_at(p + at) == 1) /* PT_LOAD */
                all += word_at(p + at + 16);
    }
    free(text);
    return all;
}

/* -- both -- */

static void find_worst(calls *c, const char *name, oi_plan_measured *out)
{
    const size_t len = strlen(name);
    for (uint32_t i = 0; i < c->functions.n; i++) {
        const char *own = c->functions.at[i].name;
        const uint64_t worst = worst_of(c, i);
        const bool is_ours = strncmp(own, name, len) == 0 && own[len] == '_';
        if (is_ours && worst > out->call_stack_bytes)
            out->call_stack_bytes = worst;
        if (worst > out->program_stack_bytes)
            out->program_stack_bytes = worst;
    }
}

oi_status oi_c_measure(const oi_plan *p, const char *dir, oi_plan_measured *out, oi_diag *d)
{
    static const char *const others[] = {"main", "semihosting", "start", "freestanding"};
    calls c = {.arena = p->arena, .ids.arena = p->arena};
    if (!read_calls(&c, dir, p->name))
        return oi_diag_env(d, p->name, "the compiler wrote no call graph; gcc 10 and later do");
    for (size_t i = 0; i < OI_COUNT(others); i++)
        (void)read_calls(&c, dir, others[i]);
    find_worst(&c, p->name, out);
    out->flash_bytes = image_bytes(dir, p->name);
    if (c.is_unbounded)
        return oi_diag_env(d, p->name, "the compiler's call graph gives the stack no bound");
    return OI_OK;
}
