/* map_test.c: names to numbers, the hashes under them, and the nearest name. */
#include "base/base.h"

#include <cmocka.h>

static void hundred_thousand_keys(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_map m = {.arena = a};
    assert_int_equal(oi_map_get(&m, "nothing"), OI_MAP_NONE);
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(oi_map_put(&m, oi_arena_printf(a, "layers.%u.weight", i), i), i);
    assert_int_equal(m.n, 100000);
    char name[64];
    for (uint32_t i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "layers.%u.weight", i);
        assert_int_equal(oi_map_get(&m, name), i);
        snprintf(name, sizeof name, "layers.%u.bias", i);
        assert_int_equal(oi_map_get(&m, name), OI_MAP_NONE);
    }
    oi_arena_free(a);
}

static void put_keeps_set_replaces(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_map m = {.arena = a};
    assert_int_equal(oi_map_put(&m, "x", 1), 1);
    assert_int_equal(oi_map_put(&m, "x", 2), 1);
    oi_map_set(&m, "x", 3);
    oi_map_set(&m, "", 4);
    assert_int_equal(oi_map_get(&m, "x"), 3);
    assert_int_equal(oi_map_get(&m, ""), 4);
    assert_int_equal(m.n, 2);
    oi_arena_free(a);
}

static void reserved_room(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_map m = {.arena = a};
    static char keys[1000][8];
    oi_map_reserve(&m, 0);
    assert_int_equal(m.cap, 0);
    oi_map_reserve(&m, 1000);
    size_t cap = m.cap, used = oi_arena_used(a);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof keys[i], "k%u", i);
        assert_int_equal(oi_map_put(&m, keys[i], i), i);
    }
    assert_int_equal(m.cap, cap); /* it did not have to grow */
    assert_int_equal(oi_arena_used(a), used);
    oi_map_reserve(&m, 1 << 20); /* too late: nothing happens */
    assert_int_equal(m.cap, cap);
    assert_int_equal(oi_map_get(&m, "k999"), 999);
    oi_arena_free(a);
}

static void sha1_is(const char *text, size_t n, const char *hex)
{
    uint8_t out[20];
    char shown[41];
    /* in two parts: where they are cut must not matter */
    const oi_bytes parts[] = {{(const uint8_t *)text, n / 3},
                              {(const uint8_t *)text + n / 3, n - n / 3}};
    oi_sha1(parts, OI_COUNT(parts), out);
    for (int i = 0; i < 20; i++)
        snprintf(shown + 2 * i, 3, "%02x", out[i]);
    assert_string_equal(shown, hex);
}

/* FIPS 180 examples, and every length around the padding's corner. */
static void sha1(void **state)
{
    (void)state;
    sha1_is("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    sha1_is("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    sha1_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    char a[1000];
    memset(a, 'a', sizeof a);
    sha1_is(a, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    sha1_is(a, 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699");
    sha1_is(a, 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
    sha1_is(a, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    sha1_is(a, 1000, "291e9a6c66994949b57ba5e650361e98fc36b1ba");
}

static void hashes(void **state)
{
    (void)state;
    /* first outputs for seed 0, from the published reference code */
    uint64_t s = 0;
    assert_true(oi_splitmix64(&s) == 0xe220a8397b1dcdafu);
    assert_true(oi_splitmix64(&s) == 0x6e789e6aa1b965f4u);
    assert_true(oi_hash64("abc", 3, 1) == oi_hash64("abc", 3, 1));
    assert_true(oi_hash64("abc", 3, 1) != oi_hash64("abc", 3, 2));
    assert_true(oi_hash64("abc", 3, 1) != oi_hash64("abc\0", 4, 1));
    assert_true(oi_hash64("abcdefgh", 8, 1) != oi_hash64("abcdefghi", 9, 1));
    assert_true(oi_hash64("", 0, 1) != oi_hash64("", 0, 2));
    assert_true(oi_entropy64() != oi_entropy64());
}

static const char *nearest(const char *word, const char *const *names)
{
    oi_nearest near = oi_nearest_start(word);
    for (; *names; names++)
        oi_nearest_offer(&near, *names);
    return near.best;
}

static void did_you_mean(void **state)
{
    (void)state;
    static const char *const names[] = {"matmul", "add",  "softmax", "rmsnorm",
                                        "relu",   "gelu", NULL};
    assert_string_equal(nearest("matmull", names), "matmul");
    assert_string_equal(nearest("mtamul", names), "matmul"); /* a swap is one slip */
    assert_string_equal(nearest("sofmax", names), "softmax");
    assert_string_equal(nearest("ad", names), "add");
    assert_string_equal(nearest("rel", names), "relu");
    assert_string_equal(nearest("relu", names), "relu");
    assert_null(nearest("convolution", names));
    assert_null(nearest("x", names));
    assert_null(nearest("", names));
    char long_word[200];
    memset(long_word, 'a', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(nearest(long_word, names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hundred_thousand_keys),
        cmocka_unit_test(put_keeps_set_replaces),
        cmocka_unit_test(reserved_room),
        cmocka_unit_test(sha1),
        cmocka_unit_test(hashes),
        cmocka_unit_test(did_you_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
