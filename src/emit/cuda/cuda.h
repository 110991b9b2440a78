/* cuda.h: the CUDA target inside. Steps, memory and kernels are printed as for C (emit/c/c.h), in
 * a form in which a worker is a block of threads. Grouped by the file that implements it. */
#ifndef OI_EMIT_CUDA_H
#define OI_EMIT_CUDA_H

#include "emit/c/c.h"
#include "emit/nest.h"

/* -- target.c -- */

uint64_t oi_cuda_threads(const oi_device_info *d); /* of a block */
/* "90": the compute capability as compilers name it. */
const char *oi_cuda_arch(oi_arena *a, const oi_device_info *d);

/* Memory that the threads of a block share, as far as no program needs to ask for it. The first
 * part holds sums of lanes, the second one rows of a kernel, the rest copies of small tensors. */
#define OI_CUDA_SHARED     49152u
#define OI_CUDA_SUM_BYTES  8u /* of a thread */
#define OI_CUDA_COPY_BYTES 16384u

/* -- lang.c: elements of tensors -- */

extern const oi_lang oi_lang_cuda, oi_lang_cuda32;

/* -- form.c: statements that all threads of a block run together -- */

extern const oi_cform oi_cform_cuda;      /* what runs on the device */
extern const oi_cform oi_cform_cuda_host; /* and what does not */

uint64_t oi_cuda_kernels(const oi_plan *p); /* whose times a timed program reports */
/* Bytes of the copies that every block has of small tensors, where shared memory has no room. */
uint64_t oi_cuda_copy_bytes(const oi_plan *p);

/* -- kernel.c -- */

void oi_cuda_put_body(oi_cprog *c, const oi_skernel *k, const oi_nest_printer *p);
uint64_t oi_cuda_row_bytes(const oi_plan *p); /* of rows that lanes share, in the largest kernel */

/* -- step.c: what begins and ends a step on the device -- */

/* Helpers of this language that the text calls; before the others. */
void oi_cuda_put_helpers(oi_cprog *c, const char *text, oi_out *o);
void oi_cuda_put_sync(oi_cprog *c);
void oi_cuda_put_undo(oi_cprog *c);
void oi_cuda_put_entries(oi_cprog *c); /* the functions that the host launches */
bool oi_cuda_has_starts(const oi_cprog *c, uint32_t graph);

/* -- host.c: init, step, reset, save, load -- */

void oi_cuda_put_host(oi_cprog *c);

/* -- files.c -- */

void oi_emit_cuda(const oi_plan *p, const oi_certificate *k, oi_emitted *files);
void oi_cuda_certify(const oi_plan *p, oi_certificate *out);

/* -- tool.c: building, and running on this machine -- */

oi_tool oi_cuda_tool(const oi_device_info *device, const char *compiler);
void oi_cuda_build_files(oi_cprog *c, oi_emitted *files);

#endif
