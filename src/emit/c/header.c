/* header.c: what a caller reads in NAME.h: sizes as macros, error numbers with names, and the
 * contract of each function. */
#include "emit/c/c.h"

#include <inttypes.h>

static const char align_text[] = "/* Alignment in each language. */\n"
                                 "#ifndef OI_ALIGNED\n"
                                 "#if defined(__cplusplus)\n"
                                 "#define OI_ALIGNED(n) alignas(n)\n"
                                 "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n"
                                 "#define OI_ALIGNED(n) _Alignas(n)\n"
                                 "#elif defined(__GNUC__)\n"
                                 "#define OI_ALIGNED(n) __attribute__((aligned(n)))\n"
                                 "#else\n"
                                 "#error \"this compiler needs C11 or C++11 to align data\"\n"
                                 "#endif\n"
                                 "#endif\n\n";

void oi_c_put_align(oi_out *o)
{
    oi_out_text(o, align_text);
}

/* -- sizes -- */

static void put_size(oi_cprog *c, oi_out *o, const char *what, uint64_t n, const char *meaning)
{
    const char *value = oi_arena_printf(c->arena, "%" PRIu64, n);
    oi_out_line(o, "#define %s_%s %s /* %s */", c->name, what, value, meaning);
}

static void put_sizes(oi_cprog *c, oi_out *o)
{
    const oi_certificate *k = &c->certificate;
    const uint64_t align = c->layout.align ? c->layout.align : 1;
    oi_out_line(o, "/* Memory, in bytes. */");
    if (c->form->is_remote)
        put_size(c, o, "DEVICE_BYTES", k->struct_bytes,
                 "memory of the device for an instance, beside the weights");
    else
        put_size(c, o, "STRUCT_BYTES", k->struct_bytes,
                 oi_arena_printf(c->arena, "struct %s, at most: everything that a program changes",
                                 c->name));
    put_size(c, o, "STRUCT_ALIGN", align, "alignment of the struct");
    put_size(c, o, "WEIGHTS_BYTES", k->weights_bytes, "weights, read-only");
    put_size(c, o, "WEIGHTS_ALIGN", c->p->align, "alignment of the weights");
    const char *state =
        c->form->is_remote
            ? oi_arena_printf(c->arena, "sizeof(%s_state)", c->name)
            : oi_arena_printf(c->arena, "sizeof(((struct %s *)0)->oi_state_data)", c->name);
    if (c->apart_bytes)
        state = oi_arena_printf(c->arena, "%s + %" PRIu64, state, c->apart_bytes);
    oi_out_line(o, "#define %s_SAVED_BYTES (40 + %s) /* a saved state */", c->name, state);
    if (k->stack_bytes)
        put_size(c, o, "STACK_BYTES", k->stack_bytes, "stack that the device file reserves");
    if (k->is_measured)
        put_size(c, o, "CALL_STACK_BYTES", k->measured.call_stack_bytes,
                 "stack of a call, measured by the compiler");
    if (k->is_measured && k->measured.flash_bytes)
        put_size(c, o, "FLASH_BYTES", k->measured.flash_bytes, "code and weights");
    oi_out_line(o, "%s", "");
}

/* -- errors -- */

#define DEVICE_ERROR (-12) /* it and what is below: only where kernels run on a device */

static const struct {
    const char *name;
    int number; /* returned by a step: the number of the language's error, 44 for E044 */
    const char *meaning;
} errors[] = {
    {"OK", 0, "done"},
    {"ERROR_WEIGHTS_ADDRESS", -1, "weights: NULL, or not aligned"},
    {"ERROR_WEIGHTS_SIZE", -2, "weights: too few or too many bytes"},
    {"ERROR_WEIGHTS_FORMAT", -3, "weights: none, or of another version of the format"},
    {"ERROR_WEIGHTS_OTHER", -4, "weights: of another program"},
    {"ERROR_WEIGHTS_DAMAGED", -5, "weights: some byte is not what it was"},
    {"ERROR_STRUCT_ADDRESS", -6, "the struct is not aligned"},
    {"ERROR_STATE_SIZE", -7, "saved state: too few or too many bytes"},
    {"ERROR_STATE_FORMAT", -8, "saved state: none, or of another version of the format"},
    {"ERROR_STATE_OTHER", -9, "saved state: of another program, or laid out differently"},
    {"ERROR_STATE_DAMAGED", -10, "saved state: some byte is not what it was"},
    {"ERROR_STATE_INVALID", -11, "saved state: a size or a mark out of range"},
    {"ERROR_NO_DRIVER", -12, "the device has no driver, or one that is too old"},
    {"ERROR_NO_DEVICE", -13, "there is no such device"},
    {"ERROR_DEVICE_OLD", -14, "the device lacks what the program is made of"},
    {"ERROR_DEVICE_MEMORY", -15, "the device has too little memory"},
    {"ERROR_DEVICE_FAILED", -16, "the device failed: the instance can only be freed"},
    {"ERROR_NEGATIVE", 42, "step: a negative index"},
    {"ERROR_NO_ENTRY", 44, "step: the model has no such entry"},
    {"ERROR_SLICE", 46, "step: a slice that ends before it starts"},
    {"ERROR_RANGE", 47, "step: an index out of range, or a table that is full"},
    {"ERROR_SHAPE", 51, "step: data of another shape"},
    {"ERROR_LENT", 71, "step: a variable was yielded twice"},
    {"ERROR_NOT_LENT", 73, "step: an awaited variable was not yielded"},
    {"ERROR_DEADLOCK", 76, "step: a consumer waits for what is never yielded"},
};

static void put_errors(oi_cprog *c, oi_out *o)
{
    oi_out_line(o,
                "/* Results of the functions below. init, check_weights and load return a negative "
                "number if");
    oi_out_line(o, " * they refuse. A step returns the number of the error: 44 is E044. */");
    oi_out_open(o, "enum");
    for (size_t i = 0; i < OI_COUNT(errors); i++) {
        const bool is_of_device =
            errors[i].number <= OI_DEVICE_ERRORS_FIRST && errors[i].number >= OI_DEVICE_ERRORS_LAST;
        if (is_of_device && !c->form->is_remote && !c->form->device)
            continue;
        oi_out_line(o, "%s_%s = %d, /* %s */", c->name, errors[i].name, errors[i].number,
                    errors[i].meaning);
    }
    oi_out_close(o, ";");
    oi_out_line(o, "%s", "");
}

/* -- functions -- */

static const char init_text[] =
    "/* Prepares *s for its first step, whatever it contained. *s keeps a pointer to the weights,\n"
    " * which must not move or change while *s is used. Checks their address, size and header, "
    "but\n"
    " * not every byte; NAME_check_weights does that. On an error *s is unchanged. */\n"
    "int NAME_init(NAME *s, const void *weights, size_t size);\n\n"
    "/* Checks that no byte of the weights has changed since they were written. Call it once if\n"
    " * they come from a file, a network or flash. Reads all of them. */\n"
    "int NAME_check_weights(const void *weights, size_t size);\n\n";

static const char remote_init_text[] =
    "/* Prepares *s for its first step, whatever it contained: allocates memory of the device and\n"
    " * copies the weights there, which are not needed afterwards. Checks their address, size and\n"
    " * header, but not every byte; NAME_check_weights does that. On an error nothing is kept. */\n"
    "int NAME_init(NAME *s, const void *weights, size_t size);\n\n"
    "/* Gives the memory of the device back. */\n"
    "void NAME_free(NAME *s);\n\n"
    "/* Says in one line what an error of the device means on this machine. */\n"
    "void NAME_explain(int error, char *text, size_t size);\n\n"
    "/* Checks that no byte of the weights has changed since they were written. Call it once if\n"
    " * they come from a file or a network. Reads all of them. */\n"
    "int NAME_check_weights(const void *weights, size_t size);\n\n";

static const char step_text[] =
    "/* One step: reads the inputs in *s and writes the outputs in *s. On an error the outputs "
    "are\n"
    " * undefined, and the persistent state is as before the step. */\n";

static const char state_text[] =
    "\n/* Resets the persistent state to its initial values, as after NAME_init. */\n"
    "void NAME_reset(NAME *s);\n\n"
    "/* Copies the persistent state into NAME_SAVED_BYTES bytes, which need no alignment. */\n"
    "void NAME_save(const NAME *s, void *to);\n\n"
    "/* Restores a state that NAME_save wrote; call NAME_init first. Refuses bytes that are "
    "damaged\n"
    " * or come from another program, and sizes that no step produces. Values of tensors are not\n"
    " * checked. On an error *s is unchanged. */\n"
    "int NAME_load(NAME *s, const void *from, size_t size);\n";

static const char marks_text[] = "\n/* By kernel: ns that the first block spent in it in the last "
                                 "step, and how often it ran. */\n"
                                 "void NAME_marks(const NAME *s, uint64_t *ns, uint64_t *runs);\n";

void oi_c_put_functions(oi_cprog *c, oi_out *o)
{
    if (c->p->embeds) {
        oi_out_line(o, "/* What %s_init takes. */", c->name);
        oi_out_line(o, "extern const unsigned char %s_weights[%" PRIu64 "];", c->name,
                    c->p->weights_bytes);
        oi_out_line(o, "%s", "");
    }
    put_sizes(c, o);
    put_errors(c, o);
    oi_out_named(o,
                 c->form->device      ? c->form->device->init_text
                 : c->form->is_remote ? remote_init_text
                                      : init_text,
                 c->name);
    oi_out_text(o, step_text);
    for (size_t g = 0; g < c->p->graphs.n; g++)
        oi_out_line(o, "int %s(%s *s);", oi_c_step_name(c, g), c->name);
    oi_out_named(o, c->form->device ? c->form->device->state_text : state_text, c->name);
    if (c->p->timed && c->form->is_remote)
        oi_out_named(o, marks_text, c->name);
}
