/* replay.c: runs a fuzz harness once over every file of the folders or files given, so that the
 * kept corpus is a regression test wherever there is a compiler. Fails when it was given nothing to
 * run: an empty corpus would pass without testing anything. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Harnesses with their own mutator call this; replaying never mutates. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data;
    return size < max_size ? size : max_size;
}

static int run_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    /* exactly `size` bytes, so that the sanitizer sees a read of one more */
    uint8_t *data = malloc(size ? size : 1);
    if (!f || !data || fread(data, 1, size, f) != size) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "replay: there is no %s\n", path);
        exit(1);
    }
    if (S_ISREG(st.st_mode))
        return run_file(path, (size_t)st.st_size);
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char inside[4096];
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            n += run_path(inside);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++)
        n += run_path(argv[i]);
    printf("replay: %d inputs\n", n);
    return n ? 0 : 1;
}
