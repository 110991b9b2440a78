/* process.c: programs that run to their end. */
#define _XOPEN_SOURCE 700 /* waitpid */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child, between fork and exec: only what is safe there. */
static void become(const char *dir, const char *const *argv, int in, int out)
{
    if (chdir(dir) == 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0)
        execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127); /* a child that could not become the program */
}

int oi_child_wait(int pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

int oi_child_run(const char *dir, const char *const *argv, const char *log)
{
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int status = -1;
    if (in >= 0 && out >= 0) {
        pid_t pid = fork();
        if (pid == 0)
            become(dir, argv, in, out);
        if (pid > 0)
            status = oi_child_wait(pid);
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return status;
}
