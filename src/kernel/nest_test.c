/* Nests against the driver that runs them: every call below is also interpreted element by element,
 * straight from the nest's text in nest.h, with kernels of one element. Sanitizers see both. */
#include "kernel/nest.h"
#include "kernel/text_call.h"

#define MAX_BYTES 400000

/* -- the naive interpreter -- */

static uint8_t data[MAX_IN][MAX_BYTES], reference[MAX_IN][MAX_BYTES], made[MAX_IN][MAX_BYTES];

static int64_t coordinate(const oi_nest *n, const text_call *c, const oi_nest_coord *at,
                          const int64_t *pos, int64_t length, bool *inside);

/* The element that a ref finds; *inside is false when it leaves its operand. */
static int64_t element_of(const oi_nest *n, const text_call *c, const oi_nest_ref *r,
                          const int64_t *pos, int64_t add_last, bool *inside)
{
    const oi_operand *o = r->is_output ? &c->out[r->operand] : &c->in[r->operand];
    int64_t e = 0, all = 1;
    for (uint32_t d = 0; d < o->rank; d++)
        all *= o->dims[d];
    for (uint32_t d = 0; d < r->rank; d++) {
        int64_t length = r->is_flat ? all : o->dims[d];
        int64_t v = coordinate(n, c, &r->at[d], pos, length, inside);
        v += d + 1 == r->rank ? add_last : 0;
        e = e * length + v;
    }
    return e;
}

static int64_t coordinate(const oi_nest *n, const text_call *c, const oi_nest_coord *at,
                          const int64_t *pos, int64_t length, bool *inside)
{
    int64_t v = at->base;
    for (uint32_t a = 0; a < n->n_axes; a++)
        v += at->step[a] * pos[a];
    if (at->index != OI_NEST_NONE) {
        const oi_nest_ref *by = &n->reads[at->index];
        bool ok = true;
        int64_t e = element_of(n, c, by, pos, at->index_last, &ok);
        int64_t found = oi_element_i64(c->in[by->operand].dtype, data[by->operand], (uint64_t)e);
        v += found < 0 ? found + length : found;
    }
    int64_t size = at->bend_to - at->bend_from;
    if (at->bend == OI_BEND_EDGE)
        v = v < at->bend_from ? at->bend_from : v >= at->bend_to ? at->bend_to - 1 : v;
    while (at->bend == OI_BEND_WRAP && (v < at->bend_from || v >= at->bend_to))
        v += v < at->bend_from ? size : -size;
    while (at->bend == OI_BEND_REFLECT && (v < at->bend_from || v >= at->bend_to))
        v = size == 1 ? at->bend_from
                      : (v < at->bend_from ? 2 * at->bend_from - v : 2 * (at->bend_to - 1) - v);
    *inside &= v >= 0 && v < length;
    return v;
}

static void put(const text_call *c, const oi_nest_ref *w, int64_t e, oi_dtype from, const void *p,
                uint64_t at)
{
    oi_dtype t = c->out[w->operand].dtype;
    if (oi_dtype_is_float(t))
        oi_element_set_f64(t, reference[w->operand], (uint64_t)e, oi_element_f64(from, p, at));
    else
        oi_element_set_i64(t, reference[w->operand], (uint64_t)e, oi_element_i64(from, p, at));
}

/* What a scan, scatter or count makes of two numbers; sums of small integers are exact in f64. */
static double combine(const text_call *c, double acc, double x)
{
    const char *how = c->op->id == OI_OP_CUMSUM    ? "add"
                      : c->op->id == OI_OP_CUMPROD ? "mul"
                      : oi_op_attr_find(c->op, "reduction")
                          ? c->attrs[oi_op_attr_find(c->op, "reduction") - c->op->attrs].s
                          : "none";
    return how[0] == 'a'   ? acc + x
           : how[1] == 'u' ? acc * x
           : how[1] == 'a' ? (x > acc ? x : acc)
           : how[1] == 'i' ? (x < acc ? x : acc)
                           : x;
}

static void set_number(const text_call *c, const oi_nest_ref *w, int64_t e, double v)
{
    oi_element_set_f64(c->out[w->operand].dtype, reference[w->operand], (uint64_t)e, v);
}

static void iterate(const oi_nest *n, const text_call *c, const int64_t *pos, double *acc)
{
    bool there = true, here = n->n_reads && n->reads[0].name != OI_NEST_NONE;
    bool reads = here;
    int64_t to = element_of(n, c, &n->write, pos, 0, &there), from = 0, guard = n->guard.base;
    for (uint32_t a = 0; a < n->n_axes; a++)
        guard += n->guard.step[a] * pos[a];
    if (n->n_reads && n->reads[0].is_position) {
        int64_t i = 0;
        for (uint32_t a = 0; a < n->n_axes; a++)
            i += n->reads[0].at[0].step[a] * pos[a];
        const oi_op_value *start = &c->attrs[0],
                          *delta = &c->attrs[oi_op_attr_find(c->op, "delta") - c->op->attrs];
        set_number(c, &n->write, to, (double)start->i + (double)i * (double)delta->i);
        return;
    }
    if (reads)
        from = element_of(n, c, &n->reads[0], pos, 0, &here);
    here &= !n->has_guard || guard >= 0;
    if (!there || (reads && !here && n->leave == OI_LEAVE_SKIP))
        return;
    if (!here) {
        int64_t v = n->fill.tag == OI_VALUE_BOOL ? n->fill.b : n->fill.i;
        if (c->out[n->write.operand].dtype == OI_T1) /* it has no 0 */
            v = v < 0 ? -1 : 1;
        put(c, &n->write, to, OI_I64, &v, 0);
        return;
    }
    const oi_nest_ref *r = &n->reads[0];
    oi_dtype t = c->in[r->operand].dtype;
    if (n->is_scan) {
        if (n->excludes)
            set_number(c, &n->write, to, *acc);
        *acc = combine(c, *acc, oi_element_f64(t, data[r->operand], (uint64_t)from));
        if (!n->excludes)
            set_number(c, &n->write, to, *acc);
    } else if (n->combines_out) {
        double old = oi_element_f64(t, reference[n->write.operand], (uint64_t)to);
        set_number(c, &n->write, to,
                   combine(c, old, oi_element_f64(t, data[r->operand], (uint64_t)from)));
    } else {
        put(c, &n->write, to, t, data[r->operand], (uint64_t)from);
    }
}

static void interpret(const oi_kernel_query *q, const text_call *c)
{
    static oi_nest n;
    for (size_t i = 0; i < oi_nest_count(q); i++) {
        int64_t pos[OI_NEST_AXES] = {0}, total = 1;
        double acc = 0;
        oi_nest_make(q, i, &n);
        for (uint32_t a = 0; a < n.n_axes; a++)
            total *= n.axes[a].extent;
        for (int64_t k = 0; k < total; k++) {
            int64_t index = k;
            for (uint32_t a = n.n_axes; a-- > 0; index /= n.axes[a].extent)
                pos[a] = index % n.axes[a].extent;
            if (n.is_scan && pos[n.n_axes - 1] == 0)
                acc = c->op->id == OI_OP_CUMPROD ? 1 : 0;
            iterate(&n, c, pos, &acc);
        }
    }
}

/* -- comparing -- */

static void fill_inputs(text_call *c, uint64_t seed)
{
    for (size_t i = 0; i < c->n_in; i++) {
        int64_t n = 1, limit = 3;
        for (uint32_t d = 0; d < c->in[i].rank; d++)
            n *= c->in[i].dims[d];
        bool is_index = c->in[i].dtype == OI_I64 || c->in[i].dtype == OI_I32;
        for (int64_t e = 0; e < n; e++) {
            int64_t v = (int64_t)(oi_splitmix64(&seed) % (uint64_t)limit);
            const oi_dtype_info *t = oi_dtype_get(c->in[i].dtype);
            v -= is_index || t->min < 0 || t->cls == OI_CLASS_FLOAT;
            if (c->in[i].dtype == OI_T1)
                v = v > 0 ? 1 : -1;
            if (t->cls != OI_CLASS_FLOAT && v > 0 && (uint64_t)v > t->max)
                v = (int64_t)t->max;
            oi_element_set_i64(c->in[i].dtype, data[i], (uint64_t)e, v);
        }
    }
}

static void run(const oi_kernel_query *q, const oi_threads *threads)
{
    static oi_choice choice;
    const void *in[MAX_IN] = {data[0], data[1], data[2], data[3]};
    void *out[MAX_IN] = {made[0], made[1], made[2], made[3]};
    oi_kernel_fault fault = {0};
    assert_true(oi_kernel_choose(q, OI_CPU_SCALAR, &choice));
    assert_int_equal(choice.scratch_bytes, 0);
    oi_kernel_io io = {.in = in, .out = out};
    if (threads) {
        io.parallel = oi_threads_run;
        io.pool = (void *)(uintptr_t)threads;
    }
    assert_true(oi_kernel_call(q, &choice, &io, &fault));
}

static bool seen[OI_OP_COUNT];

static void check(const char *text, oi_dtype t)
{
    static text_call c;
    read_call(&c, text);
    seen[c.op->id] = true;
    oi_dtype own = c.in[0].dtype;
    for (size_t i = 0; t != OI_NONE && i < c.n_in; i++)
        c.in[i].dtype = c.in[i].dtype == own ? t : c.in[i].dtype;
    for (size_t i = 0; t != OI_NONE && i < c.n_out; i++)
        c.out[i].dtype = c.out[i].dtype == own ? t : c.out[i].dtype;
    fill_inputs(&c, (uint64_t)strlen(text));
    memset(reference, 0, sizeof reference);
    memset(made, 0, sizeof made);
    oi_kernel_query q = {
        .op = c.op, .in = c.in, .n_in = c.n_in, .out = c.out, .n_out = c.n_out, .attrs = c.attrs};
    interpret(&q, &c);
    oi_threads *threads = oi_threads_new(3);
    for (int k = 0; k < 2; k++) {
        run(&q, k ? threads : NULL);
        if (memcmp(reference, made, sizeof made) != 0)
            fail_msg("%s of %s on %d threads differs from its nests", text, oi_dtype_name(t),
                     k ? 3 : 1);
        memset(made, 0, sizeof made);
    }
    oi_threads_free(threads);
}

static const char *const moves[] = {
    "reshape(f32[6,4]) >> f32[8,3]",
    "flatten(f32[2,3,4]) >> f32[2,12]",
    "squeeze(f32[1,5]) >> f32[5]",
    "unsqueeze(f32[5]; axes=0) >> f32[1,5]",
    "transpose(f32[3,40,37]; perm=[0,2,1]) >> f32[3,37,40]",
    "transpose(f32[5,7]) >> f32[7,5]",
    "expand(f32[3,1]) >> f32[2,3,4]",
    "tile(f32[2,3]; repeats=[2,3]) >> f32[4,9]",
    "concat(f32[2,3], f32[2,5], f32[2,1]; axis=1) >> f32[2,9]",
    "split(f32[3,9]; axis=1, sizes=[2,3,4]) >> f32[3,2], f32[3,3], f32[3,4]",
    "slice(f32[9,5]; starts=[7,1], ends=[0,5], steps=[-3,2]) >> f32[3,2]",
    "pad(f32[3,5]; pads=[1,2,2,-1]) >> f32[6,6]",
    "pad(f32[3,2]; pads=[7,4,5,3], mode=reflect) >> f32[15,9]",
    "pad(f32[4,5]; pads=[-1,2,3,-1], mode=wrap) >> f32[6,6]",
    "pad(f32[3,5]; pads=[0,3,2,0], mode=edge) >> f32[5,8]",
    "reverse(f32[3,5]) >> f32[3,5]",
    "roll(f32[3,5]; shifts=[1,-2], axes=[0,1]) >> f32[3,5]",
    "roll(f32[3,5]; shifts=4) >> f32[3,5]",
    "depth_to_space(f32[2,8,3,2]; block=2) >> f32[2,2,6,4]",
    "space_to_depth(f32[2,2,6,4]; block=2, mode=CRD) >> f32[2,8,3,2]",
    "trilu(f32[2,4,5]; k=1) >> f32[2,4,5]",
    "gather(f32[5,3], i64[4]) >> f32[4,3]",
    "gather(f32[4,5,3], i32[2,2]; axis=1) >> f32[4,2,2,3]",
    "gather_elements(f32[5,4], i64[3,4]) >> f32[3,4]",
    "gather_nd(f32[3,3,4], i64[2,5,2]) >> f32[2,5,4]",
    "scatter(f32[5,4], i64[3,4], f32[3,4]) >> f32[5,4]",
    "scatter_nd(f32[4,3], i32[6,1], f32[6,3]) >> f32[4,3]",
    "shape_of(f32[4,3,1]) >> i64[3]",
    "size_of(f32[4,3,1]) >> i64[]",
    "reshape(f32[300,201]) >> f32[60300]",
    "pad(f32[250,201]; pads=[1,2,3,4], mode=edge) >> f32[254,207]",
    "roll(f32[300,201]; shifts=[70], axes=[1]) >> f32[300,201]",
};

/* Numbers, not just bits. */
static const char *const numbers[] = {
    "scatter(f32[5,4], i64[3,4], f32[3,4]; reduction=add, axis=1) >> f32[5,4]",
    "scatter(i8[5,4], i64[3,4], i8[3,4]; reduction=max) >> i8[5,4]",
    "scatter_nd(f16[4,3], i64[6,1], f16[6,3]; reduction=mul) >> f16[4,3]",
    "scatter_nd(i4[4,3], i64[6,1], i4[6,3]; reduction=min) >> i4[4,3]",
    "one_hot(i32[4,3]; depth=3) >> f32[4,3,3]",
    "one_hot(i64[4]; depth=2, axis=0, on=5, off=2) >> i8[2,4]",
    "cumsum(f32[5,7]; axis=1) >> f32[5,7]",
    "cumsum(bf16[5,700]; axis=0, exclusive=true) >> bf16[5,700]",
    "cumsum(i32[2,5,3]; axis=1, reverse=true) >> i32[2,5,3]",
    "cumprod(f64[9]; axis=0) >> f64[9]",
    "range(; start=3, limit=40, delta=2) >> i64[19]",
    "range(; start=3, limit=9) >> f16[6]",
    "iota(bool[3,5]; axis=0) >> i32[3,5]",
    "iota(f32[300,200]) >> f32[300,200]",
};

static void moved_bits(void **state)
{
    (void)state;
    static const oi_dtype widths[] = {OI_F32, OI_F64, OI_U16, OI_I8, OI_I4, OI_U2, OI_T1, OI_BOOL};
    for (size_t i = 0; i < OI_COUNT(moves); i++)
        for (size_t t = 0; t < OI_COUNT(widths); t++)
            check(moves[i], widths[t]);
}

static void computed_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(numbers); i++)
        check(numbers[i], OI_NONE);
}

/* Runs last. kernels_test.c relies on it. */
static void every_op_was_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        if (op->shape_rule >= OI_SHAPE_RESHAPE && op->shape_rule <= OI_SHAPE_SCALAR &&
            op->cls != OI_OP_CLASS_CUSTOM && op->shape_rule != OI_SHAPE_WINDOW && !seen[i])
            fail_msg("no call of '%s'", op->name);
    }
}

/* The lowest iteration is blamed, however many threads there are. */
static void faults(void **state)
{
    (void)state;
    static text_call c;
    static oi_choice choice;
    read_call(&c, "gather_nd(f32[3,4], i64[40000,2]) >> f32[40000]");
    memset(data, 0, sizeof data);
    int64_t *idx = aligned_alloc(64, 640000);
    assert_non_null(idx);
    memset(idx, 0, 640000);
    idx[2 * 33333 + 1] = 4;
    idx[2 * 39999] = -4;
    float *out = malloc(160000);
    assert_non_null(out);
    oi_kernel_query q = {
        .op = c.op, .in = c.in, .n_in = 2, .out = c.out, .n_out = 1, .attrs = c.attrs};
    assert_true(oi_kernel_choose(&q, OI_CPU_SCALAR, &choice));
    oi_threads *threads = oi_threads_new(3);
    oi_kernel_io io = {.in = (const void *const[]){data[0], idx},
                       .out = (void *const[]){out},
                       .parallel = oi_threads_run,
                       .pool = threads};
    oi_kernel_fault fault = {0};
    assert_false(oi_kernel_call(&q, &choice, &io, &fault));
    assert_string_equal(fault.code, "E047");
    assert_int_equal(fault.input, 1);
    assert_int_equal(fault.element, 2 * 33333 + 1);
    assert_int_equal(fault.value, 4);
    assert_int_equal(fault.limit, 4);
    oi_threads_free(threads);
    free(idx);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_bits),
        cmocka_unit_test(computed_numbers),
        cmocka_unit_test(faults),
        cmocka_unit_test(every_op_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
