/* check.c: all checks of a finished plan. */
#include "plan/check.h"

oi_plan_verdict oi_plan_check(const oi_plan *u)
{
    oi_plan_verdict v = {.why = NULL};
    for (uint32_t g = 0; g < u->graphs.n && !v.why; g++) {
        oi_plan_check_memory(u, g, &v);
        if (!v.why)
            oi_plan_check_races(u, g, &v);
        if (!v.why)
            oi_plan_check_undo(u, g, &v);
    }
    return v;
}
