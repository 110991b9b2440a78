/* none.c: what a library says that was built without the headers of Vulkan: CMake compiles either
 * this file or the others of the folder. */
#include "base/base.h"
#include "sim/backend.h"

static oi_status open_none(const char *device, uint64_t limit, oi_backend **out, oi_diag *d)
{
    (void)device, (void)limit;
    *out = NULL;
    return oi_diag_env(d, "vulkan",
                       "this build runs nothing on Vulkan: install its headers (Debian package "
                       "libvulkan-dev) and build again");
}

oi_status oi_device_probe(oi_device_api api, const char *which, oi_device **out, oi_diag *d)
{
    (void)api, (void)which;
    *out = NULL;
    return oi_diag_env(d, "vulkan",
                       "this build asks no Vulkan device: install the headers of Vulkan (Debian "
                       "package libvulkan-dev) and build again");
}

const oi_backend_fns oi_backend_vulkan = {.name = "vulkan", .open = open_none};
