/* targets.c: the list of targets. A new target is a folder beside this file and a line here. */
#include "emit/emit.h"

/* The folder NAME defines oi_target_NAME. */
#define TARGETS(X) \
    X(c)           \
    X(vulkan)      \
    X(cuda)        \
    X(hdl)         \
    X(null)

#define DECLARE(name) extern const oi_target oi_target_##name;
#define ADDRESS(name) &oi_target_##name,

TARGETS(DECLARE)

const oi_target *const oi_targets[] = {TARGETS(ADDRESS) NULL};

const oi_target *oi_target_of(const oi_device_info *device)
{
    const oi_target *const *t = oi_targets;
    while (*t && !(*t)->takes(device))
        t++;
    return *t;
}

void oi_emit_file(const oi_plan *u, oi_emitted *files, const char *name, oi_buf *text)
{
    const size_t n = text->n;
    *OI_PUSH(u->arena, files) = (oi_emitted_file){name, oi_buf_to_arena(text, u->arena), n};
}
