/* spec.c: a device described by a few words, the rest by the profile that fits; and versions. */
#include "device/device.h"

#include <stdlib.h>

/* The words of a spec, in the order of `keys`. */
enum { API, VENDOR, ARCHITECTURE, DRIVER, NAME, N_WORDS };

static const char *const keys[N_WORDS] = {"api", "vendor", "architecture", "driver", "name"};

struct oi_device_spec {
    oi_device_type type;
    char *words[N_WORDS]; /* NULL = not said */
    bool failed;          /* memory ran out: said once, by oi_device_build */
};

oi_device_spec *oi_device_spec_new(oi_device_type type)
{
    oi_device_spec *s = calloc(1, sizeof *s);
    if (s)
        s->type = type;
    return s;
}

void oi_device_spec_free(oi_device_spec *s)
{
    if (!s)
        return;
    for (int i = 0; i < N_WORDS; i++)
        free(s->words[i]);
    free(s);
}

static void set(oi_device_spec *s, int word, const char *text)
{
    if (!s)
        return;
    free(s->words[word]);
    s->words[word] = text ? strdup(text) : NULL;
    s->failed |= text && !s->words[word];
}

void oi_device_spec_api(oi_device_spec *s, const char *api)
{
    set(s, API, api);
}

void oi_device_spec_vendor(oi_device_spec *s, const char *vendor)
{
    set(s, VENDOR, vendor);
}

void oi_device_spec_architecture(oi_device_spec *s, const char *architecture)
{
    set(s, ARCHITECTURE, architecture);
}

void oi_device_spec_driver(oi_device_spec *s, const char *driver)
{
    set(s, DRIVER, driver);
}

void oi_device_spec_name(oi_device_spec *s, const char *name)
{
    set(s, NAME, name);
}

/* The first row that fits gives the profile; an architecture fits when it begins so. */
static const struct {
    oi_device_type type;
    const char *api, *architecture; /* NULL = any */
    const char *profile;
} fitting[] = {
    {OI_DEVICE_GPU, "cuda", "ampere", "cuda_ampere"},
    {OI_DEVICE_GPU, "cuda", "ada", "cuda_ada"},
    {OI_DEVICE_GPU, "cuda", "hopper", "cuda_hopper"},
    {OI_DEVICE_GPU, "cuda", "blackwell", "cuda_blackwell"},
    {OI_DEVICE_GPU, "cuda", NULL, "cuda_generic"},
    {OI_DEVICE_GPU, NULL, NULL, "vulkan_generic"},
    {OI_DEVICE_CPU, NULL, "x86_64_v4", "cpu_avx512"},
    {OI_DEVICE_CPU, NULL, "x86_64_v3", "cpu_avx2"},
    {OI_DEVICE_CPU, NULL, "aarch64", "cpu_neon"},
    {OI_DEVICE_CPU, NULL, "arm64", "cpu_neon"},
    {OI_DEVICE_CPU, NULL, NULL, "cpu_scalar"},
    {OI_DEVICE_MCU, NULL, "cortex_m4", "cortex_m4"},
    {OI_DEVICE_MCU, NULL, "cortex_m7", "cortex_m7"},
    {OI_DEVICE_MCU, NULL, "cortex_m55", "cortex_m55"},
    {OI_DEVICE_MCU, NULL, "rv32imac", "rv32imac"},
    {OI_DEVICE_MCU, NULL, NULL, "mcu_generic"},
    {OI_DEVICE_FPGA, NULL, NULL, "fpga_generic"},
};

static bool fits(size_t row, const oi_device_spec *s)
{
    const char *api = s->words[API], *arch = s->words[ARCHITECTURE];
    if (fitting[row].type != s->type)
        return false;
    if (fitting[row].api && (!api || strcmp(api, fitting[row].api) != 0))
        return false;
    const char *start = fitting[row].architecture;
    return !start || (arch && strncmp(arch, start, strlen(start)) == 0);
}

oi_status oi_device_build(const oi_device_spec *s, oi_device **out, oi_diag *diag)
{
    if (!s || !out || (unsigned)s->type >= OI_DEVICE_TYPE_COUNT)
        return OI_ERR_USAGE;
    *out = NULL;
    size_t row = 0;
    while (!fits(row, s))
        row++;
    oi_buf buf = {.failed = s->failed};
    oi_jsonw w = {.out = &buf, .compact = true, .any_order = true};
    oi_jsonw_open(&w, '{');
    oi_jsonw_key(&w, "extends"), oi_jsonw_str(&w, fitting[row].profile);
    oi_jsonw_key(&w, "device"), oi_jsonw_open(&w, '{');
    oi_jsonw_key(&w, "type"), oi_jsonw_str(&w, oi_device_type_name(s->type));
    for (int i = 0; i < N_WORDS; i++)
        if (s->words[i])
            oi_jsonw_key(&w, keys[i]), oi_jsonw_str(&w, s->words[i]);
    oi_jsonw_close(&w, '}');
    oi_jsonw_close(&w, '}');
    char *text = NULL;
    if (oi_buf_take(&buf, &text) != OI_OK)
        return oi_diag_env(diag, "device spec", "out of memory");
    oi_device_part first = {.name = "device spec"};
    oi_status status = oi_device_load_text(text, strlen(text), first, false, out, diag);
    oi_free(text);
    return status;
}

/* -- driver versions -- */

/* One field: a number, or any run of x. The rest of the text in *text. */
static bool next_field(const char **text, uint64_t *value, bool *any)
{
    size_t digits = strspn(*text, "0123456789"), wild = strspn(*text, "xX");
    size_t n = digits ? digits : wild;
    *any = !digits;
    *value = 0;
    if (!n || (digits && !oi_parse_u64(*text, digits, 10, value)))
        return false;
    *text += n;
    if (**text == '.')
        return *++*text != '\0';
    return **text == '\0';
}

bool oi_device_driver_compare(const char *a, const char *b, int *order)
{
    if (!a || !b || !order || !*a || !*b)
        return false;
    *order = 0;
    while (*a || *b) { /* a field that is not there is 0 */
        uint64_t x = 0, y = 0;
        bool any_x = false, any_y = false;
        if ((*a && !next_field(&a, &x, &any_x)) || (*b && !next_field(&b, &y, &any_y)))
            return false;
        if (*order == 0 && !any_x && !any_y && x != y)
            *order = x < y ? -1 : 1;
    }
    return true;
}
