/* target.c: capabilities of C programs, on an operating system or a bare microcontroller. */
#include "device/cost.h"
#include "emit/c/c.h"

static bool takes(const oi_device_info *d)
{
    return d->api == OI_DEVICE_C;
}

/* Workers never write to the same cache line, and the widest vectors are loaded as a whole. */
static uint64_t alignment(const oi_device_info *d)
{
    return d->cpu.line_bytes > 64 ? d->cpu.line_bytes : 64;
}

static oi_caps of_processor(const oi_device_info *d)
{
    return (oi_caps){.goal = OI_GOAL_TIME,
                     .workers = d->cpu.libc ? d->cpu.threads : 1, /* threads are the library's */
                     .dynamic_chunks = true,
                     .row_pipelines = true,
                     .vectors = d->cpu.isa != 1u << OI_ISA_SCALAR,
                     .vector_lanes = oi_recipe_lanes(d),
                     .recipes = oi_recipes,
                     .alignment = alignment(d),
                     .private_bytes = oi_cost_near(d),
                     .warm_up_slices = d->tuning.warm_up_slices,
                     .warm_up_bytes = 4 * d->cpu.cache_l2_bytes,
                     .ram_bytes = d->memory.global_bytes};
}

/* Rows of a kernel may take a sixteenth of the stack, because calls nest several kernels deep. */
static oi_caps of_microcontroller(const oi_device_info *d)
{
    return (oi_caps){.goal = OI_GOAL_MEMORY,
                     .workers = 1,
                     .row_pipelines = true,
                     .vector_lanes = oi_recipe_lanes(d),
                     .recipes = oi_recipes,
                     .private_bytes = d->mcu.stack_bytes / 16,
                     .stack_bytes = d->mcu.stack_bytes,
                     .alignment = d->mcu.align_bytes,
                     .has_rom = true,
                     .rom_bytes = d->memory.flash_bytes,
                     .ram_bytes = d->memory.ram_bytes};
}

static oi_caps caps(const oi_device_info *d)
{
    return d->type == OI_DEVICE_MCU ? of_microcontroller(d) : of_processor(d);
}

/* A freestanding program lacks some functions of f64 that a C library has. */
static bool has_helper(const oi_device_info *d, oi_arena *a, const char *name)
{
    oi_buf all = {0};
    size_t n;
    if (d->cpu.libc)
        return true;
    (void)oi_helpers_for(a, oi_helpers, d, name, false, &all);
    return !oi_c_missing(oi_buf_to_arena(&all, a), &n);
}

const oi_target oi_target_c = {.name = "c",
                               .writes = OI_SYNTH_PROGRAM,
                               .takes = takes,
                               .caps = caps,
                               .program_name = oi_c_program_name,
                               .graph_name = oi_c_graph_name,
                               .note_names = oi_c_note_names,
                               .certify = oi_c_certify,
                               .emit = oi_emit_c,
                               .has_weights = true,
                               .tool = oi_c_tool,
                               .explain = oi_c_explain,
                               .measure = oi_c_measure,
                               .has_helper = has_helper,
                               .has_bodies = true};
