/* names.c: C names for what the graph and the caller name.
 *
 * Our own names are recognisable: members and functions begin with oi_, kernels with kernel_,
 * blocks with block; locals are settled (emit/settle.c). A name from the graph is kept unless C or
 * C++ may use it for something else in any scope: keywords, and macros of standard headers, which a
 * host may include before NAME.h. Such a name, and one that begins with oi_, gets the prefix x_.
 * The program's name is also a type at file scope and part of file names. It gets the prefix
 * program_ if a standard header or a file beside it has that name. */
#include "emit/c/c.h"

#include "device/device.h"

extern const oi_embedded oi_c_word_lists[]; /* generated from words/: sorted, a word per line */

/* Compares the line with the name: -1, 0 or 1. */
static int compare_line(const char *line, const char *end, const char *name)
{
    for (; line < end && *line != '\n'; line++, name++)
        if (*line != *name)
            return (unsigned char)*line < (unsigned char)*name ? -1 : 1;
    return *name ? -1 : 0;
}

static bool is_listed(const char *list, const char *name)
{
    const oi_embedded *e = oi_c_word_lists;
    while (strcmp(e->name, list) != 0)
        e++;
    const char *text = (const char *)e->text, *low = text, *high = text + e->size;
    while (low < high) { /* both begin a line */
        const char *line = low + (high - low) / 2;
        while (line > low && line[-1] != '\n')
            line--;
        const int order = compare_line(line, high, name);
        if (order == 0)
            return true;
        if (order > 0) {
            high = line;
            continue;
        }
        while (line < high && *line != '\n')
            line++;
        low = line + 1;
    }
    return false;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Reserved by compilers: __func__, _Bool, _Static_assert. */
static bool is_internal(const char *name)
{
    return name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

bool oi_c_is_forbidden(const char *name)
{
    return is_internal(name) || begins(name, "oi_") || begins(name, "OI_") ||
           is_listed("keywords", name) || is_listed("macros", name);
}

/* -- members -- */

/* Whether another member of the struct has that name. */
static bool is_beside(const oi_cprog *c, const oi_tensor *t, const char *name)
{
    for (size_t i = 0; t->space == OI_SPACE_STATE && i < c->p->stores.n; i++)
        if (strcmp(c->p->tensors.at[c->p->stores.at[i].tensor].var->name, name) == 0)
            return true;
    return t->space != OI_SPACE_STATE &&
           oi_symbols_find(c->p->graphs.at[t->graph].program->symbols, name) != NULL;
}

const char *oi_c_field(const oi_cprog *c, const oi_tensor *t)
{
    if (t->marks_of)
        return oi_arena_printf(c->arena, "oi_written_%s",
                               oi_c_field(c, &c->p->tensors.at[t->marks_of - 1]));
    const char *wanted = t->var ? t->var->name : t->name, *name = wanted;
    while (oi_c_is_forbidden(name) || (name != wanted && is_beside(c, t, name)))
        name = oi_arena_printf(c->arena, "x_%s", name);
    return name;
}

typedef void note_fn(void *ctx, const char *was, const char *is);

static void note_fields(oi_cprog *c, const uint32_t *ids, size_t n, note_fn *note, void *ctx)
{
    for (size_t i = 0; i < n; i++) {
        const oi_tensor *t = &c->p->tensors.at[ids[i]];
        const bool is_member = t->space == OI_SPACE_INPUT || t->space == OI_SPACE_OUTPUT;
        if (is_member && t->var)
            note(ctx, t->var->name, oi_c_field(c, t));
    }
}

void oi_c_note_names(const oi_plan *p, note_fn *note, void *ctx)
{
    oi_cprog c = {.p = p, .arena = p->arena, .name = p->name};
    for (size_t g = 0; g < p->graphs.n; g++) {
        note_fields(&c, p->graphs.at[g].inputs.at, p->graphs.at[g].inputs.n, note, ctx);
        note_fields(&c, p->graphs.at[g].outputs.at, p->graphs.at[g].outputs.n, note, ctx);
    }
    for (size_t i = 0; i < p->stores.n; i++) {
        const oi_tensor *t = &p->tensors.at[p->stores.at[i].tensor];
        note(ctx, t->var->name, oi_c_field(&c, t));
    }
}

/* -- programs and graphs -- */

/* "block", any digits, "_" */
static bool is_block_name(const char *name)
{
    if (!begins(name, "block"))
        return false;
    name += 5;
    return name[strspn(name, "0123456789")] == '_';
}

/* Files beside NAME.h and NAME.c, targets of make and CMake; compared without case, as some file
 * systems do. */
static bool is_beside_program(const char *name)
{
    static const char *const words[] = {
        "main",          "hal",      "team",        "needs",   "weights",        "start",
        "freestanding",  "makefile", "gnumakefile", "all",     "clean",          "run",
        "install",       "test",     "help",        "package", "package_source", "edit_cache",
        "rebuild_cache", "depend",   "preinstall",  "m",       "kernel",         "finish",
        "build",         "linux"};
    for (size_t i = 0; i < OI_COUNT(words); i++) {
        size_t k = 0;
        while (words[i][k] && (name[k] | 0x20) == (words[i][k] | 0x20))
            k++;
        if (!words[i][k] && !name[k])
            return true;
    }
    return false;
}

static bool is_library(const char *name)
{
    return is_listed("names", name) || is_listed("macros", name) || is_listed("keywords", name);
}

/* Exported names begin with the program's name. */
static bool meets_library(oi_arena *a, const char *name)
{
    static const char *const ends[] = {"",      "_init",    "_step", "_reset",        "_save",
                                       "_load", "_weights", "_OK",   "_check_weights"};
    bool meets = false;
    for (size_t i = 0; i < OI_COUNT(ends); i++)
        meets |= is_library(oi_arena_printf(a, "%s%s", name, ends[i]));
    return meets;
}

const char *oi_c_program_name(oi_arena *a, const char *wanted)
{
    static const char *const ours[] = {"kernel_", "finish_", "hal_", "team_", "main_"};
    bool is_bad = wanted[0] == '_' || oi_c_is_forbidden(wanted) || is_block_name(wanted) ||
                  is_beside_program(wanted) || meets_library(a, wanted);
    for (size_t i = 0; i < OI_COUNT(ours); i++)
        is_bad |= begins(wanted, ours[i]);
    return is_bad ? oi_arena_printf(a, "program_%s", wanted) : wanted;
}

const char *oi_c_graph_name(oi_arena *a, const char *wanted)
{
    return oi_c_is_forbidden(wanted) ? oi_arena_printf(a, "x_%s", wanted) : wanted;
}

/* -- locals -- */

/* Scalars of a kernel become parameters, so they are settled like its tensors. */
const char **oi_c_scalar_names(oi_cprog *c, const oi_skernel *k)
{
    const char **names = oi_arena_alloc(c->arena, (k->scalars.n + 1) * sizeof *names);
    for (size_t i = 0; i < k->scalars.n; i++)
        names[i] = oi_arena_printf(c->arena, OI_FROM_GRAPH "%s", k->scalars.at[i].name);
    return names;
}

static bool is_scalar(const oi_skernel *k, const char *name)
{
    for (size_t i = 0; i < k->scalars.n; i++)
        if (strcmp(k->scalars.at[i].name, name + sizeof OI_FROM_GRAPH - 1) == 0)
            return true;
    return false;
}

const char **oi_c_port_names(oi_cprog *c, const oi_skernel *k)
{
    const char **names = oi_arena_alloc(c->arena, (k->ports.n + 1) * sizeof *names);
    for (size_t i = 0; i < k->ports.n; i++) {
        const char *stem = oi_port_stem(c->p->tensors.at, k, i);
        const char *name = oi_arena_printf(c->arena, OI_FROM_GRAPH "%s", stem);
        bool is_new = false;
        for (unsigned n = 2; !is_new; n++) {
            is_new = !is_scalar(k, name);
            for (size_t j = 0; j < i; j++)
                is_new &= strcmp(names[j], name) != 0;
            if (!is_new)
                name = oi_arena_printf(c->arena, OI_FROM_GRAPH "%s_%u", stem, n);
        }
        names[i] = name;
    }
    return names;
}
