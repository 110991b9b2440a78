/* room.c: whether a program may and can be written, asked before anything is: a declaration of a
 * few bytes can ask for weights of any size. */
#include "driver/driver.h"

#include <string.h>
#include <sys/statvfs.h>

#define STANDARD_MOST (UINT64_C(64) << 30)

/* What is free in the file system of the folder, or of the nearest one above it that exists. */
static uint64_t free_bytes(oi_arena *a, const char *dir)
{
    struct statvfs fs;
    char *at = oi_arena_text(a, dir, strlen(dir));
    size_t n = strlen(at);
    while (n && statvfs(at, &fs) != 0) {
        while (n && at[n - 1] == '/')
            n--;
        while (n && at[n - 1] != '/')
            n--;
        at[n] = '\0';
    }
    if (n == 0 && statvfs(".", &fs) != 0)
        return UINT64_MAX;
    uint64_t bytes;
    bool is_counted = fs.f_blocks > 0; /* some file systems do not say */
    return is_counted && !__builtin_mul_overflow(fs.f_bavail, fs.f_frsize, &bytes) ? bytes
                                                                                   : UINT64_MAX;
}

/* In weights.c a byte takes 4 characters and a line of 24 bytes 5 more, at most. */
uint64_t oi_room_weights(const oi_plan *u)
{
    uint64_t n = u->weights_bytes;
    if (!u->embeds)
        return n;
    return __builtin_mul_overflow(n, 5, &n) ? UINT64_MAX : n;
}

oi_status oi_room_check(const oi_plan *u, const char *dir, uint64_t bytes, uint64_t most)
{
    oi_place at = {.file = u->name};
    most = most ? most : STANDARD_MOST;
    if (bytes > most) {
        oi_diag_error(u->diag, at, "E064",
                      "the program takes %llu bytes, its weights up to %llu of them; at most %llu "
                      "may be written",
                      (unsigned long long)bytes, (unsigned long long)oi_room_weights(u),
                      (unsigned long long)most);
        oi_diag_hint(u->diag, "--max-output allows more");
        return OI_ERR_INPUT;
    }
    uint64_t room = free_bytes(u->arena, dir);
    return bytes <= room
               ? OI_OK
               : oi_diag_env(u->diag, dir,
                             "the program takes %llu bytes, the file system has %llu free",
                             (unsigned long long)bytes, (unsigned long long)room);
}
