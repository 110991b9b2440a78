/* cost_test.c: the sizes that built-in profiles get, what a file that states them changes, times.
 */
#include "device/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static oi_device *load(const char *text)
{
    oi_device *d = NULL;
    assert_int_equal(oi_device_from_json(text, strlen(text), "test.json", true, &d, NULL), OI_OK);
    return d;
}

static void test_sizes_of_profiles(void **state)
{
    (void)state;
    oi_device *d = load("{\"extends\": \"cpu_avx2\"}");
    const oi_device_info *t = oi_device_get(d);
    assert_int_equal(oi_cost_share(t), 16384);
    assert_int_equal(oi_cost_unit(t), 16);
    assert_int_equal(oi_cost_gemm_depth(t, 16), 384);
    assert_int_equal(oi_cost_gemm_rows(t, 384), 96);
    assert_int_equal(oi_cost_qlinear_bytes(t), 65536);
    assert_int_equal(oi_cost_sdpa_floats(t), 96 << 10);
    assert_int_equal(oi_cost_kept(t), 256 << 10);
    assert_int_equal(oi_cost_near(t), 8192);
    oi_device_free(d);
}

/* Larger caches give larger tiles; what was found best is taken as it is. */
static void test_sizes_follow_the_device(void **state)
{
    (void)state;
    oi_device *d = load("{\"extends\": \"cpu_avx2\", \"cpu\": {\"cache_l1_bytes\": 49152, "
                        "\"cache_l2_bytes\": 2097152, \"line_bytes\": 128, \"barrier_ns\": 1000}}");
    const oi_device_info *t = oi_device_get(d);
    assert_int_equal(oi_cost_unit(t), 32);
    assert_int_equal(oi_cost_gemm_depth(t, 16), 512);
    assert_true(oi_cost_gemm_rows(t, 512) > 96 && oi_cost_gemm_rows(t, 512) % 6 == 0);
    assert_int_equal(oi_cost_qlinear_bytes(t), 262144);
    assert_int_equal(oi_cost_share(t), 192000); /* 8 * 1000 ns * 96 bytes/ns / 4 */
    oi_device_free(d);
    d = load(
        "{\"extends\": \"cpu_avx2\", \"tuning\": {\"partition_elements\": 5000, \"gemm_depth\": "
        "128, \"gemm_rows\": 96, \"qlinear_bytes\": 32768, \"sdpa_floats\": 20000}}");
    t = oi_device_get(d);
    assert_int_equal(oi_cost_share(t), 5000);
    assert_int_equal(oi_cost_gemm_depth(t, 16), 128);
    assert_int_equal(oi_cost_gemm_rows(t, 128), 96);
    assert_int_equal(oi_cost_qlinear_bytes(t), 32768);
    assert_int_equal(oi_cost_sdpa_floats(t), 20000);
    oi_device_free(d);
}

static void test_times(void **state)
{
    (void)state;
    oi_device *d =
        load("{\"extends\": \"cpu_avx2\", \"cpu\": {\"threads\": 2, \"memory_bytes_per_s\": 20e9, "
             "\"l2_bytes_per_s\": 100e9, \"f32_macs_per_s\": 50e9, \"int8_macs_per_s\": 100e9}, "
             "\"memory\": {\"bandwidth_bytes_per_s\": 30e9}}");
    const oi_machine m = oi_cost_machine(oi_device_get(d));
    assert_int_equal(oi_cost_level(&m, 100), OI_LEVEL_L1);
    assert_int_equal(oi_cost_level(&m, 500000), OI_LEVEL_L2);
    assert_int_equal(oi_cost_level(&m, 1u << 24), OI_LEVEL_L3);
    assert_int_equal(oi_cost_level(&m, 1u << 30), OI_LEVEL_MEMORY);
    oi_work_size w = {.bytes = {[OI_LEVEL_MEMORY] = 30000000}};
    assert_float_equal(oi_cost_time(&m, &w) - m.call_ns, 1500000, 1); /* alone at 20 GB/s */
    w.is_parallel = true;
    assert_float_equal(oi_cost_time(&m, &w) - m.call_ns, 1000000, 1); /* both at 30 */
    w = (oi_work_size){.macs = 1000000, .percent = 50};
    assert_float_equal(oi_cost_time(&m, &w) - m.call_ns, 40000, 1);
    w.is_int8 = w.is_parallel = true;
    assert_float_equal(oi_cost_time(&m, &w) - m.call_ns, 10000, 1);
    w.bytes[OI_LEVEL_L2] = 4000000; /* slower than multiplying: that counts alone */
    assert_float_equal(oi_cost_time(&m, &w) - m.call_ns, 20000, 1);
    oi_device_free(d);
}

static void test_tiles(void **state)
{
    (void)state;
    oi_device *d = load("{\"extends\": \"cpu_amx\", \"cpu\": {\"f32_macs_per_s\": 50e9}}");
    assert_float_equal(oi_cost_machine(oi_device_get(d)).tile_macs_per_ns, 600, 1e-6);
    oi_device_free(d);
    d = load("{\"extends\": \"cpu_amx\", \"cpu\": {\"tile_macs_per_s\": 300e9}}");
    assert_float_equal(oi_cost_machine(oi_device_get(d)).tile_macs_per_ns, 300, 1e-6);
    oi_device_free(d);
}

static void test_microcontroller(void **state)
{
    (void)state;
    oi_device *d = load("{\"extends\": \"cortex_m4\"}");
    const oi_machine m = oi_cost_machine(oi_device_get(d));
    assert_int_equal(m.threads, 1);
    assert_float_equal(m.int8_macs_per_ns, 0.6 * 0.025, 1e-9);
    oi_work_size w = {.macs = 1000, .is_int8 = true, .is_parallel = true};
    assert_true(oi_cost_time(&m, &w) > 1000 / 0.015);
    oi_device_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_profiles),
        cmocka_unit_test(test_sizes_follow_the_device),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_microcontroller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
