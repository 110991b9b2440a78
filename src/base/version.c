/* version.c: what this library is. */
#include "base/base.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *oi_version(void)
{
    return TEXT(OI_VERSION_MAJOR) "." TEXT(OI_VERSION_MINOR) "." TEXT(OI_VERSION_PATCH);
}
