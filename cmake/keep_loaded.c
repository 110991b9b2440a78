/* keep_loaded.c: no library is unloaded. In builds with the address sanitizer: what a driver keeps
 * until the process ends would count as a leak, of a module without a name. */
#include <dlfcn.h>

__attribute__((visibility("default"))) int dlclose(void *library)
{
    (void)library;
    return 0;
}
