/* oinf_copy.c: oinf_copy IN.oinf OUT.oinf: reads a package and writes what it holds, so that tests
 * can compare the bytes with those of other writers. OUT is written through the streaming path. */
#include "openinfer.h"

int main(int argc, char **argv)
{
    oi_model *m = NULL;
    oi_writer *w = oi_writer_new();
    oi_diag *d = oi_diag_new();
    oi_status status = argc == 3 && w && d ? OI_OK : OI_ERR_USAGE;
    if (status == OI_OK)
        status = oi_model_open(argv[1], &m, d);
    if (status == OI_OK)
        status = oi_writer_add_model(w, m, d);
    if (status == OI_OK)
        status = oi_writer_finish(w, argv[2], d);
    oi_diag_print(d, stderr, false);
    oi_writer_free(w);
    oi_model_close(m);
    oi_diag_free(d);
    return (int)status;
}
