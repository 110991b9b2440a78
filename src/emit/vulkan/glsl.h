/* glsl.h: private to the compute shaders. Grouped by the file that implements it. */
#ifndef OI_EMIT_GLSL_H
#define OI_EMIT_GLSL_H

#include "emit/nest.h"
#include "emit/vulkan/dispatch.h"

/* -- shader.c -- */

/* Emits every kernel that runs: a shader NAME.comp per nest, or per group of nests with shared
 * loops. Refuses (E060) what the device's shaders cannot compute. */
void oi_emit_glsl(const oi_plan *u, oi_emitted *files);
/* The same; *features gets bits of oi_feature that they need of the device. */
void oi_glsl_put(const oi_plan *u, oi_emitted *files, uint32_t *features);

/* -- dispatch.c -- */

/* The port's elements are in the block of scalars. */
bool oi_glsl_is_value(const oi_plan *u, const oi_skernel *k, size_t port);
/* The block says from which element on its coordinates count: base_PORT. */
bool oi_glsl_has_base(const oi_plan *u, const oi_skernel *k, size_t port);
/* What invocations count; lengths that are known only at run time have their maximum. */
uint64_t oi_glsl_positions(const oi_glsl_dispatch *d);

/* -- lane.c: workgroups, and sums that their invocations make together -- */

/* Declares memory in which lanes exchange sums. */
void oi_glsl_put_shared(oi_out *o, const oi_plan *u, const oi_group *g, const oi_snest *nests,
                        size_t n);
void oi_glsl_put_lane(oi_out *o, const oi_group *g); /* defines `lane` */
/* Defines `id`, the position of the invocation; `all` is how many there are. */
void oi_glsl_put_position(oi_out *o, const oi_group *g, const char *all);

/* -- dialect.c: expressions -- */

extern const oi_dialect oi_dialect_glsl, oi_dialect_glsl_words; /* int64_t, or two words */

/* -- lang.c: elements of buffers -- */

const oi_lang *oi_glsl_lang(const oi_device *d);
bool oi_glsl_is_words(const oi_device *d, oi_dtype t); /* elements share 32-bit words */
/* Of an element in a buffer, and of one in a private row of the invocation. */
const char *oi_glsl_stored(const oi_device *d, oi_dtype t);
const char *oi_glsl_held(const oi_device *d, oi_dtype t);
/* The name, or with the number another one that GLSL does not reserve. */
const char *oi_glsl_free_name(oi_arena *a, const char *name, size_t number);

#endif
