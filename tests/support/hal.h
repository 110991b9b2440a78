/* hal.h: what emitted programs call so, for tests of the files that they carry along. */
#include "emit/c/host/hal_h.h"
