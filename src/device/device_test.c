/* device_test.c: what a device file may say, and what must hold between its fields. */
#include "device/device.h"

#include <cmocka.h>

static oi_device *load_strict(const char *text, bool strict, oi_diag *d)
{
    oi_device *device = NULL;
    oi_status status = oi_device_from_json(text, strlen(text), "d.json", strict, &device, d);
    assert_int_equal(status == OI_OK, device != NULL);
    return device;
}

/* Messages but for those about fields that do nothing yet. */
static size_t complaints(const oi_diag *d)
{
    size_t n = 0;
    for (size_t i = 0; i < oi_diag_count(d); i++)
        n += !strstr(oi_diag_at(d, i).text, "has no effect");
    return n;
}

/* Loads without any complaint. */
static oi_device *good(const char *text)
{
    oi_diag *d = oi_diag_new();
    oi_device *device = load_strict(text, true, d);
    if (complaints(d))
        oi_diag_print(d, stderr, false);
    assert_non_null(device);
    assert_int_equal(complaints(d), 0);
    oi_diag_free(d);
    return device;
}

static void accept(const char *text)
{
    oi_device_free(good(text));
}

static void message_is(oi_diag *d, const char *code, const char *pointer, const char *text)
{
    for (size_t i = 0; i < oi_diag_count(d); i++) {
        oi_message m = oi_diag_at(d, i);
        if (strcmp(m.code, code) == 0 && strcmp(m.pointer, pointer) == 0 && strstr(m.text, text))
            return;
    }
    oi_diag_print(d, stderr, false);
    fail_msg("no %s at %s with '%s'", code, pointer, text);
}

static void reject(const char *text, const char *code, const char *pointer, const char *message)
{
    oi_diag *d = oi_diag_new();
    oi_device *device = NULL;
    assert_int_equal(oi_device_from_json(text, strlen(text), "d.json", false, &device, d),
                     OI_ERR_INPUT);
    assert_null(device);
    message_is(d, code, pointer, message);
    assert_string_equal(oi_diag_at(d, 0).file, "d.json");
    oi_diag_free(d);
    assert_int_equal(oi_device_from_json(text, strlen(text), "d.json", false, &device, NULL),
                     OI_ERR_INPUT);
}

static void warned(const char *text, const char *code, const char *pointer, const char *message)
{
    oi_diag *d = oi_diag_new();
    oi_device *device = load_strict(text, false, d);
    assert_non_null(device);
    assert_int_equal(oi_diag_errors(d), 0);
    message_is(d, code, pointer, message);
    oi_diag_free(d);
    oi_device_free(device);
}

#define GPU(rest)  "{\"device\":{\"type\":\"gpu\"}" rest "}"
#define CUDA(rest) "{\"device\":{\"type\":\"gpu\",\"api\":\"cuda\"}" rest "}"
#define CPU(rest)  "{\"device\":{\"type\":\"cpu\"}" rest "}"
#define MCU(rest)  "{\"extends\":\"mcu_generic\"" rest "}"
#define FPGA(rest) "{\"extends\":\"fpga_generic\"" rest "}"

/* -- kinds of fields -- */

static void defaults(void **state)
{
    (void)state;
    oi_device *device = good(GPU());
    const oi_device_info *d = oi_device_get(device);
    assert_int_equal(d->api, OI_DEVICE_VULKAN);
    assert_string_equal(d->vendor, "generic");
    assert_string_equal(d->name, "unnamed");
    assert_string_equal(d->driver, "");
    assert_string_equal(d->vulkan.version, "1.1");
    assert_string_equal(d->fpga.family, ""); /* not its part, but never NULL */
    assert_true(d->limits.max_workgroup_size[2] == 64 &&
                d->limits.max_workgroup_invocations == 128);
    assert_true(d->memory.shared_bytes_per_sm == 16384 && d->memory.global_bytes == 0);
    assert_int_equal(d->features, 0);
    assert_int_equal(d->preferences.default_precision, OI_F32);
    assert_int_equal(d->preferences.embed_weights, OI_EMBED_AUTO);
    oi_device_free(device);
    device = good(CPU());
    d = oi_device_get(device);
    assert_true(d->preferences.large_pages_bytes == 32u << 20);
    assert_int_equal(d->api, OI_DEVICE_C);
    assert_true(oi_device_has(device, OI_FEATURE_INT64) && oi_device_has(device, OI_FEATURE_INT16));
    assert_false(oi_device_has(device, OI_FEATURE_FP16) || oi_device_has(device, (oi_feature)99));
    assert_true(d->cpu.isa == 1u << OI_ISA_SCALAR && d->cpu.libc && d->cpu.threads == 1);
    oi_device_free(device);
    device = good("{\"device\":{\"type\":\"mcu\"},\"memory\":{\"global_bytes\":1000}}");
    d = oi_device_get(device);
    assert_true(d->memory.flash_bytes == 1000 && d->memory.ram_bytes == 1000 && !d->cpu.libc);
    assert_int_equal(d->preferences.embed_weights, OI_EMBED_ALWAYS);
    oi_device_free(device);
}

static void bools_and_features(void **state)
{
    (void)state;
    oi_device *device = good(GPU(",\"features\":{\"fp16\":true,\"int8\":false},"
                                 "\"preferences\":{\"prefer_fusion\":false}"));
    assert_true(oi_device_get(device)->features == 1u << OI_FEATURE_FP16);
    assert_false(oi_device_get(device)->preferences.prefer_fusion);
    oi_device_free(device);
    reject(GPU(",\"features\":{\"fp16\":1}"), "E090", "/features/fp16",
           "found 1, wanted true or false");
    reject(GPU(",\"preferences\":{\"prefer_fusion\":\"yes\"}"), "E090",
           "/preferences/prefer_fusion", "found \"yes\", wanted true or false");
}

static void counts(void **state)
{
    (void)state;
    accept(GPU(",\"memory\":{\"global_bytes\":9007199254740991}"));
    oi_device *device = good(MCU(",\"mcu\":{\"clock_hz\":1.68e8}"));
    assert_int_equal(oi_device_get(device)->mcu.clock_hz, 168000000);
    oi_device_free(device);
    static const char *const wrong[] = {"-1",
                                        "1.5",
                                        "9007199254740992",
                                        "18446744073709551615",
                                        "\"1\"",
                                        "null",
                                        "[1]",
                                        "{}",
                                        "true",
                                        "-9e99",
                                        "1e300"};
    char text[200];
    for (size_t i = 0; i < OI_COUNT(wrong); i++) {
        snprintf(text, sizeof text, GPU(",\"memory\":{\"global_bytes\":%s}"), wrong[i]);
        reject(text, "E090", "/memory/global_bytes",
               "wanted a whole number, at least 0 and below 2^53");
    }
    reject(GPU(",\"preferences\":{\"max_kernel_ops\":0}"), "E090", "/preferences/max_kernel_ops",
           "found 0, wanted a whole number, at least 1");
    reject(GPU(",\"limits\":{\"max_shared_memory_bytes\":0}"), "E090",
           "/limits/max_shared_memory_bytes", "at least 1");
    accept(CPU(",\"cpu\":{\"threads\":65536}"));
    reject(CPU(",\"cpu\":{\"threads\":65537}"), "E090", "/cpu/threads", "from 0 to 65536");
}

static void powers_of_two(void **state)
{
    (void)state;
    accept(GPU(",\"limits\":{\"subgroup_size\":64,\"storage_buffer_alignment\":1}"));
    reject(GPU(",\"limits\":{\"subgroup_size\":24}"), "E090", "/limits/subgroup_size",
           "found 24, wanted a power of two from 1 to 1024");
    reject(GPU(",\"limits\":{\"subgroup_size\":0}"), "E090", "/limits/subgroup_size", "found 0");
    reject(GPU(",\"limits\":{\"storage_buffer_alignment\":48}"), "E090",
           "/limits/storage_buffer_alignment", "a power of two");
    reject(CPU(",\"cpu\":{\"line_bytes\":60}"), "E090", "/cpu/line_bytes", "a power of two");
}

static void triples(void **state)
{
    (void)state;
    oi_device *device = good(GPU(",\"limits\":{\"max_workgroup_size\":256}"));
    const uint64_t *size = oi_device_get(device)->limits.max_workgroup_size;
    assert_true(size[0] == 256 && size[1] == 1 && size[2] == 1);
    assert_int_equal(oi_device_get(device)->limits.max_workgroup_invocations, 256);
    oi_device_free(device);
    reject(GPU(",\"limits\":{\"max_workgroup_size\":[1,2]}"), "E090", "/limits/max_workgroup_size",
           "found a list of 2, wanted a list of three whole numbers");
    reject(GPU(",\"limits\":{\"max_workgroup_size\":[1,0,1]}"), "E090",
           "/limits/max_workgroup_size/1", "found 0");
    reject(GPU(",\"limits\":{\"max_workgroup_size\":\"big\"}"), "E090",
           "/limits/max_workgroup_size", "found \"big\"");
}

static void numbers(void **state)
{
    (void)state;
    oi_device *device = good(GPU(",\"memory\":{\"bandwidth_bytes_per_s\":1.008e12}"));
    assert_true(oi_device_get(device)->memory.bandwidth_bytes_per_s == 1.008e12);
    oi_device_free(device);
    accept(GPU(",\"memory\":{\"bandwidth_bytes_per_s\":18446744073709551615}"));
    accept(GPU(",\"memory\":{\"bandwidth_bytes_per_s\":-0.0}"));
    reject(GPU(",\"memory\":{\"bandwidth_bytes_per_s\":-1.0}"), "E090",
           "/memory/bandwidth_bytes_per_s", "a number that is not negative");
    reject(GPU(",\"memory\":{\"bandwidth_bytes_per_s\":\"fast\"}"), "E090",
           "/memory/bandwidth_bytes_per_s", "a number that is not negative");
}

static void texts(void **state)
{
    (void)state;
    oi_device *device = good("{\"device\":{\"type\":\"GPU\",\"vendor\":\"NVIDIA Corp\","
                             "\"architecture\":\"Ada_Lovelace\",\"name\":\"Größe X\"}}");
    const oi_device_info *d = oi_device_get(device);
    assert_string_equal(d->vendor, "nvidia corp");
    assert_string_equal(d->architecture, "ada_lovelace");
    assert_string_equal(d->name, "Größe X");
    oi_device_free(device);
    reject("{\"device\":{\"type\":\"gpu\",\"name\":\"a\\nb\"}}", "E090", "/device/name",
           "a text of one line");
    reject("{\"device\":{\"type\":\"gpu\",\"name\":5}}", "E090", "/device/name", "found 5");
    reject("{\"device\":{\"type\":\"gpu\",\"architecture\":\"a b\"}}", "E090",
           "/device/architecture", "a name of letters");
    reject("{\"device\":{\"type\":\"gpu\",\"architecture\":\"\"}}", "E090", "/device/architecture",
           "a name of letters");
    accept(MCU(",\"mcu\":{\"flash_section\":\".rodata.weights$1\"}"));
    reject(MCU(",\"mcu\":{\"flash_section\":\"a\\\";system(\\\"\"}"), "E090", "/mcu/flash_section",
           "a section name");
}

static void versions(void **state)
{
    (void)state;
    accept(CUDA(",\"cuda\":{\"compute_capability\":\"8.9\",\"ptx_version\":\"8.5\"}"));
    accept(CUDA(",\"cuda\":{\"ptx_version\":\"\"}"));
    reject(CUDA(",\"cuda\":{\"compute_capability\":8.9}"), "E090", "/cuda/compute_capability",
           "found 8.9, wanted a text with a version");
    reject(CUDA(",\"cuda\":{\"compute_capability\":\"8.\"}"), "E090", "/cuda/compute_capability",
           "found \"8.\"");
    reject(CUDA(",\"cuda\":{\"compute_capability\":\"\"}"), "E090", "/cuda/compute_capability",
           "found \"\"");
    reject(GPU(",\"vulkan\":{\"version\":\"1.x\"}"), "E090", "/vulkan/version", "found \"1.x\"");
}

static void choices(void **state)
{
    (void)state;
    oi_device *device = good("{\"device\":{\"type\":\"Gpu\",\"api\":\"CUDA\"}}");
    assert_int_equal(oi_device_get(device)->api, OI_DEVICE_CUDA);
    oi_device_free(device);
    reject("{\"device\":{\"type\":\"gpuu\"}}", "E090", "/device/type",
           "found \"gpuu\", wanted gpu, cpu, mcu or fpga");
    reject("{\"device\":{\"type\":7}}", "E090", "/device/type", "found 7");
    oi_diag *d = oi_diag_new();
    assert_null(load_strict("{\"device\":{\"type\":\"gpu\",\"api\":\"vulcan\"}}", false, d));
    assert_string_equal(oi_diag_at(d, 0).hint, "did you mean \"vulkan\"?");
    oi_diag_clear(d);
    assert_null(load_strict("{\"device\":{\"type\":\"npu\"}}", false, d));
    assert_string_equal(oi_diag_at(d, 0).hint, "npu is reserved for later");
    oi_diag_free(d);
}

static void sets(void **state)
{
    (void)state;
    oi_device *device = good(CPU(",\"cpu\":{\"isa\":[\"AVX512VNNI\",\"fma\",\"fma\"]}"));
    uint32_t want = 1u << OI_ISA_SSE2 | 1u << OI_ISA_AVX | 1u << OI_ISA_AVX2 | 1u << OI_ISA_FMA |
                    1u << OI_ISA_AVX512F | 1u << OI_ISA_AVX512VNNI;
    assert_true(oi_device_get(device)->cpu.isa == want);
    oi_device_free(device);
    device = good(CPU(",\"cpu\":{\"isa\":[\"scalar\",\"neon\"]}"));
    assert_true(oi_device_get(device)->cpu.isa == 1u << OI_ISA_NEON);
    oi_device_free(device);
    device = good(CPU(",\"cpu\":{\"isa\":[]}"));
    assert_true(oi_device_get(device)->cpu.isa == 1u << OI_ISA_SCALAR);
    oi_device_free(device);
    reject(CPU(",\"cpu\":{\"isa\":[\"sse2\",\"avx3\"]}"), "E090", "/cpu/isa/1", "found \"avx3\"");
    reject(CPU(",\"cpu\":{\"isa\":\"sse9\"}"), "E090", "/cpu/isa", "found \"sse9\"");
    reject(CPU(",\"cpu\":{\"isa\":[2]}"), "E090", "/cpu/isa/0", "found 2");
    reject(CPU(",\"cpu\":{\"isa\":2}"), "E090", "/cpu/isa", "found 2");
    accept(CUDA(",\"features\":{\"fp16\":true},\"cuda\":{\"tensor_cores\":[\"tf32\",\"f16\"]}"));
    reject(CUDA(",\"cuda\":{\"tensor_cores\":[\"f32\"]}"), "E090", "/cuda/tensor_cores/0",
           "found \"f32\"");
}

static void names(void **state)
{
    (void)state;
    oi_device *device = good(GPU(",\"vulkan\":{\"extensions\":[\"VK_KHR_b\",\"VK_KHR_a\"]}"));
    oi_device_names list = oi_device_get(device)->vulkan.extensions;
    assert_int_equal(list.n, 2);
    assert_string_equal(list.at[0], "VK_KHR_b");
    oi_device_free(device);
    reject(GPU(",\"vulkan\":{\"extensions\":[\"VK_KHR_a\",\"a b\"]}"), "E090",
           "/vulkan/extensions/1", "found \"a b\"");
    reject(GPU(",\"vulkan\":{\"extensions\":[5]}"), "E090", "/vulkan/extensions/0", "found 5");
    reject(GPU(",\"vulkan\":{\"extensions\":\"VK_KHR_a\"}"), "E090", "/vulkan/extensions",
           "a list of names");
}

static void precisions(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        oi_dtype t;
    } rows[] = {{"fp32", OI_F32}, {"f32", OI_F32},  {"FP16", OI_F16}, {"bf16", OI_BF16},
                {"int8", OI_I8},  {"fp64", OI_F64}, {"u4", OI_U4},    {"i8", OI_I8}};
    char text[200];
    for (size_t i = 0; i < OI_COUNT(rows); i++) {
        snprintf(text, sizeof text,
                 GPU(",\"features\":{\"fp16\":true,\"bf16\":true,\"int8\":true},"
                     "\"preferences\":{\"default_precision\":\"%s\"}"),
                 rows[i].name);
        oi_device *device = load_strict(text, true, NULL); /* most of them warn */
        assert_non_null(device);
        assert_int_equal(oi_device_get(device)->preferences.default_precision, rows[i].t);
        oi_device_free(device);
    }
    reject(GPU(",\"preferences\":{\"default_precision\":\"fp12\"}"), "E090",
           "/preferences/default_precision", "found \"fp12\"");
    reject(GPU(",\"preferences\":{\"default_precision\":\"bool\"}"), "E090",
           "/preferences/default_precision", "found \"bool\"");
    reject(GPU(",\"preferences\":{\"default_precision\":32}"), "E090",
           "/preferences/default_precision", "found 32");
}

static void objects(void **state)
{
    (void)state;
    oi_device *device = good(FPGA(",\"fpga\":{\"fixed_point\":{\"frac_bits\":12}}"));
    const oi_device_info *d = oi_device_get(device);
    assert_true(d->fpga.fixed_point.present && d->fpga.fixed_point.total_bits == 16 &&
                d->fpga.fixed_point.frac_bits == 12);
    oi_device_free(device);
    device = good(FPGA(",\"fpga\":{\"fixed_point\":null}"));
    assert_false(oi_device_get(device)->fpga.fixed_point.present);
    oi_device_free(device);
    reject(FPGA(",\"fpga\":{\"fixed_point\":16}"), "E090", "/fpga/fixed_point",
           "found 16, wanted an object or null");
    reject(FPGA(",\"fpga\":{\"fixed_point\":{\"total_bits\":65}}"), "E090",
           "/fpga/fixed_point/total_bits", "from 2 to 64");
    reject("{\"device\":5}", "E090", "/device", "wanted an object");
    reject("{\"device\":{\"type\":\"gpu\"},\"limits\":null}", "E090", "/limits",
           "wanted an object");
    reject("[]", "E090", "", "wanted an object with a \"device\" in it");
    reject("null", "E090", "", "wanted an object");
    reject("{}", "E090", "/device/type", "missing; wanted gpu, cpu, mcu or fpga");
}

static void aliases(void **state)
{
    (void)state;
    oi_device *device = good(MCU(",\"mcu\":{\"ram_bytes\":4096,\"flash_bytes\":8192}"));
    assert_int_equal(oi_device_get(device)->memory.ram_bytes, 4096);
    assert_int_equal(oi_device_get(device)->memory.flash_bytes, 8192);
    oi_device_free(device);
    accept(MCU(",\"mcu\":{\"ram_bytes\":4096},\"memory\":{\"ram_bytes\":4096}"));
    reject(MCU(",\"mcu\":{\"ram_bytes\":4096},\"memory\":{\"ram_bytes\":4097}"), "E091",
           "/mcu/ram_bytes", "are the same thing, but differ");
    reject(MCU(",\"mcu\":{\"ram_bytes\":-1}"), "E090", "/mcu/ram_bytes", "found -1");
}

static void notes(void **state)
{
    (void)state;
    oi_device *device = good(GPU(",\"notes\":[\"first\",\"second\"]"));
    assert_string_equal(oi_device_get(device)->notes, "first");
    oi_device_free(device);
    accept(GPU(",\"notes\":[]"));
    reject(GPU(",\"notes\":5"), "E090", "/notes", "wanted a text or a list of texts");
    reject(GPU(",\"notes\":[5]"), "E090", "/notes", "wanted a text or a list of texts");
}

static void unknown_keys(void **state)
{
    (void)state;
    warned(GPU(",\"limts\":{}"), "W190", "/limts", "unknown key \"limts\": kept, but not used");
    warned(GPU(",\"limits\":{\"subgroup_sise\":5}"), "W190", "/limits/subgroup_sise",
           "unknown key");
    warned(GPU(",\"limits.subgroup_size\":5"), "W190", "/limits.subgroup_size", "unknown key");
    warned(GPU(",\"a/b~c\":5"), "W190", "/a~1b~0c", "unknown key");
    warned(GPU(",\"cpu\":{\"threads\":4}"), "W190", "/cpu",
           "\"cpu\" does not belong to a gpu with vulkan");
    oi_diag *d = oi_diag_new();
    oi_device *device =
        load_strict(GPU(",\"limits\":{\"subgroup_sise\":[5,{\"x\":null}]}"), false, d);
    assert_string_equal(oi_diag_at(d, 0).hint, "did you mean \"subgroup_size\"?");
    char *text = NULL;
    assert_int_equal(oi_device_to_json(device, &text, NULL), OI_OK);
    assert_non_null(strstr(text, "\"subgroup_sise\": [\n      5,\n      {\n        \"x\": null"));
    oi_free(text);
    oi_device_free(device);
    oi_diag_clear(d);
    assert_null(load_strict(GPU(",\"limits\":{\"subgroup_sise\":5}"), true, d));
    message_is(d, "E093", "/limits/subgroup_sise", "unknown key");
    oi_diag_clear(d);
    assert_null(load_strict(GPU(",\"mcu\":{}"), true, d));
    message_is(d, "E093", "/mcu", "does not belong");
    oi_diag_free(d);
}

/* A thousand unknown keys make few messages, little work, and still an error when strict. */
static void many_unknown_keys(void **state)
{
    (void)state;
    oi_buf b = {0};
    oi_buf_puts(&b, "{\"device\":{\"type\":\"cpu\"}");
    for (int i = 0; i < 1000; i++)
        oi_buf_printf(&b, ",\"unknown_%d\":0", i);
    oi_buf_puts(&b, "}");
    oi_diag *d = oi_diag_new();
    oi_device *device = load_strict(b.text, false, d);
    assert_non_null(device);
    assert_true(oi_diag_count(d) <= 20);
    oi_device_free(device);
    assert_null(load_strict(b.text, true, NULL));
    oi_buf_free(&b);
    oi_diag_free(d);
}

/* -- rules between fields -- */

static void api_suits_type(void **state)
{
    (void)state;
    static const struct {
        const char *type, *api;
        bool ok;
    } rows[] = {{"gpu", "vulkan", true},  {"gpu", "cuda", true},   {"gpu", "c", false},
                {"gpu", "vhdl", false},   {"cpu", "c", true},      {"cpu", "cuda", false},
                {"cpu", "vulkan", false}, {"mcu", "c", true},      {"mcu", "cuda", false},
                {"fpga", "vhdl", true},   {"fpga", "c", false},    {"fpga", "verilog", true},
                {"fpga", "hls_c", true},  {"fpga", "cuda", false}, {"cpu", "hls_c", false},
                {"cpu", "null", true},    {"gpu", "null", false}};
    char text[200];
    for (size_t i = 0; i < OI_COUNT(rows); i++) {
        snprintf(text, sizeof text,
                 "{\"device\":{\"type\":\"%s\",\"api\":\"%s\"},\"memory\":{\"global_bytes\":9999}}",
                 rows[i].type, rows[i].api);
        if (rows[i].ok)
            accept(text);
        else
            reject(text, "E091", "/device/api", "does not suit a device of type");
    }
}

static void matrix_needs_a_type(void **state)
{
    (void)state;
    accept(GPU(",\"features\":{\"cooperative_matrix\":true,\"fp16\":true}"));
    accept(GPU(",\"features\":{\"cooperative_matrix\":true,\"int8\":true}"));
    accept(GPU(",\"features\":{\"cooperative_matrix\":true,\"bf16\":true}"));
    reject(GPU(",\"features\":{\"cooperative_matrix\":true,\"fp64\":true}"), "E091",
           "/features/cooperative_matrix", "needs fp16, int8 or bf16");
}

static void limits_agree(void **state)
{
    (void)state;
    warned(GPU(",\"memory\":{\"shared_bytes_per_sm\":16383}"), "W191",
           "/memory/shared_bytes_per_sm", "less than limits.max_shared_memory_bytes");
    accept(GPU(",\"memory\":{\"shared_bytes_per_sm\":16384}"));
    warned(GPU(",\"limits\":{\"max_workgroup_size\":[8,8,1],\"max_workgroup_invocations\":65}"),
           "W191", "/limits/max_workgroup_invocations", "max_workgroup_size allows 64");
    accept(GPU(",\"limits\":{\"max_workgroup_size\":[8,8,1],\"max_workgroup_invocations\":64}"));
    accept(GPU(",\"limits\":{\"max_workgroup_size\":[9007199254740991,9007199254740991,"
               "9007199254740991],\"max_workgroup_invocations\":9007199254740991}"));
    reject(GPU(",\"limits\":{\"max_workgroup_invocations\":0}"), "E090",
           "/limits/max_workgroup_invocations", "at least 1");
}

static void memory_sizes(void **state)
{
    (void)state;
    reject("{\"device\":{\"type\":\"mcu\"}}", "E090", "/memory/global_bytes", "missing");
    reject("{\"device\":{\"type\":\"fpga\"}}", "E090", "/memory/global_bytes", "missing");
    reject("{\"device\":{\"type\":\"mcu\"},\"memory\":{\"global_bytes\":0}}", "E091",
           "/memory/global_bytes", "needs its size");
    reject(MCU(",\"memory\":{\"ram_bytes\":0}"), "E091", "/memory/ram_bytes", "writable memory");
    accept(CPU(",\"memory\":{\"global_bytes\":0}"));
    warned(MCU(",\"memory\":{\"global_bytes\":100000,\"flash_bytes\":100000}"), "W191",
           "/memory/ram_bytes", "more than memory.global_bytes");
    warned(MCU(",\"memory\":{\"global_bytes\":100000,\"ram_bytes\":1000}"), "W191",
           "/memory/flash_bytes", "more than memory.global_bytes");
}

static void preferences_fit(void **state)
{
    (void)state;
    warned(GPU(",\"preferences\":{\"default_precision\":\"fp16\"}"), "W191",
           "/preferences/default_precision", "features.fp16 is false");
    warned(GPU(",\"preferences\":{\"default_precision\":\"int8\"}"), "W191",
           "/preferences/default_precision", "nothing follows from i8");
    warned(CPU(",\"preferences\":{\"default_precision\":\"fp64\"}"), "W191",
           "/preferences/default_precision", "nothing follows from f64");
    warned(GPU(",\"preferences\":{\"default_precision\":\"f8\"}"), "W191",
           "/preferences/default_precision", "nothing follows from f8");
    warned(CPU(",\"preferences\":{\"default_precision\":\"bf16\"}"), "W191",
           "/preferences/default_precision", "features.bf16 is false");
    accept(CPU(",\"features\":{\"bf16\":true},\"preferences\":{\"default_precision\":\"bf16\"}"));
    accept(CPU(",\"preferences\":{\"default_precision\":\"fp32\"}"));
    reject(MCU(",\"preferences\":{\"embed_weights\":\"never\"}"), "E091",
           "/preferences/embed_weights", "cannot load a package");
    accept(CPU(",\"preferences\":{\"embed_weights\":\"never\"}"));
    accept(MCU(",\"preferences\":{\"embed_weights\":\"auto\"}"));
}

static void cuda_agrees(void **state)
{
    (void)state;
    reject(CUDA(",\"cuda\":{\"max_threads_per_block\":1000}"), "E091",
           "/cuda/max_threads_per_block", "not a multiple of cuda.warp_size");
    accept(CUDA(",\"cuda\":{\"max_threads_per_block\":992}"));
    reject(CUDA(",\"cuda\":{\"shared_bytes_per_block_optin\":16383}"), "E091",
           "/cuda/shared_bytes_per_block_optin", "needs no opting in");
    accept(CUDA(",\"cuda\":{\"shared_bytes_per_block_optin\":16384}"));
    warned(CUDA(",\"cuda\":{\"tensor_cores\":\"bf16\"}"), "W191", "/cuda/tensor_cores",
           "features.bf16 is false");
}

static void isa_fits(void **state)
{
    (void)state;
    reject(CPU(",\"cpu\":{\"isa\":[\"avx2\",\"neon\"]}"), "E091", "/cpu/isa",
           "sse2 is x86, but neon is not");
    reject(CPU(",\"cpu\":{\"isa\":[\"rvv\",\"sve\"]}"), "E091", "/cpu/isa", "neon is Arm, but rvv");
    reject("{\"device\":{\"type\":\"cpu\",\"architecture\":\"x86_64\"},\"cpu\":{\"isa\":\"neon\"}}",
           "E091", "/cpu/isa", "neon does not exist on x86_64 (x86)");
    reject("{\"device\":{\"type\":\"cpu\",\"architecture\":\"riscv64\"},\"cpu\":{\"isa\":\"avx\"}}",
           "E091", "/cpu/isa", "does not exist on riscv64 (RISC-V)");
    accept(
        "{\"device\":{\"type\":\"cpu\",\"architecture\":\"aarch64\"},\"cpu\":{\"isa\":\"sve\"}}");
    accept(
        "{\"device\":{\"type\":\"cpu\",\"architecture\":\"zen4\"},\"cpu\":{\"isa\":\"avx512f\"}}");
}

static void cpu_agrees(void **state)
{
    (void)state;
    reject(CPU(",\"cpu\":{\"cache_l1_bytes\":0}"), "E091", "/cpu/cache_l1_bytes",
           "less than one cache line");
    accept(MCU(",\"cpu\":{\"cache_l1_bytes\":0}"));
    reject(CPU(",\"cpu\":{\"endianness\":\"big\"}"), "E091", "/cpu/endianness",
           "a big-endian device needs");
    accept(CPU(",\"cpu\":{\"endianness\":\"big\"},\"preferences\":{\"embed_weights\":\"always\"}"));
    warned(CPU(",\"cpu\":{\"libc\":false,\"threads\":4}"), "W191", "/cpu/threads", "has no effect");
    warned(CPU(",\"cpu\":{\"libc\":false},\"preferences\":{\"host_lang\":\"cpp\"}"), "W191",
           "/preferences/host_lang", "has no effect");
    warned(CPU(",\"features\":{\"dot8\":true}"), "W191", "/features/dot8", "has no effect");
    accept("{\"extends\":\"mcu_generic\"}"); /* whose features are not the file's own */
    accept(CPU(",\"cpu\":{\"libc\":false}"));
}

static void cores_agree(void **state)
{
    (void)state;
    accept(MCU(",\"mcu\":{\"core\":\"cortex_m4\",\"fpu\":\"single\",\"dsp\":true}"));
    reject(MCU(",\"mcu\":{\"core\":\"cortex_m4\",\"fpu\":\"double\"}"), "E091", "/mcu/fpu",
           "at most \"single\"");
    reject(MCU(",\"mcu\":{\"core\":\"rv32imac\",\"fpu\":\"single\"}"), "E091", "/mcu/fpu",
           "at most \"none\"");
    reject(MCU(",\"mcu\":{\"core\":\"cortex_m0plus\",\"dsp\":true}"), "E091", "/mcu/dsp",
           "no packed");
    accept(MCU(",\"mcu\":{\"core\":\"cortex_m55\",\"mve\":true}"));
    reject(MCU(",\"mcu\":{\"core\":\"cortex_m7\",\"mve\":true}"), "E091", "/mcu/mve", "no vector");
    reject(MCU(",\"mcu\":{\"core\":\"cortex_m9\"}"), "E090", "/mcu/core", "found \"cortex_m9\"");
    warned(MCU(",\"mcu\":{\"heap\":true}"), "W191", "/mcu/heap", "never allocates");
    warned(MCU(",\"features\":{\"fp64\":true}"), "W191", "/features/fp64", "in software");
    accept(
        MCU(",\"features\":{\"fp64\":true},\"mcu\":{\"core\":\"cortex_m7\",\"fpu\":\"double\"}"));
}

static void fpga_agrees(void **state)
{
    (void)state;
    oi_device *device = good(FPGA(",\"device\":{\"api\":\"verilog\"}"));
    assert_int_equal(oi_device_get(device)->fpga.hdl, OI_HDL_VERILOG);
    oi_device_free(device);
    reject(FPGA(",\"fpga\":{\"hdl\":\"verilog\"}"), "E091", "/fpga/hdl", "device.api is vhdl");
    reject(FPGA(",\"device\":{\"api\":\"verilog\"},\"fpga\":{\"hdl\":\"vhdl\"}"), "E091",
           "/fpga/hdl", "device.api is verilog");
    reject(FPGA(",\"fpga\":{\"fixed_point\":{\"total_bits\":8,\"frac_bits\":9}}"), "E091",
           "/fpga/fixed_point/frac_bits", "9 of 8 bits");
    accept(FPGA(",\"fpga\":{\"fixed_point\":{\"total_bits\":8,\"frac_bits\":8}}"));
    reject(FPGA(",\"fpga\":{\"ii_target\":-1}"), "E090", "/fpga/ii_target", "found -1");
}

/* Every error of a file is told, not only the first. */
static void all_errors_at_once(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    assert_null(load_strict(GPU(",\"limits\":{\"subgroup_size\":3,\"max_workgroup_size\":0},"
                                "\"features\":{\"fp16\":0}"),
                            false, d));
    assert_int_equal(oi_diag_errors(d), 3);
    oi_diag_free(d);
}

/* -- the table -- */

static void table_is_sound(void **state)
{
    (void)state;
    assert_int_equal(oi_device_field_count(), oi_n_fields);
    for (size_t i = 0; i < oi_n_fields; i++) {
        const oi_field *f = &oi_fields[i];
        assert_non_null(strchr(f->path, '.'));
        assert_true(f->doc[0] && f->on && f->offset < sizeof(oi_device_info));
        for (size_t k = 0; k < i; k++)
            if (strcmp(oi_fields[k].path, f->path) == 0) { /* may differ in the default only */
                assert_int_equal(oi_fields[k].kind, f->kind);
                assert_int_equal(oi_fields[k].offset, f->offset);
                assert_true(oi_fields[k].min == f->min && oi_fields[k].max == f->max);
            }
        oi_device_field row = oi_device_field_at(i);
        assert_string_equal(row.path, f->path);
        assert_true(row.wanted[0] && strlen(row.standard) < sizeof row.standard - 1);
    }
    assert_string_equal(oi_device_field_at(oi_n_fields).path, "");
    assert_string_equal(oi_device_type_name(OI_DEVICE_FPGA), "fpga");
    assert_string_equal(oi_device_api_name(OI_DEVICE_HLS_C), "hls_c");
    assert_string_equal(oi_isa_name(OI_ISA_RVV), "rvv");
    assert_string_equal(oi_isa_name((oi_isa)77), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(bools_and_features),
        cmocka_unit_test(counts),
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(triples),
        cmocka_unit_test(numbers),
        cmocka_unit_test(texts),
        cmocka_unit_test(versions),
        cmocka_unit_test(choices),
        cmocka_unit_test(sets),
        cmocka_unit_test(names),
        cmocka_unit_test(precisions),
        cmocka_unit_test(objects),
        cmocka_unit_test(aliases),
        cmocka_unit_test(notes),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(many_unknown_keys),
        cmocka_unit_test(api_suits_type),
        cmocka_unit_test(matrix_needs_a_type),
        cmocka_unit_test(limits_agree),
        cmocka_unit_test(memory_sizes),
        cmocka_unit_test(preferences_fit),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(isa_fits),
        cmocka_unit_test(cpu_agrees),
        cmocka_unit_test(cores_agree),
        cmocka_unit_test(fpga_agrees),
        cmocka_unit_test(all_errors_at_once),
        cmocka_unit_test(table_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
