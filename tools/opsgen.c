/* opsgen.c: turns ops/ops.json into the C tables of the op registry, at build time.
 *
 *     opsgen ops.json OUTDIR      writes OUTDIR/ops_gen.h and OUTDIR/ops_gen.c
 *
 * Strict on purpose: an unknown key, a word outside the vocabulary, a name used twice or a default
 * of the wrong kind stops the build and names the row. All mistakes are reported, then nothing is
 * written. The JSON's order is the table's order. */
#include "opsgen.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAX_NAMES 1024 /* ops with their aliases; the catalog has about 180 */

generator gen = {.where_op = "", .where_part = ""};

static struct name {
    const char *name;
    size_t op;
} names[MAX_NAMES];
static size_t n_names;

/* -- inputs and outputs ----------------------------------------------------------------------- */

/* "x", "mask?" (optional), "xs*" (any number), "xs+" (at least one) */
struct port {
    char name[64];
    bool optional, variadic;
};

static const char *port_text(json *p)
{
    if (json_object_is_type(p, json_type_string))
        return json_object_get_string(p);
    if (json_object_is_type(p, json_type_object))
        return gen_get_string(p, "name", true);
    gen_complain("an input or output is a string or an object");
    return "";
}

static struct port read_port(json *p)
{
    struct port port = {0};
    snprintf(port.name, sizeof port.name, "%s", port_text(p));
    size_t n = strlen(port.name);
    char mark = n ? port.name[n - 1] : '\0';
    port.optional = mark == '?' || mark == '*';
    port.variadic = mark == '*' || mark == '+';
    if (port.optional || port.variadic)
        port.name[n - 1] = '\0';
    if (!gen_is_name(port.name))
        gen_complain("'%s' is no name for an input or output", port.name);
    return port;
}

int gen_find_input(json *inputs, const char *name)
{
    for (size_t i = 0; i < json_object_array_length(inputs); i++)
        if (strcmp(read_port(json_object_array_get_idx(inputs, i)).name, name) == 0)
            return (int)i;
    gen_complain("there is no input '%s'", name);
    return -1;
}

struct arity {
    unsigned n, min, max;
};

/* Optional ones are omitted from the end, and only the last may repeat. */
static void count_port(struct arity *a, struct port port, bool is_last)
{
    if (port.variadic && !is_last)
        gen_complain("'%s': only the last may repeat", port.name);
    if (!port.optional && a->min < a->n)
        gen_complain("'%s': a required one cannot follow an optional one", port.name);
    a->n++;
    a->min += !port.optional;
    if (port.variadic)
        a->max = UINT32_MAX;
    else
        a->max++;
}

/* What an input describes: another one by its name, or "out". */
static int quant_of(json *inputs, const char *name)
{
    if (!name || !*name)
        return -1;
    return strcmp(name, "out") == 0 ? INT8_MAX
                                    : gen_find_input(inputs, name); /* OI_QUANT_OF_OUTPUT */
}

static struct arity put_inputs(FILE *f, json *inputs, const char *dtypes)
{
    static const char *const known[] = {"name", "dtypes", "quant", NULL};
    struct arity arity = {0};
    size_t n = json_object_array_length(inputs);
    if (n)
        fprintf(f, "static const oi_op_input inputs_%s[] = {\n", gen.where_op);
    for (size_t i = 0; i < n; i++) {
        json *in = json_object_array_get_idx(inputs, i);
        bool own = json_object_is_type(in, json_type_object);
        if (own)
            gen_check_keys(in, known);
        struct port port = read_port(in);
        count_port(&arity, port, i + 1 == n);
        const char *text = own ? gen_get_string(in, "dtypes", true) : dtypes;
        fprintf(f,
                "    {.name = \"%s\", .dtypes_text = \"%s\", .dtypes = 0x%08" PRIx32
                "u, .optional = %d, .variadic = %d, .shares_dtype = %d, .quant_of = %d},\n",
                port.name, text, gen_dtype_set(text, own, NULL), port.optional, port.variadic, !own,
                quant_of(inputs, own ? gen_get_string(in, "quant", false) : NULL));
    }
    fputs(n ? "};\n" : "", f);
    return arity;
}

static void put_out_rule(FILE *f, const char *rule, json *inputs, json *attrs)
{
    if (strcmp(rule, "same") == 0) {
        fputs(".out_rule = OI_OUT_LIKE, .out_input = 0", f);
        if (json_object_array_length(inputs) == 0)
            gen_complain("out \"same\" needs an input");
    } else if (strncmp(rule, "like:", 5) == 0) {
        fprintf(f, ".out_rule = OI_OUT_LIKE, .out_input = %d", gen_find_input(inputs, rule + 5));
    } else if (strncmp(rule, "attr:", 5) == 0) {
        fprintf(f, ".out_rule = OI_OUT_ATTR, .out_attr = %d",
                gen_find_attr(attrs, rule + 5, "dtype"));
    } else if (strcmp(rule, "acc") == 0) {
        fprintf(f, ".out_rule = OI_OUT_ACC, .out_attr = %d",
                gen_find_attr(attrs, "acc", "dtype_list"));
    } else {
        oi_dtype first;
        char text[16];
        uint32_t set = gen_dtype_set(rule, true, &first);
        fprintf(f, ".out_rule = OI_OUT_LIST, .out_dtypes = 0x%08" PRIx32 "u, .out_default = %s",
                set, gen_dtype_constant(first, text));
    }
}

/* Without "outputs" there is one, out. An output's own "out" overrides the row's. */
static struct arity put_outputs(FILE *f, json *row, json *inputs, json *attrs)
{
    static const char *const known[] = {"name", "out", NULL};
    struct arity arity = {0};
    json *outputs = gen_get(row, "outputs", json_type_array, false);
    const char *rule = gen_get_string(row, "out", true);
    size_t n = outputs ? json_object_array_length(outputs) : 1;
    if (n == 0)
        gen_complain("\"outputs\" is empty");
    fprintf(f, "static const oi_op_output outputs_%s[] = {\n", gen.where_op);
    for (size_t i = 0; i < n; i++) {
        json *out = outputs ? json_object_array_get_idx(outputs, i) : NULL;
        bool own = out && json_object_is_type(out, json_type_object);
        if (own)
            gen_check_keys(out, known);
        struct port port = out ? read_port(out) : (struct port){.name = "out"};
        count_port(&arity, port, i + 1 == n);
        const char *own_rule = own ? gen_get_string(out, "out", false) : "";
        const char *text = *own_rule ? own_rule : rule;
        fprintf(f, "    {.name = \"%s\", .out_text = \"%s\", .optional = %d, .variadic = %d, ",
                port.name, text, port.optional, port.variadic);
        put_out_rule(f, text, inputs, attrs);
        fputs("},\n", f);
    }
    fputs("};\n", f);
    return arity;
}

/* -- rows ------------------------------------------------------------------------------------- */

static void add_name(const char *name, size_t op)
{
    if (!gen_is_name(name))
        gen_complain("'%s' is not an identifier", name);
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i].name, name) == 0)
            gen_complain("the name '%s' is already taken", name);
    if (n_names == MAX_NAMES)
        gen_complain("more than %d names", MAX_NAMES);
    else
        names[n_names++] = (struct name){name, op};
}

static bool has_flag(json *flags, const char *flag)
{
    for (size_t i = 0; flags && i < json_object_array_length(flags); i++)
        if (strcmp(json_object_get_string(json_object_array_get_idx(flags, i)), flag) == 0)
            return true;
    return false;
}

static void put_flags(FILE *f, json *row)
{
    json *flags = gen_get(row, "flags", json_type_array, true);
    fputs(", .flags = 0", f);
    for (size_t i = 0; flags && i < json_object_array_length(flags); i++) {
        const char *flag = json_object_get_string(json_object_array_get_idx(flags, i));
        if (!gen_has_word(gen.vocab.flags, flag))
            gen_complain("unknown flag '%s'", flag);
        fputs(" | OI_OP_FLAG_", f);
        gen_put_upper(f, flag);
    }
    bool acc = strcmp(gen_get_string(row, "out", true), "acc") == 0;
    if (has_flag(flags, "acc") != acc)
        gen_complain("flag \"acc\" and out \"acc\" go together");
    if (strcmp(gen_get_string(row, "shape", true), "broadcast") == 0 &&
        !has_flag(flags, "broadcast"))
        gen_complain("shape \"broadcast\" wants the flag \"broadcast\"");
}

static void put_text_list(FILE *f, const char *member, json *list)
{
    fprintf(f, ", .%s = (const char *const[]){", member);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json *s = json_object_array_get_idx(list, i);
        if (!json_object_is_type(s, json_type_string))
            gen_complain("\"%s\" holds strings", member);
        gen_put_string(f, json_object_get_string(s));
        fputs(", ", f);
    }
    fputs("NULL}", f);
}

static void put_word_of(FILE *f, json *row, const char *key, json *words, const char *prefix)
{
    const char *word = gen_get_string(row, key, true);
    if (!gen_has_word(words, word))
        gen_complain("unknown %s '%s'", key, word);
    fputs(prefix, f);
    gen_put_upper(f, word);
}

static void put_arity(FILE *f, const char *what, struct arity a, bool has_array)
{
    if (has_array)
        fprintf(f, ", .%ss = %ss_%s", what, what, gen.where_op);
    fprintf(f, ", .n_%ss = %u, .min_%ss = %u, .max_%ss = %uu", what, a.n, what, a.min, what, a.max);
}

/* Maps and reductions run over the loops their class names; others say which. */
static void put_loops(FILE *f, json *row)
{
    const char *cls = gen_get_string(row, "class", true),
               *loops = gen_get_string(row, "loops", false);
    if (!*loops)
        loops = strcmp(cls, "map") == 0      ? "elementwise"
                : strcmp(cls, "reduce") == 0 ? "reduce"
                                             : "none";
    if (!gen_has_word(gen.vocab.loops, loops))
        gen_complain("unknown loops '%s'", loops);
    if ((strcmp(cls, "contract") == 0 || strcmp(cls, "move") == 0) && strcmp(loops, "none") == 0)
        gen_complain("class \"%s\" wants \"loops\"", cls);
    fputs(", .loops = OI_LOOPS_", f);
    gen_put_upper(f, loops);
}

/* "serial", "any", "lanes 16": in which order a reduction combines. */
static void put_order(FILE *f, json *row)
{
    const char *order = gen_get_string(row, "order", false);
    char word[16] = "serial", end;
    unsigned lanes = 0;
    if (!*order)
        return;
    const int n = sscanf(order, "%15s %u%c", word, &lanes, &end);
    const bool has_lanes = strcmp(word, "lanes") == 0;
    if (strcmp(gen_get_string(row, "class", true), "reduce") != 0)
        gen_complain("\"order\" is for class \"reduce\"");
    if (!gen_has_word(gen.vocab.orders, word) || n != 1 + has_lanes)
        gen_complain("unknown order '%s'", order);
    if (has_lanes && (lanes < 2 || lanes > 64 || (lanes & (lanes - 1)) != 0))
        gen_complain("order '%s': lanes are 2, 4, 8, 16, 32 or 64", order);
    fputs(", .order = OI_REDUCE_", f);
    gen_put_upper(f, word);
    fprintf(f, ", .lanes = %u", lanes);
}

/* How far a backend may be from the definition; the class says it where the row does not. */
static void put_tolerance(FILE *f, json *row)
{
    const char *cls = gen_get_string(row, "class", true),
               *word = gen_get_string(row, "tolerance", false);
    if (!*word)
        word = strcmp(cls, "move") == 0 ? "exact" : strcmp(cls, "map") == 0 ? "element" : "reduced";
    if (!gen_has_word(gen.vocab.tolerances, word))
        gen_complain("unknown tolerance '%s'", word);
    fputs(", .tolerance = OI_TOLERANCE_", f);
    gen_put_upper(f, word);
}

/* A file of src/kernel/custom: what does an op of class custom; a composite may have one that is
 * faster than its body. */
static const char *kernel_of(json *row)
{
    const char *cls = gen_get_string(row, "class", true),
               *kernel = gen_get_string(row, "kernel", false);
    const bool is_custom = strcmp(cls, "custom") == 0;
    if (is_custom && !*kernel)
        gen_complain("class \"custom\" wants \"kernel\"");
    if (*kernel && !is_custom && strcmp(cls, "composite") != 0)
        gen_complain("class \"%s\" has no \"kernel\": it is printed from the row", cls);
    if (*kernel && !gen_is_name(kernel))
        gen_complain("\"kernel\": '%s' is not an identifier", kernel);
    return kernel;
}

/* The row's arrays go to `arrays`, the row itself to `table`. */
static void put_op(FILE *arrays, FILE *table, json *ops, json *row, size_t id)
{
    static const char *const known[] = {"name",   "aliases", "class",    "inputs",    "outputs",
                                        "dtypes", "out",     "shape",    "attrs",     "flags",
                                        "onnx",   "doc",     "notes",    "loops",     "body",
                                        "kernel", "order",   "known_as", "tolerance", NULL};
    gen_check_row_keys(row, known);
    add_name(gen.where_op, id);
    json *aliases = gen_get(row, "aliases", json_type_array, false);
    for (size_t i = 0; aliases && i < json_object_array_length(aliases); i++)
        add_name(json_object_get_string(json_object_array_get_idx(aliases, i)), id);
    json *inputs = gen_get(row, "inputs", json_type_array, true);
    json *attrs = gen_get(row, "attrs", json_type_object, false);
    if (!inputs)
        return;
    const char *dtypes = gen_get_string(row, "dtypes", true);
    struct arity ins = put_inputs(arrays, inputs, dtypes);
    unsigned n_attrs = gen_put_attrs(arrays, attrs, inputs);
    struct arity outs = put_outputs(arrays, row, inputs, attrs);
    unsigned n_meanings = gen_put_meanings(arrays, row);
    unsigned n_bodies = gen_put_bodies(arrays, row, ops, id);

    fprintf(table, "    {.name = \"%s\", .id = OI_OP_", gen.where_op);
    gen_put_upper(table, gen.where_op);
    put_word_of(table, row, "class", gen.vocab.classes, ", .cls = OI_OP_CLASS_");
    put_word_of(table, row, "shape", gen.vocab.shapes, ", .shape_rule = OI_SHAPE_");
    put_loops(table, row);
    put_arity(table, "input", ins, ins.n > 0);
    put_arity(table, "output", outs, true);
    fprintf(table, ", .dtypes_text = \"%s\", .dtypes = 0x%08" PRIx32 "u", dtypes,
            gen_dtype_set(dtypes, false, NULL));
    put_order(table, row);
    put_tolerance(table, row);
    put_flags(table, row);
    kernel_of(row);
    if (n_attrs)
        fprintf(table, ", .attrs = attrs_%s, .n_attrs = %u", gen.where_op, n_attrs);
    put_text_list(table, "aliases", aliases);
    put_text_list(table, "notes", gen_get(row, "notes", json_type_array, false));
    fputs(", .doc = ", table);
    gen_put_string(table, gen_get_string(row, "doc", true));
    fputs(", .onnx = ", table);
    gen_put_string(table, gen_get_string(row, "onnx", false));
    fputs(", .known_as = ", table);
    gen_put_string(table, gen_get_string(row, "known_as", false));
    if (n_meanings)
        fprintf(table, ", .meanings = meanings_%s, .n_meanings = %u", gen.where_op, n_meanings);
    if (n_bodies)
        fprintf(table, ", .bodies = bodies_%s, .n_bodies = %u", gen.where_op, n_bodies);
    fputs("},\n", table);
}

static void put_ops(FILE *f, json *ops)
{
    char *table_text = NULL;
    size_t table_size = 0;
    FILE *table = open_memstream(&table_text, &table_size);
    if (!table) {
        gen_complain("out of memory");
        return;
    }
    for (size_t i = 0; i < json_object_array_length(ops); i++) {
        json *row = json_object_array_get_idx(ops, i);
        char number[32];
        snprintf(number, sizeof number, "number %zu", i);
        gen.where_op = number;
        if (!json_object_is_type(row, json_type_object)) {
            gen_complain("a row is an object");
        } else {
            const char *name = gen_get_string(row, "name", true);
            gen.where_op = *name ? name : number;
            put_op(f, table, ops, row, i);
        }
        gen.where_op = "";
    }
    fclose(table);
    fprintf(f, "\nconst oi_op oi_op_table[OI_OP_COUNT] = {\n%s};\n", table_text ? table_text : "");
    free(table_text);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->name, ((const struct name *)b)->name);
}

static void put_keys(FILE *f)
{
    qsort(names, n_names, sizeof names[0], by_name);
    fputs("\nconst oi_op_key oi_op_keys[] = {\n", f);
    for (size_t i = 0; i < n_names; i++)
        fprintf(f, "    {\"%s\", %zu},\n", names[i].name, names[i].op);
    fprintf(f, "};\nconst size_t oi_op_key_count = %zu;\n", n_names);
}

/* -- vocabulary ------------------------------------------------------------------------------- */

static void put_enum(FILE *h, const char *type, const char *prefix, json *words)
{
    fprintf(h, "\ntypedef enum %s {\n", type);
    json_object_object_foreach(words, key, doc)
    {
        (void)doc;
        fprintf(h, "    %s", prefix);
        gen_put_upper(h, key);
        fputs(",\n", h);
    }
    fprintf(h, "    %sCOUNT\n} %s;\n", prefix, type);
}

static void put_words(FILE *f, const char *array, json *words)
{
    fprintf(f, "\nconst oi_op_word %s[] = {\n", array);
    json_object_object_foreach(words, key, doc)
    {
        if (!gen_is_name(key) || !json_object_is_type(doc, json_type_string))
            gen_complain("vocabulary: '%s' wants a name and one line of text", key);
        fprintf(f, "    {\"%s\", ", key);
        gen_put_string(f, json_object_get_string(doc));
        fputs("},\n", f);
    }
    fputs(strcmp(array, "oi_op_flag_words") == 0 ? "    {NULL, NULL},\n};\n" : "};\n", f);
}

/* Of each float type what a result may differ by, absolutely and relatively. */
static void put_tolerances(FILE *f, json *numbers)
{
    fputs("\nconst double oi_dtype_tolerance[OI_DTYPE_COUNT] = {\n", f);
    json_object_object_foreach(numbers, name, number)
    {
        oi_dtype t;
        char text[16];
        const double v = json_object_get_double(number);
        gen_dtype_set(name, true, &t);
        if (!(v > 0 && v < 1))
            gen_complain("tolerances: '%s' is a number between 0 and 1", name);
        fprintf(f, "    [%s] = %.17g,\n", gen_dtype_constant(t, text), v);
    }
    fputs("};\n", f);
}

static void put_dtype_words(FILE *f)
{
    fputs("\nconst oi_dtype_word oi_dtype_words[] = {\n", f);
    json_object_object_foreach(gen.vocab.dtypes, key, set)
    {
        if (!json_object_is_type(set, json_type_string))
            gen_complain("vocabulary: dtypes '%s' wants a list of names in a string", key);
        else
            fprintf(f, "    {\"%s\", \"%s\", 0x%08" PRIx32 "u},\n", key,
                    json_object_get_string(set),
                    gen_dtype_set(json_object_get_string(set), false, NULL));
    }
    fputs("    {NULL, NULL, 0},\n};\n", f);
}

static bool read_vocabulary(json *root)
{
    static const char *const known[] = {"class", "dtypes", "kinds", "shape",     "loops",
                                        "flags", "parts",  "order", "tolerance", NULL};
    json *v = gen_get(root, "vocabulary", json_type_object, true);
    if (!v)
        return false;
    gen_check_keys(v, known);
    gen.vocab.classes = gen_get(v, "class", json_type_object, true);
    gen.vocab.dtypes = gen_get(v, "dtypes", json_type_object, true);
    gen.vocab.kinds = gen_get(v, "kinds", json_type_object, true);
    gen.vocab.shapes = gen_get(v, "shape", json_type_object, true);
    gen.vocab.loops = gen_get(v, "loops", json_type_object, true);
    gen.vocab.orders = gen_get(v, "order", json_type_object, true);
    gen.vocab.tolerances = gen_get(v, "tolerance", json_type_object, true);
    gen.vocab.flags = gen_get(v, "flags", json_type_object, true);
    gen.vocab.parts = gen_get(v, "parts", json_type_object, true);
    if (!gen.vocab.classes || !gen.vocab.dtypes || !gen.vocab.kinds || !gen.vocab.shapes ||
        !gen.vocab.loops || !gen.vocab.flags || !gen.vocab.parts || !gen.vocab.orders ||
        !gen.vocab.tolerances)
        return false;
    json_object_object_foreach(gen.vocab.kinds, kind, doc)
    {
        (void)doc;
        gen_is_kind(kind);
    }
    return true;
}

/* -- the two files ---------------------------------------------------------------------------- */

static const char banner[] = "/* generated from ops/ops.json by tools/opsgen.c, do not edit */\n";

/* X(op id, file of src/kernel/custom) for every op that names one. */
static void put_kernels(FILE *h, json *ops)
{
    fputs("\n#define OI_OP_KERNELS(X)", h);
    for (size_t i = 0; i < json_object_array_length(ops); i++) {
        json *row = json_object_array_get_idx(ops, i);
        const char *kernel = kernel_of(row);
        if (!*kernel)
            continue;
        fputs(" \\\n    X(OI_OP_", h);
        gen_put_upper(h, gen_get_string(row, "name", true));
        fprintf(h, ", %s)", kernel);
    }
    fputs("\n", h);
}

static void put_header(FILE *h, json *ops)
{
    fprintf(h, "%s#ifndef OI_OPS_GEN_H\n#define OI_OPS_GEN_H\n\ntypedef enum oi_op_id {\n", banner);
    for (size_t i = 0; i < json_object_array_length(ops); i++) {
        fputs("    OI_OP_", h);
        gen_put_upper(h, gen_get_string(json_object_array_get_idx(ops, i), "name", true));
        fputs(",\n", h);
    }
    fputs("    OI_OP_COUNT\n} oi_op_id;\n", h);
    put_enum(h, "oi_op_class", "OI_OP_CLASS_", gen.vocab.classes);
    put_enum(h, "oi_attr_kind", "OI_ATTR_", gen.vocab.kinds);
    put_enum(h, "oi_shape_rule", "OI_SHAPE_", gen.vocab.shapes);
    put_enum(h, "oi_loops", "OI_LOOPS_", gen.vocab.loops);
    put_enum(h, "oi_reduce_order", "OI_REDUCE_", gen.vocab.orders);
    put_enum(h, "oi_tolerance", "OI_TOLERANCE_", gen.vocab.tolerances);
    put_enum(h, "oi_op_part", "OI_PART_", gen.vocab.parts);
    fputs("\n#define OI_ATTR_KIND_COUNT OI_ATTR_COUNT\n\n", h);
    unsigned bit = 0;
    json_object_object_foreach(gen.vocab.flags, key, doc)
    {
        (void)doc;
        fputs("#define OI_OP_FLAG_", h);
        gen_put_upper(h, key);
        fprintf(h, " (1u << %u)\n", bit++);
    }
    if (bit > 32)
        gen_complain("vocabulary: more than 32 flags");
    put_kernels(h, ops);
    fputs("\n#endif\n", h);
}

static void put_source(FILE *c, json *ops, json *tolerances)
{
    fprintf(c, "%s#include \"base/ops.h\"\n\n#include <math.h>\n\n", banner);
    put_ops(c, ops);
    put_keys(c);
    put_words(c, "oi_op_class_words", gen.vocab.classes);
    put_words(c, "oi_attr_kind_words", gen.vocab.kinds);
    put_words(c, "oi_shape_rule_words", gen.vocab.shapes);
    put_words(c, "oi_op_flag_words", gen.vocab.flags);
    put_dtype_words(c);
    put_tolerances(c, tolerances);
}

static bool write_file(const char *dir, const char *name, const char *text)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return false;
    FILE *f = fopen(path, "wb");
    bool ok = f && fputs(text, f) != EOF;
    if (f)
        ok = fclose(f) == 0 && ok;
    if (!ok)
        fprintf(stderr, "opsgen: cannot write %s: %s\n", path, strerror(errno));
    return ok;
}

static bool generate(json *root, const char *dir)
{
    static const char *const known[] = {"$doc", "vocabulary", "tolerances", "attrs", "ops", NULL};
    gen_check_keys(root, known);
    json *ops = gen_get(root, "ops", json_type_array, true),
         *tolerances = gen_get(root, "tolerances", json_type_object, true);
    gen.shared_attrs = gen_get(root, "attrs", json_type_object, true);
    if (!ops || !tolerances || !gen.shared_attrs || !read_vocabulary(root))
        return false;
    char *header = NULL, *source = NULL;
    size_t n_header = 0, n_source = 0;
    FILE *c = open_memstream(&source, &n_source), *h = open_memstream(&header, &n_header);
    if (c)
        put_source(c, ops, tolerances);
    if (h && gen.n_errors == 0) /* the rows are known to be sound only now */
        put_header(h, ops);
    bool ok = c && h;
    if (c)
        ok = fclose(c) == 0 && ok;
    if (h)
        ok = fclose(h) == 0 && ok;
    ok = ok && gen.n_errors == 0 && write_file(dir, "ops_gen.h", header) &&
         write_file(dir, "ops_gen.c", source);
    free(header);
    free(source);
    return ok;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, cap = 0, got = 1;
    while (f && got) {
        if (n + 4096 > cap) {
            char *more = realloc(text, cap = cap * 2 + 8192);
            if (!more)
                break;
            text = more;
        }
        got = fread(text + n, 1, 4096 - 1, f);
        n += got;
    }
    if (!f || ferror(f))
        fprintf(stderr, "opsgen: cannot read %s: %s\n", path, strerror(errno));
    if (f)
        fclose(f);
    if (text)
        text[n] = '\0';
    return text;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: opsgen ops.json OUTDIR\n", stderr);
        return 2;
    }
    gen.json_path = argv[1];
    char *text = read_file(gen.json_path);
    if (!text)
        return 3;
    json_tokener *tok = json_tokener_new();
    if (!tok)
        return 3;
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    json *root = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
    if (!root || !json_object_is_type(root, json_type_object)) {
        size_t at = json_tokener_get_parse_end(tok), line = 1;
        for (size_t i = 0; i < at && text[i]; i++)
            line += text[i] == '\n';
        fprintf(stderr, "%s:%zu: error: not a JSON object: %s\n", gen.json_path, line,
                json_tokener_error_desc(json_tokener_get_error(tok)));
        gen.n_errors++;
    }
    if (gen.n_errors == 0)
        gen_check_duplicates(text);
    bool ok = gen.n_errors == 0 && generate(root, argv[2]);
    json_object_put(root);
    json_tokener_free(tok);
    free(text);
    return ok ? 0 : 1;
}
