/* pass.c: the passes in their order, and what they share. */
#include "synth/pass.h"

typedef struct pass {
    const char *name;
    oi_status (*run)(oi_unit *u);
    bool is_needed; /* cannot be left out */
} pass;

/* Recipes of composites are picked while graphs become statements (bodies.c). */
static const pass passes[] = {
    {"ssa", oi_pass_ssa, false},
    {"fold", oi_pass_fold, false},
    {"match", oi_pass_match, false},
    {"dead", oi_pass_dead, false},
    {"cse", oi_pass_cse, false},
    {"hoist", oi_pass_hoist, false},
    {"copy_prop", oi_pass_copy_prop, false},
    {"inline", oi_pass_inline, false},
    {"fuse", oi_pass_fuse, false},
    {"recipes", oi_pass_recipes, false},
    {"rows", oi_pass_rows, false},
    {"narrow32", oi_pass_narrow32, false},
    {"narrow16", oi_pass_narrow16, false},
    {"int_clamp", oi_pass_int_clamp, false},
    {"view", oi_pass_view, false},
    {"layout", oi_pass_layout, false},
    {"tiles", oi_pass_tiles, false},
    {"schedule", oi_pass_schedule, false},
    {"pipeline", oi_pass_pipeline, false},
    {"inplace", oi_pass_inplace, false},
    {"log", oi_pass_log, true},
    {"memory", oi_pass_memory, true},
    {"values", oi_pass_values, false},
    {"partition", oi_pass_partition, false},
    {"merge", oi_pass_merge, false},
    {"cost", oi_pass_cost, true},
    {"slow", oi_pass_slow, false},
    {"undo", oi_pass_undo, true},
};

bool oi_unit_skips(const oi_unit *u, const char *name)
{
    for (const char *const *s = u->skip; s && *s; s++)
        if (strcmp(*s, name) == 0)
            return true;
    return false;
}

static void mark_used(oi_unit *u, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].kind == OI_STMT_KERNEL)
            u->kernels.at[list->at[i].kernel].is_used = true;
        mark_used(u, &list->at[i].body);
    }
}

static void find_used(oi_unit *u)
{
    for (size_t i = 0; i < u->kernels.n; i++)
        u->kernels.at[i].is_used = false;
    for (size_t g = 0; g < u->graphs.n; g++)
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            mark_used(u, &u->graphs.at[g].blocks[b].stmts);
}

static void number_kernels(oi_unit *u)
{
    uint32_t n = 0;
    for (size_t i = 0; i < u->kernels.n; i++)
        u->kernels.at[i].number = u->kernels.at[i].is_used ? n++ : OI_NO_ID;
}

/* Positions in what is larger would not even fit the arithmetic of passes. */
static bool is_too_large(const oi_unit *u)
{
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].size_bytes >= INT64_MAX)
            return true;
    return false;
}

/* A unit with more kernels is checked after the last pass only: reading all its instructions after
 * every pass would take longer than the passes. */
#define MOST_CHECKED 10000

static bool is_checked_after(const oi_unit *u, size_t i)
{
    return i + 1 == OI_COUNT(passes) || u->kernels.n <= MOST_CHECKED;
}

oi_status oi_passes_run(oi_unit *u)
{
    if (u->status == OI_OK && is_too_large(u))
        return oi_unit_refuse(u, 0, NULL, (oi_span){0}, "E062",
                              "the graph needs more memory than any machine has");
    for (size_t i = 0; i < OI_COUNT(passes) && u->status == OI_OK; i++) {
        if (!passes[i].is_needed && oi_unit_skips(u, passes[i].name))
            continue;
        u->status = passes[i].run(u);
        find_used(u);
        if (u->dump_after && strcmp(u->dump_after, passes[i].name) == 0) {
            oi_buf text = {0};
            oi_plan view;
            oi_unit_freeze(u, &view);
            oi_plan_put(&view, passes[i].name, &text);
            u->dump = oi_buf_to_arena(&text, u->arena);
        }
        const bool is_checked = u->status == OI_OK && is_checked_after(u, i);
        const char *wrong = is_checked ? oi_unit_check(u) : NULL;
        if (wrong)
            return u->status =
                       oi_diag_env(u->diag, "synthesizer", "after pass %s: %s; please report this",
                                   passes[i].name, wrong);
    }
    if (u->status == OI_OK) {
        number_kernels(u);
        oi_unit_refer(u);
        oi_unit_name_kernels(u);
        oi_unit_share_functions(u);
        oi_unit_name_functions(u);
    }
    return u->status;
}

const char *oi_synth_pass(size_t i)
{
    return i < OI_COUNT(passes) ? passes[i].name : NULL;
}

bool oi_loop_surely_runs(const oi_stmt *loop)
{
    int64_t start, end;
    const oi_pnode *n = loop->node;
    return oi_code_is_int(&n->as.loop.start, &start) && oi_code_is_int(&n->as.loop.end, &end) &&
           start < end;
}

void oi_stmts_remove(oi_stmts *list, size_t i)
{
    memmove(&list->at[i], &list->at[i + 1], (list->n - i - 1) * sizeof *list->at);
    list->n--;
}

void oi_unit_note(oi_unit *u, const char *name, uint32_t graph, const oi_pnode *n, const char *fmt,
                  ...)
{
    va_list args;
    va_start(args, fmt);
    *OI_PUSH(u->arena, &u->notes) =
        (oi_pass_note){name, oi_arena_vprintf(u->arena, fmt, args), n, graph};
    va_end(args);
}

const oi_scall *oi_call_shifted(oi_unit *u, const oi_scall *c, uint32_t n)
{
    if (!c || !c->scalars || n == 0)
        return c;
    oi_scall *own = oi_arena_alloc(u->arena, sizeof *own);
    uint32_t *scalars = oi_arena_alloc(u->arena, (c->op->n_attrs + 1) * sizeof *scalars);
    *own = *c;
    for (uint32_t i = 0; i < c->op->n_attrs; i++)
        scalars[i] = c->scalars[i] == OI_NO_ID ? OI_NO_ID : c->scalars[i] + n;
    own->scalars = scalars;
    return own;
}
