/* kernel.c: what kernels share in all languages: names of their tensors, and the lines of the graph
 * that they implement. */
#include "emit/emit.h"

#include <inttypes.h>

/* Whether the letter is a loop counter of the kernel or has another use in it. */
static bool is_counter(const oi_skernel *k, char letter)
{
    const char *of = strchr(OI_AXIS_LETTERS, letter);
    bool is = strchr("lne", letter) != NULL;
    for (size_t i = 0; of && i < k->nests.n; i++)
        is |= of - OI_AXIS_LETTERS < k->nests.at[i].n_axes;
    return is;
}

/* Names that the functions use themselves. */
static bool is_taken(const oi_skernel *k, const char *name)
{
    static const char *const words[] = {"acc",  "best",    "first", "from",  "lane", "last", "next",
                                        "part", "partial", "parts", "ports", "to",   "width"};
    static const char *const numbered[] = {"v", "at", "i", "size", "row"}; /* v0, v1 ... */
    bool taken = strlen(name) == 1 && is_counter(k, name[0]);
    for (size_t i = 0; i < OI_COUNT(numbered); i++) {
        size_t n = strlen(numbered[i]);
        taken |= strncmp(name, numbered[i], n) == 0 && name[n] >= '0' && name[n] <= '9';
    }
    for (size_t i = 0; i < OI_COUNT(words); i++)
        taken |= strcmp(name, words[i]) == 0;
    for (uint32_t i = 0; k->recipe && i < k->plan->n_scratch; i++)
        taken |= strcmp(name, k->plan->scratch[i].name) == 0;
    return taken;
}

const char **oi_kernel_port_names(oi_arena *a, const oi_plan *u, const oi_skernel *k)
{
    const char **names = oi_arena_alloc(a, (k->ports.n + 1) * sizeof *names);
    for (size_t i = 0; i < k->ports.n; i++) {
        const char *name = oi_port_stem(u->tensors.at, k, i);
        unsigned same = 0;
        for (size_t j = 0; j < i; j++)
            same += strcmp(names[j], name) == 0;
        names[i] = is_taken(k, name) || same ? oi_arena_printf(a, "%s_%zu", name, i) : name;
    }
    return names;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The first comment that ends after this place in the text. */
static size_t comment_after(const oi_graph *g, size_t at)
{
    size_t low = 0, high = g->comments.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (g->comments.at[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A line of the graph for use in a comment: without its own comments, and trimmed. */
static char *line_text(oi_arena *a, const oi_graph *g, oi_bytes line)
{
    const char *text = g->source.text;
    size_t at = (size_t)((const char *)line.ptr - text), end = at + line.size, n = 0;
    char *out = oi_arena_alloc(a, line.size + 1);
    bool begins = true; /* a blank here would follow another one, or begin the line */
    for (size_t c = comment_after(g, at); at < end; at++) {
        while (c < g->comments.n && at >= g->comments.at[c].end)
            c++;
        if (c < g->comments.n && at >= g->comments.at[c].start) {
            begins = n == 0 || is_blank(out[n - 1]);
        } else if (!begins || !is_blank(text[at])) {
            out[n++] = text[at];
            begins = false;
        }
    }
    while (n && is_blank(out[n - 1]))
        n--;
    out[n] = '\0';
    return out;
}

const char *oi_node_source(oi_arena *a, const oi_plan *u, uint32_t graph, const oi_pnode *n)
{
    const oi_graph *g = u->graphs.at[graph].program->graph;
    if (!g->source.name || !n->source->span.line)
        return NULL;
    oi_bytes line = oi_source_line(&g->source, n->source->span.line);
    const char *text = line_text(a, g, line);
    return n->is_lowered
               ? oi_arena_printf(a, "%s // act=\"%s\": the device's default_precision", text,
                                 oi_dtype_name(u->target->preferences.default_precision))
               : text;
}

uint64_t oi_plan_count_lowered(const oi_plan *u)
{
    uint64_t n = 0;
    for (size_t i = 0; i < u->graphs.n; i++)
        n += u->graphs.at[i].program->n_lowered;
    return n;
}

const char *oi_plan_lowered_text(oi_arena *a, const oi_plan *u)
{
    uint64_t n = oi_plan_count_lowered(u);
    return oi_arena_printf(a,
                           "%" PRIu64 " op%s computed with act=\"%s\", not as the graph says: "
                           "the device's preferences.default_precision.",
                           n, n == 1 ? " is" : "s are",
                           oi_dtype_name(u->target->preferences.default_precision));
}

const char *oi_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool oi_kernel_has_function(const oi_plan *u, const oi_skernel *k)
{
    return k->is_used && &u->kernels.at[k->function] == k;
}

static void put_source(oi_out *o, oi_arena *a, const oi_plan *u, const oi_skernel *k)
{
    const oi_graph *g = u->graphs.at[k->graph].program->graph;
    for (size_t i = 0; i < k->nodes.n; i++) {
        const char *line = oi_node_source(a, u, k->graph, k->nodes.at[i]);
        if (!line)
            continue;
        oi_out_line(o, "/* %s:%u: %s */",
                    oi_escaped(a, oi_put_c_comment, oi_file_name(g->source.name)),
                    k->nodes.at[i]->source->span.line, oi_escaped(a, oi_put_c_comment, line));
    }
}

void oi_kernel_put_source(oi_out *o, oi_arena *a, const oi_plan *u, const oi_skernel *k)
{
    put_source(o, a, u, k);
    for (uint32_t i = k->next_alike; i != OI_NO_ID; i = u->kernels.at[i].next_alike)
        put_source(o, a, u, &u->kernels.at[i]);
}

/* -- lengths -- */

typedef struct naming {
    const oi_skernel *k;
    const char *const *scalars;
} naming;

static const char *scalar_name(void *ctx, uint32_t scalar)
{
    const naming *n = ctx;
    return n->scalars ? n->scalars[scalar] : n->k->scalars.at[scalar].name;
}

const char **oi_kernel_fn_names(oi_arena *a, const oi_skernel *k, const char *const *scalars)
{
    naming n = {k, scalars};
    const char **names = oi_arena_alloc(a, (k->formulas.n + 2) * sizeof *names);
    for (size_t i = 0; i < k->formulas.n; i++) {
        uint32_t scalar;
        names[i + 1] = oi_formula_is_length(&k->formulas.at[i], &scalar)
                           ? scalar_name(&n, scalar)
                           : oi_arena_printf(a, "size%zu", i + 1);
    }
    return names;
}

const char *oi_kernel_fn_texts(oi_arena *a, const oi_skernel *k, const char *const *scalars,
                               const char *const *names, const char *index, const char *body)
{
    naming n = {k, scalars};
    oi_buf b = {0};
    for (size_t i = 0; i < k->formulas.n; i++) {
        uint32_t scalar;
        if (!oi_formula_is_length(&k->formulas.at[i], &scalar) &&
            oi_text_has_word(body, names[i + 1]))
            oi_buf_printf(&b, "    const %s %s = %s;\n", index, names[i + 1],
                          oi_formula_text(a, &k->formulas.at[i], scalar_name, &n));
    }
    return b.n ? oi_buf_to_arena(&b, a) : "";
}
