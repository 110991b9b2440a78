/* choose.c: which kernel does a call, how tensors reach it, and how much scratch that takes. */
#include "kernel/custom.h"

#include <math.h>

int64_t oi_operand_count(const oi_operand *o)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++)
        n *= o->dims[d];
    return n;
}

bool oi_operand_is_dense(const oi_operand *o)
{
    int64_t stride = 1;
    for (uint32_t d = o->rank; d-- > 0; stride *= o->dims[d])
        if (o->dims[d] != 1 && o->strides[d] != stride)
            return false;
    return true;
}

/* -- forms -- */

oi_dtype oi_form_of(oi_dtype t)
{
    return t == OI_F8 || t == OI_BF16 || t == OI_F16 ? OI_F32 : t;
}

oi_dtype oi_form_source(oi_dtype t)
{
    t = oi_form_of(t);
    if (t == OI_BITSET)
        return OI_U8;
    if (oi_dtype_bits(t) >= 8)
        return t;
    return oi_dtype_get(t)->min < 0 ? OI_I8 : OI_U8;
}

size_t oi_form_size(oi_dtype t)
{
    unsigned bits = oi_dtype_bits(oi_form_of(t));
    return bits < 8 ? 1 : bits / 8;
}

static bool is_stored_as_computed(oi_dtype t)
{
    return oi_form_of(t) == t && oi_dtype_bits(t) >= 8;
}

bool oi_choose_load(oi_load *l, oi_dtype t, oi_dtype form, oi_cpu cpu)
{
    *l = (oi_load){.load = oi_forms[cpu]->load[t],
                   .size = (uint8_t)oi_form_size(form),
                   .form_size = (uint8_t)oi_form_size(t),
                   .is_direct = is_stored_as_computed(t)};
    if (oi_form_source(t) == oi_form_source(form))
        return true;
    l->cast = oi_table_cast(t, oi_form_source(form), cpu);
    return l->cast != NULL;
}

/* What a conversion writes: narrow floats as their bits. */
static oi_store_fn *raw_store(oi_dtype t, oi_cpu cpu)
{
    oi_dtype raw = oi_form_of(t) == t ? t : oi_dtype_bits(t) == 8 ? OI_U8 : OI_U16;
    return oi_forms[cpu]->store[raw];
}

bool oi_choose_store(oi_store *s, oi_dtype acc, oi_dtype o, oi_cpu cpu)
{
    *s = (oi_store){.store = oi_forms[cpu]->store[o], .size = (uint8_t)oi_form_size(acc)};
    if (oi_form_of(acc) == oi_form_of(o) && (acc == o || oi_form_of(acc) == acc)) {
        s->is_direct = is_stored_as_computed(o);
        return true;
    }
    if (oi_form_of(acc) != acc) { /* the accumulator is narrower than what it was computed in */
        s->round = oi_forms[cpu]->store[acc];
        s->reload = oi_forms[cpu]->load[acc];
    }
    s->cast = oi_table_cast(acc, o, cpu);
    s->store = raw_store(o, cpu);
    return s->cast != NULL;
}

/* -- attributes -- */

static bool is_integer_value(const oi_op_value *v)
{
    return v->tag == OI_VALUE_INT || v->tag == OI_VALUE_UINT || v->tag == OI_VALUE_BOOL;
}

/* An integer attribute within the limits of t, whatever was given. */
static int64_t limited(const oi_dtype_info *t, const oi_op_value *v, bool *is_above)
{
    *is_above = false;
    if (v->tag == OI_VALUE_FLOAT) { /* 64-bit limits round up in f64, so no cast overflows */
        *is_above = v->f >= (double)t->max;
        if (*is_above || v->f <= (double)t->min)
            return t->min;
        return v->f >= 0x1p63 ? (int64_t)(uint64_t)v->f : (int64_t)v->f;
    }
    if (v->tag == OI_VALUE_UINT) {
        *is_above = v->u > t->max;
        return (int64_t)v->u;
    }
    int64_t i = v->tag == OI_VALUE_BOOL ? v->b : v->i;
    *is_above = i > 0 && (uint64_t)i > t->max;
    return i < t->min ? t->min : i;
}

static void set_integer(oi_kernel_scalar *out, oi_dtype form, int64_t v)
{
    switch (oi_form_size(form)) {
    case 1: out->i8 = (int8_t)v; break;
    case 2: out->i16 = (int16_t)v; break;
    case 4: out->i32 = (int32_t)v; break;
    default: out->i64 = v; break;
    }
}

/* A number taken in the tensor's dtype t: floats are rounded to it, bounds beyond it are its own.
 */
static void set_number(oi_kernel_scalar *out, oi_dtype t, const oi_op_value *v)
{
    const oi_dtype_info *info = oi_dtype_get(t);
    if (info->cls == OI_CLASS_FLOAT) {
        uint64_t bits = 0;
        if (is_integer_value(v) && v->tag != OI_VALUE_UINT)
            oi_element_set_i64(t, &bits, 0, v->tag == OI_VALUE_BOOL ? v->b : v->i);
        else if (v->tag == OI_VALUE_UINT)
            oi_element_set_u64(t, &bits, 0, v->u);
        else
            oi_element_set_f64(t, &bits, 0, v->f);
        double f = oi_element_f64(t, &bits, 0);
        if (oi_form_of(t) == OI_F32)
            out->f32 = (float)f;
        else
            out->f64 = f;
        return;
    }
    bool above;
    int64_t i = limited(info, v, &above);
    set_integer(out, t, above ? (int64_t)info->max : i);
}

uint64_t oi_kernel_bits(oi_dtype t, const oi_op_value *v)
{
    uint64_t bits = 0;
    if (t == OI_T1 && v->tag == OI_VALUE_INT) /* there is no 0: what is not below it is 1 */
        (void)oi_element_set_i64(t, &bits, 0, v->i < 0 ? -1 : 1);
    else if (v->tag == OI_VALUE_FLOAT)
        (void)oi_element_set_f64(t, &bits, 0, v->f);
    else if (v->tag == OI_VALUE_UINT)
        (void)oi_element_set_u64(t, &bits, 0, v->u);
    else
        (void)oi_element_set_i64(t, &bits, 0, v->tag == OI_VALUE_BOOL ? v->b : v->i);
    return bits;
}

uint64_t oi_kernel_number(oi_dtype t, const oi_op_value *v)
{
    const oi_dtype_info *info = oi_dtype_get(t);
    bool above;
    if (info->cls == OI_CLASS_FLOAT)
        return oi_kernel_bits(t, v);
    int64_t i = limited(info, v, &above);
    uint64_t bits = 0;
    if (t == OI_T1 && i == 0) /* it has no 0: the kernels' stores make it 1 */
        i = 1;
    if (above || t == OI_U64)
        (void)oi_element_set_u64(t, &bits, 0, above ? info->max : (uint64_t)i);
    else
        (void)oi_element_set_i64(t, &bits, 0, i);
    return bits;
}

/* Attributes for the kernel, and the few-valued ones for finding it. */
static void set_attrs(const oi_kernel_query *q, oi_choice *c, uint8_t *values, uint32_t *given)
{
    *given = 0;
    for (uint32_t i = 0; i < q->op->n_attrs && i < OI_KERNEL_ATTRS; i++) {
        const oi_op_attr *a = &q->op->attrs[i];
        const oi_op_value *v = &q->attrs[i];
        values[i] = 0;
        c->attrs[i] = (oi_kernel_scalar){.u64 = 0};
        if (v->tag == OI_VALUE_NONE)
            continue;
        *given |= 1u << i;
        switch (a->kind) {
        case OI_ATTR_NUMBER: set_number(&c->attrs[i], oi_kernel_numbers_in(q), v); break;
        case OI_ATTR_BOOL: c->attrs[i].u8 = values[i] = v->b; break;
        case OI_ATTR_STRING: c->attrs[i].i32 = values[i] = (uint8_t)oi_op_attr_word(a, v->s); break;
        case OI_ATTR_INT:
        case OI_ATTR_AXIS: c->attrs[i].i64 = v->i; break;
        default: break;
        }
    }
}

oi_dtype oi_kernel_numbers_in(const oi_kernel_query *q)
{
    return q->op->outputs[0].out_rule == OI_OUT_LIST || q->n_in == 0 ? q->out[0].dtype
                                                                     : q->in[0].dtype;
}

const oi_op_value *oi_kernel_attr(const oi_kernel_query *q, const char *name)
{
    const oi_op_attr *a = oi_op_attr_find(q->op, name);
    return a ? &q->attrs[a - q->op->attrs] : NULL;
}

double oi_kernel_real(const oi_kernel_query *q, const char *name)
{
    const oi_op_value *v = oi_kernel_attr(q, name);
    return v->tag == OI_VALUE_FLOAT ? v->f : v->tag == OI_VALUE_UINT ? (double)v->u : (double)v->i;
}

oi_dtype oi_kernel_accumulator(const oi_kernel_query *q)
{
    const oi_op_value *v = oi_kernel_attr(q, "acc");
    if (!v || v->tag == OI_VALUE_NONE || (v->tag == OI_VALUE_DTYPE_LIST && v->n == 0))
        return OI_NONE;
    return v->tag == OI_VALUE_DTYPE ? v->dtype : v->dtypes[0];
}

oi_dtype oi_kernel_shared(const oi_kernel_query *q)
{
    for (size_t i = 0; i < q->n_in; i++)
        if (oi_op_input_at(q->op, i)->shares_dtype)
            return q->in[i].dtype;
    return q->n_in ? q->in[0].dtype : q->out[0].dtype;
}

/* -- by class -- */

/* The place of an element is all that it reads. */
static bool choose_count(const oi_kernel_query *q, oi_choice *c, oi_kernel_key *k,
                         const char **name)
{
    oi_dtype o = q->out[0].dtype;
    k->out = c->form = oi_form_of(o);
    c->map = oi_table_map(k, c->cpu, name);
    c->run = oi_nest_run;
    return c->map && oi_choose_store(&c->store, o, o, c->cpu);
}

static bool choose_map(const oi_kernel_query *q, oi_choice *c, oi_kernel_key *k, const char **name)
{
    const oi_op_output *rule = &q->op->outputs[0];
    oi_dtype acc = oi_kernel_accumulator(q), t = oi_kernel_shared(q), o = q->out[0].dtype;
    oi_dtype compute = acc != OI_NONE ? acc : t;
    bool converts = rule->out_rule == OI_OUT_ATTR;
    if (q->n_in > 3)
        return false;
    for (size_t i = 0; i < q->n_in; i++) {
        oi_dtype own = acc != OI_NONE ? acc : q->in[i].dtype;
        k->in[i] = converts ? oi_form_source(own) : oi_form_of(own);
        if (!oi_choose_load(&c->load[i], q->in[i].dtype, oi_form_of(own), c->cpu))
            return false;
    }
    if (converts) {
        k->out = o;
        c->store = (oi_store){.store = raw_store(o, c->cpu),
                              .size = (uint8_t)(oi_dtype_bits(o) < 8 ? 1 : oi_dtype_bits(o) / 8),
                              .is_direct = oi_dtype_bits(o) >= 8};
    } else {
        oi_dtype result = rule->out_rule == OI_OUT_LIST ? o : compute;
        k->out = oi_form_of(result);
        if (!oi_choose_store(&c->store, result, o, c->cpu))
            return false;
    }
    c->map = oi_table_map(k, c->cpu, name);
    c->run = oi_map_run;
    c->form = oi_form_of(compute);
    if (c->map && q->op->shape_rule == OI_SHAPE_SCALAR_OR_SAME && q->out[0].rank == 0 &&
        q->in[0].rank != 0) {
        oi_kernel_key fold = {.op = k->op, .in = {OI_BOOL}, .out = OI_BOOL, .values = k->values};
        c->reduce = oi_table_reduce(&fold, c->cpu, NULL);
        c->run = oi_map_fold_run;
        return c->reduce != NULL;
    }
    return c->map != NULL;
}

oi_dtype oi_kernel_reduces_in(const oi_kernel_query *q)
{
    oi_dtype acc = oi_kernel_accumulator(q), t = q->in[0].dtype;
    if (acc != OI_NONE)
        return acc;
    const oi_op_meaning *m = oi_op_meaning_find(q->op, OI_PART_ACCUMULATE, t, t);
    return m ? oi_dtype_find(m->text) : t;
}

static bool choose_reduce(const oi_kernel_query *q, oi_choice *c, oi_kernel_key *k,
                          const char **name)
{
    oi_dtype acc = oi_kernel_reduces_in(q), t = q->in[0].dtype, o = q->out[0].dtype;
    c->form = k->in[0] = k->out = oi_form_of(acc);
    c->reduce = oi_table_reduce(k, c->cpu, name);
    c->run = q->op->loops == OI_LOOPS_REDUCE ? oi_reduce_run
             : q->op->loops == OI_LOOPS_SCAN ? oi_nest_run
                                             : oi_nest_sum_run;
    if (q->n_out > 1) {
        oi_kernel_key place = *k;
        place.out = OI_BOOL; /* as the generator tells them apart */
        c->place = oi_table_reduce(&place, c->cpu, NULL);
    }
    if (!c->reduce || !oi_choose_load(&c->load[0], t, c->form, c->cpu))
        return false;
    if (q->op->shape_rule == OI_SHAPE_ARGREDUCE) {
        c->store =
            (oi_store){.store = oi_forms[c->cpu]->store[o], .size = (uint8_t)oi_form_size(c->form)};
        return true;
    }
    return oi_choose_store(&c->store, acc, o, c->cpu);
}

oi_dtype oi_kernel_sums_in(oi_dtype acc)
{
    oi_dtype form = oi_form_of(acc);
    if (oi_dtype_is_float(form) || form == OI_BOOL)
        return form;
    return oi_dtype_bits(form) == 64 ? OI_I64 : OI_I32;
}

static bool choose_contract(const oi_kernel_query *q, oi_choice *c, oi_kernel_key *k,
                            const char **name)
{
    oi_dtype acc = oi_kernel_accumulator(q), o = q->out[0].dtype;
    acc = acc != OI_NONE ? acc : q->in[0].dtype;
    c->form = k->in[0] = k->out = oi_kernel_sums_in(acc);
    for (size_t i = 0; i < q->n_in; i++)
        if (!oi_choose_load(&c->load[i], q->in[i].dtype, c->form, c->cpu))
            return false;
    if (!oi_choose_store(&c->store, acc, o, c->cpu))
        return false;
    if (c->form != oi_form_of(acc)) {
        c->store.cut = oi_table_cast(c->form, acc, c->cpu);
        c->store.is_direct = false;
    }
    c->store.size = (uint8_t)oi_form_size(c->form);
    if (c->form != oi_form_of(acc) && !c->store.cut)
        return false;
    if (q->op->loops != OI_LOOPS_MATMUL) {
        c->contract = oi_table_contract(k, c->cpu, name);
        c->run = oi_nest_sum_run;
        set_number(&c->one, c->form, &(oi_op_value){.tag = OI_VALUE_INT, .i = 1});
        return c->contract != NULL;
    }
    c->tile = oi_table_tile(k, c->cpu, name);
    c->run = oi_matmul_run;
    if (!c->tile)
        return false;
    c->scratch_bytes = oi_matmul_scratch(q, c);
    (void)oi_gemv_choose(q, c); /* a few rows: the other operand is read once, in place */
    return true;
}

/* Bits move as they are; a scatter that combines computes with them. */
static bool choose_move(const oi_kernel_query *q, oi_choice *c, oi_kernel_key *k, const char **name)
{
    oi_dtype t = q->out[0].dtype;
    k->in[0] = k->out = c->form = oi_form_of(t);
    c->run = oi_nest_run;
    c->reduce = oi_table_reduce(k, c->cpu, name);
    return !c->reduce || (oi_choose_load(&c->load[0], t, c->form, c->cpu) &&
                          oi_choose_store(&c->store, t, t, c->cpu));
}

/* A file of custom/. */
static bool choose_custom(const oi_kernel_query *q, oi_choice *c)
{
    const oi_custom *custom = oi_custom_of(q->op);
    return custom && custom->choose(q, c);
}

static bool choose_kernel(const oi_kernel_query *q, oi_choice *c, oi_kernel_key *k,
                          const char **name)
{
    switch (q->op->cls) {
    case OI_OP_CLASS_MAP:
        return q->op->loops == OI_LOOPS_COUNT_UP ? choose_count(q, c, k, name)
                                                 : choose_map(q, c, k, name);
    case OI_OP_CLASS_REDUCE: return choose_reduce(q, c, k, name);
    case OI_OP_CLASS_CONTRACT: return choose_contract(q, c, k, name);
    case OI_OP_CLASS_MOVE: return choose_move(q, c, k, name);
    case OI_OP_CLASS_COMPOSITE: /* its body is the definition, which scalar runs */
        if (q->op->n_bodies && c->cpu == OI_CPU_SCALAR)
            return false;
        return choose_custom(q, c);
    case OI_OP_CLASS_CUSTOM: return choose_custom(q, c);
    default: return false;
    }
}

/* -- the whole -- */

static int64_t element_count(const oi_operand *o)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < o->rank; a++)
        n *= o->dims[a];
    return n;
}

/* Elementwise results may take an input's place where both lie alike; others are made apart. */
static bool needs_copy(const oi_kernel_query *q, const oi_choice *c)
{
    if (q->tangles)
        return true;
    if (!q->overlaps)
        return false;
    if ((c->run != oi_map_run && c->run != oi_nest_run) || !(q->op->flags & OI_OP_FLAG_INPLACE) ||
        q->n_out != 1 || (c->run == oi_nest_run && q->overlaps != 1))
        return true;
    for (size_t i = 0; i < q->n_in; i++) {
        const oi_operand *x = &q->in[i], *y = &q->out[0];
        if (!(q->overlaps >> i & 1))
            continue;
        if (x->dtype != y->dtype || x->rank != y->rank)
            return true;
        for (uint32_t a = 0; a < x->rank; a++)
            if (x->dims[a] != y->dims[a] || x->strides[a] != y->strides[a])
                return true;
    }
    return false;
}

/* Room for an output made apart. */
static bool add_copy(const oi_operand *o, size_t *size)
{
    uint64_t bytes;
    if (!oi_dtype_bytes(o->dtype, (uint64_t)element_count(o), &bytes) || bytes > SIZE_MAX / 2 ||
        *size > SIZE_MAX / 2)
        return false;
    *size += ((size_t)bytes + 63) / 64 * 64;
    return true;
}

bool oi_choice_finish(const oi_kernel_query *q, const char *name, oi_choice *c)
{
    c->copies_out = needs_copy(q, c);
    c->copy_at = (c->scratch_bytes + 63) / 64 * 64;
    if (c->copies_out) {
        c->scratch_bytes = c->copy_at;
        for (size_t o = 0; o < q->n_out; o++)
            if (!add_copy(&q->out[o], &c->scratch_bytes))
                return false;
    }
    snprintf(c->name, sizeof c->name, "%s.%s", name, oi_cpu_name(c->cpu));
    return true;
}

bool oi_kernel_choose(const oi_kernel_query *q, oi_cpu cpu, oi_choice *c)
{
    uint8_t values[OI_KERNEL_ATTRS] = {0};
    const char *name = q->op->name;
    c->run = NULL;
    c->scratch_bytes = 0;
    c->cpu = cpu;
    c->map = NULL;
    c->reduce = NULL;
    c->place = NULL;
    c->tile = NULL;
    c->contract = NULL;
    if (q->op->n_attrs > OI_KERNEL_ATTRS || q->n_in > OI_KERNEL_PORTS || q->n_out > OI_KERNEL_PORTS)
        return false;
    oi_kernel_key k = {.op = q->op->id, .values = values};
    set_attrs(q, c, values, &k.given);
    if (!choose_kernel(q, c, &k, &name))
        return false;
    return oi_choice_finish(q, name, c);
}

/* The outputs in scratch, contiguous. */
static void set_apart(const oi_kernel_query *q, char *scratch, oi_operand *apart, void **made)
{
    size_t at = 0;
    for (size_t o = 0; o < q->n_out; o++) {
        int64_t stride = 1;
        apart[o] = q->out[o];
        for (uint32_t a = apart[o].rank; a-- > 0; stride *= apart[o].dims[a])
            apart[o].strides[a] = stride;
        made[o] = scratch + at;
        add_copy(&apart[o], &at);
    }
}

bool oi_kernel_call(const oi_kernel_query *q, const oi_choice *c, const oi_kernel_io *io,
                    oi_kernel_fault *fault)
{
    if (!c->copies_out)
        return c->run(q, c, io, fault);
    oi_operand apart[OI_KERNEL_PORTS];
    void *made[OI_KERNEL_PORTS];
    set_apart(q, (char *)io->scratch + c->copy_at, apart, made);
    oi_kernel_query q2 = *q;
    oi_kernel_io io2 = *io;
    q2.out = apart;
    io2.out = made;
    io2.out_at = NULL;
    if (!c->run(&q2, c, &io2, fault))
        return false;
    for (size_t o = 0; o < q->n_out; o++)
        oi_copy(&q->out[o], io->out[o], io->out_at ? io->out_at[o] : 0, &apart[o], made[o], 0, io);
    return true;
}
