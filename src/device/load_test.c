/* load_test.c: files, profiles, extends, the round trip, the builder. */
#define _XOPEN_SOURCE 700
#include "device/device.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/oi_load_test.XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 && mkdir("sub", 0777) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void put(const char *path, const char *text)
{
    assert_int_equal(oi_file_write(path, text, strlen(text), NULL), OI_OK);
}

static oi_device *good(const char *path)
{
    oi_device *device = NULL;
    oi_diag *d = oi_diag_new();
    oi_status status = oi_device_load(path, true, &device, d);
    if (oi_diag_count(d))
        oi_diag_print(d, stderr, false);
    assert_int_equal(status, OI_OK);
    assert_int_equal(oi_diag_count(d), 0);
    oi_diag_free(d);
    return device;
}

static void bad(const char *path, oi_status want, const char *file, const char *message)
{
    oi_device *device = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_device_load(path, false, &device, d), want);
    assert_null(device);
    oi_message m = oi_diag_at(d, 0);
    if (!strstr(m.text, message) || strcmp(m.file, file) != 0)
        oi_diag_print(d, stderr, false);
    assert_non_null(strstr(m.text, message));
    assert_string_equal(m.file, file);
    oi_diag_free(d);
}

/* Writes, reads and writes again: the same bytes, the same device. */
static void round_trip(const oi_device *device)
{
    char *first = NULL, *second = NULL;
    oi_device *again = NULL;
    assert_int_equal(oi_device_to_json(device, &first, NULL), OI_OK);
    assert_int_equal(first[strlen(first) - 1], '\n');
    assert_int_equal(oi_device_from_json(first, strlen(first), "n", true, &again, NULL), OI_OK);
    assert_int_equal(oi_device_to_json(again, &second, NULL), OI_OK);
    assert_string_equal(first, second);
    const oi_device_info *a = oi_device_get(device), *b = oi_device_get(again);
    assert_int_equal(a->features, b->features);
    assert_memory_equal(&a->limits, &b->limits, sizeof a->limits);
    assert_memory_equal(&a->memory, &b->memory, sizeof a->memory);
    assert_memory_equal(&a->cpu, &b->cpu, sizeof a->cpu);
    assert_memory_equal(&a->preferences, &b->preferences, sizeof a->preferences);
    assert_string_equal(a->architecture, b->architecture);
    assert_string_equal(a->notes, b->notes);
    oi_free(first);
    oi_free(second);
    oi_device_free(again);
}

static void every_profile(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "cortex_m4",     "cortex_m55",      "cortex_m7",      "cpu_amx",          "cpu_amx_bf16",
        "cpu_avx2",      "cpu_avx512",      "cpu_neon",       "cpu_neon_dotprod", "cpu_scalar",
        "cuda_ada",      "cuda_ampere",     "cuda_blackwell", "cuda_generic",     "cuda_hopper",
        "fpga_generic",  "fpga_pipelined",  "ice40_hx8k",     "mcu_generic",      "null",
        "rv32imac",      "vulkan_ada",      "vulkan_arc",     "vulkan_desktop",   "vulkan_generic",
        "vulkan_hopper", "vulkan_lavapipe", "vulkan_mobile",  "vulkan_rdna3"};
    assert_int_equal(oi_device_profile_count(), OI_COUNT(wanted));
    assert_null(oi_device_profile_name(OI_COUNT(wanted)));
    for (size_t i = 0; i < OI_COUNT(wanted); i++) {
        assert_string_equal(oi_device_profile_name(i), wanted[i]);
        oi_device *device = good(wanted[i]);
        assert_true(oi_device_get(device)->notes[0] != '\0');
        round_trip(device);
        oi_device_free(device);
    }
}

static void what_profiles_say(void **state)
{
    (void)state;
    oi_device *device = good("cortex_m7"); /* extends cortex_m4, which extends mcu_generic */
    const oi_device_info *d = oi_device_get(device);
    assert_true(d->mcu.core == OI_CORE_M7 && d->mcu.fpu == OI_FPU_DOUBLE && d->mcu.dsp);
    assert_true(d->mcu.clock_hz == 25000000 && d->memory.flash_bytes == 4194304);
    assert_string_equal(d->vendor, "arm");
    assert_int_equal(d->cpu.c_standard, OI_C11);
    oi_device_free(device);
    device = good("cpu_avx512");
    d = oi_device_get(device);
    assert_true(d->cpu.isa >> OI_ISA_AVX512VNNI & 1 && d->cpu.isa >> OI_ISA_SSE2 & 1);
    assert_int_equal(d->cpu.threads, 0);
    oi_device_free(device);
    device = good("cpu_amx");
    d = oi_device_get(device);
    assert_true(d->cpu.isa >> OI_ISA_AMX_INT8 & 1 && d->cpu.isa >> OI_ISA_AVX512VNNI & 1);
    oi_device_free(device);
}

static void the_mock(void **state)
{
    (void)state;
    oi_device *device = NULL;
    oi_diag *diag = oi_diag_new();
    assert_int_equal(oi_device_load(OI_TEST_ROOT "/devices/ada_mock.json", true, &device, diag),
                     OI_OK);
    assert_int_equal(oi_diag_count(diag), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(oi_diag_at(diag, i).code, "W191");
    oi_diag_free(diag);
    const oi_device_info *d = oi_device_get(device);
    assert_true(d->type == OI_DEVICE_GPU && d->api == OI_DEVICE_VULKAN);
    assert_string_equal(d->driver, "555.xx");
    assert_true(d->limits.max_workgroup_invocations == 1024 && d->memory.l2_bytes == 67108864);
    assert_true(d->preferences.default_precision == OI_F16 && d->preferences.max_kernel_ops == 12);
    round_trip(device);
    char *text = NULL;
    assert_int_equal(oi_device_to_json(device, &text, NULL), OI_OK);
    assert_non_null(strstr(text, "  \"device\": {\n    \"api\": \"vulkan\",\n"));
    oi_free(text);
    oi_device_free(device);
}

/* -- extends -- */

static void extends_merges(void **state)
{
    (void)state;
    put("base.json",
        "{\"device\":{\"type\":\"gpu\",\"vendor\":\"amd\",\"name\":\"b\"},\"notes\":\"of "
        "base\",\"limits\":{\"max_workgroup_size\":[256,256,64],\"subgroup_size\":64}}");
    put("top.json", "{\"extends\":\"base.json\",\"device\":{\"name\":\"t\"},"
                    "\"limits\":{\"max_workgroup_size\":[64,1,1]}}");
    oi_device *device = good("top.json");
    const oi_device_info *d = oi_device_get(device);
    assert_string_equal(d->vendor, "amd"); /* objects merge */
    assert_string_equal(d->name, "t");
    assert_true(d->limits.max_workgroup_size[0] == 64 && d->limits.max_workgroup_size[2] == 1);
    assert_int_equal(d->limits.subgroup_size, 64);
    assert_string_equal(d->notes, ""); /* notes speak of their own file */
    char *text = NULL;
    oi_device_to_json(device, &text, NULL);
    assert_null(strstr(text, "extends"));
    oi_free(text);
    round_trip(device);
    oi_device_free(device);
    /* a field named in another way overrides all the same */
    put("alias.json", "{\"extends\":\"cortex_m4\",\"mcu\":{\"ram_bytes\":1000}}");
    device = good("alias.json");
    assert_int_equal(oi_device_get(device)->memory.ram_bytes, 1000);
    oi_device_free(device);
}

static void extends_circles(void **state)
{
    (void)state;
    put("a.json", "{\"extends\":\"b.json\",\"device\":{\"type\":\"cpu\"}}");
    put("b.json", "{\"extends\":\"./c.json\"}");
    put("c.json", "{\"extends\":\"sub/../a.json\"}");
    bad("a.json", OI_ERR_INPUT, "./c.json",
        "extends goes in a circle: a.json -> b.json -> ./c.json -> ./sub/../a.json");
    put("self.json", "{\"extends\":\"self.json\"}");
    bad("self.json", OI_ERR_INPUT, "self.json", "circle: self.json -> self.json");
}

static void extends_too_long(void **state)
{
    (void)state;
    char path[32], text[64];
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "long%d.json", i);
        snprintf(text, sizeof text, "{\"extends\":\"long%d.json\"}", i + 1);
        put(path, text);
    }
    put("long20.json", "{\"device\":{\"type\":\"cpu\"}}");
    bad("long0.json", OI_ERR_INPUT, "long15.json", "more than 16 files");
    oi_device_free(good("long5.json"));
}

static void extends_wrong(void **state)
{
    (void)state;
    put("x.json", "{\"extends\":5}");
    bad("x.json", OI_ERR_INPUT, "x.json", "wanted the name of a profile or a path");
    put("x.json", "{\"extends\":\"missing.json\"}");
    bad("x.json", OI_ERR_INPUT, "x.json", "cannot open missing.json: No such file");
    put("x.json", "{\"extends\":\"/etc/passwd\"}");
    bad("x.json", OI_ERR_INPUT, "x.json", "\"/etc/passwd\" is not in the folder of this file");
    put("x.json", "{\"extends\":\"cpu_avx3\"}");
    bad("x.json", OI_ERR_INPUT, "x.json", "there is no built-in profile \"cpu_avx3\"");
    put("x.json", "{\"extends\":\"nothing like it\"}");
    bad("x.json", OI_ERR_INPUT, "x.json", "there is no built-in profile \"nothing like it\"");
    put("x.json", "{\"extends\":\"sub/\"}");
    bad("x.json", OI_ERR_ENV, "sub/", "cannot read: Is a directory");
}

/* A file from elsewhere reads none of ours: not whether it is there, nor what is in it. */
static void extends_within_its_folder(void **state)
{
    (void)state;
    static const char *const paths[] = {"../base.json", "./../base.json", "below/../../base.json",
                                        "../nothing.json", "link.json"};
    put("base.json", "{\"device\":{\"type\":\"cpu\"}}");
    assert_int_equal(mkdir("sub/below", 0777), 0);
    put("sub/below/base.json", "{\"device\":{\"type\":\"cpu\"}}");
    char to[64], text[128];
    assert_int_equal(symlink("../base.json", "sub/link.json"), 0);
    for (size_t i = 0; i < OI_COUNT(paths); i++) {
        snprintf(text, sizeof text, "{\"extends\":\"%s\"}", paths[i]);
        snprintf(to, sizeof to, "\"%s\" is not in the folder of this file", paths[i]);
        put("sub/x.json", text);
        bad("sub/x.json", OI_ERR_INPUT, "sub/x.json", to);
    }
    put("sub/x.json", "{\"extends\":\"below/../below/base.json\"}");
    oi_device_free(good("sub/x.json"));
    /* the folder is the file's own, also where it was reached by a link */
    assert_int_equal(symlink("sub/x.json", "by_link.json"), 0);
    oi_device_free(good("by_link.json"));
}

/* Errors of the extended file name that file. */
static void extends_broken_base(void **state)
{
    (void)state;
    put("x.json", "{\"extends\":\"y.json\"}");
    put("y.json", "{\"device\":{\"type\":\"cpu\"},\"cpu\":{\"threads\":-1}}");
    bad("x.json", OI_ERR_INPUT, "y.json", "found -1");
    put("y.json", "{\"device\":");
    bad("x.json", OI_ERR_INPUT, "y.json", "the text ends here");
    put("y.json", "{\"device\":{}}");
    bad("x.json", OI_ERR_INPUT, "x.json", "missing");
}

/* Text from memory has no folder: no file is ever opened for it. */
static void extends_from_memory(void **state)
{
    (void)state;
    put("base.json", "{\"device\":{\"type\":\"cpu\"}}");
    static const char *const texts[] = {"{\"extends\":\"base.json\"}",
                                        "{\"extends\":\"./base.json\"}",
                                        "{\"extends\":\"/etc/passwd\"}"};
    for (size_t i = 0; i < OI_COUNT(texts); i++) {
        oi_device *device = NULL;
        oi_diag *d = oi_diag_new();
        assert_int_equal(
            oi_device_from_json(texts[i], strlen(texts[i]), "base.json", false, &device, d),
            OI_ERR_INPUT);
        assert_non_null(strstr(oi_diag_at(d, 0).text, "was not read from a file"));
        assert_string_equal(oi_diag_at(d, 0).pointer, "/extends");
        oi_diag_free(d);
    }
}

/* -- names of files and profiles -- */

static void finding(void **state)
{
    (void)state;
    bad("nowhere.json", OI_ERR_ENV, "nowhere.json", "cannot open: No such file");
    oi_device *device = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_device_load("cortex_m5", false, &device, d), OI_ERR_ENV);
    assert_non_null(strstr(oi_diag_at(d, 0).hint, "did you mean cortex_m4?"));
    oi_diag_clear(d);
    assert_int_equal(oi_device_load("something else", false, &device, d), OI_ERR_ENV);
    assert_non_null(strstr(oi_diag_at(d, 0).hint, "`openinfer targets` lists them"));
    oi_diag_free(d);
    put("plain", "{\"device\":{\"type\":\"cpu\"}}"); /* any name of a file will do */
    oi_device_free(good("plain"));
    assert_int_equal(oi_device_load(NULL, false, &device, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_device_load("x", false, NULL, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_device_from_json(NULL, 5, NULL, false, &device, NULL), OI_ERR_USAGE);
    assert_int_equal(oi_device_from_json(NULL, 0, NULL, false, &device, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_device_to_json(NULL, NULL, NULL), OI_ERR_USAGE);
    oi_device_free(NULL);
    assert_null(oi_device_get(NULL));
    assert_false(oi_device_has(NULL, OI_FEATURE_FP16));
}

/* -- the builder -- */

static void builder(void **state)
{
    (void)state;
    oi_device_spec *s = oi_device_spec_new(OI_DEVICE_GPU);
    oi_device *device = NULL;
    oi_device_spec_api(s, "cuda");
    oi_device_spec_api(s, "vulkan"); /* the last word counts */
    oi_device_spec_vendor(s, "NVIDIA");
    oi_device_spec_architecture(s, "ada_lovelace");
    oi_device_spec_driver(s, "555.xx");
    oi_device_spec_name(s, "say \"hi\"");
    assert_int_equal(oi_device_build(s, &device, NULL), OI_OK);
    const oi_device_info *d = oi_device_get(device);
    assert_string_equal(d->vendor, "nvidia");
    assert_string_equal(d->name, "say \"hi\"");
    assert_string_equal(d->driver, "555.xx");
    assert_int_equal(d->limits.max_workgroup_invocations, 128); /* vulkan_generic */
    round_trip(device);
    oi_device_free(device);
    oi_device_spec_api(s, "c");
    oi_diag *diag = oi_diag_new();
    assert_int_equal(oi_device_build(s, &device, diag), OI_ERR_INPUT);
    assert_string_equal(oi_diag_at(diag, 0).file, "device spec");
    oi_diag_free(diag);
    oi_device_spec_free(s);
    oi_device_spec_free(NULL);
    oi_device_spec_name(NULL, "x");
    assert_int_equal(oi_device_build(NULL, &device, NULL), OI_ERR_USAGE);
}

static void builder_profiles(void **state)
{
    (void)state;
    static const struct {
        oi_device_type type;
        const char *api, *architecture;
        const char *profile;
    } rows[] = {{OI_DEVICE_GPU, NULL, NULL, "vulkan_generic"},
                {OI_DEVICE_GPU, "cuda", "hopper", "cuda_hopper"},
                {OI_DEVICE_GPU, "cuda", "volta", "cuda_generic"},
                {OI_DEVICE_CPU, NULL, "x86_64", "cpu_scalar"},
                {OI_DEVICE_CPU, "c", "x86_64_v3", "cpu_avx2"},
                {OI_DEVICE_CPU, "c", "x86_64_v4", "cpu_avx512"},
                {OI_DEVICE_CPU, NULL, "aarch64", "cpu_neon"},
                {OI_DEVICE_MCU, NULL, "cortex_m4", "cortex_m4"},
                {OI_DEVICE_MCU, NULL, "cortex_m55", "cortex_m55"},
                {OI_DEVICE_MCU, NULL, "cortex_m7", "cortex_m7"},
                {OI_DEVICE_MCU, NULL, "rv32imac", "rv32imac"},
                {OI_DEVICE_MCU, NULL, "avr", "mcu_generic"},
                {OI_DEVICE_FPGA, NULL, NULL, "fpga_generic"}};
    for (size_t i = 0; i < OI_COUNT(rows); i++) {
        oi_device_spec *s = oi_device_spec_new(rows[i].type);
        oi_device *device = NULL, *profile = good(rows[i].profile);
        oi_device_spec_api(s, rows[i].api);
        oi_device_spec_architecture(s, rows[i].architecture);
        assert_int_equal(oi_device_build(s, &device, NULL), OI_OK);
        const oi_device_info *a = oi_device_get(device), *b = oi_device_get(profile);
        assert_memory_equal(&a->limits, &b->limits, sizeof a->limits);
        assert_memory_equal(&a->memory, &b->memory, sizeof a->memory);
        assert_true(a->cpu.isa == b->cpu.isa && a->features == b->features);
        assert_true(a->mcu.core == b->mcu.core);
        oi_device_free(device);
        oi_device_free(profile);
        oi_device_spec_free(s);
    }
}

static void drivers(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int order;
    } rows[] = {{"555.42", "555.42", 0}, {"555.42", "555.5", 1},  {"9", "10", -1},
                {"555.xx", "555.99", 0}, {"555.xx", "560.1", -1}, {"1.2", "1.2.0", 0},
                {"1.2", "1.2.1", -1},    {"x", "7", 0},           {"560.35.03", "560.35.3", 0}};
    int order = 99;
    for (size_t i = 0; i < OI_COUNT(rows); i++) {
        assert_true(oi_device_driver_compare(rows[i].a, rows[i].b, &order));
        assert_int_equal(order, rows[i].order);
        assert_true(oi_device_driver_compare(rows[i].b, rows[i].a, &order));
        assert_int_equal(order, -rows[i].order);
    }
    assert_false(oi_device_driver_compare("Mesa 23", "1", &order));
    assert_false(oi_device_driver_compare("1.", "1", &order));
    assert_false(oi_device_driver_compare("", "1", &order));
    assert_false(oi_device_driver_compare("1..2", "1", &order));
    assert_false(oi_device_driver_compare(NULL, "1", &order));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile),
        cmocka_unit_test(what_profiles_say),
        cmocka_unit_test(the_mock),
        cmocka_unit_test(extends_merges),
        cmocka_unit_test(extends_circles),
        cmocka_unit_test(extends_too_long),
        cmocka_unit_test(extends_wrong),
        cmocka_unit_test(extends_within_its_folder),
        cmocka_unit_test(extends_broken_base),
        cmocka_unit_test(extends_from_memory),
        cmocka_unit_test(finding),
        cmocka_unit_test(builder),
        cmocka_unit_test(builder_profiles),
        cmocka_unit_test(drivers),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
