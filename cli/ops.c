/* ops.c: `openinfer ops`: the op registry as a list, a page, JSON, or the reference in Markdown. */
#include "cli.h"

#include <string.h>

static bool want_json, want_markdown;
static const char *target;

static const cli_option options[] = {
    OPT_FLAG("json", 0, &want_json, "print JSON"),
    OPT_FLAG("markdown", 0, &want_markdown, "print the reference page, as in docs/ops.md"),
    OPT_TEXT("target", 0, "DEVICE", &target, "only what runs on this device file or profile"),
    OPT_END,
};

/* -- parts of a page ----------------------------------------------------------------------------
 */

/* A value that an attribute without default might have. */
static const char *sample(const oi_ops_attr *a)
{
    static const struct {
        const char *kind, *text;
    } samples[] = {{"axes", "[0]"},         {"axis", "0"},    {"dtype", "f16"},
                   {"int_list", "[2, 2]"},  {"int", "1"},     {"length", "1"},
                   {"float_list", "[1.0]"}, {"number", "1.0"}};
    if (*a->sample)
        return a->sample;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (strcmp(samples[i].kind, a->kind) == 0)
            return samples[i].text;
    return a->values[0] ? a->values[0] : strcmp(a->kind, "string") == 0 ? "\"ij->ji\"" : "...";
}

/* A call as one would write it: what may be left out is, what may repeat comes twice. */
static void put_call(FILE *f, size_t op)
{
    oi_ops_info info = {0};
    oi_ops_port port;
    oi_ops_attr attr;
    oi_ops_get(op, &info);
    fprintf(f, "op %s(", info.name);
    const char *comma = "";
    for (size_t i = 0; oi_ops_input(op, i, &port); i++) {
        if (port.variadic)
            fprintf(f, "%s%s_1, %s_2", comma, port.name, port.name);
        else if (!port.optional)
            fprintf(f, "%s%s", comma, port.name);
        comma = ", ";
    }
    for (size_t i = 0; oi_ops_attr_at(op, i, &attr); i++)
        if (attr.required) {
            fprintf(f, "%s%s=%s", comma, attr.name, sample(&attr));
            comma = ", ";
        }
    fputs(") >> ", f);
    for (size_t i = 0; oi_ops_output(op, i, &port); i++) {
        if (port.variadic)
            fprintf(f, "%s%s_1, %s_2", i ? ", " : "", port.name, port.name);
        else if (!port.optional)
            fprintf(f, "%s%s", i ? ", " : "", port.name);
    }
    fputs(";", f);
}

static bool uses_word(const char *set, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = set; (p = strstr(p, word)) != NULL; p += n)
        if ((p == set || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' '))
            return true;
    return false;
}

static bool op_uses_word(size_t op, const char *word)
{
    oi_ops_port port;
    for (size_t i = 0; oi_ops_input(op, i, &port); i++)
        if (uses_word(port.dtypes, word))
            return true;
    return false;
}

/* "same" and so on, for people. */
static void put_out_rule(FILE *f, const char *rule)
{
    if (strcmp(rule, "same") == 0)
        fputs("as the first input", f);
    else if (strcmp(rule, "acc") == 0)
        fputs("as the inputs, or what acc says", f);
    else if (strncmp(rule, "attr:", 5) == 0)
        fprintf(f, "what %s says", rule + 5);
    else if (strncmp(rule, "like:", 5) == 0)
        fprintf(f, "as %s", rule + 5);
    else if (strchr(rule, ' '))
        fprintf(f, "one of %s, the first unless declared otherwise", rule);
    else
        fputs(rule, f);
}

/* "required", "default 0", "left out: …" */
static void put_standard(FILE *f, const oi_ops_attr *a)
{
    if (a->required)
        fprintf(f, *a->input ? "required unless input %s is given" : "required", a->input);
    else if (*a->standard)
        fprintf(f, "default %s", a->standard);
    else
        fprintf(f, "left out: %s", a->absent);
}

static void put_values(FILE *f, const oi_ops_attr *a)
{
    for (size_t i = 0; a->values[i]; i++)
        fprintf(f, "%s\"%s\"", i ? ", " : "", a->values[i]);
}

static void put_onnx(FILE *f, const char *onnx)
{
    for (; *onnx; onnx++)
        fputs(*onnx == ' ' ? ", " : (char[]){*onnx, '\0'}, f);
}

/* -- the list and one op's page -- */

static void print_ports(size_t op)
{
    oi_ops_port port;
    printf("inputs:\n");
    for (size_t i = 0; oi_ops_input(op, i, &port); i++)
        printf("    %-12s %s%s%s\n", port.name, port.dtypes,
               port.optional ? " (may be left out)" : "", port.variadic ? " (may repeat)" : "");
    printf("outputs:\n");
    for (size_t i = 0; oi_ops_output(op, i, &port); i++) {
        printf("    %-12s ", port.name);
        put_out_rule(stdout, port.dtypes);
        printf("%s\n", port.optional ? " (may be left out)" : "");
    }
}

static void print_attrs(size_t op)
{
    oi_ops_attr attr;
    for (size_t i = 0; oi_ops_attr_at(op, i, &attr); i++) {
        printf("%s    %s: %s, ", i ? "" : "attributes:\n", attr.name, attr.kind);
        put_standard(stdout, &attr);
        if (*attr.alias)
            printf("; also called %s", attr.alias);
        printf("\n        %s\n", attr.doc);
        if (attr.values[0]) {
            printf("        One of ");
            put_values(stdout, &attr);
            printf(".\n");
        }
    }
}

/* The classes that the page's sets of element types use, and those behind them (N = F S U P). */
static void print_dtype_classes(size_t op)
{
    const char *heading = "dtypes:\n", *name, *members, *wider, *inside;
    for (size_t i = 0; oi_ops_dtype_class(i, &name, &members); i++) {
        bool used = op_uses_word(op, name);
        for (size_t k = i + 1; !used && oi_ops_dtype_class(k, &wider, &inside); k++)
            used = uses_word(inside, name) && (op_uses_word(op, wider) || op_uses_word(op, "all"));
        if (!used)
            continue;
        printf("%s    %s = %s\n", heading, name, members);
        heading = "";
    }
}

/* The statements of a composite, with the condition of each variant. */
static void put_body(FILE *f, size_t op, const char *indent)
{
    const char *when;
    const char *const *text;
    for (size_t v = 0; (text = oi_ops_body(op, v, &when)) != NULL; v++) {
        if (*when)
            fprintf(f, "%s%s %s:\n", indent, v ? "else when" : "when", when);
        for (; *text; text++)
            fprintf(f, "%s%s%s\n", indent, *when ? "    " : "", *text);
    }
}

static void print_page(size_t op)
{
    oi_ops_info info = {0};
    oi_ops_get(op, &info);
    printf("%s: %s\n\n    ", info.name, info.doc);
    put_call(stdout, op);
    printf("\n\nclass: %s, %s\n", info.cls, info.cls_doc);
    for (size_t i = 0; info.aliases[i]; i++)
        printf("%s%s%s", i ? ", " : "also called: ", info.aliases[i],
               info.aliases[i + 1] ? "" : "\n");
    print_ports(op);
    printf("shape: %s\n", info.shape_doc);
    print_attrs(op);
    for (size_t i = 0; oi_ops_flag(op, i); i++)
        printf("%s%s", i ? ", " : "flags: ", oi_ops_flag(op, i));
    printf("%s", oi_ops_flag(op, 0) ? "\n" : "");
    if (*info.onnx) {
        printf("ONNX: ");
        put_onnx(stdout, info.onnx);
        printf("\n");
    }
    for (size_t i = 0; info.notes[i]; i++)
        printf("%s    %s\n", i ? "" : "notes:\n", info.notes[i]);
    const char *when;
    if (oi_ops_body(op, 0, &when)) {
        printf("body:\n");
        put_body(stdout, op, "    ");
    }
    print_dtype_classes(op);
}

static oi_device *device; /* what --target names; NULL: the language itself */

static bool takes(void *ctx, size_t op, oi_dtype t)
{
    (void)ctx;
    return device ? oi_synth_takes(device, op, t) : oi_ops_takes(op, t);
}

/* Whether the op runs with some element type. */
static bool runs(size_t op)
{
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (takes(NULL, op, (oi_dtype)t))
            return true;
    return false;
}

/* " [F S], not f64": what the row says and the device does not take. */
static void put_types(size_t op, const char *dtypes)
{
    printf(" [%s]", dtypes);
    const char *comma = ", not ";
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (oi_ops_takes(op, (oi_dtype)t) && !takes(NULL, op, (oi_dtype)t)) {
            printf("%s%s", comma, oi_dtype_name((oi_dtype)t));
            comma = " ";
        }
}

static void print_class(const char *cls, int width, bool *any)
{
    oi_ops_info info;
    bool first = true;
    for (size_t i = 0; oi_ops_get(i, &info); i++) {
        if (strcmp(info.cls, cls) != 0 || !runs(i))
            continue;
        if (first)
            printf("%s%s: %s\n", *any ? "\n" : "", info.cls, info.cls_doc);
        printf("  %-*s  %s", width, info.name, info.doc);
        if (device)
            put_types(i, info.dtypes);
        printf("\n");
        first = false;
        *any = true;
    }
}

static bool print_list(void)
{
    oi_ops_info info;
    int width = 0;
    for (size_t i = 0; oi_ops_get(i, &info); i++)
        if ((int)strlen(info.name) > width)
            width = (int)strlen(info.name);
    bool any = false;
    for (size_t c = 0; oi_ops_class(c); c++)
        print_class(oi_ops_class(c), width, &any);
    return any;
}

/* -- the reference page -------------------------------------------------------------------------
 */

/* '|' ends a table cell, '<', '*' and '_' mean markup: only the first can occur, in texts. */
static void put_cell(FILE *f, const char *text)
{
    for (; *text; text++)
        fprintf(f, *text == '|' ? "\\%c" : "%c", *text);
}

static void markdown_attrs(size_t op)
{
    oi_ops_attr attr;
    for (size_t i = 0; oi_ops_attr_at(op, i, &attr); i++) {
        if (i == 0)
            printf("\n| attribute | kind | when left out | meaning |\n|---|---|---|---|\n");
        printf("| `%s`", attr.name);
        if (*attr.alias)
            printf(" (`%s`)", attr.alias);
        printf(" | %s | ", attr.kind);
        if (*attr.standard)
            printf("`%s`", attr.standard);
        else if (attr.required)
            put_standard(stdout, &attr);
        else
            put_cell(stdout, attr.absent);
        printf(" | ");
        put_cell(stdout, attr.doc);
        if (attr.values[0]) {
            printf(" One of ");
            put_values(stdout, &attr);
            printf(".");
        }
        printf(" |\n");
    }
}

static void markdown_op(size_t op)
{
    oi_ops_info info = {0};
    oi_ops_port port;
    oi_ops_get(op, &info);
    printf("\n### %s\n\n%s\n\n```\n", info.name, info.doc);
    put_call(stdout, op);
    printf("\n```\n\n");
    for (size_t i = 0; oi_ops_input(op, i, &port); i++)
        printf("%s`%s` %s%s", i ? "; " : "Takes ", port.name, port.dtypes,
               port.optional ? " (may be left out)" : "");
    for (size_t i = 0; oi_ops_output(op, i, &port); i++) {
        printf("%s`%s` ", i ? "; " : ". Gives ", port.name);
        put_out_rule(stdout, port.dtypes);
    }
    printf(". Shape: %s.\n", info.shape_doc);
    markdown_attrs(op);
    for (size_t i = 0; info.notes[i]; i++)
        printf("%s%s", i ? " " : "\n", info.notes[i]);
    printf("%s", info.notes[0] ? "\n" : "");
    const char *when;
    if (oi_ops_body(op, 0, &when)) {
        printf("\n```\n");
        put_body(stdout, op, "");
        printf("```\n");
    }
    if (*info.onnx) {
        printf("\nONNX: ");
        put_onnx(stdout, info.onnx);
        printf(".\n");
    }
}

static void print_markdown(void)
{
    oi_ops_info info;
    printf(
        "<!-- generated from ops/ops.json by openinfer ops --markdown, do not edit -->\n\n"
        "# Ops\n\n"
        "All inputs of an op share one element type unless the op says otherwise (E050); a type\n"
        "outside the list is E060. Shapes that do not fit are E051, wrong attributes E052 to "
        "E054, a wrong\nnumber of inputs E056. `openinfer ops NAME` prints one entry.\n\n"
        "Classes of element types:\n\n");
    const char *name, *members;
    for (size_t i = 0; oi_ops_dtype_class(i, &name, &members); i++)
        printf("- %s = %s\n", name, members);
    for (size_t c = 0; oi_ops_class(c); c++) {
        bool any = false;
        for (size_t i = 0; oi_ops_get(i, &info); i++) {
            if (strcmp(info.cls, oi_ops_class(c)) != 0)
                continue;
            if (!any)
                printf("\n## %s: %s\n", info.cls, info.cls_doc);
            any = true;
            markdown_op(i);
        }
    }
}

/* -- the command --------------------------------------------------------------------------------
 */

static oi_status unknown(const char *name)
{
    const char *near = oi_ops_nearest(name);
    if (near)
        return cli_fail(OI_ERR_INPUT, "unknown op '%s': did you mean '%s'?", name, near);
    return cli_fail(OI_ERR_INPUT, "unknown op '%s'; openinfer ops lists them", name);
}

static oi_status print_json(size_t op)
{
    oi_diag *diag = oi_diag_new();
    char *text = NULL;
    oi_status status = oi_ops_to_json(op, takes, NULL, &text, diag);
    if (status == OI_OK)
        status = cli_write(NULL, text);
    oi_free(text);
    return cli_done(status, diag);
}

static oi_status load_target(void)
{
    oi_diag *diag = oi_diag_new();
    return cli_done(oi_device_load(target, false, &device, diag), diag);
}

static void print_text(size_t op)
{
    bool any = op == OI_OPS_NONE ? print_list() : runs(op);
    if (op != OI_OPS_NONE && any)
        print_page(op);
    if (!device)
        return;
    const char *api = oi_device_api_name(oi_device_get(device)->api);
    const oi_synth_kind kind = oi_synth_writes(device);
    if (kind == OI_SYNTH_NOTHING)
        cli_note("'%s' is a target for %s: this version writes no code for it", target, api);
    else if (!any)
        cli_note("code for '%s' does not compute this op", target);
}

static oi_status print(size_t op)
{
    if (want_json)
        return print_json(op);
    if (!want_markdown)
        print_text(op);
    else if (op != OI_OPS_NONE)
        markdown_op(op);
    else
        print_markdown();
    return OI_OK;
}

static oi_status run(cli_args args)
{
    size_t op = args.n ? oi_ops_find(args.at[0]) : OI_OPS_NONE;
    if (want_markdown && (want_json || target))
        return cli_usage_error("--markdown goes neither with --json nor with --target");
    if (args.n && op == OI_OPS_NONE)
        return unknown(args.at[0]);
    oi_status status = target ? load_target() : OI_OK;
    if (status == OI_OK)
        status = print(op);
    oi_device_free(device);
    device = NULL;
    return status;
}

static const char *const examples[] = {
    "openinfer ops",
    "every op with one line about it",
    "openinfer ops relu",
    "what one op takes, gives and means",
    "openinfer ops --json",
    "the registry for a program to read",
    "openinfer ops --target cpu_scalar",
    "what runs there, and with which element types",
    NULL,
};

const cli_command CMD_ops = {
    .description =
        "Prints the op registry: every op, grouped by how its meaning is given, or with a "
        "NAME everything about one op.\n\n"
        "With --target it prints only the ops, and of each the element types, that code for that "
        "device computes. C is made from the registry itself and takes everything, but without a "
        "C library no functions of f64. Shaders take what is a loop nest and what the device's "
        "features allow; 64-bit integers are computed in two words where these lack them. For any "
        "other language this version writes no code, and nothing is listed.",
    .examples = examples,
    .options = options,
    .run = run,
};
