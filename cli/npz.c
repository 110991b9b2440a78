/* npz.c: arrays in .npz files, which are ZIP archives of .npy files.
 *
 * Only the directory at the end of the archive is believed, and every offset in it is held against
 * the file's size. Arrays are read one at a time, on demand. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define END_BYTES   22u /* of the end record, without its comment */
#define ENTRY_BYTES 46u /* of a directory entry, without name, extra fields and comment */
#define LOCAL_BYTES 30u /* of the header before a member's data, without name and extra fields */

struct cli_npz_member {
    char *name;      /* without .npy */
    uint64_t header; /* where its local header is */
    uint64_t size;
    unsigned method, flags;
};

static uint64_t number(const unsigned char *at, size_t n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | at[n];
    return v;
}

static oi_status bad(const cli_npz *z, const char *why)
{
    return cli_fail(OI_ERR_INPUT, "%s: %s", z->path, why);
}

static bool read_at(const cli_npz *z, uint64_t at, void *out, size_t n)
{
    return at <= z->size && n <= z->size - at && fseek(z->from, (long)at, SEEK_SET) == 0 &&
           fread(out, 1, n, z->from) == n;
}

/* -- the directory -- */

typedef struct directory {
    uint64_t offset, size, n;
} directory;

/* Archives above 4 GiB: the real numbers are in a second end record, before the first. */
static bool find_large(const cli_npz *z, uint64_t end, directory *out)
{
    unsigned char locator[20], record[56];
    if (end < sizeof locator || !read_at(z, end - sizeof locator, locator, sizeof locator) ||
        memcmp(locator, "PK\6\7", 4) != 0 ||
        !read_at(z, number(locator + 8, 8), record, sizeof record) ||
        memcmp(record, "PK\6\6", 4) != 0)
        return false;
    *out = (directory){number(record + 48, 8), number(record + 40, 8), number(record + 32, 8)};
    return true;
}

/* The end record is the last thing but for a comment of at most 65535 bytes. */
static bool find_directory(const cli_npz *z, directory *out)
{
    size_t n = z->size < END_BYTES + 65535u ? (size_t)z->size : END_BYTES + 65535u;
    unsigned char *tail = malloc(n ? n : 1);
    bool found = false;
    if (tail && n >= END_BYTES && read_at(z, z->size - n, tail, n))
        for (size_t i = n - END_BYTES + 1; i-- > 0 && !found;) {
            const unsigned char *at = tail + i;
            found = !memcmp(at, "PK\5\6", 4);
            if (!found)
                continue;
            *out = (directory){number(at + 16, 4), number(at + 12, 4), number(at + 10, 2)};
            if (out->offset == UINT32_MAX || out->size == UINT32_MAX || out->n == UINT16_MAX)
                found = find_large(z, z->size - n + i, out);
        }
    free(tail);
    return found && out->offset <= z->size && out->size <= z->size - out->offset;
}

/* The extra field with number 1 holds what did not fit into 32 bits, in this order. */
static bool read_extra(const unsigned char *at, size_t n, uint64_t *size, uint64_t *packed,
                       uint64_t *header)
{
    uint64_t *wanted[3] = {size, packed, header};
    while (n >= 4) {
        size_t id = (size_t)number(at, 2), len = (size_t)number(at + 2, 2);
        if (len > n - 4)
            return false;
        const unsigned char *from = at + 4, *end = from + len;
        for (size_t i = 0; id == 1 && i < 3; i++) {
            if (*wanted[i] != UINT32_MAX)
                continue;
            if (end - from < 8)
                return false;
            *wanted[i] = number(from, 8);
            from += 8;
        }
        at = end;
        n -= 4 + len;
    }
    return true;
}

/* One entry; returns its length, or 0 when it is broken. */
static size_t read_entry(const unsigned char *at, size_t left, cli_npz_member *out)
{
    if (left < ENTRY_BYTES || memcmp(at, "PK\1\2", 4) != 0)
        return 0;
    size_t n = (size_t)number(at + 28, 2), extra = (size_t)number(at + 30, 2);
    size_t all = ENTRY_BYTES + n + extra + (size_t)number(at + 32, 2);
    if (all > left || n == 0)
        return 0;
    uint64_t packed = number(at + 20, 4);
    out->flags = (unsigned)number(at + 8, 2);
    out->method = (unsigned)number(at + 10, 2);
    out->size = number(at + 24, 4);
    out->header = number(at + 42, 4);
    if (!read_extra(at + ENTRY_BYTES + n, extra, &out->size, &packed, &out->header))
        return 0;
    const char *name = (const char *)at + ENTRY_BYTES;
    if (memchr(name, '\0', n))
        return 0;
    if (n > 4 && !memcmp(name + n - 4, ".npy", 4))
        n -= 4;
    out->name = malloc(n + 1);
    if (!out->name)
        return 0;
    memcpy(out->name, name, n);
    out->name[n] = '\0';
    return all;
}

static oi_status read_directory(cli_npz *z)
{
    directory d = {0};
    if (!find_directory(z, &d) || d.n > d.size / ENTRY_BYTES)
        return bad(z, "not a .npz file: its ZIP directory cannot be read");
    unsigned char *all = malloc(d.size ? (size_t)d.size : 1);
    z->members = calloc(d.n ? (size_t)d.n : 1, sizeof *z->members);
    bool ok = all && z->members && read_at(z, d.offset, all, (size_t)d.size);
    size_t at = 0;
    for (; ok && z->n < d.n; z->n++) {
        size_t n = read_entry(all + at, (size_t)d.size - at, &z->members[z->n]);
        ok = n != 0;
        at += n;
        if (!ok)
            break;
    }
    free(all);
    return ok ? OI_OK : bad(z, "its ZIP directory is broken");
}

/* -- the interface -- */

oi_status cli_npz_open(const char *path, cli_npz *out)
{
    *out = (cli_npz){.path = path, .from = cli_open(path)};
    if (!out->from)
        return OI_ERR_ENV;
    long end = fseek(out->from, 0, SEEK_END) == 0 ? ftell(out->from) : -1;
    if (end < 0 || end == INT64_MAX) /* what a folder says */
        return bad(out, "not a plain file");
    out->size = (uint64_t)end;
    return read_directory(out);
}

void cli_npz_close(cli_npz *z)
{
    for (size_t i = 0; i < z->n; i++)
        free(z->members[i].name);
    free(z->members);
    if (z->from)
        fclose(z->from);
    *z = (cli_npz){0};
}

const char *cli_npz_name(const cli_npz *z, size_t i)
{
    return i < z->n ? z->members[i].name : NULL;
}

oi_status cli_npz_read(const cli_npz *z, size_t i, cli_array *out)
{
    const cli_npz_member *m = &z->members[i];
    unsigned char local[LOCAL_BYTES];
    *out = (cli_array){0};
    if (m->method != 0 || m->flags & 1)
        return cli_fail(OI_ERR_INPUT,
                        "%s: %s is compressed or encrypted; write it with numpy.savez", z->path,
                        m->name);
    if (!read_at(z, m->header, local, sizeof local) || memcmp(local, "PK\3\4", 4) != 0)
        return cli_fail(OI_ERR_INPUT, "%s: %s is not where the directory says", z->path, m->name);
    uint64_t start = m->header + LOCAL_BYTES + number(local + 26, 2) + number(local + 28, 2);
    if (start > z->size || m->size > z->size - start)
        return cli_fail(OI_ERR_INPUT, "%s: truncated: %s has %llu bytes, %llu are left", z->path,
                        m->name, (unsigned long long)m->size,
                        (unsigned long long)(start > z->size ? 0 : z->size - start));
    return cli_npy_read_from(z->path, m->name, z->from, start, m->size, out);
}
