/* device_test.c: the runtime of Vulkan programs against a device: device_test SHADER.spv runs a
 * shader that adds push constant and specialisation constant to every word of a buffer. Prints
 * what is wrong; exit 1. Other calls: device_test list; device_test open [NAME]; device_test lost.
 */
#include "vulkan_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (9u << 18) /* more than the halves of the staging buffer hold */

static oi_vk *device;

static int stop(const char *what)
{
    printf("%s: %s\n", what, device ? oi_vk_why(device) : "");
    oi_vk_close(device);
    return 1;
}

static int list_devices(void)
{
    oi_vk_info all[8];
    char why[OI_VK_NAME];
    size_t n;
    if (oi_vk_devices(all, 8, &n, why) != OI_VK_OK) {
        printf("%s\n", why);
        return 3;
    }
    for (size_t i = 0; i < n && i < 8; i++)
        printf("%s (%s), %s, Vulkan %u.%u, features %x\n", all[i].name, all[i].type, all[i].driver,
               all[i].version[0], all[i].version[1], all[i].features);
    return 0;
}

static int open_one(const char *name, uint32_t needs)
{
    char why[OI_VK_NAME];
    const oi_vk_choice choice = {.device = name, .needs = needs, .wants = OI_VK_FEATURES};
    const oi_vk_status s = oi_vk_open(&device, &choice, why);
    if (s != OI_VK_OK)
        printf("%s\n", why);
    return s == OI_VK_OK ? 0 : 3;
}

static int too_much(void)
{
    oi_vk_buffer *b;
    const oi_vk_status s = oi_vk_buffer_new(device, 1ull << 46, OI_VK_DEVICE, &b);
    return s == OI_VK_NO_MEMORY && !b ? 0 : stop("a buffer that is too large");
}

static int run_shader(const char *path)
{
    static uint32_t code[1 << 14];
    FILE *f = fopen(path, "rb");
    const size_t bytes = f ? fread(code, 1, sizeof code, f) : 0;
    const uint32_t add = 7, more = 100;
    uint32_t *data = malloc(4 * WORDS);
    oi_vk_buffer *b = NULL, *other = NULL;
    oi_vk_pipeline *p = NULL;
    oi_vk_list *l = NULL;
    double ns[300];
    if (!f || !data)
        return stop("cannot begin");
    fclose(f);
    for (uint32_t i = 0; i < WORDS; i++)
        data[i] = i;
    const oi_vk_shader shader = {.code = code,
                                 .bytes = bytes,
                                 .n_bindings = 2,
                                 .push_bytes = 4,
                                 .constants = &more,
                                 .n_constants = 1};
    if (oi_vk_buffer_new(device, 4 * WORDS, OI_VK_DEVICE, &b) ||
        oi_vk_buffer_new(device, 4 * WORDS + 2, OI_VK_DEVICE, &other) ||
        oi_vk_pipeline_new(device, &shader, &p) || oi_vk_list_new(device, &l) ||
        oi_vk_upload(b, 0, data, 4 * WORDS))
        return stop("cannot prepare");
    oi_vk_list_stamp(l);
    for (int i = 0; i < 299; i++) {
        const oi_vk_part parts[] = {{b, 0, 4 * WORDS}, {NULL, 0, 0}};
        if (i < 2)
            oi_vk_list_dispatch(l, p, parts, &add, WORDS / 64);
        oi_vk_list_barrier(l);
        oi_vk_list_stamp(l);
    }
    oi_vk_list_copy(l, (oi_vk_part){other, 0, 0}, (oi_vk_part){b, 0, 4 * WORDS});
    if (oi_vk_list_end(l))
        return stop("cannot record");
    for (int i = 0; i < 3; i++)
        if (oi_vk_list_submit(l) || oi_vk_list_wait(l))
            return stop("cannot run");
    if (oi_vk_list_stamps(l) && (oi_vk_list_times(l, ns) || ns[0] != 0 || ns[2] < ns[1]))
        return stop("timestamps");
    memset(data, 0, 4 * WORDS);
    if (oi_vk_download(data, other, 0, 4 * WORDS))
        return stop("cannot read");
    for (uint32_t i = 0; i < WORDS; i++)
        if (data[i] != i + 6 * 107)
            return stop("wrong sum");
    free(data);
    oi_vk_list_free(l); /* the rest is freed by closing */
    const uint64_t used = oi_vk_memory_used(device);
    oi_vk_buffer_free(other);
    if (used - oi_vk_memory_used(device) != 4 * WORDS + 4)
        return stop("memory in use");
    return too_much();
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list_devices();
    if (argc >= 2 && strcmp(argv[1], "open") == 0) {
        const int failed =
            open_one(argc > 2 ? argv[2] : NULL, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0);
        oi_vk_close(device);
        return failed;
    }
    if (argc != 2 || open_one(NULL, 0))
        return 3;
    const int failed = run_shader(argv[1]);
    if (!failed)
        oi_vk_close(device);
    return failed;
}
