/* nest.c: prints a loop nest in a C-like language. Loops and arithmetic come from the nest; the
 * language prints types, elements and helpers. */
#include "emit/nest.h"

#include <inttypes.h>

/* -- loops -- */

/* The text around the nest says which places: from `first` to `last`. */
static bool is_split(const oi_printing *x, uint32_t axis)
{
    const oi_saxis *a = &x->n->axes[axis];
    return a->factor[OI_AXIS_WORKER] > 0 || a->factor[OI_AXIS_STREAM] > 0;
}

/* Two neighbouring axes are counted through together. */
static bool is_pair(const oi_printing *x, uint32_t axis)
{
    return axis + 1 < x->n->n_axes && is_split(x, axis) && is_split(x, axis + 1);
}

/* Loops over positions first ... last - 1, counted through two axes. */
static void open_pair(oi_printing *x, uint32_t a)
{
    const bool is_inner = !is_pair(x, a);
    const char *index = x->p->lang->index, *i = oi_place_axis(x, a - is_inner);
    const char *j = oi_place_axis(x, a + !is_inner);
    const long long n = x->n->axes[a + !is_inner].extent;
    oi_out *o = x->p->out;
    if (!is_inner) {
        oi_out_open(o, "for (%s %s = first / %lld; %s * %lld < last; %s++)", index, i, n, i, n, i);
        return;
    }
    oi_out_line(o, "const %s from = first > %s * %lld ? first - %s * %lld : 0;", index, i, n, i, n);
    oi_out_line(o, "const %s to = last < (%s + 1) * %lld ? last - %s * %lld : %lld;", index, i, n,
                i, n, n);
    oi_out_open(o, "for (%s %s = from; %s < to; %s++)", index, j, j, j);
}

/* A lane takes every lanes-th place. */
static void open_lanes(oi_printing *x, uint32_t a)
{
    const int64_t lanes = oi_axis_lanes(&x->n->axes[a]);
    const int64_t each = oi_axis_lane_places(&x->n->axes[a]);
    const char *i = oi_place_axis(x, a), *index = x->p->lang->index;
    if (each) { /* they divide the axis, and no lane is idle */
        if (x->p->lang->lane_words->unroll_some)
            oi_out_line(x->p->out, "%s", x->p->lang->lane_words->unroll_some);
        oi_out_open(x->p->out, "for (%s from = 0; from < %" PRId64 "; from += %" PRId64 ")", index,
                    x->n->axes[a].extent, lanes * each);
        oi_out_open(x->p->out, "for (int l = 0; l < %" PRId64 "; l++)", each);
        oi_out_line(x->p->out, "const %s %s = from + int(lane) * %" PRId64 " + l;", index, i, each);
        return;
    }
    const char *end =
        oi_place_number(x, x->n->axes[a].extent, x->n->extents ? x->n->extents[a] : 0);
    if (x->n->axes[a].is_reduced && x->p->lang->lane_words->unroll_one)
        oi_out_line(x->p->out, "%s", x->p->lang->lane_words->unroll_one);
    oi_out_open(x->p->out, "for (%s %s = %s; %s < %s; %s += %" PRId64 ")", x->p->lang->index, i,
                oi_lane_begin(x->p, lanes, end), i, end, i, lanes);
}

static void open_loop(oi_printing *x, uint32_t a)
{
    const char *i = oi_place_axis(x, a), *index = x->p->lang->index;
    if (is_pair(x, a) || (a > 0 && is_pair(x, a - 1)))
        open_pair(x, a);
    else if (oi_axis_lanes(&x->n->axes[a]))
        open_lanes(x, a);
    else if (is_split(x, a))
        oi_out_open(x->p->out, "for (%s %s = first; %s < last; %s++)", index, i, i, i);
    else
        oi_out_open(x->p->out, "for (%s %s = 0; %s < %s; %s++)", index, i, i,
                    oi_place_number(x, x->n->axes[a].extent, x->n->extents ? x->n->extents[a] : 0),
                    i);
    oi_place_name_rows(x, a);
}

static void open_loops(oi_printing *x, uint32_t from, uint32_t to)
{
    from = from < x->p->n_open ? x->p->n_open : from;
    for (uint32_t a = from; a < to; a++)
        if (oi_place_has_loop(x->n, a))
            open_loop(x, a);
}

static void close_loops(oi_printing *x, uint32_t from, uint32_t to)
{
    from = from < x->p->n_open ? x->p->n_open : from;
    oi_place_forget_rows(x, from);
    for (uint32_t a = from; a < to; a++)
        if (oi_place_has_loop(x->n, a)) {
            if (oi_axis_lane_places(&x->n->axes[a]))
                oi_out_close(x->p->out, "");
            oi_out_close(x->p->out, "");
        }
}

static const char *guard_text(const oi_printing *x)
{
    oi_buf out = {0};
    for (size_t i = 0; i < x->n->pre.n; i++) {
        const oi_sop *op = &x->n->pre.at[i];
        const char *inside =
            op->kind == OI_SOP_LOAD && op->may_leave ? oi_place_inside(x, op) : NULL;
        if (inside)
            oi_buf_printf(&out, "%s%s", out.n ? " && " : "", inside);
    }
    return oi_buf_to_arena(&out, x->p->arena);
}

static void print_combine(oi_printing *x, const char *acc, const char *element)
{
    oi_instr_combine(x, oi_form_of(x->n->acc), acc, element);
}

/* The type of partial results. */
static oi_dtype sum_form(const oi_snest *n)
{
    return n->compares_keys ? OI_I32 : oi_form_of(n->acc);
}

static const char *as_key(const oi_printing *x, const char *value)
{
    const bool is_max = x->n->compares_keys && x->n->reduce->op->id != OI_OP_MIN_AXIS;
    return !x->n->compares_keys || x->n->finds_position /* combined as a rank */
               ? value
               : oi_arena_printf(x->p->arena, "oi_%s_key_f32(%s)", is_max ? "high" : "low", value);
}

/* The instructions of one iteration and their combination with acc; once per unrolled place. */
static void print_elements(oi_printing *x, const char *acc)
{
    const oi_dtype form = x->n->narrow_axes ? OI_I16 : sum_form(x->n);
    for (x->round = 0; x->round < oi_nest_unrolled(x->n); x->round++) {
        oi_instr_print(x, &x->n->pre, 0, NULL);
        if (acc)
            oi_instr_combine(x, form, acc, as_key(x, x->values[x->n->element]));
    }
    x->round = 0;
}

static bool counts_padding(const oi_printing *x)
{
    for (size_t i = 0; i < x->n->pre.n; i++) {
        const oi_sop *op = &x->n->pre.at[i];
        for (uint32_t d = 0;
             op->kind == OI_SOP_LOAD && op->may_leave && d < oi_place_tensor(x, op)->rank; d++)
            if (op->at[d].counted_before || op->at[d].counted_after)
                return true;
    }
    return false;
}

/* When an iteration counts although a load may be out of bounds. */
static const char *counted_text(const oi_printing *x)
{
    oi_buf out = {0};
    for (size_t i = 0; i < x->n->pre.n; i++) {
        const oi_sop *op = &x->n->pre.at[i];
        for (uint32_t d = 0;
             op->kind == OI_SOP_LOAD && op->may_leave && d < oi_place_tensor(x, op)->rank; d++) {
            if (!op->at[d].may_leave)
                continue;
            const char *c = oi_place_coord(x, &op->at[d], oi_place_fns(op, d));
            const oi_coord_fns *f = oi_place_fns(op, d);
            oi_buf_printf(&out, "%s%s >= -%s && %s < %s + %s", out.n ? " && " : "", c,
                          oi_place_number(x, op->at[d].counted_before, f ? f->counted_before : 0),
                          c, oi_place_dim(x, op->port, d),
                          oi_place_number(x, op->at[d].counted_after, f ? f->counted_after : 0));
        }
    }
    return oi_buf_to_arena(&out, x->p->arena);
}

/* How many elements the reduced axes visit. */
static const char *count_text(const oi_printing *x, uint32_t n_out)
{
    int64_t all = 1;
    const char *more = "";
    for (uint32_t a = n_out; a < x->n->n_axes; a++)
        if (x->n->extents && x->n->extents[a])
            more = oi_arena_printf(x->p->arena, "%s * %s", more, x->p->fns[x->n->extents[a]]);
        else
            all *= x->n->axes[a].extent;
    return oi_arena_printf(x->p->arena, "%" PRId64 "%s", all, more);
}

static void print_count(oi_printing *x, uint32_t n_out)
{
    if (oi_instr_counts(x))
        oi_out_line(x->p->out, "const %s n = %s;", x->p->lang->index, count_text(x, n_out));
}

/* Marks the instructions that an instruction depends on. */
static void mark_early(oi_printing *x, const oi_sop *op)
{
    const uint32_t rank = !op->at                                   ? 0
                          : op->is_flat || op->kind == OI_SOP_PLACE ? 1
                                                                    : oi_place_tensor(x, op)->rank;
    for (uint32_t a = 0; a < op->n_args; a++)
        if (op->args[a] != OI_NO_ID)
            x->early[op->args[a]] = true;
    if (op->kind == OI_SOP_EVAL && op->place != OI_NO_ID)
        x->early[op->place] = true;
    for (uint32_t d = 0; d < rank; d++)
        if (op->at[d].index != OI_NEST_NONE)
            x->early[op->at[d].index] = true;
}

/* Tests the predicates without which the sum is not used, before it is computed. */
static void open_asked(oi_printing *x)
{
    const oi_snest *n = x->n;
    const uint32_t base = (uint32_t)n->pre.n;
    oi_buf b = {0};
    x->early = oi_arena_alloc(x->p->arena, n->pre.n + n->post.n + 1);
    for (uint32_t i = 0; i < n->n_predicates; i++)
        x->early[n->predicates[i]] = true;
    for (size_t i = n->post.n; i-- > 0;)
        if (x->early[base + i])
            mark_early(x, &n->post.at[i]);
    x->is_early = true;
    oi_instr_print(x, &n->post, base, NULL);
    x->is_early = false;
    for (uint32_t i = 0; i < n->n_predicates; i++)
        oi_buf_printf(&b, "%s%s", i ? " && " : "", x->values[n->predicates[i]]);
    oi_out_open(x->p->out, "if (%s)", oi_buf_to_arena(&b, x->p->arena));
}

/* One sum, in order; or one of each lane, which are then combined. */
static void print_reduce(oi_printing *x, uint32_t n_out)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const oi_dtype form = oi_form_of(n->acc);
    const int64_t lanes = oi_nest_sum_lanes(n);
    open_loops(x, 0, n_out);
    oi_out_line(o, "%s acc = %s;", oi_instr_type(x, form),
                n->finds_position ? x->p->lang->literal(x->p->arena, form, 0) : oi_instr_init(x));
    if (n->finds_position)
        oi_out_line(o, "%s best = -1;", x->p->lang->index);
    if (oi_instr_counts(x) && n->skips)
        oi_out_line(o, "%s n = 0;", x->p->lang->index);
    else
        print_count(x, n_out);
    if (n->n_predicates)
        open_asked(x);
    open_loops(x, n_out, n->n_axes);
    if (n->skips && oi_instr_counts(x) && counts_padding(x)) {
        oi_out_line(o, "if (%s)", counted_text(x));
        oi_out_line(o, "    n++;");
    }
    if (n->skips)
        oi_out_open(o, "if (%s)", guard_text(x));
    if (n->is_scan && n->excludes) {
        oi_instr_print(x, &n->pre, 0, NULL);
        oi_instr_print(x, &n->post, (uint32_t)n->pre.n, "acc");
        print_combine(x, "acc", x->values[n->element]);
    } else {
        print_elements(x, "acc");
    }
    if (n->skips && oi_instr_counts(x) && !counts_padding(x))
        oi_out_line(o, "n++;");
    if (n->is_scan && !n->excludes)
        oi_instr_print(x, &n->post, (uint32_t)n->pre.n, "acc");
    if (n->skips)
        oi_out_close(o, "");
    close_loops(x, n_out, n->n_axes);
    if (n->n_predicates)
        oi_out_close(o, "");
    if (lanes) {
        oi_lane_sum(x, "acc", lanes);
        oi_out_open(o, "if (%s)", x->p->group->first_lane);
    }
    if (!n->is_scan)
        oi_instr_print(x, &n->post, (uint32_t)n->pre.n,
                       n->finds_element    ? "(best < 0 ? 0 : best)"
                       : n->finds_position ? "best"
                                           : "acc");
    if (lanes)
        oi_out_close(o, "");
    close_loops(x, 0, n_out);
}

/* Below all others: as a rank, or what the op begins with. */
static const char *first_value(oi_printing *x)
{
    if (x->n->finds_position)
        return x->p->lang->literal(x->p->arena, OI_I32, (uint64_t)INT32_MIN);
    return as_key(x, oi_instr_init(x));
}

/* The positions of partial results. */
static void open_positions(oi_printing *x, const char *loop, uint32_t count)
{
    if (!x->n->finds_position)
        return;
    oi_out_line(x->p->out, "%s best[%u];", oi_instr_type(x, OI_I32), count);
    oi_out_line(x->p->out, "%s%u; l++)", loop, count);
    oi_out_line(x->p->out, "    best[l] = 0;");
}

/* Of equal partial results the one at the first position. */
static void print_first_position(const oi_printing *x, uint32_t lanes)
{
    oi_out *o = x->p->out;
    oi_out_open(o, "for (int l = 1; l < %u; l++)", lanes);
    oi_out_line(o, "if (lane[l] < lane[0] || (lane[l] == lane[0] && best[l] > best[0]))");
    oi_out_line(o, "    continue;");
    oi_out_line(o, "lane[0] = lane[l];");
    oi_out_line(o, "best[0] = best[l];");
    oi_out_close(o, "");
}

/* Partial results are combined pairwise. */
static void print_pairs(oi_printing *x, const char *loop, uint32_t lanes)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const char *type = n->n_predicates ? "" : oi_instr_type(x, oi_form_of(n->acc));
    for (uint32_t half = lanes / 2; half > 0; half /= 2) {
        oi_out_open(o, "%s%u; l++)", loop, half);
        oi_instr_combine(x, sum_form(n), "lane[l]",
                         oi_arena_printf(x->p->arena, "lane[l + %u]", half));
        oi_out_close(o, "");
    }
    oi_out_line(o, "%s%sacc = %s;", type, n->n_predicates ? "" : " ",
                n->compares_keys ? "oi_of_key_f32(lane[0])" : "lane[0]");
}

/* Combining with what the op begins with changes nothing. */
static bool has_neutral(const oi_snest *n)
{
    const oi_op_id op = n->reduce->op->id;
    return (n->compares_keys && !n->finds_position) || n->kind == OI_NEST_CONTRACT ||
           op == OI_OP_SUM_AXIS || op == OI_OP_MEAN_AXIS || op == OI_OP_PROD_AXIS;
}

/* The first places of a vector; in bits, since a comparison with l makes two loops of one. */
static void open_existing(oi_printing *x, int64_t count)
{
    oi_out_open(x->p->out, "if ((0x%" PRIx64 " >> l & 1) != 0)", (UINT64_C(1) << count) - 1);
}

/* The last elements, fewer than lanes: as one vector, of which compilers load what exists. */
static void print_last_lanes(oi_printing *x, const char *loop, uint32_t lanes, int64_t whole)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const uint32_t last = oi_nest_loops(n) - 1;
    const char *k = oi_place_axis(x, last), *index = x->p->lang->index;
    const int64_t all = n->axes[last].extent;
    if (!has_neutral(n) || oi_nest_unrolled(n) > 1) {
        oi_out_open(o, "for (%s %s = %" PRId64 "; %s < %" PRId64 "; %s++)", index, k, whole, k, all,
                    k);
        print_elements(x, oi_arena_printf(x->p->arena, "lane[%s - %" PRId64 "]", k, whole));
        oi_out_close(o, "");
        return;
    }
    oi_out_open(o, "%s%u; l++)", loop, lanes);
    oi_out_line(o, "const %s %s = %" PRId64 " + l;", index, k, whole);
    oi_out_line(o, "%s more = %s;", oi_instr_type(x, sum_form(n)), first_value(x));
    open_existing(x, all - whole);
    oi_instr_print(x, &n->pre, 0, NULL);
    oi_out_line(o, "more = %s;", as_key(x, x->values[n->element]));
    oi_out_close(o, "");
    oi_instr_combine(x, sum_form(n), "lane[l]", "more");
    oi_out_close(o, "");
}

/* Partial sums along the last axis: lane l takes every lanes-th element. They are added pairwise.
 */
static void print_lanes(oi_printing *x, uint32_t n_out)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const char *type = oi_instr_type(x, oi_form_of(n->acc)), *index = x->p->lang->index;
    const char *vectors = x->p->lang->in_vectors ? x->p->lang->in_vectors : "";
    const char *loop = oi_arena_printf(x->p->arena, "%sfor (int l = 0; l < ", vectors);
    const uint32_t last = oi_nest_loops(n) - 1, lanes = (uint32_t)oi_nest_partial_sums(n);
    const char *k = oi_place_axis(x, last);
    int64_t all = n->axes[last].extent, whole = all / lanes * lanes;
    open_loops(x, 0, n_out);
    print_count(x, n_out);
    if (n->n_predicates) {
        oi_out_line(o, "%s acc = %s;", type, oi_instr_init(x));
        open_asked(x);
    }
    oi_out_line(o, "%s lane[%u];", oi_instr_type(x, sum_form(n)), lanes);
    oi_out_line(o, "%s%u; l++)", loop, lanes);
    oi_out_line(o, "    lane[l] = %s;", first_value(x));
    open_positions(x, loop, lanes);
    open_loops(x, n_out, last);
    oi_out_open(o, "for (%s at = 0; at < %" PRId64 "; at += %u)", index, whole, lanes);
    oi_out_open(o, "%s%u; l++)", loop, lanes);
    oi_out_line(o, "const %s %s = at + l;", index, k);
    print_elements(x, "lane[l]");
    oi_out_close(o, "");
    oi_out_close(o, "");
    if (whole < all)
        print_last_lanes(x, loop, lanes, whole);
    close_loops(x, n_out, last);
    if (n->finds_position)
        print_first_position(x, lanes);
    else
        print_pairs(x, loop, lanes);
    if (n->n_predicates)
        oi_out_close(o, "");
    oi_instr_print(x, &n->post, (uint32_t)n->pre.n, n->finds_position ? "best[0]" : "acc");
    close_loops(x, 0, n_out);
}

static void open_strip(oi_printing *x, const char *loop, const char *j, bool is_part)
{
    oi_out_open(x->p->out, "%s", loop);
    if (is_part)
        oi_out_line(x->p->out, "const %s %s = at + l;", x->p->lang->index, j);
}

/* The loops of a tile's sums: all at once, or in blocks of 16-bit sums. */
static void print_strip_sum(oi_printing *x, uint32_t n_out, const char *loop, const char *j,
                            const char *acc)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const bool is_part = n->axes[n_out - 1].extent > oi_nest_register_tile(n);
    const uint32_t first = n->n_axes - n->narrow_axes;
    const char *part = oi_arena_printf(x->p->arena, "partial%s", acc + strlen("acc"));
    open_loops(x, n_out, first);
    if (n->narrow_axes) {
        oi_out_line(o, "%s partial[%" PRId64 "];", oi_instr_type(x, OI_I16),
                    oi_nest_register_tile(n));
        oi_out_line(o, "%s", loop);
        oi_out_line(o, "    %s = 0;", part);
        open_loops(x, first, n->n_axes);
    }
    open_strip(x, loop, j, is_part);
    print_elements(x, n->narrow_axes ? part : acc);
    oi_out_close(o, "");
    if (n->narrow_axes) {
        close_loops(x, first, n->n_axes);
        oi_out_open(o, "%s", loop);
        print_combine(x, acc, part);
        oi_out_close(o, "");
    }
    close_loops(x, n_out, first);
}

/* A register tile: accumulators along the last output axis. */
static void print_strip(oi_printing *x, uint32_t n_out)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const char *type = oi_instr_type(x, sum_form(n)), *index = x->p->lang->index;
    const uint32_t row = n_out - 1, strip = (uint32_t)oi_nest_register_tile(n);
    int64_t all = n->axes[row].extent;
    const char *j = oi_place_axis(x, row), *width = oi_arena_printf(x->p->arena, "%u", strip);
    open_loops(x, 0, row);
    if (is_split(x, row))
        oi_out_open(o, "for (%s at = first; at < last; at += %u)", index, strip);
    else if (all > strip)
        oi_out_open(o, "for (%s at = 0; at < %" PRId64 "; at += %u)", index, all, strip);
    if (all % strip) {
        width = "width";
        oi_out_line(o, "const %s width = %" PRId64 " - at < %u ? %" PRId64 " - at : %u;", index,
                    all, strip, all, strip);
    }
    const char *l = all > strip ? "l" : j, *acc = oi_arena_printf(x->p->arena, "acc[%s]", l);
    const char *loop = oi_arena_printf(x->p->arena, "for (%s %s = 0; %s < %s; %s++)",
                                       all > strip ? "int" : index, l, l, width, l);
    oi_out_line(o, "%s acc[%u];", type, strip);
    if (n->finds_position)
        oi_out_line(o, "%s best[%u];", type, strip);
    oi_out_open(o, "%s", loop);
    oi_out_line(o, "%s = %s;", acc, first_value(x));
    if (n->finds_position)
        oi_out_line(o, "best[%s] = 0;", l);
    oi_out_close(o, "");
    print_count(x, n_out);
    print_strip_sum(x, n_out, loop, j, acc);
    open_strip(x, loop, j, all > strip);
    const char *end = n->finds_position  ? oi_arena_printf(x->p->arena, "best[%s]", l)
                      : n->compares_keys ? oi_arena_printf(x->p->arena, "oi_of_key_f32(%s)", acc)
                                         : acc;
    oi_instr_print(x, &n->post, (uint32_t)n->pre.n, end);
    oi_out_close(o, "");
    if (all > strip)
        oi_out_close(o, "");
    close_loops(x, 0, row);
}

/* Unroll-and-jam: several rows of a map in one iteration, loads first and stores last. Then the
 * compiler can interleave the rows, which hides the latency of each row's dependency chain. */
static void print_abreast(oi_printing *x)
{
    static const unsigned turns[] = {1u << OI_SOP_LOAD | 1u << OI_SOP_CONST,
                                     1u << OI_SOP_EVAL | 1u << OI_SOP_CONVERT, 1u << OI_SOP_STORE};
    const uint32_t row = x->n->n_axes - 2, many = (uint32_t)oi_nest_jam(x->n);
    const bool has_rest = is_split(x, row) || x->n->axes[row].extent % many;
    const char *i = oi_place_axis(x, row), *first = is_split(x, row) ? "first" : "0";
    const char *last = is_split(x, row) ? "last" : oi_place_number(x, x->n->axes[row].extent, 0);
    const char **values[OI_MAX_JAM];
    for (uint32_t r = 0; r < many; r++)
        values[r] = oi_arena_alloc(x->p->arena, (x->n->pre.n + 1) * sizeof **values);
    open_loops(x, 0, row);
    for (uint32_t n = many; n > 0; n = n == many && has_rest ? 1 : 0) {
        oi_out_open(x->p->out, "for (%s %s = %s; %s <= %s - %u; %s += %u)", x->p->lang->index, i,
                    first, i, last, n, i, n);
        open_loops(x, row + 1, x->n->n_axes);
        for (size_t t = 0; t < OI_COUNT(turns); t++)
            for (x->row = 0, x->only = turns[t]; x->row < n; x->row++) {
                x->values = values[x->row];
                oi_instr_print(x, &x->n->pre, 0, NULL);
            }
        x->row = 0;
        x->only = 0;
        close_loops(x, row + 1, x->n->n_axes);
        oi_out_close(x->p->out, "");
        first = oi_arena_printf(x->p->arena, "%s + (%s - %s) / %u * %u", first, last, first, n, n);
    }
    close_loops(x, 0, row);
}

/* -- what vectors leave of a row -- */

/* The last places of a row, fewer than a vector has, as one vector: compilers load and store those
 * that exist. */
static void print_rest(oi_printing *x, int64_t whole, int64_t rest, int64_t lanes)
{
    oi_out *o = x->p->out;
    const char *vectors = x->p->lang->in_vectors ? x->p->lang->in_vectors : "";
    oi_out_open(o, "%sfor (int l = 0; l < %" PRId64 "; l++)", vectors, lanes);
    oi_out_line(o, "const %s %s = %" PRId64 " + l;", x->p->lang->index,
                oi_place_axis(x, x->n->n_axes - 1), whole);
    open_existing(x, rest);
    print_elements(x, NULL);
    oi_out_close(o, "");
    oi_out_close(o, "");
}

static void print_map(oi_printing *x)
{
    if (oi_nest_jam(x->n)) {
        print_abreast(x);
        return;
    }
    open_loops(x, 0, x->n->n_axes);
    print_elements(x, NULL);
    close_loops(x, 0, x->n->n_axes);
}

/* Whole vectors of every row first, then the rests. */
static void print_filled(oi_printing *x)
{
    const oi_snest *n = x->n;
    const uint32_t last = n->n_axes - 1;
    const int64_t lanes = n->axes[last].factor[OI_AXIS_VECTOR], rest = n->axes[last].extent % lanes;
    oi_snest main = *n;
    main.axes[last].extent -= rest;
    x->n = &main;
    if (main.axes[last].extent)
        print_map(x);
    x->n = n;
    open_loops(x, 0, last);
    print_rest(x, n->axes[last].extent - rest, rest, lanes);
    close_loops(x, 0, last);
}

void oi_nest_print(const oi_nest_printer *p, const oi_snest *n)
{
    const bool two = n->pre.n > 1 && n->pre.at[n->pre.n - 2].kind == OI_SOP_STORE;
    oi_printing x = {.p = p, .n = n, .names_all = two || oi_nest_jam(n)};
    size_t all = n->pre.n + n->post.n + 1;
    const uint32_t n_out = oi_nest_outputs(n);
    x.values = oi_arena_alloc(p->arena, all * sizeof *x.values);
    x.forms = oi_arena_alloc(p->arena, all * sizeof *x.forms);
    if (n->kind != OI_NEST_MAP) {
        if (oi_nest_partial_sums(n))
            print_lanes(&x, n_out);
        else if (oi_nest_register_tile(n))
            print_strip(&x, n_out);
        else
            print_reduce(&x, n_out);
        return;
    }
    if (n->n_axes && n->axes[n->n_axes - 1].factor[OI_AXIS_VECTOR])
        print_filled(&x);
    else
        print_map(&x);
}

void oi_nest_print_end(const oi_nest_printer *p, const oi_snest *n)
{
    oi_printing x = {.p = p, .n = n};
    size_t all = n->pre.n + n->post.n + 1;
    x.values = oi_arena_alloc(p->arena, all * sizeof *x.values);
    x.forms = oi_arena_alloc(p->arena, all * sizeof *x.forms);
    oi_instr_print(&x, &n->post, (uint32_t)n->pre.n, "acc");
}

void oi_nest_open_shared(const oi_nest_printer *p, const oi_snest *n)
{
    oi_printing x = {.p = p, .n = n};
    for (uint32_t a = 0; a < p->kernel->n_shared; a++)
        open_loop(&x, a);
}
