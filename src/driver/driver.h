/* driver.h: runs the synthesizer: binds graphs, runs the passes, checks the plan, lets a target
 * print it, and writes a folder. These files implement the part of openinfer.h that is about plans.
 * Grouped by the file that implements it. */
#ifndef OI_DRIVER_H
#define OI_DRIVER_H

#include "emit/emit.h"
#include "synth/unit.h"

/* What is behind a plan that a caller holds. */
typedef struct oi_synthesis {
    oi_plan plan; /* first, so that a pointer to it is one to this; frozen when the unit is done */
    oi_unit unit;
    const oi_target *target;
    oi_certificate certificate;
    oi_program **programs;
    size_t n_programs;
    bool overwrites;
    uint64_t max_output;
    oi_weights_progress progress;
} oi_synthesis;

static inline oi_synthesis *oi_synthesis_of(oi_plan *p)
{
    return (oi_synthesis *)p;
}

/* -- synthesize.c -- */

/* Reports why the device cannot be served (E060). */
oi_status oi_synthesis_refuse(const oi_device_info *t, const char *why, oi_diag *diag);

/* -- manifest.c: which files of an output folder are ours -- */

/* Lists are file names, one per line. NULL: the folder has no list. */
oi_status oi_manifest_read(const char *dir, char **list, oi_diag *d);
/* Refuses to replace files that the old list does not name. */
oi_status oi_manifest_check(const char *dir, const char *old, const char *list, oi_diag *d);
/* Writes the names of both lists; old may be NULL. */
oi_status oi_manifest_write(const char *dir, const char *old, const char *list, oi_diag *d);
/* Writes it in another folder of this file system and moves it to dir: a process that is killed
 * leaves no temporary file there. */
oi_status oi_manifest_replace(const char *dir, const char *beside, const char *old,
                              const char *list, oi_diag *d);
void oi_manifest_remove(const char *dir, const char *old, const char *list); /* old ones */
oi_status oi_folder_make_parents(const char *dir, oi_diag *d);

/* -- room.c: how much a program may write -- */

uint64_t oi_room_weights(const oi_plan *u); /* bytes of the file of the weights, at most */
/* E064 when bytes are more than `most` (0: 64 GiB), a failure when the file system has less. */
oi_status oi_room_check(const oi_plan *u, const char *dir, uint64_t bytes, uint64_t most);

#endif
