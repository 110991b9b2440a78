/* own_device.c: a step of linear.oi on a Vulkan device that this program has opened itself. */
#include "linear.h"
#include "vulkan_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

static linear program;

static void stop(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(3);
}

/* The first device, with a queue for compute shaders. */
static oi_vk_own open_mine(void)
{
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                                .pApplicationInfo = &app};
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                                .queueCount = 1,
                                                .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                            .queueCreateInfoCount = 1,
                                            .pQueueCreateInfos = &queue_info};
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t n = 1;
    if (vkCreateInstance(&instance_info, NULL, &instance) != VK_SUCCESS ||
        vkEnumeratePhysicalDevices(instance, &n, &physical) < 0 || n == 0 ||
        vkCreateDevice(physical, &device_info, NULL, &device) != VK_SUCCESS)
        stop("no Vulkan device");
    vkGetDeviceQueue(device, 0, 0, &queue);
    return (oi_vk_own){(void *)vkGetInstanceProcAddr, instance, physical, device, queue, 0};
}

int main(void)
{
    const oi_vk_own mine = open_mine();
    char why[OI_VK_NAME];
    oi_vk *device;
    if (oi_vk_open(&device, &(oi_vk_choice){.own = &mine}, why) != OI_VK_OK)
        stop(why);
    if (linear_init_on(&program, device, linear_weights, sizeof linear_weights) != linear_OK)
        stop(linear_why(&program));
    for (size_t i = 0; i < sizeof program.x / sizeof *program.x; i++)
        program.x[i] = 1;
    if (linear_step(&program) != linear_OK)
        stop(linear_why(&program));
    printf("y[0] = %.3f\n", program.y[0]);
    linear_free(&program);
    oi_vk_close(device); /* ours stays open */
    vkDestroyDevice(mine.device, NULL);
    vkDestroyInstance(mine.instance, NULL);
    return 0;
}
