/* glsl.h: private to the compute shaders. Grouped by the file that implements it. */
#ifndef OI_EMIT_GLSL_H
#define OI_EMIT_GLSL_H

#include "emit/emit.h"

/* -- shader.c -- */

/* Emits every kernel that runs: a shader NAME.comp per nest, or per group of nests with shared
 * loops. Refuses (E060) what the device's shaders cannot compute. */
void oi_emit_glsl(oi_unit *u, oi_emitted *files);

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
