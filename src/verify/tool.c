/* tool.c: runs the tools that a target names to build its programs on this machine. */
#include "verify/verify.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_there(const oi_tool_need *n)
{
    if (n->is_library) {
        void *library = dlopen(n->name, RTLD_LAZY | RTLD_LOCAL);
        if (library)
            dlclose(library);
        return library != NULL;
    }
    char *path = oi_machine_find(n->name);
    oi_free(path);
    return path != NULL;
}

/* Reports the first that is missing, and its package. */
oi_status oi_tool_check(const oi_tool_need *needs, oi_diag *d)
{
    for (const oi_tool_need *n = needs; n < needs + OI_NEEDS && n->name; n++) {
        if (is_there(n))
            continue;
        oi_status status = oi_diag_env(d, n->name, "is not installed");
        if (n->package)
            oi_diag_hint(d, "Debian has it in the package %s", n->package);
        return status;
    }
    return OI_OK;
}

static oi_status refuse(const oi_device *device, const char *why, oi_diag *d)
{
    if (why)
        oi_diag_error(d, (oi_place){.file = oi_device_get(device)->name}, "", "%s", why);
    return why ? OI_ERR_ENV : OI_OK;
}

/* The tools of a device that has programs. */
static bool describe(const oi_device *device, const char *compiler, oi_tool *out)
{
    const oi_device_info *info = oi_device_get(device);
    const oi_target *target = oi_target_of(info);
    if (!target || target->writes != OI_SYNTH_PROGRAM || !target->tool)
        return false;
    *out = target->tool(info, compiler);
    return true;
}

oi_status oi_tool_find(const oi_device *device, const char *compiler, oi_tool *out, oi_diag *d)
{
    if (!describe(device, compiler, out))
        return refuse(device, "programs for this device cannot be built and run here yet", d);
    OI_TRY(refuse(device, out->no_build, d));
    OI_TRY(oi_tool_check(out->build, d));
    OI_TRY(refuse(device, out->no_run, d));
    return oi_tool_check(out->run, d);
}

bool oi_machine_builds(const oi_device *d)
{
    oi_tool t;
    return describe(d, NULL, &t) && !t.no_build && oi_tool_check(t.build, NULL) == OI_OK &&
           (!t.trial[0] || oi_child_run(".", t.trial, "/dev/null") == 0);
}

bool oi_machine_runs(const oi_device *d)
{
    oi_tool t;
    return describe(d, NULL, &t) && !t.no_run && !t.lacks_instructions &&
           oi_tool_check(t.run, NULL) == OI_OK;
}

const char *oi_machine_counts(const oi_device *d)
{
    oi_tool t;
    return describe(d, NULL, &t) ? t.counts : NULL;
}

oi_status oi_tool_build(const oi_tool *t, const oi_device *device, const char *dir,
                        const char *flags, oi_diag *d)
{
    const oi_target *target = oi_target_of(oi_device_get(device));
    char compiler[512], own[1024], log[4096];
    snprintf(compiler, sizeof compiler, "%s=%s", t->compiler_variable, t->compiler);
    snprintf(own, sizeof own, "%s=%s", t->flags_variable, flags ? flags : "");
    if (snprintf(log, sizeof log, "%s/build.log", dir) >= (int)sizeof log)
        return oi_diag_env(d, dir, "the path is too long");
    /* silent: what is left in the log is what went wrong */
    const char *const plain[] = {"make", "-s", compiler, t->goal, NULL};
    const char *const flagged[] = {"env", own, "make", "-s", compiler, t->goal, NULL};
    if (oi_child_run(dir, flags ? flagged : plain, log) == 0)
        return OI_OK;
    char *text = NULL;
    size_t n = 0;
    (void)oi_file_read(log, 1u << 20, &text, &n, NULL);
    if (!text || !target->explain || !target->explain(oi_device_get(device), text, d))
        oi_diag_error(d, (oi_place){.file = dir}, "", "%s did not build the program:\n%.*s",
                      t->compiler, text ? oi_utf8_fit(text, 2000) : 0, text ? text : "");
    free(text);
    return OI_ERR_INPUT;
}
