/* Every op of the registry with every dtype it takes, on every kind of instructions this machine
 * has and several numbers of threads: results are compared with the reference's, so that the
 * sanitizers see all kernels. What the right result is, tests/conform judges. */
#include "kernel/kernel.h"

#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#define MAX_INPUTS   6
#define MAX_ELEMENTS 140000 /* a row long enough to be folded in parts */
#define MAX_BYTES    (MAX_ELEMENTS * 8)

typedef struct call {
    const oi_op *op;
    oi_view in[MAX_INPUTS];
    uint64_t dims[MAX_INPUTS + 1][4]; /* the last are the output's */
    size_t n_in;
    oi_op_arg attrs[4];
    size_t n_attrs;
    oi_op_out out;
} call;

static uint8_t data[MAX_INPUTS][MAX_BYTES];
static oi_threads *team_of_three;

static uint64_t count(const uint64_t *dims, uint32_t rank)
{
    uint64_t n = 1;
    for (uint32_t a = 0; a < rank; a++)
        n *= dims[a];
    return n;
}

/* Small whole numbers: every grouping of a sum gives the same bits. */
static void fill(oi_dtype t, uint8_t *p, uint64_t n, uint64_t *seed)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    for (uint64_t e = 0; e < n; e++) {
        int64_t v = (int64_t)(oi_splitmix64(seed) % 3);
        v = d->min < 0 || d->cls == OI_CLASS_FLOAT ? v - 1 : v;
        if (t == OI_T1 || (v > 0 && (uint64_t)v > d->max && d->cls != OI_CLASS_FLOAT))
            v = -(v & 1) - (t == OI_T1 && !(v & 1) ? 1 : 0);
        if (d->min == 0 && d->cls != OI_CLASS_FLOAT)
            v = v < 0 ? 0 : v;
        oi_element_set_i64(t, p, e, v);
    }
}

static void add_input(call *c, oi_dtype t, uint32_t rank, const uint64_t *dims, uint64_t *seed)
{
    size_t i = c->n_in++;
    memcpy(c->dims[i], dims, rank * sizeof *dims);
    uint64_t n = count(dims, rank);
    assert_true(n <= MAX_ELEMENTS);
    fill(t, data[i], n, seed);
    c->in[i] = (oi_view){.dtype = t, .rank = rank, .dims = c->dims[i], .data = data[i]};
}

static void set_out(call *c, oi_dtype t, uint32_t rank, const uint64_t *dims)
{
    if (rank)
        memcpy(c->dims[MAX_INPUTS], dims, rank * sizeof *dims);
    c->out = (oi_op_out){.dtype = t, .rank = rank, .dims = c->dims[MAX_INPUTS]};
}

static oi_op_value int_value(int64_t v)
{
    return (oi_op_value){.tag = OI_VALUE_INT, .i = v};
}

/* -- running -- */

static uint64_t out_bytes(const call *c)
{
    uint64_t n = 0;
    oi_dtype_bytes(c->out.dtype, count(c->out.dims, c->out.rank), &n);
    return n;
}

static void run_on(call *c, const char *device, oi_threads *team, void *to)
{
    oi_diag *d = oi_diag_new();
    c->out.data = to;
    memset(to, 0, out_bytes(c));
    oi_op_run_options options = {.device = device, .team = team};
    if (oi_op_run(c->op->name, c->in, c->n_in, c->attrs, c->n_attrs, &c->out, 1, &options, d) !=
        OI_OK) {
        oi_diag_print(d, stderr, false);
        fail_msg("%s on %s of %s", c->op->name, device, oi_dtype_name(c->in[0].dtype));
    }
    oi_diag_free(d);
}

/* Attention divides by a sum of exponentials: there the last bits may differ. */
static void compare(const call *c, const uint8_t *a, const uint8_t *b, const char *device)
{
    if (c->op->cls != OI_OP_CLASS_CUSTOM && c->op->cls != OI_OP_CLASS_COMPOSITE) {
        if (memcmp(a, b, out_bytes(c)) != 0)
            fail_msg("%s on %s of %s gives other bits than the reference", c->op->name, device,
                     oi_dtype_name(c->in[0].dtype));
        return;
    }
    for (uint64_t e = 0; e < count(c->out.dims, c->out.rank); e++) {
        double x = oi_element_f64(c->out.dtype, a, e), y = oi_element_f64(c->out.dtype, b, e);
        double bound = 0.3 + 0.3 * fabs(y); /* an f8 has two bits after the first */
        assert_true(fabs(x - y) < bound || x == y || (x != x && y != y));
    }
}

static void check(call *c)
{
    static uint8_t reference[MAX_BYTES], other[MAX_BYTES];
    run_on(c, "cpu:scalar", NULL, reference);
    for (size_t i = 0; oi_cpu_at(i); i++) {
        char device[32];
        snprintf(device, sizeof device, "cpu:%s", oi_cpu_at(i));
        run_on(c, device, NULL, other);
        compare(c, other, reference, device);
    }
    static uint8_t alone[MAX_BYTES];
    run_on(c, "cpu", NULL, alone);
    run_on(c, "cpu", team_of_three, other);
    assert_memory_equal(alone, other, out_bytes(c));
}

/* -- calls by the op's shape rule -- */

static oi_dtype result_dtype(const oi_op *op, oi_dtype t)
{
    const oi_op_output *out = &op->outputs[0];
    return out->out_rule == OI_OUT_LIST && out->out_default != OI_NONE ? out->out_default : t;
}

static void add_required(call *c, oi_dtype t)
{
    for (uint32_t i = 0; i < c->op->n_attrs; i++) {
        const oi_op_attr *a = &c->op->attrs[i];
        if (!a->required)
            continue;
        oi_op_value v = a->kind == OI_ATTR_DTYPE ? (oi_op_value){.tag = OI_VALUE_DTYPE, .dtype = t}
                                                 : int_value(1);
        c->attrs[c->n_attrs++] = (oi_op_arg){a->name, v};
    }
}

static void try_elementwise(const oi_op *op, oi_dtype t, oi_dtype to, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t dims[2] = {rows, 7};
    for (uint32_t i = 0; i < op->min_inputs; i++)
        add_input(&c, op->inputs[i].shares_dtype ? t : OI_BOOL, i == 1 ? 1 : 2,
                  i == 1 ? dims + 1 : dims, &seed);
    add_required(&c, to);
    set_out(&c, to, 2, dims);
    check(&c);
}

static void try_reduce(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    for (int64_t axis = 0; axis < 2; axis++) {
        call c = {.op = op};
        uint64_t dims[2] = {rows, 70};
        add_input(&c, t, 2, dims, &seed);
        c.attrs[c.n_attrs++] = (oi_op_arg){op->attrs[0].name, int_value(axis)};
        set_out(&c, result_dtype(op, t), 1, axis ? dims : dims + 1);
        check(&c);
    }
}

static void try_matmul(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t x[3] = {2, rows, 19}, y[2] = {19, 21}, out[3] = {2, rows, 21};
    add_input(&c, t, 3, x, &seed);
    add_input(&c, t, 2, y, &seed);
    set_out(&c, result_dtype(op, t), 3, out);
    check(&c);
}

/* Few rows, many columns; the matrix lies either way. */
static void try_thin(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        call c = {.op = op};
        uint64_t x[2] = {rows, 33}, y[2] = {33, 4109}, out[2] = {rows, 4109},
                 swapped[2] = {4109, 33};
        add_input(&c, t, 2, x, &seed);
        add_input(&c, t, 2, transposed ? swapped : y, &seed);
        c.attrs[c.n_attrs++] =
            (oi_op_arg){"transpose_b", {.tag = OI_VALUE_BOOL, .b = transposed != 0}};
        set_out(&c, t, 2, out);
        check(&c);
    }
}

static void try_long(const oi_op *op, oi_dtype t, uint64_t seed)
{
    call c = {.op = op};
    uint64_t dims[1] = {MAX_ELEMENTS};
    add_input(&c, t, 1, dims, &seed);
    c.attrs[c.n_attrs++] = (oi_op_arg){op->attrs[0].name, int_value(0)};
    set_out(&c, result_dtype(op, t), 0, NULL);
    check(&c);
}

static void try_gather(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t x[2] = {3, rows > 3 ? 260 : 11}, idx[1] = {rows}, out[2] = {rows, x[1]};
    add_input(&c, t, 2, x, &seed);
    add_input(&c, OI_U8, 1, idx, &seed);
    set_out(&c, t, 2, out);
    check(&c);
}

static void try_sdpa(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t q[4] = {1, 2, rows, 5}, k[4] = {1, 1, 9, 5}, mask[2] = {1, 9};
    add_input(&c, t, 4, q, &seed);
    add_input(&c, OI_F16, 4, k, &seed);
    add_input(&c, OI_F32, 4, k, &seed);
    add_input(&c, OI_BOOL, 2, mask, &seed);
    set_out(&c, t, 4, q);
    check(&c);
}

static void try_attn(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t h[2] = {rows, 6}, k[3] = {4, 2, 3}, w[2] = {6, 6};
    add_input(&c, t, 2, h, &seed);
    add_input(&c, t, 3, k, &seed);
    add_input(&c, OI_F64, 3, k, &seed);
    add_input(&c, t, 2, w, &seed);
    set_out(&c, t, 2, h);
    check(&c);
}

static void try_col2im(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t columns[3] = {2, 18, 3 * rows}, image[4] = {2, 3, 4, rows + 2};
    static const int64_t kernel[2] = {2, 3};
    add_input(&c, t, 3, columns, &seed);
    c.attrs[c.n_attrs++] =
        (oi_op_arg){"kernel", (oi_op_value){.tag = OI_VALUE_INT_LIST, .n = 2, .ints = kernel}};
    set_out(&c, t, 4, image);
    check(&c);
}

static void try_qlinear(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    for (int w = 1; w < OI_DTYPE_COUNT; w++) {
        if (!(op->inputs[1].dtypes & OI_DTYPES(w)))
            continue;
        call c = {.op = op};
        uint64_t x[2] = {rows, 96}, weights[2] = {19, 96}, blocks[2] = {19, 3}, out[2] = {rows, 19};
        add_input(&c, t, 2, x, &seed);
        add_input(&c, (oi_dtype)w, 2, weights, &seed);
        add_input(&c, OI_F16, 2, blocks, &seed);
        add_input(&c, OI_F32, 2, blocks, &seed);
        set_out(&c, t, 2, out);
        check(&c);
    }
}

static void try_products(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t x[2] = {rows, 19}, y[2] = {19, 21}, out[2] = {rows, 21};
    add_input(&c, t, 2, x, &seed);
    add_input(&c, t, 2, y, &seed);
    if (op->shape_rule == OI_SHAPE_EINSUM)
        c.attrs[c.n_attrs++] =
            (oi_op_arg){"equation", {.tag = OI_VALUE_STRING, .s = "ij, jk -> ik"}};
    set_out(&c, t, 2, out);
    check(&c);
}

/* An input of 4 axes and a window of 3, padded by 1 where that is known. */
static void try_window(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    oi_dtype result = t;
    bool is_spread = op->shape_rule == OI_SHAPE_CONV_TRANSPOSE;
    uint64_t x[4] = {2, 4, 5, rows}, w[4] = {4, 4, 3, 3}, out[4] = {2, 4, 5, rows};
    add_input(&c, t, 4, x, &seed);
    if (op->min_inputs > 1)
        add_input(&c, t, 4, w, &seed);
    if (op->shape_rule == OI_SHAPE_CONV && op->outputs[0].out_rule == OI_OUT_LIST)
        result = op->outputs[0].out_default; /* conv_integer */
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        if (strcmp(op->attrs[i].name, "kernel") == 0)
            c.attrs[c.n_attrs++] = (oi_op_arg){"kernel", int_value(3)};
        if (strcmp(op->attrs[i].name, "pads") == 0)
            c.attrs[c.n_attrs++] = (oi_op_arg){"pads", int_value(1)};
        if (strcmp(op->attrs[i].name, "strides") == 0 && is_spread)
            c.attrs[c.n_attrs++] = (oi_op_arg){"strides", int_value(2)};
        if (strcmp(op->attrs[i].name, "acc") == 0)
            c.attrs[c.n_attrs++] = (oi_op_arg){"acc", {.tag = OI_VALUE_DTYPE, .dtype = t}};
    }
    if (op->shape_rule == OI_SHAPE_GLOBAL_POOL)
        out[2] = out[3] = 1;
    if (is_spread) {
        out[2] = 9;
        out[3] = 2 * rows - 1;
    }
    if (op->shape_rule == OI_SHAPE_IM2COL) {
        uint64_t columns[3] = {2, 36, 5 * rows};
        set_out(&c, t, 3, columns);
    } else {
        set_out(&c, result, 4, out);
    }
    check(&c);
}

/* Rows that are normalised, each with the same factors; or pairs. */
static void try_rows(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    bool pairs = op->shape_rule == OI_SHAPE_PAIRS;
    uint64_t dims[2] = {rows, pairs ? 2 : 7};
    for (uint32_t i = 0; i < op->min_inputs; i++)
        add_input(&c, t, i ? 1 : 2, i ? dims + 1 : dims, &seed);
    add_required(&c, t);
    set_out(&c, t, pairs ? 1 : 2, dims);
    check(&c);
}

static void try_rope(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t x[3] = {rows, 3, 8};
    add_input(&c, t, 3, x, &seed);
    add_input(&c, OI_I32, 1, x, &seed);
    set_out(&c, t, 3, x);
    check(&c);
}

/* The first of the states that the cell gives; an lstm has a second. */
static void try_cell(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    call c = {.op = op};
    uint64_t n = op->id == OI_OP_LSTM_CELL ? 4 : op->id == OI_OP_GRU_CELL ? 3 : 1;
    uint64_t x[2] = {rows, 5}, h[2] = {rows, 6}, w[2] = {6 * n, 5}, r[2] = {6 * n, 6};
    if (op->min_outputs > 1)
        return;
    add_input(&c, t, 2, x, &seed);
    add_input(&c, t, 2, h, &seed);
    add_input(&c, t, 2, w, &seed);
    add_input(&c, t, 2, r, &seed);
    set_out(&c, t, 2, h);
    check(&c);
}

static void try_op(const oi_op *op, oi_dtype t, uint64_t rows, uint64_t seed)
{
    switch (op->shape_rule) {
    case OI_SHAPE_SAME:
    case OI_SHAPE_BROADCAST:
    case OI_SHAPE_SCALAR_OR_SAME:
        if (op->outputs[0].out_rule != OI_OUT_ATTR)
            try_elementwise(op, t, result_dtype(op, t), rows, seed);
        for (int to = 1; to < OI_DTYPE_COUNT; to++)
            if (op->outputs[0].out_rule == OI_OUT_ATTR && op->dtypes & OI_DTYPES(to))
                try_elementwise(op, t, (oi_dtype)to, rows > 100 ? 100 : rows, seed);
        break;
    case OI_SHAPE_REDUCE:
    case OI_SHAPE_ARGREDUCE:
        try_reduce(op, t, rows > 900 ? 900 : rows, seed);
        if (rows == 1)
            try_long(op, t, seed);
        break;
    case OI_SHAPE_MATMUL:
        try_matmul(op, t, rows > 200 ? 200 : rows, seed);
        if (rows < 4 && op->n_attrs)
            try_thin(op, t, rows, seed);
        break;
    case OI_SHAPE_GATHER: try_gather(op, t, rows > 500 ? 500 : rows, seed); break;
    case OI_SHAPE_SDPA: try_sdpa(op, t, rows > 90 ? 90 : rows, seed); break;
    case OI_SHAPE_ALONG:
    case OI_SHAPE_NORM:
    case OI_SHAPE_CHANNELS:
    case OI_SHAPE_PAIRS: try_rows(op, t, rows > 500 ? 500 : rows, seed); break;
    case OI_SHAPE_ROPE: try_rope(op, t, rows > 90 ? 90 : rows, seed); break;
    case OI_SHAPE_SEQUENCE: break; /* several results: tests/conform */
    case OI_SHAPE_CELL: try_cell(op, t, rows > 90 ? 90 : rows, seed); break;
    case OI_SHAPE_ATTN: try_attn(op, t, rows > 90 ? 90 : rows, seed); break;
    case OI_SHAPE_GEMM:
    case OI_SHAPE_EINSUM: try_products(op, t, rows > 90 ? 90 : rows, seed); break;
    case OI_SHAPE_QUANTIZE:
    case OI_SHAPE_DYNAMIC_QUANTIZE:
    case OI_SHAPE_QMATMUL:
    case OI_SHAPE_QCONV: break; /* composites without a kernel of their own */
    case OI_SHAPE_CONV:
    case OI_SHAPE_CONV_TRANSPOSE:
    case OI_SHAPE_POOL:
    case OI_SHAPE_GLOBAL_POOL:
    case OI_SHAPE_IM2COL: try_window(op, t, rows > 90 ? 90 : rows, seed); break;
    case OI_SHAPE_COL2IM: try_col2im(op, t, rows > 90 ? 90 : rows, seed); break;
    case OI_SHAPE_QLINEAR: try_qlinear(op, t, rows > 90 ? 90 : rows, seed); break;
    default:
        if (op->shape_rule >= OI_SHAPE_RESHAPE && op->shape_rule <= OI_SHAPE_SCALAR)
            break; /* nest_test.c and custom_test.c call those */
        fail_msg("say here how to call an op like %s", op->name);
    }
}

static void every_op_and_dtype(void **state)
{
    static const uint64_t sizes[] = {1, 3, 9500};
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++)
        for (int t = 1; t < OI_DTYPE_COUNT; t++)
            for (size_t s = 0; s < OI_COUNT(sizes); s++)
                if (oi_op_at(i)->dtypes & OI_DTYPES(t))
                    try_op(oi_op_at(i), (oi_dtype)t, sizes[s], i * 1000 + (uint64_t)t);
}

/* -- what is refused -- */

static void refuse(call *c, const char *device, const char *code)
{
    static uint8_t out[MAX_BYTES];
    oi_diag *d = oi_diag_new();
    c->out.data = out;
    oi_op_run_options options = {.device = device};
    const char *name = c->op ? c->op->name : "nonsense";
    assert_int_not_equal(
        oi_op_run(name, c->in, c->n_in, c->attrs, c->n_attrs, &c->out, 1, &options, d), OI_OK);
    assert_string_equal(oi_diag_at(d, 0).code, code);
    oi_diag_free(d);
}

static void mistakes(void **state)
{
    (void)state;
    uint64_t seed = 1, three[1] = {3}, four[1] = {4};
    call c = {.op = oi_op_find("add")};
    add_input(&c, OI_F32, 1, three, &seed);
    add_input(&c, OI_F32, 1, three, &seed);
    set_out(&c, OI_F32, 1, four);
    refuse(&c, "cpu", "E051");
    set_out(&c, OI_F64, 1, three);
    refuse(&c, "cpu", "E050");
    set_out(&c, OI_F32, 1, three);
    refuse(&c, "gpu", "E060");
    refuse(&c, "cpu:z80", "E060");
    c.attrs[c.n_attrs++] = (oi_op_arg){"colour", int_value(1)};
    refuse(&c, "cpu", "E052");
    c.n_attrs = 0;
    c.in[0].data = NULL;
    refuse(&c, "cpu", "E051");
    c.op = NULL;
    refuse(&c, "cpu", "E057");
}

static void an_index_out_of_range(void **state)
{
    (void)state;
    uint64_t seed = 1, three[1] = {3};
    call c = {.op = oi_op_find("gather")};
    add_input(&c, OI_F32, 1, three, &seed);
    add_input(&c, OI_I32, 1, three, &seed);
    set_out(&c, OI_F32, 1, three);
    const int64_t bad[] = {3, -4, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < OI_COUNT(bad); i++) {
        oi_element_set_i64(OI_I32, data[1], 2, bad[i]);
        refuse(&c, "cpu", "E047");
    }
    c.in[1].dtype = OI_U64;
    memset(data[1], 0, 24);
    oi_element_set_u64(OI_U64, data[1], 1, UINT64_MAX);
    refuse(&c, "cpu", "E047");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_and_dtype),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(an_index_out_of_range),
    };
    team_of_three = oi_threads_new(3);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    oi_threads_free(team_of_three);
    return failed;
}
