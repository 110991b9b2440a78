/* files.c: the files of a C program: NAME.h, NAME.c, main.c, Makefile, CMakeLists.txt. */
#include "emit/c/c.h"

#include <inttypes.h>

void oi_c_put_banner(oi_cprog *c, oi_out *o, const char *what)
{
    const bool is_lowered = oi_plan_count_lowered(c->p) > 0;
    oi_out_line(o, "/* %s", what);
    oi_out_line(o,
                " * Synthesized by openinfer %s for %s; do not edit: change the graph instead.%s",
                oi_version(), oi_escaped(c->arena, oi_put_c_comment, c->p->target->name),
                is_lowered ? "" : " */");
    if (is_lowered)
        oi_out_line(o, " * %s */", oi_plan_lowered_text(c->arena, c->p));
}

/* -- NAME.h -- */

void oi_c_put_certificate(oi_cprog *c, oi_out *o)
{
    const oi_certificate *k = &c->certificate;
    oi_out_line(o, "/* Certificate");
    if (c->form->device) {
        c->form->device->certificate(c, o);
        return;
    }
    oi_out_line(o, " *   %s %s: %" PRIu64 " bytes, of which",
                c->form->is_remote ? "memory of the device for a" : "struct", c->name,
                k->struct_bytes);
    oi_out_line(o, " *     inputs and outputs      %" PRIu64, k->io_bytes);
    oi_out_line(o, " *     persistent state        %" PRIu64, k->state_bytes);
    oi_out_line(o, " *     working memory          %" PRIu64, k->arena_bytes);
    oi_out_line(o, " *     rollback of a step      %" PRIu64, k->undo_bytes);
    if (k->stack_bytes)
        oi_out_line(o, " *   stack, reserved: %" PRIu64 " bytes; RAM in all: %" PRIu64,
                    k->stack_bytes, k->ram_bytes);
    if (k->is_measured)
        oi_out_line(o,
                    " *   stack, measured by the compiler: %" PRIu64 " bytes for a call, %" PRIu64
                    " with main",
                    k->measured.call_stack_bytes, k->measured.program_stack_bytes);
    oi_out_line(o, " *   weights, read only: %" PRIu64 " bytes", k->weights_bytes);
    if (k->is_measured && k->measured.flash_bytes)
        oi_out_line(o, " *   flash, code and weights: %" PRIu64 " bytes", k->measured.flash_bytes);
    for (size_t g = 0; g < c->p->graphs.n; g++) {
        const oi_cost *cost = &c->p->graphs.at[g].cost;
        bool several = c->p->graphs.n > 1;
        oi_out_line(o,
                    " *   a step%s%s: %s%" PRIu64 " multiply-accumulates, %" PRIu64 " bytes moved",
                    several ? " of " : "", several ? c->p->graphs.at[g].name : "",
                    cost->is_open ? "at least " : "", cost->macs, cost->bytes);
    }
    if (c->form->is_remote) {
        oi_out_line(o, " * init allocates that and the weights on the device; nothing is allocated "
                       "afterwards. Any number");
        oi_out_line(o, " * of instances can be used side by side. */");
        return;
    }
    oi_out_line(o,
                " * Nothing is allocated. Everything that changes is in the caller's struct %s, so "
                "any number",
                c->name);
    oi_out_line(o, " * of instances can be used side by side. */");
}

void oi_c_put_name_rule(oi_cprog *c, oi_out *o)
{
    oi_out_line(
        o, "/* Names: members are called as in the graph. A name gets x_ in front when it is a "
           "keyword of C or");
    oi_out_line(
        o,
        " * C++, a macro of a standard header, or begins with oi_. What begins with oi_, OI_ or "
        "%s_",
        c->name);
    oi_out_line(o, " * is this program's own.%s", c->p->renamed.n ? " Renamed here:" : " */");
    for (size_t i = 0; i < c->p->renamed.n; i++)
        oi_out_line(o, " *   %s is %s%s",
                    oi_escaped(c->arena, oi_put_c_comment, c->p->renamed.at[i].was),
                    c->p->renamed.at[i].is, i + 1 == c->p->renamed.n ? " */" : "");
}

const char *oi_c_step_name(oi_cprog *c, size_t graph)
{
    return c->p->graphs.n > 1
               ? oi_arena_printf(c->arena, "%s_%s_step", c->name, c->p->graphs.at[graph].name)
               : oi_arena_printf(c->arena, "%s_step", c->name);
}

static bool has_arena(const oi_plan *u)
{
    for (size_t i = 0; i < u->tensors.n; i++)
        if (u->tensors.at[i].space == OI_SPACE_ARENA)
            return true;
    return false;
}

/* Prints the program's struct and computes its layout. */
void oi_c_put_struct(oi_cprog *c, oi_out *o)
{
    uint64_t pointer = oi_c_pointer_bytes(c);
    c->layout.size = c->layout.align = 0;
    oi_out_open(o, "typedef struct %s", c->self);
    oi_c_members(c, o);
    for (c->graph = 0; c->graph < c->p->graphs.n; c->graph++)
        oi_c_async_members(c, o);
    if (c->p->per_node && !c->form->is_remote) {
        oi_out_line(o, "/* called after every node with its result */");
        oi_out_line(o, "void (*oi_check)(void *ctx, const char *node, void *data, size_t size);");
        oi_out_line(o, "void *oi_check_ctx;");
        oi_c_count(c, pointer, 2 * pointer);
    }
    if (c->p->timed && !c->form->is_remote) {
        oi_out_line(o, "/* set it before the first step: called with -1 before a kernel, with its "
                       "number after it */");
        oi_out_line(o, "void (*oi_mark)(int kernel, int begins);");
        oi_c_count(c, pointer, pointer);
    }
    oi_out_line(o, "const unsigned char *oi_weights;");
    oi_c_count(c, pointer, pointer);
    if (c->form->put_members)
        c->form->put_members(c, o);
    if (oi_c_is_shared(c) && c->form->has_team) {
        oi_out_line(o, "struct team *oi_team; /* threads that run a step together (team.h): set it "
                       "after init; NULL: one thread */");
        oi_c_count(c, pointer, pointer);
    }
    uint64_t working = c->p->arena_bytes ? c->p->arena_bytes : 1;
    if (c->form->device) {
        c->form->device->members(c, o);
    } else if (has_arena(c->p)) {
        oi_out_line(
            o, "OI_ALIGNED(%u) unsigned char oi_arena[%" PRIu64 "]; /* working memory of a step */",
            (unsigned)c->p->align, working);
        oi_c_count(c, c->p->align, working);
    }
    if (!c->form->device)
        oi_c_undo_members(c, o);
    oi_out_close(o, oi_arena_printf(c->arena, " %s;", c->self));
    oi_c_count(c, c->layout.align, 0);
}

static void certify(oi_cprog *c, oi_certificate *k)
{
    const oi_device_info *t = c->p->target;
    k->struct_bytes = c->layout.size;
    k->arena_bytes = c->p->arena_bytes;
    k->weights_bytes = c->p->weights_bytes;
    k->stack_bytes = t->type == OI_DEVICE_MCU ? t->mcu.stack_bytes : 0;
    k->ram_bytes = k->struct_bytes + k->stack_bytes;
}

void oi_c_certify(const oi_plan *p, oi_certificate *out)
{
    oi_cprog c = {.p = p,
                  .form = &oi_cform_c,
                  .arena = p->arena,
                  .name = p->name,
                  .self = p->name,
                  .settler = oi_settler_new(p->arena, oi_c_is_forbidden)};
    oi_out o = {0};
    oi_c_put_struct(&c, &o);
    oi_buf_free(&o.buf);
    certify(&c, &c.certificate);
    *out = c.certificate;
}

void oi_c_put_header_around(oi_cprog *c, oi_out *members, oi_emitted *files)
{
    oi_out o = {0};
    oi_c_put_banner(
        c, &o, oi_arena_printf(c->arena, "%s.h: one program, its memory and its steps.", c->name));
    oi_c_put_certificate(c, &o);
    oi_c_put_name_rule(c, &o);
    oi_out_line(&o, "#ifndef %s_H", c->name);
    oi_out_line(&o, "#define %s_H", c->name);
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "#include <stddef.h>");
    oi_out_line(&o, "#include <stdint.h>");
    oi_out_line(&o, "%s", "");
    oi_c_put_align(&o);
    oi_out_text(&o, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    oi_buf_add(&o.buf, members->buf.text, members->buf.n);
    oi_buf_free(&members->buf);
    oi_out_line(&o, "%s", "");
    oi_c_put_functions(c, &o);
    oi_out_text(&o, "\n#ifdef __cplusplus\n}\n#endif\n\n");
    oi_out_line(&o, "#endif");
    oi_c_add_file(c, files, oi_arena_printf(c->arena, "%s.h", c->name), &o);
}

void oi_c_put_header(oi_cprog *c, oi_emitted *files)
{
    oi_out members = {0};
    oi_c_put_struct(c, &members);
    certify(c, &c->certificate);
    oi_c_put_header_around(c, &members, files);
}

/* -- NAME.c -- */

/* The function that a thread of the team runs. */
static void put_part(oi_cprog *c)
{
    const oi_sgraph *g = &c->p->graphs.at[c->graph];
    if (!g->blocks[g->program->entry].is_parallel)
        return;
    oi_out_line(&c->out, "static int oi_part%u(void *ctx, int worker, int workers)", c->graph);
    oi_out_brace(&c->out);
    if (g->warms_up) {
        oi_out_line(&c->out, "const %s *s = ctx;", c->name);
        oi_out_line(&c->out,
                    "team_warm_up(s->oi_team, worker, s->oi_weights, %" PRIu64 ", %" PRIu64 ");",
                    c->p->weights_bytes, c->p->can.warm_up_slices);
    }
    oi_out_line(&c->out, "return %s(ctx, worker, workers);", oi_c_block_name(c, g->program->entry));
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
}

/* The synchronisation functions that the program calls. */
static void put_sync(oi_cprog *c)
{
    const oi_sync sync = c->p->sync;
    if (sync.barrier) {
        oi_out_line(&c->out,
                    "/* A barrier: no thread returns before all have called it. Returns the "
                    "error of worker 0.");
        oi_out_line(&c->out, " * A waiting thread prefetches from `next`. */");
        oi_out_line(&c->out,
                    "static int oi_barrier(%s *s, int worker, int failed, const void *next)",
                    c->name);
        oi_out_brace(&c->out);
        oi_out_line(&c->out,
                    "return s->oi_team ? team_barrier(s->oi_team, worker, failed, next) : failed;");
        oi_out_close(&c->out, "");
        oi_out_line(&c->out, "%s", "");
    }
    if (sync.chunks) {
        oi_out_line(&c->out, "/* The next dynamic chunk before the next barrier; 0: there is none. "
                             "*/");
        oi_out_line(&c->out, "static int oi_next_chunk(%s *s, int worker, team_chunk *p)", c->name);
        oi_out_brace(&c->out);
        oi_out_line(&c->out, "if (s->oi_team)");
        oi_out_line(&c->out, "    return team_next_chunk(s->oi_team, worker, p);");
        oi_out_line(&c->out, "return p->of++ == 0;");
        oi_out_close(&c->out, "");
        oi_out_line(&c->out, "%s", "");
    }
    if (sync.first_enters) {
        oi_out_line(&c->out,
                    "/* A barrier in two steps: worker 0 returns 1 once all have arrived, and "
                    "runs alone until oi_release. */");
        oi_out_line(&c->out,
                    "static int oi_first_enters(%s *s, int worker, int *failed, const void *next)",
                    c->name);
        oi_out_brace(&c->out);
        oi_out_line(
            &c->out,
            "return s->oi_team ? team_barrier_enter(s->oi_team, worker, failed, next) : 1;");
        oi_out_close(&c->out, "");
        oi_out_line(&c->out, "%s", "");
        oi_out_line(&c->out, "static void oi_release(%s *s, int failed)", c->name);
        oi_out_brace(&c->out);
        oi_out_line(&c->out, "if (s->oi_team)");
        oi_out_line(&c->out, "    team_barrier_release(s->oi_team, failed);");
        oi_out_close(&c->out, "");
        oi_out_line(&c->out, "%s", "");
    }
}

void oi_c_put_starts(oi_cprog *c)
{
    oi_out *o = &c->out;
    for (size_t i = 0; i < c->p->tensors.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[i];
        bool works = t->space == OI_SPACE_ARENA || t->space == OI_SPACE_OUTPUT;
        if (!works || t->graph != c->graph || !t->var || t->start == OI_START_NONE)
            continue;
        oi_c_put_reuse(c, (uint32_t)i);
        if (!t->run_dims)
            oi_c_put_start(c, o, (uint32_t)i);
        for (uint32_t d = 0; d < t->rank; d++)
            if (t->run_dims >> d & 1)
                oi_out_line(o, "%s = 0;", oi_c_length(c, (uint32_t)i, d));
    }
}

static void put_step(oi_cprog *c)
{
    oi_out *o = &c->out;
    const oi_sgraph *g = &c->p->graphs.at[c->graph];
    oi_out_line(o, "int %s(%s *s)", oi_c_step_name(c, c->graph), c->name);
    oi_out_brace(o);
    oi_c_put_starts(c);
    const char *block = oi_c_block_name(c, g->program->entry);
    const char *entry = oi_arena_printf(c->arena, "%s(s)", block);
    if (g->blocks[g->program->entry].is_parallel)
        entry = oi_arena_printf(c->arena,
                                "s->oi_team ? team_run(s->oi_team, oi_part%u, s) : %s(s, 0, 1)",
                                c->graph, block);
    if (g->program->n_consumers)
        oi_c_async_reset(c);
    if (g->needs_undo) {
        const bool logs = c->p->undo.kind == OI_UNDO_LOG;
        oi_out_line(o, logs
                           ? "s->oi_undo_used = 0;"
                           : "memcpy(s->oi_undo_log, &s->oi_state_data, sizeof s->oi_state_data);");
        oi_out_line(o, "const int failed = %s;", entry);
        oi_out_line(o, "if (failed)");
        oi_out_line(
            o, logs ? "    oi_rollback(s);"
                    : "    memcpy(&s->oi_state_data, s->oi_undo_log, sizeof s->oi_state_data);");
        oi_out_line(o, "return failed;");
    } else {
        oi_out_line(o, "return %s;", entry);
    }
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

/* Tables whose missing entries a step looks for. */
static void find_holes(oi_cprog *c, const oi_stmts *list, bool *is_asked)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_stmt *s = &list->at[i];
        const oi_skernel *k = s->kind == OI_STMT_KERNEL ? &c->p->kernels.at[s->kernel] : NULL;
        const oi_port *own = s->kind == OI_STMT_SET ? &s->a : NULL;
        for (size_t p = 0; p < (k ? k->ports.n : own ? 1 : 0); p++) {
            const oi_port *port = k ? &k->ports.at[p] : own;
            if (port->n_entry && oi_entry_may_lack(&c->p->tensors.at[port->tensor], port))
                is_asked[port->tensor] = true;
        }
        find_holes(c, &s->body, is_asked);
    }
}

void oi_c_put_holes(oi_cprog *c)
{
    bool *is_asked = oi_arena_alloc(c->arena, c->p->tensors.n + 1);
    for (size_t g = 0; g < c->p->graphs.n; g++)
        for (uint32_t b = 0; b < c->p->graphs.at[g].n_order; b++)
            find_holes(c, &c->p->graphs.at[g].blocks[c->p->graphs.at[g].order[b]].stmts, is_asked);
    for (size_t i = 0; i < c->p->tensors.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[i];
        if (!is_asked[i])
            continue;
        oi_buf list = {0};
        for (uint64_t e = 0; e < t->n_entries; e++)
            oi_buf_printf(&list, "%s%d", e ? ", " : "", t->sources[e] != OI_NO_SOURCE);
        oi_out_line(&c->out, "/* which entries of %s exist in the model */", t->name);
        oi_out_line(&c->out, "%s const uint8_t oi_has_%s[] = {%s};", c->form->function, t->name,
                    oi_buf_to_arena(&list, c->arena));
        oi_out_line(&c->out, "%s", "");
    }
}

void oi_c_put_section(oi_out *o, const char *title)
{
    oi_out_line(o, "/* -- %s -- */", title);
    oi_out_line(o, "%s", "");
}

void oi_c_put_kernels(oi_cprog *c)
{
    oi_c_put_section(&c->out, "kernels: each line of the graph stands above what does it");
    for (size_t i = 0; i < c->p->kernels.n; i++)
        if (oi_kernel_has_function(c->p, &c->p->kernels.at[i]))
            oi_c_kernel(c, &c->p->kernels.at[i]);
}

void oi_c_put_steps_section(oi_cprog *c)
{
    const char *name = c->p->graphs.n > 1 ? c->p->graphs.at[c->graph].name : c->name;
    oi_c_put_section(&c->out, oi_arena_printf(c->arena, "a step of %s: kernels in turn", name));
}

/* Kernels and steps, and before them the functions of this file that they use. */
static void put_code(oi_cprog *c)
{
    oi_c_put_kernels(c);
    for (c->graph = 0; c->graph < c->p->graphs.n; c->graph++) {
        oi_c_put_steps_section(c);
        oi_c_blocks(c);
        put_part(c);
        put_step(c);
    }
    c->graph = 0;
    oi_c_put_section(&c->out, "persistent state");
    oi_c_state(c);
    const char *code = oi_buf_to_arena(&c->out.buf, c->arena);
    c->out = (oi_out){0};
    oi_c_put_holes(c);
    oi_c_undo_functions(c);
    oi_c_put_reuse_function(c);
    put_sync(c);
    oi_out_text(&c->out, code);
    oi_buf_putc(&c->out.buf, '\0');
}

static bool has_mixed(const oi_cprog *c)
{
    bool any = false;
    for (size_t i = 0; i < c->p->kernels.n; i++)
        any |= c->p->kernels.at[i].is_used && oi_c_is_mixed(&c->p->kernels.at[i]);
    return any;
}

/* GCC interleaves independent chains only with these options. It inlines no function with other
 * options, unless that is marked always_inline; and a loop with a call does not vectorise. */
static void put_mixed(const oi_cprog *c, oi_out *o)
{
    if (!has_mixed(c))
        return;
    oi_out_line(
        o, "/* for kernels with unroll-and-jam: instructions of several rows are interleaved */");
    oi_out_line(o, "#if defined(__GNUC__) && !defined(__clang__)");
    oi_out_line(
        o, "#define OI_MIXED __attribute__((optimize(\"schedule-insns\", \"sched-pressure\")))");
    oi_out_line(o, "#else");
    oi_out_line(o, "#define OI_MIXED");
    oi_out_line(o, "#endif");
    oi_out_line(o, "%s", "");
}

/* Loops that are one vector: partial sums, or what is left of a row. */
static bool has_lanes(const oi_cprog *c)
{
    for (size_t i = 0; i < c->p->kernels.n; i++)
        for (size_t j = 0; j < c->p->kernels.at[i].nests.n; j++) {
            const oi_snest *n = &c->p->kernels.at[i].nests.at[j];
            const int64_t *of_last = n->n_axes ? n->axes[n->n_axes - 1].factor : NULL;
            if (oi_nest_partial_sums(n) ||
                (n->kind == OI_NEST_MAP && of_last && of_last[OI_AXIS_VECTOR]))
                return true;
        }
    return false;
}

/* GCC unrolls a short loop completely before it looks for vectors, and then finds none. */
static void put_lanes(const oi_cprog *c, oi_out *o)
{
    if (!has_lanes(c))
        return;
    oi_out_line(o, "/* for loops that are one vector: compilers must not unroll them first */");
    if (c->p->target->cpu.isa != 1u << OI_ISA_SCALAR) {
        oi_out_line(o, "#if defined(__GNUC__) && !defined(__clang__)");
        oi_out_line(o, "#define OI_LANES _Pragma(\"GCC unroll 1\")");
        oi_out_line(o, "#else");
    }
    oi_out_line(o, "#define OI_LANES");
    if (c->p->target->cpu.isa != 1u << OI_ISA_SCALAR)
        oi_out_line(o, "#endif");
    oi_out_line(o, "%s", "");
}

static void put_source(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    oi_buf helpers = {0};
    put_code(c);
    const char *header = oi_helpers_for(c->arena, oi_helpers, c->p->target, c->out.buf.text,
                                        has_mixed(c) || has_lanes(c), &helpers);
    oi_c_put_banner(
        c, &o,
        oi_arena_printf(c->arena,
                        "%s.c: helpers, kernels, and the steps made of them: start reading there.",
                        c->name));
    oi_c_put_compiler_checks(c, &o);
    oi_out_line(&o, "#include \"%s.h\"", c->name);
    if (oi_c_is_shared(c))
        oi_out_line(&o, "#include \"team.h\"");
    oi_out_line(&o, "%s", "");
    if (header && oi_c_is_freestanding(c)) /* or else gcc's header includes stdlib.h */
        oi_out_line(&o, "#define _MM_MALLOC_H_INCLUDED");
    if (header)
        oi_out_line(&o, "#include <%s>", header);
    if (oi_c_is_freestanding(c)) {
        oi_out_line(&o, "#include \"freestanding.h\"");
    } else {
        oi_out_line(&o, "#include <math.h>");
        oi_out_line(&o, "#include <string.h>");
    }
    oi_out_line(&o, "%s", "");
    oi_c_put_compiler(c, &o);
    oi_out_line(&o, "/* the struct is no larger than the certificate says */");
    oi_out_line(&o, "typedef char %s_certified[sizeof(%s) <= %" PRIu64 " ? 1 : -1];", c->name,
                c->name, c->certificate.struct_bytes);
    oi_out_line(&o, "%s", "");
    put_mixed(c, &o);
    put_lanes(c, &o);
    if (helpers.n)
        oi_c_put_section(&o, "helpers");
    oi_buf_add(&o.buf, helpers.text, helpers.n);
    oi_buf_free(&helpers);
    oi_out_text(&o, c->out.buf.text);
    oi_c_put_compiler_end(c, &o);
    oi_buf_putc(&o.buf, '\0');
    o.buf.n--; /* the terminating zero was only for reading */
    if (oi_c_is_freestanding(c))
        files->status = oi_c_check_library(c, o.buf.text);
    oi_c_add_file(c, files, oi_arena_printf(c->arena, "%s.c", c->name), &o);
    oi_buf_free(&c->out.buf);
}

void oi_c_checkpoint(oi_cprog *c, const oi_stmt *s)
{
    const oi_node *n = s->node->source;
    if (c->form->device) {
        c->form->device->check(c, s);
        return;
    }
    oi_out_line(&c->out, "s->oi_check(s->oi_check_ctx, \"%s:%" PRIu64 "\", %s, %s);",
                oi_c_program(c)->blocks[n->block].source->name.text, n->index,
                oi_c_address(c, &s->a), oi_c_bytes(c, s->a.tensor));
}

void oi_c_add_file(oi_cprog *c, oi_emitted *files, const char *name, oi_out *o)
{
    size_t n = o->buf.n;
    char *text = oi_buf_to_arena(&o->buf, c->arena);
    *OI_PUSH(c->arena, files) = (oi_emitted_file){name, text, n};
}

void oi_emit_c(const oi_plan *p, const oi_certificate *k, oi_emitted *files)
{
    oi_cprog c = {.p = p,
                  .form = &oi_cform_c,
                  .arena = p->arena,
                  .name = p->name,
                  .self = p->name,
                  .settler = oi_settler_new(p->arena, oi_c_is_forbidden),
                  .certificate = *k};
    c.scalars = oi_arena_alloc(p->arena, (p->kernels.n + 1) * sizeof *c.scalars);
    oi_c_find_reuse(&c);
    oi_c_put_header(&c, files);
    put_source(&c, files);
    oi_c_main(&c, files);
    oi_c_build_files(&c, files);
}
