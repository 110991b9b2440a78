/* needs.c: in place of the one in a program: whatever is emulated is there. */
#include "hal.h"

const char *hal_lacks(const char *instructions)
{
    (void)instructions;
    return NULL;
}
