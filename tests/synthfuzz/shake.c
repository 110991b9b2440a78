/* shake.c: put into a program's main.c by shaking_cc. Before every step another instance takes one
 * from its beginning; then that other one loads what was saved before and must do the same step bit
 * for bit, in everything it shows. Only then goes out what the first showed; whether it was
 * disturbed, the simulator beside it sees. */
#include <stdlib.h>
#include <string.h>

typedef struct tape {
    unsigned char *data;
    size_t n, room, at; /* at: how far it was read again */
} tape;

static tape given, *shown; /* the inputs of this step; where results go */
static int is_again;       /* inputs come from the tape */

static void record(tape *t, const void *from, size_t size)
{
    if (!size)
        return;
    if (t->n + size > t->room) {
        t->room = 2 * (t->n + size);
        t->data = realloc(t->data, t->room);
        if (!t->data)
            hal_stop(5, "shake: out of memory");
    }
    memcpy(t->data + t->n, from, size);
    t->n += size;
}

static int shaken_read(void *to, size_t size)
{
    if (!is_again) {
        const int is_there = hal_read(to, size);
        if (is_there == 1)
            record(&given, to, size);
        return is_there;
    }
    if (size > given.n - given.at)
        return 0;
    memcpy(to, given.data + given.at, size);
    given.at += size;
    return 1;
}

static int shaken_write(const void *from, size_t size)
{
    record(shown, from, size);
    return 1;
}

/* The step of these inputs by another; what it shows goes on the tape. */
static void take(NAME *who, tape *to)
{
    NAME *was = current;
    current = who;
    to->n = given.at = 0;
    shown = to;
    is_again = 1;
    take_step(next_graph());
    is_again = 0;
    current = was;
}

static void shaken_step(void)
{
    static NAME other;
    static unsigned char before[NAME_SAVED_BYTES];
    static tape mine, others;
    if (!other.oi_weights) {
        uint64_t size;
        memcpy(&size, program.oi_weights + 16, sizeof size);
        memset(&other, 0x5a, sizeof other);
        if (NAME_init(&other, program.oi_weights, (size_t)size) != 0)
            hal_stop(6, "shake: the other instance does not take the weights");
    }
    NAME_save(current, before);
    NAME_reset(&other);
    take(&other, &others);
    take(current, &mine);
    if (NAME_load(&other, before, sizeof before) != 0)
        hal_stop(7, "shake: a saved state is not taken");
    take(&other, &others);
    if (mine.n != others.n || memcmp(mine.data, others.data, mine.n) != 0)
        hal_stop(8, "shake: from a saved state the other instance does something else");
    if (!hal_write(mine.data, mine.n))
        hal_stop(3, "shake: the output cannot be written");
    flush();
    given.n = 0;
}
