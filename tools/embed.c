/* embed.c: turns files into a C table of bytes: embed OUT.c TABLE FILE... The name of an entry is
 * that of its file, without folder and ending. Entries come out sorted, so the output depends on
 * the files only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *what, const char *path)
{
    fprintf(stderr, "embed: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(base_name(*(char *const *)a), base_name(*(char *const *)b));
}

static size_t stem_size(const char *path)
{
    return strcspn(base_name(path), ".");
}

static void put_bytes(FILE *out, const char *path, int index)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        stop("cannot open", path);
    fprintf(out, "\nstatic const unsigned char text_%d[] = {", index);
    int c, n = 0;
    while ((c = fgetc(in)) != EOF)
        fprintf(out, "%s%d,", n++ % 20 ? "" : "\n    ", c);
    if (ferror(in) || n == 0)
        stop("cannot read", path);
    fclose(in);
    fputs("\n};\n", out);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: embed OUT.c TABLE FILE...\n", stderr);
        return 2;
    }
    int n = argc - 3;
    char **files = argv + 3;
    qsort(files, (size_t)n, sizeof *files, by_name);
    FILE *out = fopen(argv[1], "w");
    if (!out)
        stop("cannot create", argv[1]);
    fprintf(out,
            "/* generated from files by tools/embed.c, do not edit */\n"
            "#include \"device/device.h\"\n\nextern const oi_embedded %s[];\n",
            argv[2]);
    for (int i = 0; i < n; i++)
        put_bytes(out, files[i], i);
    fprintf(out, "\nconst oi_embedded %s[] = {\n", argv[2]);
    for (int i = 0; i < n; i++)
        fprintf(out, "    {\"%.*s\", text_%d, sizeof text_%d},\n", (int)stem_size(files[i]),
                base_name(files[i]), i, i);
    fputs("    {NULL, NULL, 0},\n};\n", out);
    if (fclose(out) != 0)
        stop("cannot write", argv[1]);
    return 0;
}
