/* access.c: what statements read and write, and which part of it a worker does.
 *
 * A kernel's accesses come from its instructions: every load and store has a coordinate per dim,
 * affine over the axes of the nest. With the partitioned axis limited to a worker's positions,
 * that is a box of elements, from which follow the bytes that no other worker may write. */
#include "plan/check.h"

typedef struct collecting {
    const oi_plan *u;
    uint32_t graph, block;
    const oi_stmt *s;
    oi_touches *out;
} collecting;

static uint32_t storage_of(const oi_plan *u, uint32_t tensor)
{
    const oi_tensor *t = &u->tensors.at[tensor];
    return t->space == OI_SPACE_VIEW ? t->from : tensor;
}

static bool is_memory(const oi_tensor *t)
{
    return t->space == OI_SPACE_ARENA || t->space == OI_SPACE_INPUT ||
           t->space == OI_SPACE_OUTPUT || t->space == OI_SPACE_STATE || t->space == OI_SPACE_VIEW;
}

/* A plain access to the whole tensor. */
static oi_touch *put(collecting *c, uint32_t tensor, bool writes)
{
    if (!is_memory(&c->u->tensors.at[tensor]))
        return NULL;
    oi_touch *t = OI_PUSH(c->u->arena, c->out);
    *t = (oi_touch){.tensor = storage_of(c->u, tensor),
                    .writes = writes,
                    .by = c->s->is_parallel ? OI_BY_ALL : OI_BY_FIRST,
                    .stmt = c->s,
                    .dim = OI_NO_ID};
    return t;
}

/* -- numbers: variables that codes and values look at -- */

static void put_var(collecting *c, uint32_t var)
{
    put(c, oi_graph_tensor(&c->u->graphs.at[c->graph], c->block, var), false);
}

static void put_code(collecting *c, const oi_code *code)
{
    for (uint32_t i = 0; i < code->n; i++)
        if (code->at[i].kind == OI_INS_VAR)
            put_var(c, code->at[i].id);
        else if (code->at[i].kind == OI_INS_SIZE || code->at[i].kind == OI_INS_CELL)
            /* a size is kept with the state */
            put(c, (uint32_t)code->at[i].value, false);
}

static void put_value(collecting *c, const oi_pvalue *v)
{
    if (v->kind == OI_PV_VAR)
        put_var(c, v->id);
    else if (v->kind == OI_PV_CODE)
        put_code(c, &v->code);
}

static void put_port(collecting *c, const oi_port *p, bool writes)
{
    for (uint32_t i = 0; i < p->n_entry; i++)
        put_code(c, &p->entry[i]);
    put(c, p->tensor, writes);
}

/* -- kernels -- */

static bool is_access(const oi_sop *op)
{
    return op->kind == OI_SOP_LOAD || op->kind == OI_SOP_INDEX || op->kind == OI_SOP_STORE;
}

/* Loads of the list, or its stores. */
static void put_ops(collecting *c, const oi_skernel *k, const oi_snest *n, const oi_sops *ops,
                    bool writes)
{
    for (size_t i = 0; i < ops->n; i++) {
        const oi_sop *op = &ops->at[i];
        if (!is_access(op) || (op->kind == OI_SOP_STORE) != writes)
            continue;
        oi_touch *t = put(c, k->ports.at[op->port].tensor, writes);
        if (!t || !oi_kernel_partition(k).extent || !c->s->is_parallel)
            continue;
        t->by = OI_BY_PARTITION;
        t->kernel = k;
        t->nest = n;
        t->op = op;
    }
    if (writes && n->combines_out) /* it reads what it writes */
        for (size_t i = 0; i < ops->n; i++)
            if (ops->at[i].kind == OI_SOP_STORE)
                put(c, k->ports.at[ops->at[i].port].tensor, false);
}

static void put_nest(collecting *c, const oi_skernel *k, const oi_snest *n)
{
    for (int writes = 0; writes < 2; writes++) {
        put_ops(c, k, n, &n->pre, writes);
        put_ops(c, k, n, &n->post, writes);
    }
}

/* The dim along which a worker's positions of the body lie; what it promises. */
static uint32_t dim_of_recipe(const oi_recipe_plan *p, const oi_tensor *t, bool writes)
{
    const uint32_t dim = writes && !p->is_scattered ? p->split_dim
                         : p->reads_partitioned     ? p->read_dim
                                                    : OI_NO_ID;
    return dim < t->rank && p->extent > 0 && t->dims[dim] % p->extent == 0 ? dim : OI_NO_ID;
}

static void put_recipe(collecting *c, const oi_skernel *k)
{
    for (int writes = 0; writes < 2; writes++)
        for (size_t i = 0; i < k->ports.n; i++) {
            const oi_port *p = &k->ports.at[i];
            bool is_input = !p->is_written;
            for (uint32_t a = 0; a < k->plan->n_args; a++)
                is_input |= k->arg_ports[a] == i && k->plan->args[a].kind == OI_ARG_IN;
            if (p->is_dropped || (writes ? !p->is_written : !is_input))
                continue;
            oi_touch *t = put(c, p->tensor, writes);
            if (!t || !oi_kernel_partition(k).extent || !c->s->is_parallel)
                continue;
            t->by = OI_BY_PARTITION;
            t->kernel = k;
            t->dim = dim_of_recipe(k->plan, &c->u->tensors.at[p->tensor], p->is_written);
            t->is_scattered = k->plan->is_scattered && p->is_written;
        }
}

static void put_kernel(collecting *c, const oi_skernel *k)
{
    for (size_t i = 0; i < k->scalars.n; i++)
        if (!k->scalars.at[i].is_length)
            put_value(c, &k->scalars.at[i].value);
    for (size_t i = 0; i < k->ports.n; i++)
        for (uint32_t e = 0; e < k->ports.at[i].n_entry; e++)
            put_code(c, &k->ports.at[i].entry[e]);
    if (k->recipe)
        put_recipe(c, k);
    else
        for (size_t i = 0; i < k->nests.n; i++)
            put_nest(c, k, &k->nests.at[i]);
}

/* A row pipeline that workers share: each computes its own rows of the last kernel's result. */
static void put_pipeline(collecting *c, const oi_stmt *s)
{
    const size_t first = c->out->n;
    for (size_t i = 0; i < s->body.n; i++)
        put_kernel(c, &c->u->kernels.at[s->body.at[i].kernel]);
    for (size_t i = first; s->is_parallel && i < c->out->n; i++) {
        oi_touch *t = &c->out->at[i];
        t->by = t->writes ? OI_BY_PARTITION : OI_BY_ALL;
        t->is_scattered = t->writes;
        t->kernel = NULL;
        t->nest = NULL;
    }
}

/* -- others -- */

static void put_needs(collecting *c)
{
    for (uint32_t i = 0; i < c->s->n_checks; i++) {
        put_code(c, &c->s->needs[i].value);
        put_code(c, &c->s->needs[i].limit);
    }
}

static void put_resize(collecting *c)
{
    const oi_resize *r = c->s->resize;
    for (uint32_t i = 0; i < c->u->tensors.at[c->s->a.tensor].rank; i++)
        put_code(c, &r->sizes[i]);
    for (uint32_t i = 0; i < r->n_counts; i++)
        put_code(c, &r->counts[i]);
    put_port(c, &c->s->a, true);
}

/* A view copies nothing: each worker finds its own pointer. */
static void put_view(collecting *c)
{
    const oi_skernel *k = c->s->kernel == OI_NO_ID ? NULL : &c->u->kernels.at[c->s->kernel];
    for (size_t i = 0; k && i < k->scalars.n; i++)
        if (!k->scalars.at[i].is_length)
            put_value(c, &k->scalars.at[i].value);
    put_port(c, &c->s->a, false);
}

void oi_touch_stmt(const oi_plan *u, uint32_t graph, const oi_stmt *s, oi_touches *out)
{
    const oi_pnode *n = s->node;
    collecting c = {u, graph, n->source->block, s, out};
    switch (s->kind) {
    case OI_STMT_KERNEL: put_kernel(&c, &u->kernels.at[s->kernel]); break;
    case OI_STMT_PIPELINE: put_pipeline(&c, s); break;
    case OI_STMT_NEED: put_needs(&c); break;
    case OI_STMT_RESIZE: put_resize(&c); break;
    case OI_STMT_LOG: put_port(&c, &s->a, false); break;
    case OI_STMT_VIEW: put_view(&c); break;
    case OI_STMT_SET:
        put_value(&c, &s->value);
        put_port(&c, &s->a, true);
        break;
    case OI_STMT_LIMIT:
    case OI_STMT_LENGTH:
        if (s->a.tensor == OI_NO_ID)
            put_value(&c, &s->value);
        else
            put_port(&c, &s->a, false);
        break;
    case OI_STMT_CHECK: put_port(&c, &s->a, false); break;
    case OI_STMT_LOOP:
        put_code(&c, &n->as.loop.start);
        put_code(&c, &n->as.loop.end);
        break;
    case OI_STMT_BRANCH:
        if (n->as.branch.cond != OI_NO_ID && !n->as.branch.cond_is_index)
            put_var(&c, n->as.branch.cond);
        break;
    case OI_STMT_YIELD:
    case OI_STMT_AWAIT:
    case OI_STMT_BARRIER:
    case OI_STMT_SHAPE:
    case OI_STMT_SIZES:
    case OI_STMT_GONE:
    case OI_STMT_RETURN: break;
    }
}

bool oi_loop_runs(const oi_stmt *loop)
{
    int64_t from, to;
    const oi_pnode *n = loop->node;
    return oi_code_is_int(&n->as.loop.start, &from) && oi_code_is_int(&n->as.loop.end, &to) &&
           from < to;
}

/* -- which elements a worker touches -- */

typedef struct range {
    int64_t low, high; /* both included; none where low > high */
} range;

#define DIGITS 4 /* axes that one coordinate adds up; more are rare, and then the range counts */
#define BOXES  3 /* positions counted through two axes: a first row, whole rows, a last row */

/* Places along a dim: a range, and where the coordinate is a number in a mixed radix, its digits.
 * `i * 8 + k` with k in 2 ... 3 leaves out most of the range. */
typedef struct places {
    range all;
    uint32_t n; /* digits, the greatest step first; 0: not known */
    int64_t base, step[DIGITS];
    range digit[DIGITS];
    const oi_code *from; /* all of this counts from that position; NULL: from 0 */
} places;

typedef struct boxes {
    uint32_t n, rank;
    bool is_flat;     /* one dim: the row-major number of the element */
    bool is_same_run; /* compared with those of the same run of the statement */
    places at[BOXES][OI_MAX_RANK];
} boxes;

static places whole_dim(const oi_tensor *t, uint32_t d)
{
    return (places){.all = {0, t->dims[d] - 1}};
}

/* Where worker p's positions begin; the rule of emitted programs (oi_partition_begin in
 * body/scalar.h). */
static int64_t begin_of(const oi_partition *s, int64_t p, int64_t n)
{
    const int64_t units = (s->extent + s->unit - 1) / s->unit;
    const int64_t at = units * p / n * s->unit;
    return at < s->extent ? at : s->extent;
}

/* The coordinate, with every axis within its range. */
static range coord_range(const oi_nest_coord *c, const oi_snest *n, const range *axes)
{
    range r = {c->base, c->base};
    for (uint32_t a = 0; a < n->n_axes; a++) {
        const int64_t x = c->step[a] * axes[a].low, y = c->step[a] * axes[a].high;
        r.low += x < y ? x : y;
        r.high += x < y ? y : x;
    }
    return r;
}

/* Steps that go forward, the greatest first. */
static void insert_digit(places *p, int64_t step, int64_t extent, range r)
{
    uint32_t at = p->n++;
    if (step < 0) {
        p->base += step * (extent - 1);
        r = (range){extent - 1 - r.high, extent - 1 - r.low};
        step = -step;
    }
    for (; at > 0 && p->step[at - 1] < step; at--) {
        p->step[at] = p->step[at - 1];
        p->digit[at] = p->digit[at - 1];
    }
    p->step[at] = step;
    p->digit[at] = r;
}

/* Every step leaves room for all that the smaller ones count. */
static bool is_radix(const places *p, const oi_nest_coord *c, const oi_snest *n)
{
    bool is = true;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t below = 0;
        for (uint32_t a = 0; a < n->n_axes; a++) {
            const int64_t step = c->step[a] < 0 ? -c->step[a] : c->step[a];
            below += step < p->step[i] ? step * (n->axes[a].extent - 1) : 0;
        }
        is &= below < p->step[i] && (i == 0 || p->step[i - 1] != p->step[i]);
    }
    return is;
}

static void set_digits(places *p, const oi_nest_coord *c, const oi_snest *n, const range *axes)
{
    p->base = c->base;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if (c->step[a] == 0 || n->axes[a].extent < 2)
            continue;
        if (p->n == DIGITS) {
            p->n = 0;
            return;
        }
        insert_digit(p, c->step[a], n->axes[a].extent, axes[a]);
    }
    if (!is_radix(p, c, n))
        p->n = 0;
}

static bool has_index(const oi_code *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].kind == OI_INS_INDEX)
            return true;
    return false;
}

/* The position from which the port counts. Workers agree on variables, which no worker writes while
 * another reads them, but they may be in different iterations of a loop. */
static void set_from(places *p, const oi_tensor *t, const oi_port *port, uint32_t d, bool same_run)
{
    int64_t n;
    if (t->n_table || !port->n_entry)
        return;
    const oi_code *from = &port->entry[d];
    if (!oi_code_is_int(from, &n)) {
        p->from = from;
    } else {
        p->all.low += n;
        p->all.high += n;
        p->base += n;
    }
    if (p->from && !same_run && has_index(from))
        *p = whole_dim(t, d);
}

static void add_box(const oi_touch *x, const oi_tensor *t, const range *axes, boxes *out)
{
    const oi_port *port = &x->kernel->ports.at[x->op->port];
    places *box = out->at[out->n++];
    for (uint32_t d = 0; d < out->rank; d++) {
        const oi_nest_coord *c = &x->op->at[d];
        const bool is_affine = c->index == OI_NEST_NONE && c->bend == OI_BEND_NONE && !x->op->fns;
        box[d] = whole_dim(t, d);
        if (out->is_flat)
            box[d].all.high = (int64_t)(t->size_bytes * 8 / oi_dtype_bits(t->dtype)) - 1;
        if (!is_affine || (out->is_flat && port->n_entry && !t->n_table))
            continue;
        const range r = coord_range(c, x->nest, axes);
        box[d].all.low = r.low > 0 ? r.low : 0;
        box[d].all.high = r.high < box[d].all.high ? r.high : box[d].all.high;
        set_digits(&box[d], c, x->nest, axes);
        if (!out->is_flat)
            set_from(&box[d], t, port, d, out->is_same_run);
    }
}

/* The positions first ... last - 1 of the partitioned axis, or of two axes counted through. */
static void nest_boxes(const oi_touch *x, const oi_tensor *t, int64_t first, int64_t last,
                       boxes *out)
{
    const oi_partition s = oi_kernel_partition(x->kernel);
    range axes[OI_NEST_AXES];
    for (uint32_t a = 0; a < x->nest->n_axes; a++)
        axes[a] = (range){0, x->nest->axes[a].extent - 1};
    if (s.n_axes < 2) {
        axes[s.axis] = (range){first, last - 1};
        add_box(x, t, axes, out);
        return;
    }
    const int64_t inner = x->nest->axes[s.axis + 1].extent;
    range *i = &axes[s.axis], *j = &axes[s.axis + 1];
    while (first < last) { /* a part of a row, or all whole rows */
        const int64_t row = first / inner, from = first % inner;
        const bool is_whole = from == 0 && last - first >= inner;
        const int64_t rows = is_whole ? (last - first) / inner : 1;
        const int64_t end = is_whole || last >= (row + 1) * inner ? (row + rows) * inner : last;
        *i = (range){row, row + rows - 1};
        *j = (range){from, is_whole ? inner - 1 : from + (end - first) - 1};
        add_box(x, t, axes, out);
        first = end;
    }
}

static void whole_boxes(const oi_tensor *t, boxes *out)
{
    out->n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        out->at[0][d] = whole_dim(t, d);
}

static boxes boxes_of(const oi_plan *u, const oi_touch *x, int64_t p, int64_t n, bool same_run)
{
    const oi_tensor *t = &u->tensors.at[x->tensor];
    boxes out = {.rank = t->rank, .is_same_run = same_run};
    if (x->by != OI_BY_PARTITION || !x->kernel || oi_dtype_bits(t->dtype) < 8 || t->ring) {
        whole_boxes(t, &out);
        return out;
    }
    const oi_partition s = oi_kernel_partition(x->kernel);
    const int64_t first = begin_of(&s, p, n), last = begin_of(&s, p + 1, n);
    if (first >= last)
        return out;
    if (x->nest) {
        out.is_flat = x->op->is_flat;
        out.rank = out.is_flat ? 1 : t->rank;
        nest_boxes(x, t, first, last, &out);
        return out;
    }
    whole_boxes(t, &out);
    if (x->dim != OI_NO_ID) {
        const int64_t each = t->dims[x->dim] / s.extent;
        out.at[0][x->dim].all = (range){first * each, last * each - 1};
    }
    return out;
}

/* -- bytes -- */

bool oi_touch_overlap(const oi_plan *u, uint32_t a, uint32_t b)
{
    const oi_tensor *x = &u->tensors.at[a], *y = &u->tensors.at[b];
    if (a == b)
        return !x->is_private;
    return x->space == OI_SPACE_ARENA && y->space == OI_SPACE_ARENA && x->graph == y->graph &&
           !x->is_private && !y->is_private && x->offset < y->offset + oi_tensor_bytes(y) &&
           y->offset < x->offset + oi_tensor_bytes(x);
}

/* Elements of one tensor are where those of the other are. */
static bool lie_alike(const oi_tensor *x, const oi_tensor *y)
{
    return x->offset == y->offset && x->rank == y->rank && x->n_table == y->n_table &&
           oi_dtype_bits(x->dtype) == oi_dtype_bits(y->dtype) &&
           memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) == 0;
}

static bool ranges_meet(range x, range y)
{
    return x.low <= y.high && y.low <= x.high && x.low <= x.high && y.low <= y.high;
}

static bool places_meet(const places *x, const places *y)
{
    if (x->from || y->from)
        if (!x->from || !y->from || !oi_code_same(x->from, y->from))
            return true;
    bool meet = ranges_meet(x->all, y->all);
    /* one number has the same leading digits wherever the leading steps are the same */
    for (uint32_t i = 0; x->base == y->base && i < x->n && i < y->n; i++) {
        if (x->step[i] != y->step[i])
            break;
        meet &= ranges_meet(x->digit[i], y->digit[i]);
    }
    return meet;
}

/* Makes coordinates row-major numbers, whose leading digits they are. False: where they begin is
 * not known. */
static bool flatten(const oi_tensor *t, boxes *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        places flat = {.n = 0};
        int64_t step = (int64_t)(t->size_bytes * 8 / oi_dtype_bits(t->dtype));
        for (uint32_t d = 0; d < b->rank; d++) {
            const places *p = &b->at[i][d];
            if (p->from || t->n_table || t->dims[d] == 0)
                return false;
            step /= t->dims[d];
            flat.all.low += p->all.low * step;
            flat.all.high += p->all.high * step;
            if (t->dims[d] > 1 && flat.n < DIGITS) {
                flat.step[flat.n] = step;
                flat.digit[flat.n++] = p->all;
            }
        }
        b->at[i][0] = flat;
    }
    b->is_flat = true;
    b->rank = 1;
    return true;
}

static bool boxes_meet(const boxes *a, const boxes *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++) {
            bool meet = true;
            for (uint32_t d = 0; d < a->rank; d++)
                meet &= places_meet(&a->at[i][d], &b->at[j][d]);
            if (meet)
                return true;
        }
    return false;
}

/* The first and last byte of the boxes, in the arena. */
static range bytes_of(const oi_tensor *t, const boxes *b)
{
    range all = {INT64_MAX, INT64_MIN};
    for (uint32_t i = 0; i < b->n; i++) {
        int64_t low = 0, high = 0;
        for (uint32_t d = 0; d < b->rank; d++) {
            const places *p = &b->at[i][d];
            low = low * t->dims[d] + (p->from ? 0 : p->all.low);
            high = high * t->dims[d] + (p->from ? t->dims[d] - 1 : p->all.high);
        }
        all.low = low < all.low ? low : all.low;
        all.high = high > all.high ? high : all.high;
    }
    const int64_t bits = oi_dtype_bits(t->dtype), base = (int64_t)t->offset;
    if (t->n_table) /* any entry */
        return (range){base, base + (int64_t)oi_tensor_bytes(t) - 1};
    return (range){base + all.low * bits / 8, base + ((all.high + 1) * bits + 7) / 8 - 1};
}

bool oi_touch_meet(const oi_plan *u, const oi_touch *a, int64_t p, const oi_touch *b, int64_t q,
                   int64_t n, bool same_run)
{
    const oi_tensor *x = &u->tensors.at[a->tensor], *y = &u->tensors.at[b->tensor];
    if (!oi_touch_overlap(u, a->tensor, b->tensor))
        return false;
    if (a->stmt == b->stmt && a->is_scattered && b->is_scattered && a->tensor == b->tensor)
        return p == q;
    boxes s = boxes_of(u, a, p, n, same_run), t = boxes_of(u, b, q, n, same_run);
    if (!s.n || !t.n)
        return false;
    if ((a->tensor == b->tensor || lie_alike(x, y)) &&
        (s.is_flat == t.is_flat || flatten(s.is_flat ? y : x, s.is_flat ? &t : &s)))
        return boxes_meet(&s, &t);
    const range v = bytes_of(x, &s), w = bytes_of(y, &t);
    return v.low <= w.high && w.low <= v.high;
}
