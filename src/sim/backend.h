/* backend.h: what a device offers a simulator that runs ops on it. src/gpu implements it for
 * Vulkan; remote.c uses it. Calls of a backend come from one thread at a time. */
#ifndef OI_SIM_BACKEND_H
#define OI_SIM_BACKEND_H

#include "kernel/kernel.h"

typedef struct oi_backend oi_backend;
typedef struct oi_remote oi_remote;           /* bytes in memory of the device */
typedef struct oi_remote_call oi_remote_call; /* a call of an op, ready to run there */

typedef struct oi_remote_io {
    oi_remote *const *in, *const *out; /* by operand */
    const oi_op_value *attrs;          /* of those that only the run knows */
    bool is_timed;                     /* fill in ns */
    uint64_t ns;                       /* that the device worked */
    bool has_failed; /* data is at fault: the results are undefined, and the host says why */
} oi_remote_io;

/* What may fail returns OI_ERR_ENV, and `why` says why in one sentence. OI_NOT_FOUND: there is no
 * room, nothing has happened. Work is done in the order of the calls; the host waits only for what
 * it reads. */
typedef struct oi_backend_fns {
    const char *name; /* in traces */
    /* `device`: which one, NULL: the best. No more than `limit` bytes are resident; 0: no limit. */
    oi_status (*open)(const char *device, uint64_t limit, oi_backend **out, oi_diag *d);
    void (*close)(oi_backend *b);
    const char *(*why)(const oi_backend *b);
    oi_status (*reserve)(oi_backend *b, uint64_t bytes, oi_remote **out); /* not cleared */
    void (*release)(oi_backend *b, oi_remote *r); /* also while what was begun uses it */
    oi_status (*upload)(oi_backend *b, oi_remote *to, uint64_t at, const void *from,
                        uint64_t bytes);
    oi_status (*download)(oi_backend *b, void *to, oi_remote *from, uint64_t bytes);
    /* Makes ready what calls that are known before the run will need. */
    oi_status (*expect)(oi_backend *b, const oi_kernel_query *const *queries, size_t n);
    /* *out stays the backend's; NULL: the host must run it. Operands are dense. */
    oi_status (*prepare)(oi_backend *b, const oi_kernel_query *q, oi_remote_call **out);
    oi_status (*run)(oi_backend *b, oi_remote_call *c, oi_remote_io *io);
} oi_backend_fns;

struct oi_backend {
    const oi_backend_fns *fns;
};

extern const oi_backend_fns oi_backend_vulkan; /* gpu/vulkan.c */

#endif
