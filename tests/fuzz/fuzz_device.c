/* fuzz_device.c: any bytes as a device file. What loads must normalise to a text that loads to the
 * same text, strictly if the first was strict. */
#include "openinfer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const oi_device *device, bool strict)
{
    char *first = NULL, *second = NULL;
    oi_device *again = NULL;
    if (oi_device_to_json(device, &first, NULL) != OI_OK ||
        oi_device_from_json(first, strlen(first), "again", strict, &again, NULL) != OI_OK ||
        oi_device_to_json(again, &second, NULL) != OI_OK || strcmp(first, second) != 0 ||
        oi_device_get(device)->features != oi_device_get(again)->features)
        abort();
    oi_free(first);
    oi_free(second);
    oi_device_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int strict = 0; strict < 2; strict++) {
        oi_device *device = NULL;
        oi_diag *diag = oi_diag_new();
        oi_status status =
            oi_device_from_json((const char *)data, size, "fuzz", strict, &device, diag);
        if ((status == OI_OK) != (device != NULL) || (status != OI_OK && !oi_diag_errors(diag)))
            abort();
        if (device)
            round_trip(device, strict);
        oi_device_free(device);
        oi_diag_free(diag);
    }
    return 0;
}
