/* child.c: a program as a child: a socket is its stdin and stdout, so that one that dies shows as a
 * failed read or write, never as a signal. */
#include "verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 600000 /* a step of a large model under emulation */
#define STUCK       3      /* what main.c says by its exit code, see emit/c/main_file.c */
#define LACKS       5

/* In the child, between fork and exec: only what is safe there. */
static void become(const char *dir, const char *const *argv, int fd)
{
    if (chdir(dir) == 0 && dup2(fd, 0) >= 0 && dup2(fd, 1) >= 0)
        execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127); /* a child that could not become the program */
}

bool oi_child_start(oi_child *c, const char *dir, const char *const *argv)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return false;
    (void)fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(pair[1], F_SETFD, FD_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0)
        become(dir, argv, pair[1]);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return false;
    }
    c->pid = pid;
    c->fd = pair[0];
    return true;
}

bool oi_child_write(oi_child *c, const void *data, size_t n)
{
    const char *at = data;
    while (n) {
        ssize_t k = send(c->fd, at, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

bool oi_child_read(oi_child *c, void *data, size_t n)
{
    char *at = data;
    while (n) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        int ready = poll(&p, 1, PATIENCE_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t k = ready > 0 ? read(c->fd, at, n) : -1;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static int end(oi_child *c)
{
    (void)shutdown(c->fd, SHUT_WR); /* no more inputs: it ends by itself */
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    char rest[256];
    int ready;
    while ((ready = poll(&p, 1, 10000)) > 0 && read(c->fd, rest, sizeof rest) > 0)
        ;
    if (ready == 0)
        (void)kill(c->pid, SIGKILL);
    close(c->fd);
    int status = oi_child_wait(c->pid);
    c->pid = 0;
    return status;
}

void oi_child_end(oi_child *c)
{
    if (c->pid)
        (void)end(c);
}

oi_status oi_child_lost(oi_child *c, char *how, size_t cap, oi_diag *d)
{
    int status = end(c);
    if (WIFSIGNALED(status))
        snprintf(how, cap, "it was ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, cap, "it ended with exit code %d", WEXITSTATUS(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == STUCK) /* it has said why */
        return oi_diag_env(d, c->device, "the program cannot go on on this machine");
    if (WIFSIGNALED(status) || WEXITSTATUS(status) != LACKS)
        return OI_ERR_INPUT;
    return oi_diag_env(d, c->device, "this machine lacks %s", c->needs);
}
