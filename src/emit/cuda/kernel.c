/* kernel.c: what the function of a kernel does.
 *
 * The threads of a block count through the positions of the block: those of all output axes, of
 * which a partition gives the block a part. With lanes, several threads make the result of one
 * position together, and all threads stay until the block is done, because they wait for each
 * other. Every function ends with a barrier of the block, so that what follows may read what it
 * wrote. */
#include "emit/cuda/cuda.h"

#include <inttypes.h>

/* Nests that are counted through together: one, or all that share rows. */
typedef struct counting {
    oi_cprog *c;
    const oi_skernel *k;
    oi_nest_printer p;
    const oi_snest *nests;
    size_t n_nests;
    oi_group of;
    oi_partition part;
    bool shares_rows; /* lanes of the group work on one row in shared memory */
    const char *index;
} counting;

/* What a position is made of, outermost first: axes, and the partitioned one or two of them. */
typedef struct digit {
    uint32_t axis;
    bool is_part;
} digit;

static uint32_t find_digits(const counting *x, digit *out)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < x->p.n_open; a++) {
        const bool is_part =
            x->part.extent && a >= x->part.axis && a < x->part.axis + x->part.n_axes;
        if (is_part && a > x->part.axis)
            continue;
        if (is_part || oi_place_has_loop(&x->nests[0], a))
            out[n++] = (digit){a, is_part};
    }
    return n;
}

static const char *extent_of(const counting *x, const digit *d)
{
    const oi_printing q = {.p = &x->p, .n = &x->nests[0]};
    const oi_snest *n = q.n;
    if (d->is_part)
        return oi_arena_printf(x->c->arena, "(%s)(last - first)", x->index);
    return oi_place_number(&q, n->axes[d->axis].extent, n->extents ? n->extents[d->axis] : 0);
}

static const char *count_text(const counting *x, const digit *digits, uint32_t n)
{
    oi_buf b = {0};
    for (uint32_t i = 0; i < n; i++)
        oi_buf_printf(&b, "%s%s", i ? " * " : "", extent_of(x, &digits[i]));
    return oi_buf_to_arena(&b, x->c->arena);
}

/* "const int32_t j = rest % 8;" and so on, the last digit first. */
static void put_digit(const counting *x, const digit *d, const char *value)
{
    const oi_printing q = {.p = &x->p, .n = &x->nests[0]};
    oi_out *o = x->p.out;
    const char *i = oi_place_axis(&q, d->axis);
    if (!d->is_part) {
        oi_out_line(o, "const %s %s = %s;", x->index, i, value);
    } else if (x->part.n_axes == 1) {
        oi_out_line(o, "const %s %s = (%s)first + %s;", x->index, i, x->index, value);
    } else {
        const int64_t inner = x->nests[0].axes[d->axis + 1].extent;
        oi_out_line(o, "const %s place = (%s)first + %s;", x->index, x->index, value);
        oi_out_line(o, "const %s %s = place / %" PRId64 ";", x->index, i, inner);
        oi_out_line(o, "const %s %s = place %% %" PRId64 ";", x->index,
                    oi_place_axis(&q, d->axis + 1), inner);
    }
}

static void put_counters(const counting *x, const digit *digits, uint32_t n)
{
    for (uint32_t i = n; i-- > 1;) {
        const char *extent = extent_of(x, &digits[i]);
        put_digit(x, &digits[i],
                  oi_arena_printf(x->c->arena, digits[i].is_part ? "rest %% (%s)" : "rest %% %s",
                                  extent));
        oi_out_line(x->p.out, "rest /= %s;", extent);
    }
    if (n)
        put_digit(x, &digits[0], "rest");
}

/* All positions, thread by thread. */
static void open_alone(const counting *x, uint32_t n)
{
    oi_out *o = x->p.out;
    if (n == 0) {
        oi_out_open(o, "if (threadIdx.x == 0)");
        return;
    }
    oi_out_open(o, "for (%s id = (%s)threadIdx.x; id < count; id += %" PRId64 ")", x->index,
                x->index, x->of.size);
    oi_out_line(o, "%s%s rest = id;", n > 1 ? "" : "const ", x->index);
}

/* All positions, so many at a time as there are groups of lanes. Threads without a position compute
 * the last one once more. */
static void open_together(const counting *x, uint32_t n)
{
    oi_out *o = x->p.out;
    const int64_t positions = x->of.positions;
    const char *own = positions == 1 ? "0"
                                     : oi_arena_printf(x->c->arena, "(%s)(at %c %" PRId64 "u)",
                                                       x->index, x->of.is_apart ? '%' : '/',
                                                       x->of.is_apart ? positions : x->of.lanes);
    if (n == 0) {
        oi_out_brace(o);
        if (positions > 1)
            oi_out_line(o, "const bool inside = %s == 0;", own);
        return;
    }
    oi_out_open(o, "for (%s base = 0; base < count; base += %" PRId64 ")", x->index, positions);
    if (positions == 1) {
        oi_out_line(o, "%s%s rest = base;", n > 1 ? "" : "const ", x->index);
        return;
    }
    oi_out_line(o, "const bool inside = base + %s < count;", own);
    oi_out_line(o, "%s%s rest = inside ? base + %s : count - 1;", n > 1 ? "" : "const ", x->index,
                own);
}

/* -- rows that only the kernel uses -- */

static const oi_tensor *tensor_at(const counting *x, size_t port)
{
    return &x->c->p->tensors.at[x->k->ports.at[port].tensor];
}

static uint64_t row_bytes(const oi_tensor *t)
{
    return t->space == OI_SPACE_LOCAL ? (t->size_bytes + 15) / 16 * 16 : 0;
}

static void put_rows(const counting *x)
{
    uint64_t at = 0;
    for (size_t i = 0; i < x->k->ports.n; i++) {
        const oi_tensor *t = tensor_at(x, i);
        const char *type = oi_c_type(t->dtype);
        if (t->space != OI_SPACE_LOCAL)
            continue;
        if (x->shares_rows)
            oi_out_line(x->p.out, "%s *const %s = (%s *)(oi_row_memory + %" PRIu64 ");", type,
                        x->p.ports[i], type, at);
        else
            oi_out_line(x->p.out, "%s %s[%" PRIu64 "];", type, x->p.ports[i],
                        t->size_bytes / (oi_dtype_bits(t->dtype) / 8));
        at += row_bytes(t);
    }
}

uint64_t oi_cuda_row_bytes(const oi_plan *p)
{
    uint64_t most = 0;
    for (size_t i = 0; i < p->kernels.n; i++) {
        const oi_skernel *k = &p->kernels.at[i];
        uint64_t all = 0;
        int64_t lanes = 0;
        for (size_t j = 0; j < k->nests.n; j++)
            lanes |= oi_nest_lane_count(&k->nests.at[j]);
        for (size_t j = 0; lanes && k->is_used && j < k->ports.n; j++)
            all += row_bytes(&p->tensors.at[k->ports.at[j].tensor]);
        most = all > most ? all : most;
    }
    return most;
}

/* -- nests -- */

/* Lanes run a nest together, or the first one alone. */
static void put_nest(const counting *x, size_t i)
{
    const bool is_alone = x->of.lanes > 1 && !oi_nest_lane_count(&x->nests[i]);
    oi_out *o = x->p.out;
    if (is_alone)
        oi_out_open(o, "if (%s)", x->of.first_lane);
    else if (x->n_nests > 1)
        oi_out_brace(o);
    oi_nest_print(&x->p, &x->nests[i]);
    if (is_alone || x->n_nests > 1)
        oi_out_close(o, "");
    if (x->shares_rows) /* the last one's wait is for the next row */
        oi_out_line(o, "__syncthreads();");
}

static void put_lane(const counting *x)
{
    oi_out *o = x->p.out;
    const int64_t by = x->of.is_apart ? x->of.positions : x->of.lanes;
    oi_out_line(o, "const unsigned at = threadIdx.x;");
    if (x->of.positions == 1)
        oi_out_line(o, "const unsigned lane = at;");
    else
        oi_out_line(o, "const unsigned lane = at %c %" PRId64 "u;", x->of.is_apart ? '/' : '%', by);
}

static void put_counted(const counting *x)
{
    digit digits[OI_NEST_AXES + 1];
    const uint32_t n = find_digits(x, digits);
    oi_out *o = x->p.out;
    if (x->of.lanes > 1)
        put_lane(x);
    if (n)
        oi_out_line(o, "const %s count = %s;", x->index, count_text(x, digits, n));
    if (x->of.lanes > 1)
        open_together(x, n);
    else
        open_alone(x, n);
    put_counters(x, digits, n);
    if (x->n_nests > 1)
        put_rows(x);
    for (size_t i = 0; i < x->n_nests; i++)
        put_nest(x, i);
    oi_out_close(o, "");
}

/* Whether the port's elements begin at a multiple of 16 bytes in all kernels that call it. */
static bool is_aligned(const oi_cprog *c, const oi_skernel *k, size_t port)
{
    bool is = true;
    for (; k; k = k->next_alike == OI_NO_ID ? NULL : &c->p->kernels.at[k->next_alike]) {
        const oi_port *p = &k->ports.at[port];
        const oi_tensor *t = &c->p->tensors.at[p->tensor];
        is &= t->rank > 0 && t->space != OI_SPACE_VIEW && t->space != OI_SPACE_LOCAL &&
              (!p->n_entry || (t->n_table && t->stride_bytes % 16 == 0));
    }
    return is;
}

/* Lanes that take several places read them at once if the compiler knows the alignment. */
static void put_alignment(oi_cprog *c, const oi_skernel *k, const oi_nest_printer *p)
{
    int64_t places = 0;
    for (size_t i = 0; i < k->nests.n; i++)
        for (uint32_t a = 0; a < k->nests.at[i].n_axes; a++)
            places |= oi_axis_lane_places(&k->nests.at[i].axes[a]);
    for (size_t i = 0; places && i < k->ports.n; i++) {
        const char *type = oi_c_type(c->p->tensors.at[k->ports.at[i].tensor].dtype);
        if (!k->ports.at[i].is_written && !k->ports.at[i].is_dropped && is_aligned(c, k, i))
            oi_out_line(&c->out, "%s = (const %s *)__builtin_assume_aligned(%s, 16);", p->ports[i],
                        type, p->ports[i]);
    }
}

/* Memory in which lanes exchange sums, by type. */
static void put_sums(oi_cprog *c, const oi_skernel *k, const oi_nest_printer *p, const char *body)
{
    for (size_t i = 0; i < k->nests.n; i++) {
        const oi_snest *n = &k->nests.at[i];
        const char *type = oi_group_sums(n) ? oi_lane_type(p->lang, n) : NULL;
        if (type && !oi_lane_is_declared(p->lang, k->nests.at, i) &&
            oi_text_has_word(body, oi_arena_printf(c->arena, "sums_%s", type)))
            oi_out_line(&c->out, "%s *const sums_%s = (%s *)oi_sums;", type, type, type);
    }
}

/* A thread that fails leaves the lambda around the nests; all threads learn of it. */
static void put_part(counting *x)
{
    oi_out *o = x->p.out;
    if (x->k->can_fail)
        oi_out_open(o, "failed |= [&]() -> int");
    else if (x->n_nests < x->k->nests.n)
        oi_out_brace(o);
    put_counted(x);
    if (x->k->can_fail)
        oi_out_line(o, "return 0;");
    if (x->k->can_fail || x->n_nests < x->k->nests.n)
        oi_out_close(o, x->k->can_fail ? "();" : "");
    oi_out_line(o, "__syncthreads();");
}

static void put_nests(oi_cprog *c, const oi_skernel *k, const oi_nest_printer *p)
{
    const bool is_joint = oi_kernel_is_joint(c->p->tensors.at, k);
    for (size_t i = 0; i < (is_joint ? 1 : k->nests.n); i++) {
        counting x = {.c = c,
                      .k = k,
                      .p = *p,
                      .nests = &k->nests.at[i],
                      .n_nests = is_joint ? k->nests.n : 1,
                      .part = oi_kernel_partition(k),
                      .index = p->lang->index};
        x.of = oi_group_of(c->p, x.nests, x.n_nests);
        x.shares_rows = x.n_nests > 1 && x.of.lanes > 1;
        x.p.n_open = is_joint ? k->n_shared : oi_nest_counted(x.nests);
        x.p.group = &x.of;
        put_part(&x);
    }
}

void oi_cuda_put_body(oi_cprog *c, const oi_skernel *k, const oi_nest_printer *p)
{
    const oi_out outer = c->out;
    c->out = (oi_out){.depth = outer.depth};
    put_nests(c, k, p);
    const char *body = c->out.buf.n ? oi_buf_to_arena(&c->out.buf, c->arena) : "";
    c->out = outer;
    oi_c_put_share(c, k);
    put_alignment(c, k, p);
    put_sums(c, k, p, body);
    if (k->can_fail)
        oi_out_line(&c->out, "int failed = 0;");
    oi_out_text(&c->out, body);
    if (k->can_fail)
        oi_out_line(&c->out, "return oi_any(failed);");
}
