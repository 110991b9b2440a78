/* cache.c: where compiled programs are kept: a cache of the user who runs us, never the folder of
 * the model, which may come from anyone and could bring a program of its own.
 *
 *   $XDG_CACHE_HOME/openinfer/chat/   or ~/.cache/openinfer/chat/; only this user may write
 *     PATH/                           a hash of the path of the model's folder
 *       lock                          held while a program is looked up, made and loaded
 *       new/                          a program that is being made, or that was interrupted
 *       KEY/                          a complete program; KEY is the hash of its file made-from
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "chat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder that only this user can have filled. Made when it is missing. */
static bool own_folder(const char *path, chat_why *why)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return chat_fail(why, "%s: %s", path, strerror(errno));
    if (lstat(path, &st) != 0)
        return chat_fail(why, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return chat_fail(why, "%s: it is not a folder", path);
    if (st.st_uid != geteuid())
        return chat_fail(why, "%s: it belongs to another user", path);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return chat_fail(why, "%s: others may write there (chmod 700 mends it)", path);
    return true;
}

/* The folder that the user's caches are in; the user answers for who else may write there. */
static bool base_folder(char *out, size_t size, chat_why *why)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (cache && cache[0] == '/') /* the standard says to ignore a relative one */
        n = snprintf(out, size, "%s", cache);
    else if (home && home[0] == '/')
        n = snprintf(out, size, "%s/.cache", home);
    else
        return chat_fail(why, "neither XDG_CACHE_HOME nor HOME says where compiled programs go");
    if (n >= (int)size)
        return chat_fail(why, "the path of the cache is too long");
    for (char *at = out + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        (void)mkdir(out, 0700); /* the last one tells whether it worked */
        *at = '/';
    }
    return mkdir(out, 0700) == 0 || errno == EEXIST ||
           chat_fail(why, "%s: %s", out, strerror(errno));
}

/* Appends a level to a path, and makes that folder. */
static bool descend(char *path, size_t size, const char *name, chat_why *why)
{
    const size_t n = strlen(path);
    if (snprintf(path + n, size - n, "/%s", name) >= (int)(size - n))
        return chat_fail(why, "the path of the cache is too long");
    return own_folder(path, why);
}

static bool lock(chat_cache *c, chat_why *why)
{
    char path[CHAT_PATH];
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof path, "%s/lock", c->folder);
    c->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (c->lock < 0)
        return chat_fail(why, "%s: %s", path, strerror(errno));
    while (fcntl(c->lock, F_SETLKW, &all) != 0)
        if (errno != EINTR)
            return chat_fail(why, "%s: %s", path, strerror(errno));
    return true;
}

bool chat_cache_open(chat_cache *c, const char *model_folder, const char *made_from, chat_why *why)
{
    char name[CHAT_HASH_TEXT];
    chat_hash h;
    char *real = realpath(model_folder, NULL);
    *c = (chat_cache){.lock = -1};
    if (!real)
        return chat_fail(why, "%s: %s", model_folder, strerror(errno));
    chat_hash_begin(&h);
    chat_hash_add(&h, real, strlen(real));
    chat_hash_end(&h, name);
    free(real);
    const size_t room = sizeof c->folder;
    if (!base_folder(c->folder, room, why) || !descend(c->folder, room, "openinfer", why) ||
        !descend(c->folder, room, "chat", why) || !descend(c->folder, room, name, why))
        return false;
    chat_hash_begin(&h);
    chat_hash_add(&h, made_from, strlen(made_from));
    chat_hash_end(&h, c->key);
    snprintf(c->program, sizeof c->program, "%s/%s", c->folder, c->key);
    return lock(c, why);
}

void chat_cache_close(chat_cache *c)
{
    if (c->lock >= 0)
        close(c->lock);
    c->lock = -1;
}

bool chat_cache_has(const chat_cache *c)
{
    chat_why why;
    struct stat st;
    return lstat(c->program, &st) == 0 && own_folder(c->program, &why);
}

/* Files of a program lie side by side: there are no folders in it. */
static void remove_program(const char *path)
{
    char file[CHAT_PATH];
    struct dirent *entry;
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)) != NULL)
        if (snprintf(file, sizeof file, "%s/%s", path, entry->d_name) < (int)sizeof file)
            (void)unlink(file);
    if (dir)
        closedir(dir);
    (void)rmdir(path);
}

/* A model folder keeps one program: what it had before, or what was interrupted, goes. A process
 * that runs such a program keeps its files until it ends. */
bool chat_cache_begin(const chat_cache *c, char folder[CHAT_PATH], chat_why *why)
{
    struct dirent *entry;
    DIR *dir = opendir(c->folder);
    while (dir && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "lock") == 0)
            continue;
        if (snprintf(folder, CHAT_PATH, "%s/%s", c->folder, entry->d_name) < CHAT_PATH)
            remove_program(folder);
    }
    if (dir)
        closedir(dir);
    snprintf(folder, CHAT_PATH, "%s/new", c->folder);
    return mkdir(folder, 0700) == 0 || chat_fail(why, "%s: %s", folder, strerror(errno));
}

bool chat_cache_commit(const chat_cache *c, chat_why *why)
{
    char made[CHAT_PATH];
    snprintf(made, sizeof made, "%s/new", c->folder);
    /* the emitter may have put another folder in place of the empty one */
    return (chmod(made, 0700) == 0 && rename(made, c->program) == 0) ||
           chat_fail(why, "%s: %s", c->program, strerror(errno));
}
