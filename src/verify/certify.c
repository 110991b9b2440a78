/* certify.c: builds a program with the target's own compiler and linker and lets the target measure
 * what they made of it. */
#include "plan/plan.h"
#include "verify/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct certifying {
    oi_plan *plan;
    const oi_device *device;
    const oi_target *target;
    const char *cc, *folder;
    oi_diag *diag;
    oi_plan_measured measured;
    oi_status status; /* of `measure` */
} certifying;

static void measure(void *ctx)
{
    certifying *w = ctx;
    w->status = w->target->measure(w->plan, w->folder, &w->measured, w->diag);
}

static oi_status certify(certifying *w)
{
    oi_tool tool;
    OI_TRY(oi_tool_find(w->device, w->cc, &tool, w->diag));
    if (!w->target->measure)
        return oi_diag_env(w->diag, oi_device_get(w->device)->name,
                           "programs of this device are not measured");
    OI_TRY(oi_tool_check(tool.measure, w->diag));
    tool.goal = tool.measure_goal;
    OI_TRY(oi_plan_emit(w->plan, w->folder, w->diag));
    OI_TRY(oi_tool_build(&tool, w->device, w->folder, tool.measure_flags, w->diag));
    if (oi_arena_guard(w->plan->arena, measure, w) != OI_OK)
        return oi_diag_env(w->diag, "certify", "out of memory");
    OI_TRY(w->status);
    return oi_plan_set_measured(w->plan, &w->measured, w->diag);
}

oi_status oi_plan_certify(oi_plan *p, const oi_device *device, const char *cc, oi_diag *diag)
{
    const char *tmp = getenv("TMPDIR");
    char folder[4096];
    certifying w = {.plan = p,
                    .device = device,
                    .target = oi_target_of(oi_device_get(device)),
                    .cc = cc,
                    .folder = folder,
                    .diag = diag};
    snprintf(folder, sizeof folder, "%s/openinfer-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return oi_diag_env(diag, folder, "cannot make a folder: %s", strerror(errno));
    const oi_status status = certify(&w);
    oi_folder_remove(folder);
    return status;
}
