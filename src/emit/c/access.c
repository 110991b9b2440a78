/* access.c: prints statements about the persistent state: conditions, sizes, views, and what is
 * kept for a rollback. Storage has the maximum sizes, so growing only changes counters; cells
 * beyond the current sizes hold the initial value. */
#include "emit/c/c.h"

#include <inttypes.h>

/* -- conditions -- */

void oi_c_need(oi_cprog *c, const oi_stmt *s)
{
    static const struct {
        const char *fails, *why;
    } kinds[] = {[OI_NEED_START] = {"<", "a negative start or index"},
                 [OI_NEED_ORDER] = {"<", "a slice that ends before it starts"},
                 [OI_NEED_INDEX] = {">=", "out of range"},
                 [OI_NEED_END] = {">", "out of range"},
                 [OI_NEED_GROWTH] = {">", "growth beyond the bound"},
                 [OI_NEED_BOUND] = {">", "past the bound"},
                 [OI_NEED_EQUAL] = {"!=", "another shape"}};
    for (uint32_t i = 0; i < s->n_checks; i++) {
        const oi_need *n = &s->needs[i];
        const int error = oi_need_error(n->kind);
        const char *value = oi_c_code(c, &n->value, NULL), *limit = oi_c_code(c, &n->limit, NULL);
        oi_out_line(&c->out, n->limit.n > 1 ? "if (%s %s (%s))" : "if (%s %s %s)",
                    n->value.n > 1 ? oi_arena_printf(c->arena, "(%s)", value) : value,
                    kinds[n->kind].fails, limit);
        oi_out_line(&c->out, "    return %d; /* E%03d: %s */", error, error, kinds[n->kind].why);
    }
}

/* -- what a rollback restores -- */

bool oi_c_logs(const oi_cprog *c, const oi_stmt *s)
{
    return s->n_undo > 0 && c->p->undo.kind == OI_UNDO_LOG;
}

void oi_c_put_log(oi_cprog *c, const oi_stmt *s, oi_undo_what what, const char *at, const char *n)
{
    for (uint32_t i = 0; i < s->n_undo && c->p->undo.kind == OI_UNDO_LOG; i++)
        if (s->undo[i].what == what && !c->form->device) /* it keeps all of the host's */
            oi_out_line(&c->out, "oi_log_undo(s, %s, %s);", at, n);
}

/* The loop over the dim has one round. */
static bool is_single(const oi_port *p, const oi_tensor *t, uint32_t d)
{
    int64_t n = t->dims[d];
    return (!p->count || oi_code_is_int(&p->count[d], &n)) && n == 1;
}

static const char *count_text(oi_cprog *c, const oi_port *p, const oi_tensor *t, uint32_t d)
{
    return p->count ? oi_c_code(c, &p->count[d], NULL)
                    : oi_arena_printf(c->arena, "%" PRId64, t->dims[d]);
}

/* " + i0 * 64 + i1 * 16": a run, from the first element of the part. Positions of elements smaller
 * than a byte count from the beginning of the tensor. */
static const char *run_text(oi_cprog *c, const oi_port *p, const oi_tensor *t, uint32_t q)
{
    const bool is_packed = oi_dtype_bits(t->dtype) < 8;
    oi_buf b = {0};
    int64_t stride = 1;
    for (uint32_t d = t->rank; d-- > 0; stride *= t->dims[d]) {
        if (is_packed && p->entry)
            oi_buf_printf(&b, " + (%s) * %" PRId64, oi_c_code(c, &p->entry[d], NULL), stride);
        if (d < q && !is_single(p, t, d))
            oi_buf_printf(&b, " + i%u * %" PRId64, d, stride);
    }
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

static const char *run_bytes(oi_cprog *c, const oi_port *p, const oi_tensor *t, uint32_t q)
{
    uint64_t inner = oi_dtype_bits(t->dtype) / 8;
    int64_t n = q < t->rank ? t->dims[q] : 1;
    for (uint32_t d = q + 1; d < t->rank; d++)
        inner *= (uint64_t)t->dims[d];
    if (q == t->rank || !p->count || oi_code_is_int(&p->count[q], &n))
        return oi_arena_printf(c->arena, "%" PRIu64, inner * (uint64_t)n);
    return oi_arena_printf(c->arena, "(size_t)(%s) * %" PRIu64, oi_c_code(c, &p->count[q], NULL),
                           inner);
}

/* One entry of the log per contiguous run; elements smaller than a byte are logged one by one. */
void oi_c_log(oi_cprog *c, const oi_stmt *s)
{
    const oi_port *p = &s->a;
    const oi_tensor *t = &c->p->tensors.at[p->tensor];
    const unsigned bits = oi_dtype_bits(t->dtype);
    const uint32_t q = oi_part_run(t, p);
    if (!oi_c_logs(c, s))
        return;
    const char *at = c->form->device ? "" : oi_c_address(c, p), *run = run_text(c, p, t, q);
    const char *bytes = bits < 8 ? "1" : run_bytes(c, p, t, q);
    if (c->form->device)
        at = run;
    else if (bits < 8)
        at = oi_arena_printf(c->arena, "%s + (%s) * %u / 8", at, *run ? run + 3 : "0", bits);
    else
        at = oi_arena_printf(c->arena, "%s%s", at, run);
    for (uint32_t d = 0; d < q; d++)
        if (!is_single(p, t, d))
            oi_out_open(&c->out, "for (int64_t i%u = 0; i%u < %s; i%u++)", d, d,
                        count_text(c, p, t, d), d);
    if (c->form->device)
        c->form->device->log(c, s, at, bytes);
    else
        oi_c_put_log(c, s, OI_UNDO_ELEMENTS, at, bytes);
    for (uint32_t d = 0; d < q; d++)
        if (!is_single(p, t, d))
            oi_out_close(&c->out, "");
}

/* -- sizes -- */

static void put_sizes(oi_cprog *c, const oi_stmt *s, uint32_t mask)
{
    for (uint32_t i = 0; i < c->p->tensors.at[s->a.tensor].rank; i++)
        if (s->resize->sizes[i].n && mask >> i & 1)
            oi_out_line(&c->out, "%s = size%u;", oi_c_size(c, s->a.tensor, i), i);
}

/* All new sizes are computed from the old ones. */
void oi_c_resize(oi_cprog *c, const oi_stmt *s)
{
    const oi_resize *r = s->resize;
    const oi_store_var *v = oi_plan_store(c->p, s->a.tensor);
    const char *own = oi_arena_printf(c->arena, "s->oi_state_data.oi_size_%s",
                                      oi_c_field(c, &c->p->tensors.at[s->a.tensor]));
    oi_buf b = {0};
    oi_out_brace(&c->out);
    for (uint32_t i = 0; i < v->rank; i++)
        if (r->sizes[i].n)
            oi_out_line(&c->out, "const int64_t size%u = %s;", i, oi_c_code(c, &r->sizes[i], NULL));
    for (uint32_t i = 0; i < r->n_counts; i++)
        oi_buf_printf(&b, r->counts[i].n > 1 ? "%s(%s) > 0" : "%s%s > 0", b.n ? " && " : "",
                      oi_c_code(c, &r->counts[i], NULL));
    oi_c_put_log(c, s, OI_UNDO_SIZES, own, oi_arena_printf(c->arena, "sizeof %s", own));
    const char *cond = b.n ? oi_buf_to_arena(&b, c->arena) : NULL;
    oi_c_begin_write(c);
    if (cond)
        oi_out_open(&c->out, "if (%s)", cond);
    put_sizes(c, s, ~r->always);
    if (cond)
        oi_out_close(&c->out, "");
    put_sizes(c, s, r->always);
    oi_c_end_write(c);
    oi_out_close(&c->out, "");
}

/* -- views -- */

/* Every worker finds the pointer, the first one sets lengths. */
void oi_c_view(oi_cprog *c, const oi_stmt *s)
{
    const oi_tensor *t = &c->p->tensors.at[s->b.tensor];
    if (c->form->device)
        c->form->device->view(c, s);
    else
        oi_out_line(&c->out, "const %s *const %s = %s;", oi_c_type(t->dtype), oi_c_lent(c, t),
                    oi_c_address(c, &s->a));
    oi_c_wait(c);
    if (s->kernel == OI_NO_ID)
        return;
    if (s->is_parallel)
        oi_out_open(&c->out, "if (worker == 0)");
    oi_c_kernel_lengths(c, &c->p->kernels.at[s->kernel]);
    if (s->is_parallel)
        oi_out_close(&c->out, "");
}
