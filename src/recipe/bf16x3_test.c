#include "trial.h"

#include "body/amx/bf16x3.h"

static int n_parts; /* bodies of bf16x3.h that were called */

static void body(const char *function, const trial_arg *a)
{
    if (strcmp(function, "oi_bf16x3_rows") == 0) {
        oi_bf16x3_rows(a[0].in, a[1].out, a[2].out, a[3].n, a[4].n, a[5].n, a[6].n);
        return;
    }
    n_parts++;
    if (strcmp(function, "oi_bf16x3_weights") == 0)
        oi_bf16x3_weights(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].n, a[6].n, a[7].n,
                          a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n,
                          TRIAL_FINISH(15));
    else if (strcmp(function, "oi_bf16x3_two") == 0)
        oi_bf16x3_two(a[0].in, a[1].in, a[2].in, a[3].out, a[4].out, a[5].out, a[6].n, a[7].n,
                      a[8].n, a[9].n, a[10].n, a[11].n, a[12].n, a[13].n, a[14].n,
                      TRIAL_FINISH(15));
    else
        fail_msg("%s is not tested", function);
}

static void flag(trial *t, const char *name, bool is_set)
{
    *trial_attr(t, name) = (oi_op_value){.tag = OI_VALUE_BOOL, .b = is_set};
}

typedef struct setting {
    int64_t m, n, k;
    bool is_weight, of_b; /* b is transposed */
} setting;

static const setting settings[] = {
    {80, 96, 64, true, true},    {81, 100, 96, true, false},   {95, 97, 100, true, true},
    {97, 131, 159, true, true},  {82, 125, 1567, true, true},  {300, 64, 64, true, false},
    {96, 160, 96, false, false}, {100, 130, 300, false, true}, {110, 99, 530, false, true},
    {90, 530, 93, false, false},
};

static void begin(trial *t, const setting *s, const char *op, oi_dtype of_x, oi_dtype of_b,
                  uint64_t seed)
{
    trial_begin(t, op, seed);
    flag(t, "transpose_b", s->of_b);
    trial_input(t, false, of_x, 1, 2, (int64_t[]){s->m, s->k});
    trial_input(t, s->is_weight, of_b, 1, 2,
                s->of_b ? (int64_t[]){s->n, s->k} : (int64_t[]){s->k, s->n});
    t->reduced = s->k;
    t->atol = 2e-6 * sqrt((double)s->k); /* sums that cancel are as near as their terms are large */
}

static void end(trial *t, const setting *s, oi_dtype type)
{
    n_parts = 0;
    assert_true(trial_end(t, type, 2, (int64_t[]){s->m, s->n}, body));
    assert_true(n_parts > 0);
}

static void test_floats(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(settings); i++) {
        const setting *s = &settings[i];
        trial t;
        begin(&t, s, "matmul", OI_F32, OI_F32, i);
        end(&t, s, OI_F32);
    }
}

static void test_bf16(void **state)
{
    (void)state;
    for (size_t i = 0; i < OI_COUNT(settings); i++) {
        const setting *s = &settings[i];
        for (int to_float = 0; s->is_weight && to_float < 2; to_float++) {
            trial t;
            begin(&t, s, "matmul", OI_BF16, OI_BF16, i);
            if (to_float)
                *trial_attr(&t, "acc") = (oi_op_value){.tag = OI_VALUE_DTYPE, .dtype = OI_F32};
            end(&t, s, to_float ? OI_F32 : OI_BF16);
        }
    }
}

/* The product is as good as the parts of the smaller one, and those end at 2^-133. */
static bool is_beyond(float huge, float tiny)
{
    return fabsf(huge) > 0x1p110f && fabsf(huge) < INFINITY && fabsf(tiny) < 0x1p-109f;
}

/* What is not finite, huge or tiny, on either side: as the definition has it. */
static void test_specials(void **state)
{
    (void)state;
    static const float values[] = {INFINITY,        -INFINITY,        NAN,
                                   0x1p100f,        0x1p-120f,        0x1p-149f,
                                   0x1.fffffep127f, -0x1.234568p-110f};
    static const setting own[] = {
        {90, 125, 61, true, true}, {99, 128, 61, false, true}, {99, 128, 61, false, false}};
    for (size_t i = 0; i < OI_COUNT(own); i++)
        for (size_t v = 0; v < OI_COUNT(values); v++)
            for (size_t w = v % 3; w < OI_COUNT(values); w += 3) {
                trial t;
                if (is_beyond(values[v], values[w]) || is_beyond(values[w], values[v]))
                    continue;
                begin(&t, &own[i], "matmul", OI_F32, OI_F32, i);
                ((float *)t.data[0])[3 * 61 + 4] = values[v];
                ((float *)t.data[0])[39 * 61 + 9] = values[w];
                ((float *)t.data[0])[39 * 61 + 60] = values[w];
                ((float *)t.data[1])[own[i].of_b ? 7 * 61 + 4 : 4 * own[i].n + 7] = values[w];
                ((float *)t.data[1])[own[i].of_b ? 60 * 61 + 9 : 9 * own[i].n + 60] = values[v];
                for (int64_t j = 0; j < 61; j += 2) /* parts that are 0, which inf must not meet */
                    ((float *)t.data[1])[own[i].of_b ? 20 * 61 + j : j * own[i].n + 20] = 1;
                end(&t, &own[i], OI_F32);
            }
}

/* A float is its parts; what is left is less than any bf16. */
static void test_parts(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        const float x = oi_float_f32((uint32_t)oi_splitmix64(&seed) & 0xdfffffffu);
        uint16_t parts[3];
        oi_bf16x3_one(x, parts, 1, 3);
        const float sum =
            oi_f32_of_bf16(parts[0]) + oi_f32_of_bf16(parts[1]) + oi_f32_of_bf16(parts[2]);
        assert_true(sum == x || (fabsf(x) < 0x1p-110f && fabsf(sum - x) <= 0x1p-133f));
    }
}

/* A product of floats of very different sizes, as near to the truth as sums of floats are. */
static void near(int64_t m, int64_t n, int64_t k, bool is_turned)
{
    const int64_t steps = (k + 31) / 32, row = oi_bf16x3_row(k, 3);
    const size_t n_room = (size_t)(OI_PARTS_WIDTH / 32 * steps) * 3072;
    float *x = trial_room((size_t)(m * k) * sizeof *x),
          *b = trial_room((size_t)(k * n) * sizeof *b);
    float *out = trial_room((size_t)(m * n) * sizeof *out), *sums = trial_room(4096);
    uint16_t *parts = trial_room((size_t)(m * row) * sizeof *parts);
    uint16_t *room = trial_room(n_room * sizeof *room);
    uint8_t *nonfinite = trial_room((size_t)m);
    trial t = {.seed = (uint64_t)(m + n + k)};
    for (int64_t i = 0; i < m * k; i++)
        x[i] = (float)(exp2(20 * trial_random(&t)) * (trial_random(&t) < 0 ? -1 : 1));
    for (int64_t i = 0; i < k * n; i++)
        b[i] = (float)(exp2(20 * trial_random(&t)) * (trial_random(&t) < 0.9 ? -1 : 1));
    const int64_t b_k = is_turned ? 1 : n, b_n = is_turned ? k : 1;
    oi_bf16x3_rows(x, parts, nonfinite, k, 3, 0, m);
    oi_bf16x3_two(parts, nonfinite, b, out, room, sums, m, n, k, b_k, b_n, 2, steps, 0, n, NULL,
                  NULL);
    for (int64_t r = 0; r < m; r++)
        for (int64_t c = 0; c < n; c++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < k; i++) {
                sum += (double)x[r * k + i] * b[i * b_k + c * b_n];
                size += fabs((double)x[r * k + i] * b[i * b_k + c * b_n]);
            }
            assert_true(fabs(out[r * n + c] - sum) <= 0x1p-20 * size);
        }
    void *const all[] = {x, b, out, sums, parts, room, nonfinite};
    for (size_t i = 0; i < OI_COUNT(all); i++)
        free(all[i]);
}

static void test_near(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{16, 1, 1},   {17, 33, 31}, {32, 64, 320}, {45, 31, 33},
                                        {33, 300, 2}, {64, 15, 95}, {16, 32, 257}};
    for (size_t i = 0; i < OI_COUNT(shapes); i++)
        for (int is_turned = 0; is_turned < 2; is_turned++)
            near(shapes[i][0], shapes[i][1], shapes[i][2], is_turned);
}

/* Where bits are kept, and where tiles would be empty, others do it. */
static void test_others(void **state)
{
    (void)state;
    const oi_device_info target = {.type = OI_DEVICE_CPU, .cpu = {.isa = trial_folder()->isa}};
    const bool is_weight[] = {false, true};
    for (int64_t m = 4; m <= 64; m *= 4)
        for (int may_regroup = 0; may_regroup < 2; may_regroup++) {
            trial t;
            begin(&t, &(setting){m, 128, 64, true, false}, "matmul", OI_F32, OI_F32, 1);
            t.out = trial_operand(OI_F32, 2, (int64_t[]){m, 128});
            t.q.in = t.in;
            t.q.out = &t.out;
            t.q.attrs = t.attrs;
            const oi_recipe_call c = {
                .q = &t.q, .is_weight = is_weight, .target = &target, .may_regroup = may_regroup};
            oi_recipe_plan p;
            assert_non_null(oi_recipe_find(&c, &p));
            assert_int_equal(strncmp(p.function, "oi_bf16x3", 9) == 0, may_regroup && m >= 64);
            free(t.data[0]);
            free(t.data[1]);
        }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats), cmocka_unit_test(test_bf16), cmocka_unit_test(test_specials),
        cmocka_unit_test(test_parts),  cmocka_unit_test(test_near), cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
