/* chunks.c: ops over model tensors that the memory limit has no room for. The call is cut along an
 * axis of its output (kernel/cut.c); each part reads its share of the tensors into one buffer and
 * is a call of the same op by the same kernel, so all bits stay. Tuned bodies want dense operands:
 * a part of the result that is not one range is made beside those shares and copied. Rows that a
 * gather picks go straight from the file into the result. */
#include "sim/chunks.h"

#define MOST (16u << 20) /* bytes at a time: more is no faster, and other tensors would leave */

/* -- planning -- */

static uint64_t bytes_of(const oi_operand *o, int64_t places, int64_t extent)
{
    uint64_t bytes = 0;
    (void)oi_dtype_bytes(o->dtype, (uint64_t)(oi_operand_count(o) / extent * places), &bytes);
    return (bytes + OI_BUFFER_ALIGN - 1) & ~(uint64_t)(OI_BUFFER_ALIGN - 1);
}

static uint64_t part_bytes(const oi_kernel_query *q, const oi_chunks *k, int64_t places)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < q->n_in; i++)
        if (k->is_cut[i])
            sum += bytes_of(&q->in[i], places, k->cut.extent);
    if (!k->out_together)
        sum += bytes_of(&q->out[0], places, k->cut.extent);
    return oi_buffer_cost(sum);
}

/* Parts of packed tensors begin at whole bytes where a few places together can do that. */
static int64_t unit_of(const oi_operand *o, uint32_t dim)
{
    uint64_t bits = oi_dtype_bits(o->dtype);
    int64_t unit = 1;
    for (uint32_t d = dim + 1; d < o->rank; d++)
        bits = bits % 8 * ((uint64_t)o->dims[d] % 8);
    while (bits * (uint64_t)unit % 8)
        unit *= 2;
    return unit;
}

/* The part of an input is one range of the tensor. */
static bool lies_together(const oi_operand *o, uint32_t dim)
{
    for (uint32_t d = 0; d < dim; d++)
        if (o->dims[d] != 1)
            return false;
    return true;
}

static bool plan_axis(const oi_kernel_query *q, const bool *is_weight, uint32_t axis, oi_chunks *k)
{
    bool any = false;
    *k = (oi_chunks){.unit = 1, .lies_together = true};
    if (!oi_kernel_cut(q, axis, &k->cut))
        return false;
    k->out_together = lies_together(&q->out[0], axis);
    for (size_t i = 0; i < q->n_in; i++) {
        const uint32_t dim = k->cut.dims[i];
        k->is_cut[i] = is_weight[i] && dim != OI_CUT_NONE;
        any |= k->is_cut[i];
        if (!is_weight[i])
            continue;
        if (!k->is_cut[i]) {
            k->whole_bytes += bytes_of(&q->in[i], 1, 1);
            continue;
        }
        const int64_t unit = unit_of(&q->in[i], dim);
        k->unit = unit > k->unit ? unit : k->unit;
        k->lies_together &= lies_together(&q->in[i], dim);
    }
    k->unit = k->unit < k->cut.extent ? k->unit : k->cut.extent;
    return any;
}

static void make_dense(oi_operand *o)
{
    int64_t stride = 1;
    for (uint32_t d = o->rank; d-- > 0; stride *= o->dims[d] ? o->dims[d] : 1)
        o->strides[d] = stride;
}

/* The call cut to so many places from the first on. */
typedef struct part {
    oi_kernel_query query;
    oi_operand in[OI_KERNEL_PORTS], out;
    oi_prepared ready;
} part;

static void cut_to(const oi_kernel_query *q, const oi_chunks *k, int64_t places, part *p)
{
    p->query = *q;
    p->query.in = p->in;
    p->query.out = &p->out;
    p->out = q->out[0];
    p->out.dims[k->cut.axis] = places;
    make_dense(&p->out);
    for (size_t i = 0; i < q->n_in; i++) {
        oi_operand *o = &p->in[i];
        *o = q->in[i];
        if (k->cut.dims[i] == OI_CUT_NONE)
            continue;
        o->dims[k->cut.dims[i]] = places;
        if (k->is_cut[i])
            make_dense(o);
    }
}

uint64_t oi_chunks_least(oi_arena *a, const oi_kernel_query *q, const oi_prepared *whole,
                         const bool *is_weight, oi_cpu cpu)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t axis = 0; q->n_out == 1 && axis < q->out[0].rank; axis++) {
        oi_chunks k;
        oi_infer_fail why;
        if (!plan_axis(q, is_weight, axis, &k))
            continue;
        part *p = oi_arena_alloc(a, sizeof *p);
        cut_to(q, &k, k.unit, p);
        if (!oi_prepare(a, &p->query, cpu, &p->ready, &why) || !oi_prepared_same(&p->ready, whole))
            continue;
        const uint64_t need = k.whole_bytes + part_bytes(q, &k, k.unit) +
                              (p->ready.scratch_bytes ? oi_buffer_cost(p->ready.scratch_bytes) : 0);
        least = need < least ? need : least;
    }
    return least;
}

/* -- running -- */

typedef struct run {
    oi_ctx *c;
    const oi_pnode *n;
    const oi_kernel_query *q;
    const oi_input *in;
    oi_out *out;
    oi_chunks k;
    oi_arena *arena; /* of the part that is ready */
    part part;
    uint64_t room;
    oi_buffer *buffer;
} run;

static oi_status make_ready(run *r, int64_t places)
{
    oi_arena_free(r->arena);
    r->arena = NULL;
    cut_to(r->q, &r->k, places, &r->part);
    return oi_op_choose(r->c, r->n, &r->part.query, &r->part.ready, &r->arena);
}

/* An axis whose smallest part fits and is run by the kernel of the whole; of several the one whose
 * parts lie together. */
static oi_status choose_axis(run *r, const oi_prepared *whole, const bool *is_weight, bool *found)
{
    const oi_kernel_query *q = r->q;
    oi_chunks best;
    *found = false;
    for (uint32_t axis = 0; q->n_out == 1 && axis < q->out[0].rank; axis++) {
        oi_chunks *k = &r->k;
        if (!plan_axis(q, is_weight, axis, k) ||
            k->whole_bytes + part_bytes(q, k, k->unit) > r->room ||
            (*found && (best.lies_together || !k->lies_together)))
            continue;
        OI_TRY(make_ready(r, k->unit));
        const uint64_t scratch = r->part.ready.scratch_bytes;
        if (!oi_prepared_same(&r->part.ready, whole) ||
            k->whole_bytes + part_bytes(q, k, k->unit) + (scratch ? oi_buffer_cost(scratch) : 0) >
                r->room)
            continue;
        best = *k;
        *found = true;
    }
    if (*found)
        r->k = best;
    return OI_OK;
}

/* As many places as the room holds, with what the kernel wants beside them. */
static oi_status fit(run *r, int64_t *places)
{
    const uint64_t room = r->room - r->k.whole_bytes;
    const int64_t unit = r->k.unit, extent = r->k.cut.extent;
    const uint64_t most = room < MOST ? room : MOST;
    int64_t units = (extent + unit - 1) / unit;
    const uint64_t all = part_bytes(r->q, &r->k, extent);
    if (all > most)
        units = (int64_t)((double)units * ((double)most / (double)all));
    for (units = units > 0 ? units : 1;; units /= 2) {
        *places = units * unit < extent ? units * unit : extent;
        OI_TRY(make_ready(r, *places));
        const uint64_t bytes = part_bytes(r->q, &r->k, *places),
                       scratch = r->part.ready.scratch_bytes;
        if (units == 1 || (bytes <= room && scratch + 2 * OI_BUFFER_ALIGN <= room - bytes))
            return OI_OK;
    }
}

/* Places from … of input i, dense, into `to`. */
static oi_status read_part(run *r, size_t i, int64_t from, int64_t places, void *to)
{
    const oi_operand *o = &r->q->in[i];
    const uint32_t dim = r->k.cut.dims[i];
    oi_weights *w = r->c->exec->sim->weights;
    uint64_t outer = 1, inner = 1;
    for (uint32_t d = 0; d < o->rank; d++)
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : (uint64_t)o->dims[d];
    const uint64_t n = (uint64_t)places * inner, row = (uint64_t)r->k.cut.extent * inner;
    for (uint64_t k = 0; k < outer; k++) {
        oi_status status = oi_weights_read(
            w, r->in[i].slot->tensor, k * row + (uint64_t)from * inner, n, to, k * n, r->c->diag);
        if (status != OI_OK)
            return oi_ctx_reported(r->c, status);
    }
    return OI_OK;
}

static oi_status run_part(run *r, int64_t from, int64_t places)
{
    const void *in[OI_KERNEL_PORTS];
    int64_t in_at[OI_KERNEL_PORTS] = {0};
    const int64_t at = from * r->q->out[0].strides[r->k.cut.axis];
    char *to = r->buffer->data;
    for (size_t i = 0; i < r->q->n_in; i++) {
        in[i] = r->in[i].data;
        if (r->k.is_cut[i]) {
            OI_TRY(read_part(r, i, from, places, to));
            in[i] = to;
            to += bytes_of(&r->q->in[i], places, r->k.cut.extent);
        } else if (r->k.cut.dims[i] != OI_CUT_NONE) {
            in_at[i] = from * r->q->in[i].strides[r->k.cut.dims[i]];
        }
    }
    const bool direct = r->k.out_together;
    void *out[1] = {direct ? r->out->data : to};
    const int64_t out_at[1] = {direct ? at : 0};
    const oi_kernel_io io = {.in = in, .in_at = in_at, .out = out, .out_at = out_at};
    OI_TRY(oi_op_call(r->c, r->n, &r->part.query, &r->part.ready, &io));
    if (direct)
        return OI_OK;
    oi_operand place = r->q->out[0];
    place.dims[r->k.cut.axis] = places;
    oi_copy(&place, r->out->data, at, &r->part.out, to, 0, &io);
    return OI_OK;
}

static oi_status run_parts(run *r, oi_input *in)
{
    int64_t places = 0;
    oi_status status = fit(r, &places);
    for (size_t i = 0; status == OI_OK && i < r->q->n_in; i++)
        if (!r->k.is_cut[i])
            status = oi_mem_fetch(r->c, &in[i]);
    if (status != OI_OK)
        return status;
    const uint64_t bytes = part_bytes(r->q, &r->k, places);
    r->buffer = oi_buffer_new(&r->c->exec->sim->budget, OI_HELD_CHUNKS, bytes - OI_BUFFER_ALIGN);
    if (!r->buffer)
        return oi_ctx_no_memory(r->c, bytes);
    for (int64_t from = 0; status == OI_OK && from < r->k.cut.extent; from += places) {
        const int64_t left = r->k.cut.extent - from;
        if (left < places)
            status = make_ready(r, left);
        if (status == OI_OK)
            status = run_part(r, from, left < places ? left : places);
    }
    oi_buffer_drop(r->buffer);
    return status;
}

/* -- gather -- */

bool oi_chunks_picks_rows(const oi_kernel_query *q)
{
    if (q->op->id != OI_OP_GATHER || q->in[0].rank == 0)
        return false;
    const int64_t axis = oi_kernel_attr(q, "axis")->i;
    return axis == 0 || axis == -(int64_t)q->in[0].rank;
}

/* A row of the tensor for each index. */
static oi_status pick_rows(oi_ctx *c, const oi_pnode *n, const oi_input *in, const oi_out *out)
{
    const int64_t n_rows = (int64_t)in[0].dims[0];
    const uint64_t row = in[1].n_elements ? out->n_elements / in[1].n_elements : 0;
    for (uint64_t e = 0; e < in[1].n_elements; e++) {
        const int64_t at = oi_kernel_index(in[1].dtype, in[1].data, e);
        if (at < -n_rows || at >= n_rows)
            return oi_op_fault(
                c, n,
                &(oi_kernel_fault){
                    .code = "E047", .input = 1, .element = e, .value = at, .limit = n_rows});
        oi_status status = oi_weights_read(c->exec->sim->weights, in[0].slot->tensor,
                                           (uint64_t)(at < 0 ? at + n_rows : at) * row, row,
                                           out->data, e * row, c->diag);
        if (status != OI_OK)
            return oi_ctx_reported(c, status);
    }
    return OI_OK;
}

/* -- the whole -- */

static oi_status fetch_all(oi_ctx *c, oi_input *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        OI_TRY(oi_mem_fetch(c, &in[i]));
    return OI_OK;
}

static bool waits(const oi_input *in)
{
    return !in->data && in->slot && in->slot->is_weight && in->n_elements;
}

oi_status oi_chunks_run(oi_ctx *c, const oi_pnode *n, const oi_kernel_query *q,
                        const oi_prepared *ready, oi_input *in, oi_out *out, bool *done)
{
    bool is_weight[OI_KERNEL_PORTS];
    uint64_t need = ready->scratch_bytes ? oi_buffer_cost(ready->scratch_bytes) : 0;
    run r = {.c = c, .n = n, .q = q, .in = in, .out = out};
    *done = false;
    for (size_t i = 0; i < q->n_in; i++) {
        is_weight[i] = waits(&in[i]);
        need += is_weight[i] ? bytes_of(&q->in[i], 1, 1) : 0;
    }
    if (is_weight[0] && oi_chunks_picks_rows(q) &&
        !oi_weights_is_resident(c->exec->sim->weights, in[0].slot->tensor)) {
        *done = true;
        OI_TRY(oi_mem_fetch(c, &in[1]));
        return pick_rows(c, n, in, out);
    }
    r.room = oi_budget_room(&c->exec->sim->budget);
    oi_status status = OI_OK;
    if (need > r.room)
        status = choose_axis(&r, ready, is_weight, done);
    if (status == OI_OK)
        status = *done ? run_parts(&r, in) : fetch_all(c, in, q->n_in);
    oi_arena_free(r.arena);
    return status;
}
