/* arena_test.c: memory that ends at once, and growing text. */
#include "base/base.h"

#include <stdlib.h>
#include <cmocka.h>

/* Huge requests must come back as NULL under the address sanitizer too. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void aligned_and_zero(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    size_t total = 0;
    for (size_t size = 0; size < 3000; size += 7) {
        unsigned char *p = oi_arena_alloc(a, size);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
        total += size;
    }
    assert_true(oi_arena_used(a) >= total && oi_arena_used(a) < total + 16 * 430);
    oi_arena_free(a);
    oi_arena_free(NULL);
}

/* A large block must not waste the room left in the current chunk. */
static void large_beside_small(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    char *first = oi_arena_alloc(a, 16);
    memset(oi_arena_alloc(a, 8u << 20), 1, 8u << 20);
    char *second = oi_arena_alloc(a, 16);
    assert_ptr_equal(second, first + 16);
    oi_arena_free(a);
}

static void texts(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    assert_string_equal(oi_arena_text(a, "hello", 3), "hel");
    assert_string_equal(oi_arena_text(a, NULL, 0), "");
    assert_string_equal(oi_arena_printf(a, "%d-%s", 42, "x"), "42-x");
    char *wide = oi_arena_printf(a, "%10000d", 7);
    assert_int_equal(strlen(wide), 10000);
    oi_arena_free(a);
}

static void vectors(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    OI_VEC(uint32_t) v = {0};
    for (uint32_t i = 0; i < 100000; i++)
        *OI_PUSH(a, &v) = i;
    assert_int_equal(v.n, 100000);
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(v.at[i], i);
    oi_arena_free(a);
}

/* A long text moves into the arena as it is; later texts and blocks lie where they did. */
static void long_texts(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_buf b = {0};
    oi_buf_fill(&b, 'x', 1 << 20);
    oi_buf_printf(&b, "%0*d", 300, 7); /* more than what is left of 256, twice formatted */
    const char *was = b.text, *text = oi_buf_to_arena(&b, a);
    assert_ptr_equal(text, was);
    assert_null(b.text);
    assert_int_equal(strlen(text), (1 << 20) + 300);
    assert_true(oi_arena_used(a) > 1 << 20);
    char *first = oi_arena_alloc(a, 16);
    oi_buf_fill(&b, 'y', 1 << 17);
    assert_int_equal(strlen(oi_buf_to_arena(&b, a)), 1 << 17);
    assert_ptr_equal(oi_arena_alloc(a, 16), first + 16);
    oi_arena_free(a);
}

typedef struct attempt {
    oi_arena *a;
    size_t size;
    oi_status inner;
    int reached;
} attempt;

static void allocate(void *ctx)
{
    attempt *x = ctx;
    oi_arena_alloc(x->a, x->size);
    x->reached++;
}

static void allocate_inside(void *ctx)
{
    attempt *x = ctx;
    x->inner = oi_arena_guard(x->a, allocate, x);
    x->reached += 10;
    oi_arena_alloc(x->a, x->size);
    x->reached += 100;
}

static void running_out(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    static const size_t sizes[] = {SIZE_MAX / 2, SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 40};
    for (size_t i = 0; i < OI_COUNT(sizes); i++) {
        attempt x = {.a = a, .size = sizes[i]};
        assert_int_equal(oi_arena_guard(a, allocate, &x), OI_ERR_ENV);
        assert_int_equal(x.reached, 0);
    }
    attempt fine = {.a = a, .size = 100};
    assert_int_equal(oi_arena_guard(a, allocate, &fine), OI_OK);
    assert_int_equal(fine.reached, 1);
    /* the inner guard catches the first failure, the outer one the second */
    attempt nested = {.a = a, .size = SIZE_MAX / 2};
    assert_int_equal(oi_arena_guard(a, allocate_inside, &nested), OI_ERR_ENV);
    assert_int_equal(nested.inner, OI_ERR_ENV);
    assert_int_equal(nested.reached, 10);
    oi_arena_free(a);
}

static void grow_too_far(void *ctx)
{
    attempt *x = ctx;
    size_t cap = SIZE_MAX / 8;
    oi_arena_grow(x->a, NULL, 16, cap, &cap);
    x->reached++;
}

static void give_up(void *ctx)
{
    attempt *x = ctx;
    oi_arena_fail(x->a);
}

static void growing_too_far(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    attempt x = {.a = a};
    assert_int_equal(oi_arena_guard(a, grow_too_far, &x), OI_ERR_ENV);
    assert_int_equal(oi_arena_guard(a, give_up, &x), OI_ERR_ENV);
    assert_int_equal(x.reached, 0);
    oi_arena_free(a);
}

static void buffer(void **state)
{
    (void)state;
    oi_buf b = {0};
    char *text = NULL;
    assert_int_equal(oi_buf_take(&b, &text), OI_OK);
    assert_string_equal(text, "");
    oi_free(text);
    for (int i = 0; i < 1000; i++) {
        oi_buf_puts(&b, "ab");
        oi_buf_putc(&b, 'c');
        oi_buf_fill(&b, '-', 3);
        oi_buf_printf(&b, "%02d", i % 100);
        oi_buf_add(&b, "xyz", 1);
    }
    assert_int_equal(b.n, 9000);
    assert_int_equal(oi_buf_take(&b, &text), OI_OK);
    assert_int_equal(strlen(text), 9000);
    assert_memory_equal(text + 9 * 57, "abc---57x", 9);
    assert_null(b.text);
    oi_free(text);
}

static void buffer_failure_is_sticky(void **state)
{
    (void)state;
    oi_buf b = {0};
    char *text = NULL;
    oi_buf_puts(&b, "kept");
    oi_buf_fill(&b, 'x', SIZE_MAX / 4);
    assert_true(b.failed);
    oi_buf_puts(&b, "more");
    oi_buf_printf(&b, "more");
    assert_int_equal(b.n, 4);
    assert_int_equal(oi_buf_take(&b, &text), OI_ERR_ENV);
    assert_null(text);
    assert_null(b.text);
    oi_buf_fill(&b, 'x', SIZE_MAX);
    assert_int_equal(oi_buf_take(&b, &text), OI_ERR_ENV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligned_and_zero),
        cmocka_unit_test(large_beside_small),
        cmocka_unit_test(texts),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(vectors),
        cmocka_unit_test(running_out),
        cmocka_unit_test(growing_too_far),
        cmocka_unit_test(buffer),
        cmocka_unit_test(buffer_failure_is_sticky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
