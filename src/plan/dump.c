/* dump.c: the unit as text, for people who look at what a pass did: statements as in the graph,
 * with the kernels that stand for their nodes. */
#include "plan/plan.h"

#include <inttypes.h>

typedef struct dumping {
    const oi_plan *u;
    uint32_t graph;
    oi_buf *out;
    unsigned depth;
} dumping;

static const char *name_of(const dumping *d, uint32_t tensor)
{
    return d->u->tensors.at[tensor].name;
}

static void put_axes(dumping *d, const oi_snest *n)
{
    static const char *const kinds[] = {
        [OI_NEST_MAP] = "map", [OI_NEST_REDUCE] = "reduce", [OI_NEST_CONTRACT] = "contract"};
    oi_buf_printf(d->out, "%s[", kinds[n->kind]);
    for (uint32_t a = 0; a < n->n_axes; a++) {
        oi_buf_printf(d->out, "%s%s%" PRId64, a ? ", " : "", n->axes[a].is_reduced ? "+" : "",
                      n->axes[a].extent);
        oi_axis_put_levels(&n->axes[a], d->out);
    }
    oi_buf_puts(d->out, "]");
}

static void put_kernel(dumping *d, const oi_skernel *k)
{
    bool first = true;
    oi_buf_printf(d->out, "%s(", k->name);
    for (size_t i = 0; i < k->ports.n; i++)
        if (!k->ports.at[i].is_written || oi_kernel_reads(k, k->ports.at[i].tensor)) {
            oi_buf_printf(d->out, "%s%s", first ? "" : ", ", name_of(d, k->ports.at[i].tensor));
            first = false;
        }
    oi_buf_puts(d->out, ") >>");
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].is_written)
            oi_buf_printf(d->out, " %s", name_of(d, k->ports.at[i].tensor));
    oi_buf_puts(d->out, "; //");
    for (size_t i = 0; i < k->nodes.n; i++) {
        const oi_pnode *n = k->nodes.at[i];
        oi_buf_printf(d->out, " %s%s",
                      n->kind == OI_NODE_OP ? n->as.op.op->name : oi_node_table[n->kind].keyword,
                      n->is_lowered ? " (lowered)" : "");
    }
    oi_buf_puts(d->out, ":");
    if (k->recipe)
        oi_buf_printf(d->out, " recipe %s", k->recipe->name);
    for (size_t i = 0; i < k->nests.n; i++) {
        oi_buf_puts(d->out, " ");
        put_axes(d, &k->nests.at[i]);
    }
    oi_buf_puts(d->out, "\n");
}

/* -- accesses to the state -- */

static const char *leaf_text(const dumping *d, const oi_ins *i)
{
    const oi_program *p = d->u->graphs.at[d->graph].program;
    oi_arena *a = d->u->arena;
    switch (i->kind) {
    case OI_INS_INT: return oi_arena_printf(a, "%" PRId64, i->value);
    case OI_INS_INDEX: return p->symbols->list.at[p->first_index + i->id].name;
    case OI_INS_VAR: return p->vars[i->id].name;
    case OI_INS_SIZE:
        return oi_arena_printf(a, "%s.size[%u]", name_of(d, (uint32_t)i->value), i->id);
    case OI_INS_LENGTH:
        return oi_arena_printf(a, "%s.length[%u]", name_of(d, (uint32_t)i->value), i->id);
    case OI_INS_CELL: return name_of(d, (uint32_t)i->value);
    default: return "0";
    }
}

static const char *code_text(const dumping *d, const oi_code *c)
{
    static const char *const forms[] = {
        [OI_INS_ADD] = "(%s + %s)",   [OI_INS_SUB] = "(%s - %s)",  [OI_INS_MUL] = "(%s * %s)",
        [OI_INS_DIV] = "(%s / %s)",   [OI_INS_MOD] = "(%s %% %s)", [OI_INS_MIN] = "min(%s, %s)",
        [OI_INS_MAX] = "max(%s, %s)", [OI_INS_END] = "end(%s, %s)"};
    const char *stack[OI_CODE_STACK];
    size_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const oi_ins_kind kind = c->at[i].kind;
        if (kind < OI_INS_NEG) {
            stack[n++] = leaf_text(d, &c->at[i]);
        } else if (kind == OI_INS_NEG) {
            stack[n - 1] = oi_arena_printf(d->u->arena, "-%s", stack[n - 1]);
        } else {
            n--;
            stack[n - 1] = oi_arena_printf(d->u->arena, forms[kind], stack[n - 1], stack[n]);
        }
    }
    return n ? stack[0] : "0";
}

/* "K[l + 1, step + 4, 0 + 16]": first positions and how many. */
static void put_part(dumping *d, const oi_port *p)
{
    const oi_tensor *t = &d->u->tensors.at[p->tensor];
    oi_buf_puts(d->out, t->name);
    for (uint32_t i = 0; p->n_entry && i < t->rank; i++)
        oi_buf_printf(d->out, "%s%s : %s", i ? ", " : "[", code_text(d, &p->entry[i]),
                      code_text(d, &p->count[i]));
    oi_buf_puts(d->out, p->n_entry ? "]" : "");
}

static void put_needs(dumping *d, const oi_stmt *s)
{
    static const char *const signs[] = {
        [OI_NEED_START] = ">=", [OI_NEED_ORDER] = ">=",  [OI_NEED_INDEX] = "<",
        [OI_NEED_END] = "<=",   [OI_NEED_GROWTH] = "<=", [OI_NEED_BOUND] = "<=",
        [OI_NEED_EQUAL] = "=="};
    oi_buf_printf(d->out, "need");
    for (uint32_t i = 0; i < s->n_checks; i++)
        oi_buf_printf(d->out, "%s %s %s %s (E%03d)", i ? "," : "", code_text(d, &s->needs[i].value),
                      signs[s->needs[i].kind], code_text(d, &s->needs[i].limit),
                      oi_need_error(s->needs[i].kind));
    oi_buf_puts(d->out, ";\n");
}

static void put_resize(dumping *d, const oi_stmt *s)
{
    const oi_resize *r = s->resize;
    bool any = false;
    oi_buf_printf(d->out, "resize %s", name_of(d, s->a.tensor));
    for (uint32_t i = 0; i < d->u->tensors.at[s->a.tensor].rank; i++)
        if (r->sizes[i].n)
            oi_buf_printf(d->out, " [%u]%s= %s", i, r->always >> i & 1 ? "" : "?",
                          code_text(d, &r->sizes[i]));
    for (uint32_t i = 0; i < r->n_counts; i++, any = true)
        oi_buf_printf(d->out, "%s %s > 0", any ? " and" : " if", code_text(d, &r->counts[i]));
    oi_buf_puts(d->out, ";\n");
}

static void put_list(dumping *d, const oi_stmts *list);

static void put_body(dumping *d, const oi_stmts *list)
{
    d->depth++;
    put_list(d, list);
    d->depth--;
    oi_buf_fill(d->out, ' ', (size_t)2 * d->depth);
    oi_buf_puts(d->out, "}\n");
}

static void put_list(dumping *d, const oi_stmts *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        const oi_node *n = s->node->source;
        oi_buf_fill(d->out, ' ', (size_t)2 * d->depth);
        switch (s->kind) {
        case OI_STMT_KERNEL:
            if (s->rows.most)
                oi_buf_printf(d->out, "rows %" PRId64 " + %" PRId64 " n of %" PRId64 ": ",
                              s->rows.base, s->rows.step, s->rows.most);
            put_kernel(d, &d->u->kernels.at[s->kernel]);
            break;
        case OI_STMT_LOOP:
            oi_buf_printf(d->out, "loop %s {\n", n->name.text);
            put_body(d, &s->body);
            break;
        case OI_STMT_PIPELINE:
            oi_buf_printf(d->out, "pipeline %" PRId64 " {\n", s->limit);
            put_body(d, &s->body);
            break;
        case OI_STMT_SET: oi_buf_printf(d->out, "set %s;\n", name_of(d, s->a.tensor)); break;
        case OI_STMT_SIZES:
            for (size_t k = 0; k < d->u->kernels.at[s->kernel].lengths.n; k++)
                oi_buf_printf(d->out, "size of %s;\n",
                              name_of(d, d->u->kernels.at[s->kernel].lengths.at[k].tensor));
            break;
        case OI_STMT_LENGTH:
            oi_buf_printf(d->out, "length %s of %s;\n", name_of(d, s->a.tensor),
                          name_of(d, s->b.tensor));
            break;
        case OI_STMT_SHAPE:
            for (uint32_t k = 0; k < s->n_checks; k++)
                oi_buf_printf(d->out, "shape %s;\n", name_of(d, s->checks[k].tensor));
            break;
        case OI_STMT_LIMIT:
            oi_buf_printf(d->out, "limit %s;\n",
                          s->a.tensor == OI_NO_ID ? "a number" : name_of(d, s->a.tensor));
            break;
        case OI_STMT_CHECK: oi_buf_puts(d->out, "check;\n"); break;
        case OI_STMT_NEED: put_needs(d, s); break;
        case OI_STMT_RESIZE: put_resize(d, s); break;
        case OI_STMT_LOG:
            oi_buf_puts(d->out, "log ");
            put_part(d, &s->a);
            oi_buf_puts(d->out, ";\n");
            break;
        case OI_STMT_VIEW:
            oi_buf_puts(d->out, "view ");
            put_part(d, &s->a);
            oi_buf_printf(d->out, " >> %s;\n", name_of(d, s->b.tensor));
            break;
        default: oi_buf_printf(d->out, "%s;\n", oi_node_table[s->node->kind].keyword); break;
        }
    }
}

static void put_tensors(dumping *d)
{
    static const char *const spaces[] = {
        [OI_SPACE_NONE] = "nowhere",  [OI_SPACE_WEIGHTS] = "weights", [OI_SPACE_INPUT] = "input",
        [OI_SPACE_OUTPUT] = "output", [OI_SPACE_STATE] = "state",     [OI_SPACE_ARENA] = "arena",
        [OI_SPACE_LOCAL] = "local",   [OI_SPACE_VIEW] = "view"};
    for (size_t i = 0; i < d->u->tensors.n; i++) {
        const oi_tensor *t = &d->u->tensors.at[i];
        oi_buf_printf(d->out, "// %-8s %s: %s[", spaces[t->space], t->name,
                      oi_dtype_name(t->dtype));
        for (uint32_t k = 0; k < t->rank; k++)
            oi_buf_printf(d->out, "%s%" PRId64, k ? ", " : "", t->dims[k]);
        if (t->ring)
            oi_buf_printf(d->out, "] a ring of %" PRId64 " rows of %" PRId64, t->dims[t->ring - 1],
                          t->rows);
        else
            oi_buf_puts(d->out, "]");
        oi_buf_printf(d->out, " at %" PRIu64 "\n", t->offset);
    }
}

void oi_plan_put_steps(const oi_plan *u, oi_buf *out)
{
    for (uint32_t g = 0; g < u->graphs.n; g++) {
        dumping d = {.u = u, .graph = g, .out = out};
        const oi_sgraph *graph = &u->graphs.at[g];
        oi_buf_printf(out, "graph %s\n", graph->name);
        for (uint32_t b = 0; b < graph->program->n_blocks; b++) {
            if (!graph->blocks[b].is_used)
                continue;
            oi_buf_printf(out, "block %s {\n", graph->program->blocks[b].source->name.text);
            d.depth = 1;
            put_list(&d, &graph->blocks[b].stmts);
            oi_buf_puts(out, "}\n");
        }
    }
}

void oi_plan_put(const oi_plan *u, const char *after, oi_buf *out)
{
    oi_buf_printf(out, "// after %s\n", after);
    oi_plan_put_steps(u, out);
    dumping d = {.u = u, .out = out};
    put_tensors(&d);
    for (size_t i = 0; i < u->notes.n; i++)
        oi_buf_printf(out, "// %s: %s\n", u->notes.at[i].pass, u->notes.at[i].text);
}
