/* record.c: what a program's main.c says: four numbers, a name, dims in two forms, contents. */
#include "verify/verify.h"

#include <stdlib.h>

#define MOST_BYTES (1ull << 36) /* no value is greater: the stream is out of step */

static bool make_room(oi_record *r)
{
    if (r->size <= r->cap)
        return true;
    void *data = realloc(r->data, (size_t)r->size);
    if (!data)
        return false;
    r->data = data;
    r->cap = r->size;
    return true;
}

bool oi_record_read(oi_child *c, oi_record *r)
{
    uint64_t head[4];
    if (!oi_child_read(c, head, sizeof head))
        return false;
    if (head[1] >= sizeof r->name || head[2] > OI_COUNT(r->room) || head[3] > MOST_BYTES)
        return false;
    r->kind = (int)head[0];
    r->rank = (uint32_t)head[2];
    r->size = head[3];
    r->name[head[1]] = '\0';
    return make_room(r) && oi_child_read(c, r->name, (size_t)head[1]) &&
           oi_child_read(c, r->room, r->rank * sizeof *r->room) &&
           oi_child_read(c, r->used, r->rank * sizeof *r->used) &&
           oi_child_read(c, r->data, (size_t)r->size);
}
