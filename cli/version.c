/* version.c: `openinfer version`. OI_BUILD_* come from CMake. */
#include "cli.h"

static bool as_json;

static const cli_option options[] = {
    OPT_FLAG("json", 0, &as_json, "print JSON"),
    OPT_END,
};

static const char *compiler(void)
{
#if defined(__clang__)
    return __VERSION__;
#else
    return "GCC " __VERSION__;
#endif
}

static oi_status run(cli_args args)
{
    (void)args;
    if (as_json)
        printf(
            "{\"build\": \"%s\", \"compiler\": \"%s\", \"json\": \"%s\", \"sanitizers\": \"%s\", "
            "\"version\": \"%s\"}\n",
            OI_BUILD_TYPE, compiler(), OI_BUILD_JSON, OI_BUILD_SANITIZERS, oi_version());
    else
        printf("openinfer %s\n  compiler:   %s\n  build:      %s\n  sanitizers: %s\n  json:       "
               "%s\n",
               oi_version(), compiler(), OI_BUILD_TYPE,
               OI_BUILD_SANITIZERS[0] ? OI_BUILD_SANITIZERS : "none", OI_BUILD_JSON);
    return OI_OK;
}

static const char *const examples[] = {
    "openinfer version --json",
    "the same for a program to read",
    NULL,
};

const cli_command CMD_version = {
    .description =
        "Prints the version of OpenInfer, and how this binary was built: compiler, build "
        "type, sanitizers and the JSON library.",
    .examples = examples,
    .options = options,
    .run = run,
};
