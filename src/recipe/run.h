/* run.h: bodies in the simulator (run.c, isa/bodies.c). */
#ifndef OI_RECIPE_RUN_H
#define OI_RECIPE_RUN_H

#include "kernel/kernel.h"

/* What a body is handed, in the order of the plan's arguments. */
typedef union oi_recipe_value {
    const void *in;
    void *out;
    int64_t n;
    float real;
} oi_recipe_value;

typedef void oi_recipe_call_fn(const oi_recipe_value *a);

typedef struct oi_recipe_body {
    const char *name; /* NULL ends a list */
    oi_recipe_call_fn *call;
} oi_recipe_body;

/* As oi_kernel_choose, where a body does the call; its plan lives in `a`. */
bool oi_recipe_choose(oi_arena *a, const oi_kernel_query *q, oi_cpu cpu, oi_choice *c);

#endif
