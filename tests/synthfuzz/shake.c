/* shake.c: put into a program's main.c by shaking_cc. Before every step another instance takes one from its
 * beginning; then that other one loads what was saved before and must do the same step bit for bit, in everything
 * it shows. Only then goes out what the first showed; whether it was disturbed, the simulator beside it sees. */
#include "shaken_inputs.h"
#include <stdlib.h>
#include <string.h>

typedef struct tape {
    unsigned char *at;
    size_t n, room;
} tape;

static tape *recording;

static void shaken_write(const void *from, size_t size)
{
    if (!size)
        return;
    if (recording->n + size > recording->room) {
        recording->room = 2 * (recording->n + size);
        recording->at = realloc(recording->at, recording->room);
        if (!recording->at)
            hal_stop(5, "shake: out of memory");
    }
    memcpy(recording->at + recording->n, from, size);
    recording->n += size;
}

/* `who` takes a step on these inputs; what it shows goes on the tape. */
static void record(NAME *who, const NAME *inputs, int graph, tape *to)
{
    NAME *was = current;
    SHAKEN_COPY(who, inputs);
    to->n = 0;
    recording = to;
    current = who;
    take_step(graph);
    current = was;
}

static void shaken_step(int graph)
{
    static NAME other, given;
    static unsigned char before[NAME_SAVED];
    static tape mine, others;
    if (!other.weights) {
        uint64_t size;
        memcpy(&size, program.weights + 16, sizeof size);
        memset(&other, 0x5a, sizeof other);
        if (NAME_init(&other, program.weights, (size_t)size) != 0)
            hal_stop(6, "shake: the other instance does not take the weights");
    }
    SHAKEN_COPY(&given, current);
    NAME_save(current, before);
    NAME_reset(&other);
    record(&other, &given, graph, &others);
    record(current, &given, graph, &mine);
    if (NAME_load(&other, before, sizeof before) != 0)
        hal_stop(7, "shake: a saved state is not taken");
    record(&other, &given, graph, &others);
    if (mine.n != others.n || memcmp(mine.at, others.at, mine.n) != 0)
        hal_stop(8, "shake: from a saved state the other instance does something else");
    hal_write(mine.at, mine.n);
    hal_flush();
}
