/* dispatch.h: how the shaders of a kernel are dispatched: what is bound where, how many workgroups
 * there are, and what the host writes for one dispatch. Shaders (shader.c), emitted hosts and other
 * users of the shaders read the same list. */
#ifndef OI_EMIT_DISPATCH_H
#define OI_EMIT_DISPATCH_H

#include "emit/emit.h"

/* What the host tells a dispatch: a member of the block Scalars, in a storage buffer, std430. */
typedef enum oi_glsl_member_kind {
    OI_GLSL_SCALAR, /* scalar `id` of the kernel, in its compute type, widened to 32 bits; lengths
                       are int, and truths 0 or 1 */
    OI_GLSL_BASE,   /* int: the element of port `id` from which coordinates count */
    OI_GLSL_VALUE,  /* the elements of port `id`, which has no binding */
    OI_GLSL_ORDER   /* uint: dispatches of the step before this one */
} oi_glsl_member_kind;

typedef struct oi_glsl_member {
    oi_glsl_member_kind kind;
    uint32_t id;
    oi_dtype dtype; /* SCALAR: its compute type; VALUE: of the elements */
    uint32_t offset, bytes;
} oi_glsl_member;

/* A failure is one word, 0 before a step: the dispatch that failed first and its error. */
#define OI_GLSL_FAILURE_ORDERS 0xffffffu
#define OI_GLSL_FAILURE(order, error) \
    ((OI_GLSL_FAILURE_ORDERS - (uint32_t)(order)) << 8 | (uint32_t)(error))
#define OI_GLSL_FAILURE_ERROR(word) ((int)((word)&255u))

typedef struct oi_glsl_dispatch {
    const char *shader; /* of the file SHADER.comp */
    const oi_snest *nests;
    size_t n_nests;
    uint32_t n_open; /* outermost axes that the invocation index gives */
    oi_group of;     /* its workgroups */
    uint64_t groups; /* workgroups; lengths that are known only at run time count with their
                        maximum */
    /* By port: bound at binding `port`; of the others nothing is bound there. */
    const bool *is_bound, *is_written;
    uint32_t failure;      /* binding of the failure word, or OI_NO_ID */
    uint32_t scalars;      /* binding of the block, or OI_NO_ID */
    uint32_t n_bindings;   /* with those */
    bool is_guarded;       /* it does nothing after an earlier dispatch failed */
    bool full_subgroups;   /* the pipeline requires them */
    uint32_t scalar_bytes; /* of the block */
    const oi_glsl_member *members;
    uint32_t n_members;
} oi_glsl_dispatch;

/* The dispatches of a kernel, in order; *n is how many. */
const oi_glsl_dispatch *oi_glsl_dispatches(const oi_plan *u, const oi_skernel *k, size_t *n);

#endif
