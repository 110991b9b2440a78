/* step.c: prints statements: blocks become functions, loops become loops and branches become ifs.
 */
#include "emit/c/c.h"

#include <inttypes.h>

static const oi_sgraph *graph_of(const oi_cprog *c)
{
    return &c->p->graphs.at[c->graph];
}

/* -- loop indices that a block's code mentions are its parameters -- */

static void mention_stmts(oi_cprog *c, uint64_t *mask, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        const oi_pnode *n = s->node;
        for (uint32_t k = 0; k < s->n_indices; k++)
            mask[s->indices[k] / 64] |= 1ull << s->indices[k] % 64;
        if (s->kind == OI_STMT_LOOP) {
            mention_stmts(c, mask, &s->body);
            mask[n->as.loop.index / 64] &= ~(1ull << n->as.loop.index % 64);
        } else if (s->kind == OI_STMT_PIPELINE) {
            mention_stmts(c, mask, &s->body);
        } else if (s->kind == OI_STMT_BRANCH) {
            const uint32_t to[2] = {n->as.branch.then_block, n->as.branch.else_block};
            for (int j = 0; j < 2; j++)
                for (uint32_t w = 0; to[j] != OI_NO_ID && w <= graph_of(c)->program->n_indices / 64;
                     w++)
                    mask[w] |= c->mentions[to[j]][w];
        }
    }
}

static void find_mentions(oi_cprog *c)
{
    const oi_sgraph *g = graph_of(c);
    uint32_t n = g->program->n_blocks, words = g->program->n_indices / 64 + 1;
    c->mentions = oi_arena_alloc(c->arena, (n + 1) * sizeof *c->mentions);
    for (uint32_t b = 0; b < n; b++)
        c->mentions[b] = oi_arena_alloc(c->arena, words * sizeof **c->mentions);
    for (uint32_t i = 0; i < g->n_order; i++) /* what a block calls comes before it */
        mention_stmts(c, c->mentions[g->order[i]], &g->blocks[g->order[i]].stmts);
}

/* block_NAME, or block_N_NAME for a consumer's copy; with several graphs blockN_ instead of block_.
 * A name cannot begin with a digit, so all differ. */
static const char *block_name(oi_cprog *c, uint32_t block)
{
    const oi_sgraph *g = graph_of(c);
    const char *own = g->program->blocks[block].source->name.text;
    bool is_copy = block >= g->program->graph->blocks.n;
    const char *graph = c->p->graphs.n > 1 ? oi_arena_printf(c->arena, "%u", c->graph) : "";
    return oi_arena_printf(c->arena, "block%s_%s%s", graph,
                           is_copy ? oi_arena_printf(c->arena, "%u_", block) : "", own);
}

/* "s, l, h", or with types. */
static const char *parameters(oi_cprog *c, const uint64_t *mentions, bool is_shared, bool typed)
{
    oi_buf b = {0};
    oi_buf_printf(&b, "%ss", typed ? oi_arena_printf(c->arena, "%s *", c->self) : "");
    if (is_shared)
        oi_buf_puts(&b, typed ? ", int worker, int workers" : ", worker, workers");
    for (uint32_t i = 0; i < graph_of(c)->program->n_indices; i++)
        if (mentions[i / 64] >> i % 64 & 1)
            oi_buf_printf(&b, ", %s%s", typed ? "int64_t " : "", oi_c_index(c, i));
    return oi_buf_to_arena(&b, c->arena);
}

static const char *block_parameters(oi_cprog *c, uint32_t block, bool typed)
{
    return parameters(c, c->mentions[block], graph_of(c)->blocks[block].is_parallel, typed);
}

/* -- statements -- */

/* Other threads learn about an error of a parallel block at the next barrier. */
static void put_call(oi_cprog *c, uint32_t block)
{
    oi_out_line(&c->out, "failed = %s(%s);", block_name(c, block),
                block_parameters(c, block, false));
    if (graph_of(c)->blocks[block].is_parallel)
        return;
    oi_c_put_failed(c);
}

static void put_branch(oi_cprog *c, const oi_pnode *n)
{
    if (n->as.branch.cond == OI_NO_ID) {
        put_call(c, n->as.branch.then_block);
        return;
    }
    const char *cond = n->as.branch.cond_is_index
                           ? oi_arena_printf(c->arena, "%s != 0", oi_c_index(c, n->as.branch.cond))
                           : oi_c_truth(c, n->as.branch.cond);
    if (c->form->wait) { /* a block may change what the condition reads */
        const char *name = oi_arena_printf(c->arena, "oi_n%u", c->n_numbers++);
        oi_out_line(&c->out, "const bool %s = %s;", name, cond);
        oi_c_wait(c);
        cond = name;
    }
    oi_out_open(&c->out, "if (%s)", cond);
    put_call(c, n->as.branch.then_block);
    oi_out_close(&c->out, " else {");
    c->out.depth++;
    put_call(c, n->as.branch.else_block);
    oi_out_close(&c->out, "");
}

static void put_set(oi_cprog *c, const oi_stmt *s)
{
    const oi_tensor *t = &c->p->tensors.at[s->a.tensor];
    const char *v = oi_c_scalar(c, &s->value);
    oi_c_check_entry(c, &s->a);
    if (c->form->device)
        c->form->device->set(c, s, v);
    if (!oi_c_is_here(c, s->a.tensor))
        return;
    oi_c_put_reuse(c, s->a.tensor);
    const char *at = oi_c_address(c, &s->a);
    oi_c_begin_write(c);
    oi_out_line(&c->out, "*%s = %s;", at,
                t->dtype == OI_I64 ? v
                                   : oi_arena_printf(c->arena, "(%s)%s", oi_c_type(t->dtype), v));
    oi_c_end_write(c);
}

static void put_limit(oi_cprog *c, const oi_stmt *s)
{
    if (s->a.tensor == OI_NO_ID) {
        oi_out_line(&c->out, "if ((uint64_t)%s > %" PRId64 ")", oi_c_scalar(c, &s->value),
                    s->limit);
        oi_out_line(&c->out, "    return 47; /* E047: out of range */");
        return;
    }
    const oi_tensor *t = &c->p->tensors.at[s->a.tensor];
    const char *at = oi_c_address(c, &s->a);
    oi_out_line(&c->out, "for (int64_t e = 0; e < %s; e++)",
                t->rank ? oi_c_length(c, s->a.tensor, 0) : "1");
    /* as an unsigned number, a negative one exceeds every limit */
    oi_out_line(&c->out, "    if ((uint64_t)(%s)[e] > %" PRId64 ")", at, s->limit);
    oi_out_line(&c->out, "        return 47; /* E047: out of range */");
}

static void put_check(oi_cprog *c, const oi_length_check *k)
{
    const char *own = oi_c_length(c, k->tensor, k->dim);
    oi_buf b = {0};
    if (k->other != OI_NO_ID)
        oi_buf_printf(&b, "%s != %s", own, oi_c_length(c, k->other, k->other_dim));
    else if (k->is_value)
        oi_buf_printf(&b, "%s != %" PRId64, own, k->value);
    if (b.n && k->may_be_one)
        oi_buf_printf(&b, " && %s != 1", own);
    if (b.n && k->other != OI_NO_ID && k->other_may)
        oi_buf_printf(&b, " && %s != 1", oi_c_length(c, k->other, k->other_dim));
    if (k->least > 0)
        oi_buf_printf(&b, "%s < %" PRId64, own, k->least);
    if (k->most >= 0)
        oi_buf_printf(&b, "%s%s > %" PRId64, b.n ? " || " : "", own, k->most);
    if (k->multiple)
        oi_buf_printf(&b, "%s%s %% %" PRId64 " != %" PRId64, b.n ? " || " : "", own, k->multiple,
                      k->remainder);
    oi_out_line(&c->out, "if (%s)", oi_buf_to_arena(&b, c->arena));
    oi_out_line(&c->out, "    return 51; /* E051: another shape */");
}

static void put_length(oi_cprog *c, const oi_stmt *s)
{
    uint32_t dim = (uint32_t)s->limit;
    const char *length = oi_c_length(c, s->b.tensor, dim), *found = oi_c_address(c, &s->a);
    if (c->p->tensors.at[s->b.tensor].run_dims >> dim & 1) {
        oi_c_begin_write(c);
        oi_out_line(&c->out, "%s = *%s;", length, found);
        oi_c_end_write(c);
        return;
    }
    oi_out_line(&c->out, "if (*%s != %s)", found, length);
    oi_out_line(&c->out, "    return 51; /* E051: the data gives another length */");
}

/* Timed programs: the first thread reports where it is; -1: between kernels. `begins`: a C
 * condition, whether a run of the kernel begins; in a pipeline the first iteration does. */
static void put_mark(oi_cprog *c, const oi_stmt *s, int64_t kernel, const char *begins)
{
    const char *first = s->is_parallel ? "if (worker == 0) " : "";
    if (c->p->timed && c->form->device)
        c->form->device->wait(c);
    if (c->p->timed)
        oi_out_line(&c->out, "%s%s%" PRId64 ", %s);", first,
                    c->form->is_remote ? "oi_mark(s, " : "s->oi_mark(", kernel, begins);
}

static void put_kernel(oi_cprog *c, const oi_stmt *s, const char *begins)
{
    const oi_skernel *k = &c->p->kernels.at[s->kernel];
    put_mark(c, s, -1, "0");
    oi_c_kernel_call(c, k);
    put_mark(c, s, k->number, begins);
}

static void put_stmts(oi_cprog *c, const oi_stmts *list, bool is_shared);
static void put_all(oi_cprog *c, const oi_stmts *list);

static void put_loop(oi_cprog *c, const oi_stmt *s)
{
    const oi_pnode *n = s->node;
    const char *i = oi_c_index(c, n->as.loop.index), *end = oi_c_code(c, &n->as.loop.end, NULL);
    int64_t fixed;
    oi_out_line(&c->out, "/* loop %s */", n->source->name.text);
    if (!oi_code_is_int(&n->as.loop.end, &fixed)) { /* evaluated once */
        oi_out_open(&c->out, "for (int64_t %s = %s, oi_until_%s = %s; %s < oi_until_%s; %s++)", i,
                    oi_c_code(c, &n->as.loop.start, NULL), i + 1, end, i, i + 1, i);
    } else {
        oi_out_open(&c->out, "for (int64_t %s = %s; %s < %s; %s++)", i,
                    oi_c_code(c, &n->as.loop.start, NULL), i, end, i);
    }
    oi_c_wait(c);
    put_stmts(c, &s->body, s->is_parallel);
    oi_out_close(&c->out, "");
}

/* "oi_rows(turn * 2 - 1, 32)": the number of rows after the iteration. */
static const char *need_text(oi_cprog *c, const oi_row_schedule *t)
{
    const char *at = t->step == 1 ? "turn" : oi_arena_printf(c->arena, "turn * %" PRId64, t->step);
    if (t->base)
        at = oi_arena_printf(c->arena, "%s %c %" PRId64, at, t->base < 0 ? '-' : '+',
                             t->base < 0 ? -t->base : t->base);
    return oi_arena_printf(c->arena, "oi_rows(%s, %" PRId64 ")", at, t->most);
}

/* "of u, of which 4 are kept": describes the rows. */
static const char *rows_text(oi_cprog *c, const oi_skernel *k)
{
    const char *text = "";
    for (size_t p = 0; p < k->ports.n; p++) {
        const oi_tensor *t = &c->p->tensors.at[k->ports.at[p].tensor];
        if (!k->ports.at[p].is_written)
            continue;
        const char *name = c->places && t->space == OI_SPACE_ARENA
                               ? oi_c_place(c, k->ports.at[p].tensor)
                               : t->name;
        text = t->ring ? oi_arena_printf(c->arena, "of %s, the last %" PRId64 " are kept", name,
                                         t->dims[t->ring - 1])
                       : oi_arena_printf(c->arena, "of %s", name);
    }
    return text;
}

/* One iteration: each kernel makes the rows that the next ones need. `first`: the thread's first
 * iteration. */
static void put_iteration(oi_cprog *c, const oi_stmt *s, const char *type, int64_t first)
{
    const size_t n = s->body.n;
    const char *begins = oi_arena_printf(c->arena, "turn == %" PRId64, first);
    const bool is_wide = strcmp(type, "int64_t") == 0; /* as oi_rows returns it */
    const char *as = is_wide ? "" : oi_arena_printf(c->arena, "(%s)", type);
    oi_out_line(&c->out, "const %s need[] = { /* rows */", type);
    for (size_t i = 0; i < n; i++) {
        const char *need = need_text(c, &s->body.at[i].rows);
        if (s->is_parallel) /* a kernel may start later than the first iteration */
            need = oi_arena_printf(c->arena, "oi_later(made[%zu], %s)", i, need);
        oi_out_line(&c->out, "    %s%s, /* %s */", as, need,
                    rows_text(c, &c->p->kernels.at[s->body.at[i].kernel]));
    }
    oi_out_line(&c->out, "};");
    for (size_t i = 0; i < n; i++) {
        c->rows = oi_arena_printf(c->arena, ", made[%zu], need[%zu]", i, i);
        put_kernel(c, &s->body.at[i], begins);
    }
    oi_out_line(&c->out, "memcpy(made, need, sizeof made);");
}

/* Prints the list with `put` as the body of another function that has its own places. They are the
 * current ones until the caller is done. */
static const char *spell_apart(oi_cprog *c, oi_cplaces *own, const oi_stmts *list,
                               void (*put)(oi_cprog *c, const oi_stmts *list))
{
    const size_t before = c->out.buf.n;
    const unsigned depth = c->out.depth;
    c->out.depth = 1;
    c->places = own;
    put(c, list);
    const char *text = oi_arena_text(c->arena, c->out.buf.text + before, c->out.buf.n - before);
    c->out.buf.n = before;
    c->out.depth = depth;
    return text;
}

/* One thread's range of the last rows: each kernel begins with the first row that the range needs.
 */
static void put_range(oi_cprog *c, const oi_stmts *one)
{
    const oi_stmt *s = &one->at[0];
    const oi_row_range *r = &s->range;
    const char *share = "const int64_t %s = oi_partition_begin(%" PRId64 ", 1, worker%s, workers);";
    oi_out_line(&c->out, share, "begin", r->units, "");
    oi_out_line(&c->out, share, "end", r->units, " + 1");
    oi_out_line(&c->out, "int64_t made[] = {");
    for (size_t i = 0; i < s->body.n; i++) {
        const oi_row_schedule *t = &s->body.at[i].rows;
        oi_out_line(&c->out, "    oi_rows(begin * %" PRId64 " + %" PRId64 ", %" PRId64 "),",
                    t->step, t->begin, t->most);
    }
    oi_out_line(&c->out, "};");
    oi_out_open(&c->out,
                "for (int64_t turn = begin + %" PRId64 "; begin < end && turn < end + %" PRId64
                "; turn++)",
                r->first, r->end);
    put_iteration(c, s, "int64_t", r->first);
    oi_out_close(&c->out, "");
}

/* In a function of its own, so that its line buffers occupy the stack only while it runs. */
static void put_ranges(oi_cprog *c, const oi_stmt *s)
{
    uint64_t *mask = oi_arena_alloc(c->arena, (graph_of(c)->program->n_indices / 64 + 1) * 8);
    const char *name = oi_arena_printf(c->arena, "oi_pipeline%u_%u", c->graph, c->n_aside++);
    const oi_stmts one = {.at = (oi_stmt *)s, .n = 1};
    oi_cplaces own = {0}, *outer = c->places;
    const char *text = spell_apart(c, &own, &one, put_range);
    mention_stmts(c, mask, &one);
    oi_out_line(&c->aside, "%s void %s(%s)", c->form->function, name,
                parameters(c, mask, true, true));
    oi_out_brace(&c->aside);
    oi_out_text(&c->aside, oi_c_place_lines(c));
    oi_out_text(&c->aside, text);
    oi_out_close(&c->aside, "");
    oi_out_line(&c->aside, "%s", "");
    c->places = outer;
    oi_out_line(&c->out, "%s(%s);", name, parameters(c, mask, true, false));
}

static void put_pipeline(oi_cprog *c, const oi_stmt *s)
{
    const char *type = oi_c_is_board(c) ? oi_lang_c32.index : oi_lang_c.index;
    if (s->is_parallel) {
        put_ranges(c, s);
        return;
    }
    oi_out_open(&c->out, "for (%s turn = 0, made[%zu] = {0}; turn < %" PRId64 "; turn++)", type,
                s->body.n, s->limit);
    put_iteration(c, s, type, 0);
    oi_out_close(&c->out, "");
}

/* -- what the first thread does alone, between what all do -- */

/* The block locates views; the pointers that a group of statements uses are passed on. */
typedef struct pointers {
    oi_cprog *c;
    oi_buf typed, plain;
    uint64_t *seen; /* bit per tensor */
} pointers;

static void hand_on(pointers *p, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        for (uint32_t k = 0; k < list->at[i].n_uses; k++) {
            const oi_stmt_use *own = &list->at[i].uses[k];
            const oi_tensor *t = &p->c->p->tensors.at[own->tensor];
            if (t->space != OI_SPACE_VIEW || own->is_length ||
                p->seen[own->tensor / 64] >> own->tensor % 64 & 1)
                continue;
            p->seen[own->tensor / 64] |= 1ull << own->tensor % 64;
            oi_buf_printf(&p->typed, ", const %s *%s", oi_c_type(t->dtype), oi_c_lent(p->c, t));
            oi_buf_printf(&p->plain, ", %s", oi_c_lent(p->c, t));
        }
        hand_on(p, &list->at[i].body);
    }
}

/* In a function of its own, because it may return early. */
static void put_aside(oi_cprog *c, const oi_stmts *group)
{
    uint64_t *mask = oi_arena_alloc(c->arena, (graph_of(c)->program->n_indices / 64 + 1) * 8);
    const char *name = oi_arena_printf(c->arena, "oi_alone%u_%u", c->graph, c->n_aside++);
    pointers lent = {.c = c, .seen = oi_arena_alloc(c->arena, (c->p->tensors.n / 64 + 1) * 8)};
    mention_stmts(c, mask, group);
    hand_on(&lent, group);
    const char *typed = lent.typed.n ? oi_buf_to_arena(&lent.typed, c->arena) : "";
    const char *plain = lent.plain.n ? oi_buf_to_arena(&lent.plain, c->arena) : "";
    oi_cplaces own = {0}, *outer = c->places;
    const char *text = spell_apart(c, &own, group, put_all);
    oi_out_line(&c->aside, "%s int %s(%s%s)", c->form->function, name,
                parameters(c, mask, false, true), typed);
    oi_out_brace(&c->aside);
    if (oi_c_uses(c, group, false).failed)
        oi_out_line(&c->aside, "int failed;");
    oi_out_text(&c->aside, oi_c_place_lines(c));
    oi_out_text(&c->aside, text);
    oi_out_line(&c->aside, "return 0;");
    oi_out_close(&c->aside, "");
    oi_out_line(&c->aside, "%s", "");
    c->places = outer;
    oi_out_line(&c->out,
                group->at[0].first_enters ? "if (!failed)" : "if (worker == 0 && !failed)");
    oi_out_line(&c->out, "    failed = %s(%s%s);", name, parameters(c, mask, false, false), plain);
}

/* Code that may end the step goes into a function of its own. */
static void put_alone(oi_cprog *c, const oi_stmts *group)
{
    bool ends = oi_stmts_call(group);
    for (size_t i = 0; i < group->n; i++)
        ends |= group->at[i].may_fail;
    if (ends) {
        put_aside(c, group);
    } else if (oi_c_is_spelled(c, group)) {
        oi_out_open(&c->out, group->at[0].first_enters ? "if (!failed)" : "if (worker == 0)");
        put_all(c, group);
        oi_out_close(&c->out, "");
    }
}

static void put_barrier(oi_cprog *c, const oi_stmt *s)
{
    const char *next = s->has_prefetch ? oi_c_weights(c, s->prefetch) : "NULL";
    oi_out_call(&c->out,
                oi_arena_printf(c->arena, "failed = oi_barrier(s, worker, failed, %s);", next));
    oi_c_put_failed(c);
}

/* All threads enter the barrier. The first one runs the group before it releases the others. */
static void put_serial_group(oi_cprog *c, const oi_stmts *group)
{
    const oi_stmt *s = &group->at[0];
    const char *next = s->has_prefetch ? oi_c_weights(c, s->prefetch) : "NULL";
    oi_out_call(&c->out,
                oi_arena_printf(c->arena, "if (oi_first_enters(s, worker, &failed, %s)) {", next));
    c->out.depth++;
    put_alone(c, group);
    oi_out_line(&c->out, "oi_release(s, failed);");
    oi_out_close(&c->out, "");
    oi_c_put_failed(c);
}

static void put_chunks(oi_cprog *c, const oi_stmts *group)
{
    oi_out_open(&c->out, "for (team_chunk chunk = {0}; oi_next_chunk(s, worker, &chunk);)");
    put_all(c, group);
    oi_out_close(&c->out, "");
}

static void put_parallel(oi_cprog *c, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n;) {
        const oi_stmt *s = &list->at[i];
        const size_t n = s->chunks ? s->chunks : s->is_parallel ? 1 : s->serial;
        const oi_stmts group = {.at = &list->at[i], .n = n};
        if (s->barrier && !s->first_enters)
            put_barrier(c, s);
        if (s->chunks)
            put_chunks(c, &group);
        else if (s->is_parallel)
            put_all(c, &group);
        else if (s->first_enters)
            put_serial_group(c, &group);
        else
            put_alone(c, &group);
        i += group.n;
    }
}

static void put_stmts(oi_cprog *c, const oi_stmts *list, bool is_shared)
{
    if (is_shared)
        put_parallel(c, list);
    else
        put_all(c, list);
}

static void put_all(oi_cprog *c, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        if (c->form->device)
            c->form->device->before(c, s);
        switch (s->kind) {
        case OI_STMT_KERNEL: put_kernel(c, s, "1"); break;
        case OI_STMT_NEED:
            oi_c_need(c, s);
            oi_c_wait(c);
            break;
        case OI_STMT_RESIZE: oi_c_resize(c, s); break;
        case OI_STMT_LOG: oi_c_log(c, s); break;
        case OI_STMT_VIEW: oi_c_view(c, s); break;
        case OI_STMT_SET: put_set(c, s); break;
        case OI_STMT_LOOP: put_loop(c, s); break;
        case OI_STMT_PIPELINE: put_pipeline(c, s); break;
        case OI_STMT_BRANCH: put_branch(c, s->node); break;
        case OI_STMT_YIELD: oi_c_yield(c, s->node); break;
        case OI_STMT_AWAIT: oi_c_await(c, s->node); break;
        case OI_STMT_LIMIT:
            put_limit(c, s);
            oi_c_wait(c);
            break;
        case OI_STMT_SIZES: oi_c_kernel_lengths(c, &c->p->kernels.at[s->kernel]); break;
        case OI_STMT_LENGTH:
            put_length(c, s);
            oi_c_wait(c);
            break;
        case OI_STMT_SHAPE:
            for (uint32_t k = 0; k < s->n_checks; k++)
                put_check(c, &s->checks[k]);
            oi_c_wait(c);
            break;
        case OI_STMT_CHECK: oi_c_checkpoint(c, s); break;
        case OI_STMT_BARRIER:
        case OI_STMT_GONE:
        case OI_STMT_RETURN: break;
        }
    }
}

/* -- blocks -- */

static void put_block(oi_cprog *c, uint32_t block)
{
    const oi_sgraph *g = graph_of(c);
    c->block = block;
    const bool is_shared = g->blocks[block].is_parallel;
    const oi_cuses uses = oi_c_uses(c, &g->blocks[block].stmts, is_shared);
    size_t before = c->out.buf.n;
    oi_cplaces places = {0};
    c->n_numbers = 0;
    c->out.depth = 1;
    c->places = &places;
    put_stmts(c, &g->blocks[block].stmts, is_shared);
    c->out.depth = 0;
    const char *text = oi_arena_text(c->arena, c->out.buf.text + before, c->out.buf.n - before);
    const char *rest = oi_arena_printf(c->arena, "%s%s", oi_c_place_lines(c), text);
    c->places = NULL;
    c->out.buf.n = before;
    oi_buf_add(&c->out.buf, c->aside.buf.text, c->aside.buf.n);
    c->aside.buf.n = 0;
    oi_out_line(&c->out, "%s int %s(%s)", c->form->function, block_name(c, block),
                block_parameters(c, block, true));
    oi_out_brace(&c->out);
    if (is_shared)
        oi_out_line(&c->out, "int failed = 0;");
    else if (uses.failed)
        oi_out_line(&c->out, "int failed;");
    if (!uses.memory)
        oi_out_line(&c->out, "(void)s;");
    if (is_shared && !uses.worker)
        oi_out_line(&c->out, "(void)worker;");
    if (is_shared && !uses.workers)
        oi_out_line(&c->out, "(void)workers;");
    oi_out_text(&c->out, rest);
    oi_out_line(&c->out, is_shared ? "return failed;" : "return 0;");
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
    oi_settle(c->settler, &c->out.buf, before);
}

void oi_c_blocks(oi_cprog *c)
{
    const oi_sgraph *g = graph_of(c);
    const size_t before = c->out.buf.n;
    find_mentions(c);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_used && b != g->program->entry)
            oi_out_line(&c->out, "%s int %s(%s);", c->form->function, block_name(c, b),
                        block_parameters(c, b, true));
    if (g->program->n_blocks > 1)
        oi_out_line(&c->out, "%s", "");
    oi_settle(c->settler, &c->out.buf, before);
    for (uint32_t b = 0; b < g->program->n_blocks; b++)
        if (g->blocks[b].is_used)
            put_block(c, b);
    oi_buf_free(&c->aside.buf);
    c->aside = (oi_out){0};
    c->n_aside = 0;
}

bool oi_c_is_shared(const oi_cprog *c)
{
    return c->p->is_parallel;
}

/* The emitted text is C99 but for the threads' atomics, see oi_plan_emit_host. */
const char *oi_c_std_name(const oi_cprog *c)
{
    return c->p->target->cpu.c_standard == OI_C99 ? "c99" : "c11";
}

const char *oi_c_block_name(oi_cprog *c, uint32_t block)
{
    return block_name(c, block);
}
