/* measure.c: what open tools make of a circuit: yosys counts what it has, for no device in
 * particular and for an iCE40; where the device is one, nextpnr places it and says how fast it
 * is. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>

bool oi_hdl_is_placed(const oi_device_info *d)
{
    return strcmp(d->fpga.family, "ice40") == 0;
}

/* "hx8k-ct256": the part and its package. */
static const char *part_text(const oi_circuit *h)
{
    const char *part = h->p->target->fpga.part, *dash = strchr(part, '-');
    if (!dash)
        return "--hx8k --package ct256";
    return oi_arena_printf(h->arena, "--%.*s --package %s", (int)(dash - part), part, dash + 1);
}

void oi_hdl_put_measuring(const oi_circuit *h, oi_out *o)
{
    const char *n = h->p->name;
    const bool is_placed = oi_hdl_is_placed(h->p->target);
    const uint64_t hz = h->p->target->fpga.clock_hz;
    oi_out_line(o, "YOSYS ?= yosys");
    oi_out_line(o, "measured: %s_gates.json %s_ice40.json%s", n, n,
                is_placed ? oi_arena_printf(h->arena, " %s_placed.json", n) : "");
    oi_hdl_gap(o);
    oi_out_line(o, "%s_gates.json: %s.v", n, n);
    oi_out_line(
        o, "\t$(YOSYS) -q -p 'read_verilog $<; synth -flatten -top %s; tee -q -o $@ stat -json'",
        n);
    oi_hdl_gap(o);
    oi_out_line(o, "%s_ice40.json: %s.v", n, n);
    oi_out_line(o,
                "\t$(YOSYS) -q -p 'read_verilog $<; synth_ice40 -top %s -json %s_net.json; tee -q "
                "-o $@ stat -json'",
                n, n);
    if (!is_placed)
        return;
    oi_hdl_gap(o);
    oi_out_line(o, "NEXTPNR ?= nextpnr-ice40");
    oi_out_line(o, "%s_placed.json: %s_ice40.json", n, n);
    oi_out_line(o,
                "\t$(NEXTPNR) -q %s --pcf-allow-unconstrained --freq %" PRIu64
                " --timing-allow-fail --json %s_net.json --report $@",
                part_text(h), hz ? hz / 1000000 : 24, n);
}

/* -- reading -- */

static json_object *below(json_object *at, const char *key)
{
    json_object *found = NULL;
    return at && json_object_object_get_ex(at, key, &found) ? found : NULL;
}

static oi_status read_json(const oi_plan *p, const char *dir, const char *what, json_object **out,
                           oi_diag *d)
{
    char path[4096], *text = NULL;
    size_t n = 0;
    if (snprintf(path, sizeof path, "%s/%s_%s.json", dir, p->name, what) >= (int)sizeof path)
        return oi_diag_env(d, dir, "the path is too long");
    OI_TRY(oi_file_read(path, 64u << 20, &text, &n, d));
    const oi_status status = oi_json_parse(path, text, n, out, d);
    free(text);
    return status;
}

/* Cells of the whole design whose type begins so. */
static uint64_t cells(json_object *stat, const char *type)
{
    json_object *types = below(below(stat, "design"), "num_cells_by_type");
    uint64_t n = 0;
    if (!types)
        return 0;
    json_object_object_foreach(types, name, count) if (strncmp(name, type, strlen(type)) == 0) n +=
        (uint64_t)json_object_get_int64(count);
    return n;
}

static uint64_t clock_of(json_object *report)
{
    json_object *all = below(report, "fmax");
    double mhz = 0;
    if (!all)
        return 0;
    json_object_object_foreach(all, name, clock)
    {
        const double own = json_object_get_double(below(clock, "achieved"));
        mhz = *name && (mhz == 0 || own < mhz) ? own : mhz;
    }
    return (uint64_t)(mhz * 1e6);
}

oi_status oi_hdl_measure(const oi_plan *p, const char *dir, oi_plan_measured *out, oi_diag *d)
{
    json_object *stat = NULL;
    const uint64_t wanted = p->target->fpga.clock_hz;
    *out = (oi_plan_measured){0};
    OI_TRY(read_json(p, dir, "gates", &stat, d));
    out->gates = cells(stat, "");
    oi_json_free(stat);
    OI_TRY(read_json(p, dir, "ice40", &stat, d));
    out->luts = cells(stat, "SB_LUT4");
    out->ffs = cells(stat, "SB_DFF");
    out->brams = cells(stat, "SB_RAM40_4K");
    oi_json_free(stat);
    if (!oi_hdl_is_placed(p->target))
        return OI_OK;
    OI_TRY(read_json(p, dir, "placed", &stat, d));
    out->clock_hz = clock_of(stat);
    oi_json_free(stat);
    if (out->clock_hz < wanted)
        return oi_plan_refuse(p, 0, NULL, (oi_span){0}, "E062",
                              "the circuit runs at %.1f MHz, and fpga.clock_hz of '%s' is %.1f MHz",
                              (double)out->clock_hz / 1e6, p->target->name, (double)wanted / 1e6);
    return OI_OK;
}
