/* vulkan_step.c: what a step says is a text of words: a word for the kind, then its operands. A
 * list of commands is recorded for every text that comes up; the least used one of MOST_LISTS goes
 * when there is another. Run-time numbers lie in mapped buffers in the order of the text, so a text
 * also says where they are.
 *
 * Barriers follow from memory: a command waits if it reads what an earlier one wrote, or writes
 * what an earlier one read or wrote, since the last barrier. */
#include "vulkan_run.h"

#include "vulkan_parts.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LISTS  16u
#define BLOCK_BYTES 65536u /* of a buffer of run-time numbers */
#define MOST_BLOCKS 4096u
#define MOST_PORTS  64u

/* Memories beside the program's own. */
enum { UNDO = OI_VK_MEMORIES, FAILURE, INPUT, OUTPUT, BLOCKS };

enum { DISPATCH, COPY, CLEAR };

typedef struct text {
    uint64_t *at;
    size_t n, cap;
} text;

typedef struct recorded {
    text said;
    oi_vk_list *list;
    uint64_t used; /* when it was submitted last */
} recorded;

typedef struct kept { /* part of the log: where it was, and in the log */
    uint64_t memory, offset, at, bytes;
} kept;

struct oi_vk_run {
    oi_vk *d;
    oi_vk_program p;
    oi_vk_buffer *memory[BLOCKS];
    oi_vk_pipeline **pipelines;
    oi_vk_buffer *blocks[MOST_BLOCKS];
    uint32_t n_blocks;
    recorded lists[MOST_LISTS];
    oi_vk_list *undo; /* of the rollback */
    text said;        /* since the last submission */
    uint64_t at;      /* in the run-time numbers */
    uint32_t order;   /* dispatches of the step */
    bool may_fail;    /* something that was said may */
    bool has_failing; /* some kernel may */
    bool *is_stale;   /* by known value: the device has or gets a newer one */
    unsigned char *host, *keep, *before;
    size_t n_keep, n_before;
    kept *log;
    size_t n_log, n_done, log_cap; /* done: what the device has kept */
    uint64_t log_at;
    void *room;
    size_t n_room;
    uint64_t scratch[512]; /* numbers of a dispatch that cannot be */
    oi_vk_counts counts;
    oi_vk_status status;
};

/* -- memory of the host -- */

static void lose(oi_vk_run *r, oi_vk_status s)
{
    if (r->status == OI_VK_OK)
        r->status = s;
}

static oi_vk_status no_memory(oi_vk *d, size_t bytes)
{
    return oi_vk_fail(d->why, OI_VK_NO_MEMORY, "out of memory: %zu bytes", bytes);
}

static bool grow(oi_vk_run *r, void **at, size_t bytes)
{
    void *more = realloc(*at, bytes);
    if (more)
        *at = more;
    else
        lose(r, no_memory(r->d, bytes));
    return more != NULL;
}

static void say(oi_vk_run *r, uint64_t word)
{
    text *t = &r->said;
    if (t->n == t->cap && !grow(r, (void **)&t->at, (t->cap + 256) * 2 * sizeof *t->at))
        return;
    if (t->n == t->cap)
        t->cap = (t->cap + 256) * 2;
    t->at[t->n++] = word;
}

static void say_operand(oi_vk_run *r, uint64_t memory, uint64_t offset, uint64_t bytes)
{
    say(r, memory);
    say(r, offset);
    say(r, bytes);
}

void *oi_vk_run_room(oi_vk_run *r, size_t bytes)
{
    if (bytes > r->n_room && grow(r, &r->room, bytes))
        r->n_room = bytes;
    return bytes <= r->n_room ? r->room : NULL;
}

/* -- making and ending it -- */

static oi_vk_status check_device(oi_vk *d, const oi_vk_program *p)
{
    const oi_vk_info *i = &d->info;
    const uint32_t most =
        i->group_invocations < i->group_size[0] ? i->group_invocations : i->group_size[0];
    const uint32_t lacks = p->features & ~d->enabled;
    if (lacks)
        return oi_vk_lacks(d, lacks);
    if (p->align % i->buffer_align)
        return oi_vk_fail(
            d->why, OI_VK_NO_FEATURE,
            "the Vulkan device '%.100s' aligns buffers to %u bytes, the program to %u", i->name,
            i->buffer_align, p->align);
    if (p->group_invocations > most || p->shared_bytes > i->shared_bytes)
        return oi_vk_fail(
            d->why, OI_VK_NO_FEATURE,
            "the Vulkan device '%.100s' has workgroups of %u invocations and %u bytes, "
            "the program needs %u and %u",
            i->name, most, i->shared_bytes, p->group_invocations, p->shared_bytes);
    return OI_VK_OK;
}

static uint64_t known_at(const oi_vk_run *r, uint32_t i);

static oi_vk_status make_memory(oi_vk_run *r, const void *weights)
{
    const uint64_t io = r->p.bytes[OI_VK_IO];

    const uint64_t bytes[BLOCKS] = {[OI_VK_WEIGHTS] = r->p.bytes[OI_VK_WEIGHTS],
                                    [OI_VK_STATE] = r->p.bytes[OI_VK_STATE],
                                    [OI_VK_WORK] = r->p.bytes[OI_VK_WORK],
                                    [OI_VK_IO] = io,
                                    [UNDO] = r->p.undo_bytes,
                                    [FAILURE] = 4,
                                    [INPUT] = io,
                                    [OUTPUT] = known_at(r, r->p.n_known)};
    oi_vk_status s = OI_VK_OK;
    for (uint32_t m = 0; s == OI_VK_OK && m < BLOCKS; m++)
        s = oi_vk_buffer_new(r->d, bytes[m],
                             m == INPUT    ? OI_VK_UPLOAD
                             : m == OUTPUT ? OI_VK_READBACK
                                           : OI_VK_DEVICE,
                             &r->memory[m]);
    return s == OI_VK_OK
               ? oi_vk_upload(r->memory[OI_VK_WEIGHTS], 0, weights, r->p.bytes[OI_VK_WEIGHTS])
               : s;
}

static oi_vk_status make_pipelines(oi_vk_run *r)
{
    oi_vk_status s = OI_VK_OK;
    for (uint32_t k = 0; s == OI_VK_OK && k < r->p.n_kernels; k++) {
        const oi_vk_kernel *own = &r->p.kernels[k];
        const uint32_t n =
            own->n_operands + (own->failure != OI_VK_NONE) + (own->scalars != OI_VK_NONE);
        const oi_vk_shader shader = {.code = own->code,
                                     .bytes = own->bytes,
                                     .n_bindings = n,
                                     .full_subgroups = own->full_subgroups};
        s = oi_vk_pipeline_new(r->d, &shader, &r->pipelines[k]);
        r->has_failing |= own->can_fail;
    }
    return s;
}

/* No bit is left to chance: not in the last words of packed tensors, nor between tensors. */
static oi_vk_status clear_memory(oi_vk_run *r)
{
    oi_vk_status s = oi_vk_list_new(r->d, &r->undo);
    for (uint32_t m = OI_VK_STATE; s == OI_VK_OK && m <= FAILURE; m++)
        oi_vk_list_fill(r->undo, (oi_vk_part){r->memory[m], 0, 0}, 0);
    if (s == OI_VK_OK)
        s = oi_vk_list_end(r->undo);
    if (s == OI_VK_OK)
        s = oi_vk_list_submit(r->undo);
    return s == OI_VK_OK ? oi_vk_list_wait(r->undo) : s;
}

oi_vk_status oi_vk_run_new(oi_vk *d, const oi_vk_program *p, const void *weights, oi_vk_run **out)
{
    oi_vk_status s = check_device(d, p);
    *out = NULL;
    oi_vk_run *r = s == OI_VK_OK ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return s == OI_VK_OK ? no_memory(d, sizeof *r) : s;
    r->d = d;
    r->p = *p;
    r->pipelines = calloc(p->n_kernels + 1, sizeof *r->pipelines);
    r->is_stale = calloc(p->n_known + 1, sizeof *r->is_stale);
    s = r->pipelines && r->is_stale ? make_memory(r, weights) : no_memory(d, 1024);
    if (s == OI_VK_OK)
        s = make_pipelines(r);
    if (s == OI_VK_OK)
        s = clear_memory(r);
    if (s == OI_VK_OK)
        *out = r;
    else
        oi_vk_run_free(r);
    return s;
}

void oi_vk_run_free(oi_vk_run *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < MOST_LISTS; i++) {
        oi_vk_list_free(r->lists[i].list);
        free(r->lists[i].said.at);
    }
    oi_vk_list_free(r->undo);
    for (uint32_t k = 0; r->pipelines && k < r->p.n_kernels; k++)
        oi_vk_pipeline_free(r->pipelines[k]);
    for (uint32_t m = 0; m < BLOCKS; m++)
        oi_vk_buffer_free(r->memory[m]);
    for (uint32_t b = 0; b < r->n_blocks; b++)
        oi_vk_buffer_free(r->blocks[b]);
    free(r->pipelines);
    free(r->is_stale);
    free(r->said.at);
    free(r->before);
    free(r->log);
    free(r->room);
    free(r);
}

oi_vk *oi_vk_run_device(oi_vk_run *r)
{
    return r->d;
}

oi_vk_counts oi_vk_run_counts(const oi_vk_run *r)
{
    return r->counts;
}

/* -- what is said -- */

static void *mapped(const oi_vk_run *r, uint32_t memory)
{
    return oi_vk_buffer_map(r->memory[memory]);
}

static void mark_known(oi_vk_run *r, uint64_t memory, uint64_t offset, uint64_t bytes)
{
    for (uint32_t i = 0; i < r->p.n_known; i++) {
        const oi_vk_operand *own = &r->p.known[i].at;
        r->is_stale[i] |= own->memory == memory && own->offset < offset + bytes &&
                          offset < own->offset + own->bytes;
    }
}

/* Room for run-time numbers of a dispatch; *place says where it is. */
static unsigned char *take_block(oi_vk_run *r, uint32_t bytes, uint64_t *place)
{
    const uint64_t align = r->d->info.buffer_align > 16 ? r->d->info.buffer_align : 16;
    uint64_t at = (r->at + align - 1) / align * align;
    if (at / BLOCK_BYTES != (at + bytes) / BLOCK_BYTES)
        at = (at / BLOCK_BYTES + 1) * BLOCK_BYTES;
    const uint64_t block = at / BLOCK_BYTES;
    *place = at;
    oi_vk_status s = OI_VK_OK;
    if (block >= MOST_BLOCKS || bytes > sizeof r->scratch)
        s = no_memory(r->d, bytes);
    else if (block == r->n_blocks)
        s = oi_vk_buffer_new(r->d, BLOCK_BYTES, OI_VK_UPLOAD, &r->blocks[block]);
    if (s != OI_VK_OK) {
        lose(r, s);
        return (unsigned char *)r->scratch;
    }
    r->n_blocks += block == r->n_blocks;
    r->at = at + bytes;
    return (unsigned char *)oi_vk_buffer_map(r->blocks[block]) + at % BLOCK_BYTES;
}

/* A word for the kernel and the workgroups, one for its numbers, and its operands. */
static unsigned char *say_dispatch(oi_vk_run *r, uint32_t kernel, const oi_vk_operand *operands,
                                   uint64_t groups)
{
    const oi_vk_kernel *k = &r->p.kernels[kernel];
    uint64_t place = 0;
    unsigned char *block = (unsigned char *)r->scratch;
    if (k->scalars != OI_VK_NONE)
        block = take_block(r, k->scalar_bytes, &place);
    if (k->order != OI_VK_NONE)
        memcpy(block + k->order, &r->order, sizeof r->order);
    say(r, DISPATCH | (uint64_t)kernel << 8);
    say(r, groups);
    say(r, place);
    for (uint32_t i = 0; i < k->n_operands; i++) {
        const bool is_bound = k->bound >> i & 1;
        say_operand(r, is_bound ? operands[i].memory : OI_VK_NONE,
                    is_bound ? operands[i].offset : 0, is_bound ? operands[i].bytes : 0);
        if (is_bound && k->written >> i & 1)
            mark_known(r, operands[i].memory, operands[i].offset, operands[i].bytes);
    }
    r->order++;
    r->may_fail |= k->can_fail;
    return block;
}

unsigned char *oi_vk_run_dispatch(oi_vk_run *r, uint32_t kernel, const oi_vk_operand *operands)
{
    return say_dispatch(r, kernel, operands, r->p.kernels[kernel].groups);
}

void oi_vk_run_copy(oi_vk_run *r, oi_vk_operand to, oi_vk_operand from)
{
    say(r, COPY);
    say_operand(r, to.memory, to.offset, from.bytes);
    say_operand(r, from.memory, from.offset, from.bytes);
    mark_known(r, to.memory, to.offset, from.bytes);
}

void oi_vk_run_fill(oi_vk_run *r, oi_vk_operand to, uint64_t bytes, uint64_t pattern)
{
    if (bytes == 0)
        return;
    const uint32_t numbers[4] = {(uint32_t)to.base, (uint32_t)bytes, (uint32_t)pattern,
                                 (uint32_t)(pattern >> 32)};
    unsigned char *block = say_dispatch(r, r->p.fill, &to, ((bytes + 3) / 4 + 63) / 64);
    memcpy(block + 4, numbers, sizeof numbers);
}

void oi_vk_run_log(oi_vk_run *r, oi_vk_operand from, uint64_t bytes, uint64_t most)
{
    const uint32_t first = (uint32_t)from.base / 4,
                   last = (uint32_t)(((uint64_t)from.base + bytes + 3) / 4);
    const uint32_t numbers[3] = {first, last, (uint32_t)(r->log_at / 4)};
    const oi_vk_operand both[2] = {from, {UNDO, 0, 0, r->p.undo_bytes}};
    if (r->n_log == r->log_cap &&
        !grow(r, (void **)&r->log, (r->log_cap + 32) * 2 * sizeof *r->log))
        return;
    if (r->n_log == r->log_cap)
        r->log_cap = (r->log_cap + 32) * 2;
    r->log[r->n_log++] = (kept){from.memory, from.offset + 4 * (uint64_t)first, r->log_at,
                                4 * (uint64_t)(last - first)};
    memcpy(say_dispatch(r, r->p.log, both, ((most + 7) / 4 + 63) / 64), numbers, sizeof numbers);
    r->log_at += (bytes + 7) / 8 * 8 + 8; /* bytes of the first and last word beside the part */
}

void oi_vk_run_keep(oi_vk_run *r)
{
    const uint64_t bytes = r->p.bytes[OI_VK_STATE];
    const oi_vk_operand all = {OI_VK_STATE, 0, 0, bytes};
    if (bytes == 0 || (r->log_cap == 0 && !grow(r, (void **)&r->log, 32 * sizeof *r->log)))
        return;
    r->log_cap = r->log_cap ? r->log_cap : 32;
    r->log[r->n_log++] = (kept){OI_VK_STATE, 0, 0, bytes};
    oi_vk_run_copy(r, (oi_vk_operand){UNDO, 0, 0, bytes}, all);
}

/* -- lists of commands -- */

typedef struct access {
    uint64_t memory, offset, bytes;
    bool writes;
} access;

typedef struct recording {
    oi_vk_run *r;
    oi_vk_list *list;
    access *done; /* since the last barrier */
    size_t n, cap;
    access now[MOST_PORTS + 2]; /* of the present command */
    uint32_t n_now;
    const uint64_t *at;
} recording;

static bool conflicts(const access *a, const access *b)
{
    return (a->writes || b->writes) && a->memory == b->memory && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

/* Nothing writes weights. */
static void uses(recording *x, uint64_t memory, uint64_t offset, uint64_t bytes, bool writes)
{
    if (memory != OI_VK_WEIGHTS && x->n_now < MOST_PORTS + 2)
        x->now[x->n_now++] = (access){memory, offset, bytes, writes};
}

static void put_barrier(recording *x)
{
    bool waits = false;
    for (uint32_t i = 0; i < x->n_now; i++)
        for (size_t k = 0; !waits && k < x->n; k++)
            waits = conflicts(&x->now[i], &x->done[k]);
    if (waits) {
        oi_vk_list_barrier(x->list);
        x->r->counts.barriers++;
        x->n = 0;
    }
    if (x->n + x->n_now > x->cap) {
        if (!grow(x->r, (void **)&x->done, (x->n + x->n_now) * 2 * sizeof *x->done))
            return;
        x->cap = (x->n + x->n_now) * 2;
    }
    memcpy(x->done + x->n, x->now, x->n_now * sizeof *x->now);
    x->n += x->n_now;
}

static oi_vk_part part_at(recording *x)
{
    const uint64_t memory = x->at[0], offset = x->at[1], bytes = x->at[2];
    x->at += 3;
    return memory == OI_VK_NONE ? (oi_vk_part){NULL, 0, 0}
                                : (oi_vk_part){x->r->memory[memory], offset, bytes};
}

static void put_dispatch(recording *x, uint32_t kernel)
{
    oi_vk_run *r = x->r;
    const oi_vk_kernel *k = &r->p.kernels[kernel];
    oi_vk_part parts[MOST_PORTS + 2];
    const uint64_t groups = x->at[0], place = x->at[1];
    x->at += 2;
    for (uint32_t i = 0; i < k->n_operands; i++) {
        if (k->bound >> i & 1)
            uses(x, x->at[0], x->at[1], x->at[2], k->written >> i & 1);
        parts[i] = part_at(x);
    }
    if (k->failure != OI_VK_NONE) {
        uses(x, FAILURE, 0, 4, k->can_fail);
        parts[k->failure] = (oi_vk_part){r->memory[FAILURE], 0, 4};
    }
    if (k->scalars != OI_VK_NONE)
        parts[k->scalars] =
            (oi_vk_part){r->blocks[place / BLOCK_BYTES], place % BLOCK_BYTES, k->scalar_bytes};
    put_barrier(x);
    oi_vk_list_dispatch(x->list, r->pipelines[kernel], parts, NULL, groups);
    r->counts.dispatched++;
}

static void put_copy(recording *x)
{
    uses(x, x->at[0], x->at[1], x->at[2], true);
    const oi_vk_part to = part_at(x);
    uses(x, x->at[0], x->at[1], x->at[2], false);
    const oi_vk_part from = part_at(x);
    put_barrier(x);
    oi_vk_list_copy(x->list, to, from);
}

static oi_vk_status record(oi_vk_run *r, recorded *into)
{
    recording x = {.r = r, .list = into->list, .at = r->said.at};
    for (const uint64_t *end = r->said.at + r->said.n; x.at < end;) {
        const uint64_t word = *x.at++;
        x.n_now = 0;
        if ((word & 255) == DISPATCH) {
            put_dispatch(&x, (uint32_t)(word >> 8));
        } else if (word == COPY) {
            put_copy(&x);
        } else {
            uses(&x, x.at[0], x.at[1], x.at[2], true);
            const oi_vk_part to = part_at(&x);
            put_barrier(&x);
            oi_vk_list_fill(x.list, to, 0);
        }
    }
    free(x.done);
    r->counts.recorded++;
    return oi_vk_list_end(into->list);
}

static bool is_same(const text *a, const text *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof *a->at) == 0;
}

/* The list for another text: an empty one, or the one that was not used for longest. */
static recorded *find_room(oi_vk_run *r)
{
    recorded *oldest = &r->lists[0];
    for (uint32_t i = 0; i < MOST_LISTS; i++)
        if (r->lists[i].used < oldest->used)
            oldest = &r->lists[i];
    const oi_vk_status s =
        oldest->list ? oi_vk_list_clear(oldest->list) : oi_vk_list_new(r->d, &oldest->list);
    oldest->said.n = 0;
    oldest->used = 0;
    lose(r, s);
    return s == OI_VK_OK ? oldest : NULL;
}

static recorded *find_list(oi_vk_run *r)
{
    for (uint32_t i = 0; i < MOST_LISTS; i++)
        if (r->lists[i].used && is_same(&r->lists[i].said, &r->said))
            return &r->lists[i];
    recorded *l = find_room(r);
    if (!l)
        return NULL;
    lose(r, record(r, l));
    if (r->said.n > l->said.cap && grow(r, (void **)&l->said.at, r->said.n * sizeof *l->said.at))
        l->said.cap = r->said.n;
    if (r->status != OI_VK_OK)
        return NULL;
    memcpy(l->said.at, r->said.at, r->said.n * sizeof *l->said.at);
    l->said.n = r->said.n;
    return l;
}

/* -- submitting -- */

static uint64_t failure_at(const oi_vk_run *r)
{
    return (r->p.bytes[OI_VK_IO] + 7) / 8 * 8;
}

static uint64_t known_at(const oi_vk_run *r, uint32_t i)
{
    uint64_t at = failure_at(r) + 8;
    for (uint32_t k = 0; k < i; k++)
        at += (r->p.known[k].at.bytes + 7) / 8 * 8;
    return at;
}

static void forget(oi_vk_run *r)
{
    r->said.n = 0;
    r->at = 0;
    r->may_fail = false;
}

/* What the host is to know comes along. */
static void say_known(oi_vk_run *r)
{
    for (uint32_t i = 0; i < r->p.n_known; i++)
        if (r->is_stale[i])
            oi_vk_run_copy(r, (oi_vk_operand){OUTPUT, 0, known_at(r, i), 0}, r->p.known[i].at);
    if (r->has_failing)
        oi_vk_run_copy(r, (oi_vk_operand){OUTPUT, 0, failure_at(r), 0},
                       (oi_vk_operand){FAILURE, 0, 0, 4});
}

static void learn(oi_vk_run *r)
{
    const unsigned char *out = mapped(r, OUTPUT);
    for (uint32_t i = 0; i < r->p.n_known; i++) {
        if (r->is_stale[i])
            memcpy(r->host + r->p.known[i].in_struct, out + known_at(r, i), r->p.known[i].at.bytes);
        r->is_stale[i] = false;
    }
}

oi_vk_status oi_vk_run_wait(oi_vk_run *r, int *failed)
{
    uint32_t word = 0;
    *failed = 0;
    if (r->status == OI_VK_OK && r->said.n > 0) {
        say_known(r);
        recorded *l = r->status == OI_VK_OK ? find_list(r) : NULL;
        if (l) {
            l->used = ++r->counts.submitted;
            lose(r, oi_vk_list_submit(l->list));
            if (r->status == OI_VK_OK)
                r->n_done = r->n_log;
            lose(r, oi_vk_list_wait(l->list));
        }
        if (r->status == OI_VK_OK)
            learn(r);
    }
    forget(r);
    if (r->status == OI_VK_OK && r->has_failing)
        memcpy(&word, (const unsigned char *)mapped(r, OUTPUT) + failure_at(r), sizeof word);
    *failed = (int)(word & 255);
    return r->status;
}

oi_vk_status oi_vk_run_know(oi_vk_run *r, uint32_t known, int *failed)
{
    *failed = 0;
    if (!r->is_stale[known])
        return r->status;
    if (r->said.n == 0) { /* only what the host changed */
        const oi_vk_operand at = r->p.known[known].at;
        r->is_stale[known] = false;
        return oi_vk_run_read(r, r->host + r->p.known[known].in_struct, at);
    }
    return oi_vk_run_wait(r, failed);
}

/* -- beginning and end of a step -- */

void oi_vk_run_begin(oi_vk_run *r, void *host, void *keep, size_t n_keep)
{
    forget(r);
    if (r->status != OI_VK_LOST)
        r->status = OI_VK_OK;
    r->order = 0;
    r->n_log = r->n_done = 0;
    r->log_at = 0;
    r->host = host;
    r->keep = keep;
    r->n_keep = n_keep;
    if (n_keep > r->n_before && grow(r, (void **)&r->before, n_keep))
        r->n_before = n_keep;
    if (r->status == OI_VK_OK)
        memcpy(r->before, keep, n_keep);
    if (!r->has_failing)
        return;
    say(r, CLEAR);
    say_operand(r, FAILURE, 0, 4);
}

void *oi_vk_run_input(oi_vk_run *r, uint64_t offset)
{
    return (unsigned char *)mapped(r, INPUT) + offset;
}

void oi_vk_run_take(oi_vk_run *r, uint64_t offset, uint64_t bytes)
{
    if (bytes)
        oi_vk_run_copy(r, (oi_vk_operand){OI_VK_IO, 0, offset, bytes},
                       (oi_vk_operand){INPUT, 0, offset, bytes});
}

const void *oi_vk_run_output(const oi_vk_run *r, uint64_t offset)
{
    return (const unsigned char *)mapped(r, OUTPUT) + offset;
}

/* The last entry of the log first. */
static oi_vk_status roll_back(oi_vk_run *r)
{
    if (r->n_done == 0)
        return OI_VK_OK;
    oi_vk_status s = oi_vk_list_clear(r->undo);
    if (s != OI_VK_OK)
        return s;
    for (size_t i = r->n_done; i-- > 0;) {
        const kept *k = &r->log[i];
        oi_vk_list_copy(r->undo, (oi_vk_part){r->memory[k->memory], k->offset, k->bytes},
                        (oi_vk_part){r->memory[UNDO], k->at, k->bytes});
        oi_vk_list_barrier(r->undo);
    }
    s = oi_vk_list_end(r->undo);
    if (s == OI_VK_OK)
        s = oi_vk_list_submit(r->undo);
    return s == OI_VK_OK ? oi_vk_list_wait(r->undo) : s;
}

oi_vk_status oi_vk_run_end(oi_vk_run *r, uint64_t offset, uint64_t bytes, int *failed)
{
    int found = 0;
    if (*failed && !r->may_fail)
        forget(r); /* nothing before it can have failed: it has no effect */
    if (!*failed && bytes)
        oi_vk_run_copy(r, (oi_vk_operand){OUTPUT, 0, offset, 0},
                       (oi_vk_operand){OI_VK_IO, 0, offset, bytes});
    const oi_vk_status s = r->status == OI_VK_OK ? oi_vk_run_wait(r, &found) : r->status;
    *failed = found ? found : *failed;
    forget(r);
    if (s == OI_VK_OK && *failed == 0)
        return s;
    if (r->before)
        memcpy(r->keep, r->before, r->n_keep);
    memset(r->is_stale, 0, r->p.n_known * sizeof *r->is_stale);
    const oi_vk_status undone = s == OI_VK_LOST ? s : roll_back(r);
    return s == OI_VK_OK ? undone : s;
}

/* -- between steps -- */

oi_vk_status oi_vk_run_read(oi_vk_run *r, void *to, oi_vk_operand from)
{
    return oi_vk_download(to, r->memory[from.memory], from.offset, from.bytes);
}

oi_vk_status oi_vk_run_write(oi_vk_run *r, oi_vk_operand to, const void *from)
{
    mark_known(r, to.memory, to.offset, to.bytes);
    return oi_vk_upload(r->memory[to.memory], to.offset, from, to.bytes);
}
