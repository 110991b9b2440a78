/* program_test.c: what an emitted Vulkan program offers to the program around it (see GRAPH in
 * test_vulkan_programs.py). */
#include "p.h"
#include "vulkan_run.h"

#include "vulkan_parts.h" /* the handles of an open device, to hand them on */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                   \
    do {                                           \
        if (!(x)) {                                \
            printf("line %d: %s\n", __LINE__, #x); \
            exit(1);                               \
        }                                          \
    } while (0)

static p a, b;
static unsigned char before[p_SAVED_BYTES], after[p_SAVED_BYTES];
static void *weights;
static size_t size;

static void read_weights(const char *path)
{
    FILE *f = fopen(path, "rb");
    CHECK(f);
    weights = aligned_alloc(4096, 1 << 20);
    size = fread(weights, 1, 1 << 20, f);
    fclose(f);
}

static int step(p *s, float x, int32_t at)
{
    for (int i = 0; i < 4; i++)
        s->x[i] = x + (float)i;
    s->at[0] = at;
    return p_step(s);
}

static bool changes_nothing(p *s, float x, int32_t at, int error)
{
    p_save(s, before);
    const int said = step(s, x, at);
    p_save(s, after);
    if (said != error)
        printf("step gives %d\n", said);
    return said == error && memcmp(before, after, sizeof before) == 0;
}

/* -- values, failed steps, recording -- */

static void steps(void)
{
    CHECK(step(&a, 1, 0) == p_OK && a.y[0] == 2 && a.y[3] == 32 && a.z[1] == 6);
    const uint64_t recorded = oi_vk_run_counts(a.oi_run).recorded;
    CHECK(step(&a, 2, 5) == p_OK && a.y[0] == 4 + 5 && a.z[0] == 6);
    CHECK(a.oi_state_data.step == 2);
    CHECK(changes_nothing(&a, 1, 6,
                          p_ERROR_RANGE)); /* found by the device, after the cache changed */
    CHECK(changes_nothing(&a, 1, -7, p_ERROR_RANGE));
    CHECK(step(&a, 0, 1) == p_OK && a.y[0] == 5 && a.oi_state_data.step == 3);
    CHECK(step(&a, 0, 1) == p_OK && step(&a, 0, 1) == p_OK);
    CHECK(changes_nothing(&a, 0, 1, p_ERROR_RANGE)); /* the cache is full: found by the host */
    CHECK(oi_vk_run_counts(a.oi_run).recorded == recorded); /* all steps had one shape */
    CHECK(oi_vk_run_counts(a.oi_run).submitted >= 7);
    CHECK(p_reset(&a) == p_OK && step(&a, 1, 0) == p_OK && a.y[0] == 2);
}

/* Another instance goes on from a saved state, beside the first. */
static void states(void)
{
    p_save(&a, before);
    CHECK(p_load(&b, before, sizeof before) == p_OK && b.oi_state_data.step == 1);
    for (int i = 0; i < 3; i++) {
        CHECK(step(&a, (float)i, 2) == p_OK && step(&b, (float)i, 2) == p_OK);
        CHECK(memcmp(a.y, b.y, sizeof a.y) == 0 && memcmp(a.z, b.z, sizeof a.z) == 0);
    }
    p_save(&b, after);
    CHECK(p_load(&b, before, sizeof before - 1) == p_ERROR_STATE_SIZE);
    before[sizeof before - 1] ^= 1;
    CHECK(p_load(&b, before, sizeof before) == p_ERROR_STATE_DAMAGED);
    before[8]++;
    CHECK(p_load(&b, before, sizeof before) == p_ERROR_STATE_FORMAT);
    p_save(&b, before);
    CHECK(memcmp(before, after, sizeof before) == 0);
}

/* -- an application's own device, whose functions fail -- */

static oi_vk *owner;
static long allocations; /* before one fails; negative: none does */
static VkResult submit_gives, wait_gives;

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice d, const VkMemoryAllocateInfo *i,
                                               const VkAllocationCallbacks *c, VkDeviceMemory *out)
{
    if (allocations >= 0 && allocations-- == 0)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return owner->AllocateMemory(d, i, c, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue q, uint32_t n, const VkSubmitInfo *i,
                                             VkFence f)
{
    return submit_gives != VK_SUCCESS ? submit_gives : owner->QueueSubmit(q, n, i, f);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_for(VkDevice d, uint32_t n, const VkFence *f,
                                               VkBool32 all, uint64_t ns)
{
    const VkResult r = owner->WaitForFences(d, n, f, all, ns);
    return wait_gives != VK_SUCCESS ? wait_gives : r;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice d, const char *name)
{
    if (strcmp(name, "vkAllocateMemory") == 0)
        return (PFN_vkVoidFunction)allocate;
    if (strcmp(name, "vkQueueSubmit") == 0)
        return (PFN_vkVoidFunction)submit;
    if (strcmp(name, "vkWaitForFences") == 0)
        return (PFN_vkVoidFunction)wait_for;
    return owner->in.GetDeviceProcAddr(d, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance i, const char *name)
{
    return strcmp(name, "vkGetDeviceProcAddr") == 0 ? (PFN_vkVoidFunction)device_function
                                                    : owner->in.get(i, name);
}

static oi_vk *open_own(void)
{
    PFN_vkGetInstanceProcAddr get = instance_function;
    oi_vk_own own = {.instance = owner->in.handle,
                     .physical = owner->physical,
                     .device = owner->device,
                     .queue = owner->queue,
                     .family = owner->family};
    memcpy(&own.get_instance_proc_addr, &get, sizeof get);
    char why[OI_VK_NAME];
    oi_vk *d = NULL;
    CHECK(oi_vk_open(&d, &(oi_vk_choice){.needs = owner->enabled, .own = &own}, why) == OI_VK_OK);
    return d;
}

static void failing_devices(void)
{
    char why[OI_VK_NAME];
    const oi_vk_choice all = {.wants = OI_VK_FEATURES & ~(uint32_t)OI_VK_COOPERATIVE};
    CHECK(oi_vk_open(&owner, &all, why) == OI_VK_OK);
    oi_vk *d = open_own();
    long n = 0;
    for (int said = p_ERROR_DEVICE_MEMORY; said != p_OK; n++) { /* the n-th allocation fails */
        CHECK(said == p_ERROR_DEVICE_MEMORY && n < 100);
        allocations = n;
        said = p_init_on(&b, d, weights, size);
        CHECK(said == p_OK || strstr(p_why(&b), "out of device memory"));
    }
    allocations = -1;
    CHECK(n > 8 && step(&b, 1, 0) == p_OK);
    submit_gives = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    CHECK(step(&b, 1, 0) == p_ERROR_DEVICE_MEMORY && strstr(p_why(&b), "out of device memory"));
    submit_gives = VK_SUCCESS;
    CHECK(b.oi_state_data.step == 1 && step(&b, 1, 0) == p_OK && b.y[0] == 3);
    p_save(&b, before);
    wait_gives = VK_ERROR_DEVICE_LOST;
    CHECK(step(&b, 1, 0) == p_ERROR_DEVICE_FAILED && strstr(p_why(&b), "lost"));
    wait_gives = VK_SUCCESS;
    CHECK(step(&b, 1, 0) == p_ERROR_DEVICE_FAILED && b.oi_state_data.step == 2);
    p_free(&b);
    oi_vk_close(d);
    d = open_own(); /* a new start, from what was saved */
    CHECK(p_init_on(&b, d, weights, size) == p_OK && p_load(&b, before, sizeof before) == p_OK);
    CHECK(step(&b, 1, 0) == p_OK && b.y[0] == 4);
    p_free(&b);
    oi_vk_close(d);
    oi_vk_close(owner);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    read_weights(argv[1]);
    CHECK(p_init(&a, weights, size - 1) == p_ERROR_WEIGHTS_SIZE);
    CHECK(p_init(&a, weights, size) == p_OK && p_init(&b, weights, size) == p_OK);
    steps();
    states();
    p_free(&a);
    p_free(&b);
    failing_devices();
    free(weights);
    return 0;
}
