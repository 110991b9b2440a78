/* kill_at.c: a library to preload. The process ends as if killed right before its N-th change of a
 * folder (rename, unlink, rmdir), where N is in the environment variable KILL_AT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void count(void)
{
    static int n;
    const char *at = getenv("KILL_AT");
    if (at && ++n == atoi(at))
        kill(getpid(), SIGKILL);
}

/* POSIX lets a pointer that dlsym returns be a function; ISO C has no cast for it. */
static void *find(const char *name)
{
    count();
    return dlsym(RTLD_NEXT, name);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    *(void **)&real = find("rename");
    return real(from, to);
}

int unlink(const char *path)
{
    int (*real)(const char *);
    *(void **)&real = find("unlink");
    return real(path);
}

int rmdir(const char *path)
{
    int (*real)(const char *);
    *(void **)&real = find("rmdir");
    return real(path);
}
