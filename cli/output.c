/* output.c: results to stdout or a file, everything else to stderr. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *command_name;
static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_mode;

void cli_set_name(const char *command)
{
    command_name = command;
}

bool cli_set_color(const char *when)
{
    if (!strcmp(when, "auto"))
        color_mode = COLOR_AUTO;
    else if (!strcmp(when, "always"))
        color_mode = COLOR_ALWAYS;
    else if (!strcmp(when, "never"))
        color_mode = COLOR_NEVER;
    else
        return false;
    return true;
}

bool cli_color(FILE *to)
{
    if (color_mode != COLOR_AUTO)
        return color_mode == COLOR_ALWAYS;
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return !(no && no[0]) && !(term && !strcmp(term, "dumb")) && isatty(fileno(to));
}

static int output_errno; /* why standard output failed first; 0: it has not */

void cli_flush(void)
{
    if (fflush(stdout) != 0 && output_errno == 0)
        output_errno = errno;
}

static void line(const char *fmt, va_list args)
{
    cli_flush(); /* so that the two streams keep their order on a terminal */
    fprintf(stderr, "openinfer%s%s: ", command_name ? " " : "", command_name ? command_name : "");
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

oi_status cli_usage_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line(fmt, args);
    va_end(args);
    fprintf(stderr, "try openinfer %s%s--help\n", command_name ? command_name : "",
            command_name ? " " : "");
    return OI_ERR_USAGE;
}

oi_status cli_fail(oi_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line(fmt, args);
    va_end(args);
    return status;
}

void cli_note(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line(fmt, args);
    va_end(args);
}

void cli_note_lowered(uint64_t n, oi_dtype precision, const char *device)
{
    if (n)
        cli_note("%llu op%s computed in %s: preferences.default_precision of %s",
                 (unsigned long long)n, n == 1 ? " is" : "s are", oi_dtype_name(precision), device);
}

void cli_report(const oi_diag *d)
{
    cli_flush();
    oi_diag_print(d, stderr, cli_color(stderr));
}

oi_status cli_done(oi_status status, oi_diag *d)
{
    cli_report(d);
    oi_diag_free(d);
    return status;
}

oi_status cli_worse(oi_status a, oi_status b)
{
    return a > b ? a : b;
}

/* -- JSON -- */

void cli_json_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(to, "\\u%04x", *c);
        else
            fputc(*c, to);
    }
    fputc('"', to);
}

void cli_json_number(FILE *to, double v)
{
    if (isfinite(v))
        fprintf(to, "%.9g", v);
    else
        fputs(isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"", to);
}

/* -- files -- */

FILE *cli_open(const char *path)
{
    struct stat st;
    FILE *from = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not hang us */
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
        cli_fail(OI_ERR_ENV, "cannot read %s: it is a pipe; write its contents to a file", path);
    else if (fd < 0 || !(from = fdopen(fd, "rb")))
        cli_fail(OI_ERR_ENV, "cannot open %s: %s", path, strerror(errno));
    if (!from && fd >= 0)
        close(fd);
    return from;
}

static bool write_all(FILE *to, const void *data, size_t n)
{
    return fwrite(data, 1, n, to) == n;
}

/* A pipe or a device is written in place; only a plain file can be replaced as a whole. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static oi_status cannot_write(const char *path)
{
    return cli_fail(OI_ERR_ENV, "cannot write %s: %s", path, strerror(errno));
}

static oi_status write_file(const char *path, const char *open_as, const void *data, size_t n)
{
    FILE *to = fopen(open_as, "wb");
    if (!to)
        return cannot_write(path);
    bool ok = write_all(to, data, n);
    ok = fclose(to) == 0 && ok;
    if (ok && open_as != path)
        ok = rename(open_as, path) == 0;
    if (ok)
        return OI_OK;
    oi_status status = cannot_write(path);
    if (open_as != path)
        remove(open_as);
    return status;
}

oi_status cli_write_bytes(const char *path, const void *data, size_t n)
{
    if (!path || !strcmp(path, "-")) {
        if (write_all(stdout, data, n))
            return OI_OK;
        if (output_errno == 0)
            output_errno = errno;
        return OI_ERR_ENV; /* cli_exit says why */
    }
    if (is_special(path))
        return write_file(path, path, data, n);
    size_t room = strlen(path) + 32;
    char *temporary = malloc(room);
    if (!temporary)
        return cli_fail(OI_ERR_ENV, "out of memory");
    snprintf(temporary, room, "%s.%ld.part", path, (long)getpid());
    oi_status status = write_file(path, temporary, data, n);
    free(temporary);
    return status;
}

oi_status cli_write(const char *path, const char *text)
{
    return cli_write_bytes(path, text, strlen(text));
}

int cli_exit(oi_status status)
{
    cli_flush();
    if (close(STDOUT_FILENO) != 0 && errno != EBADF && output_errno == 0)
        output_errno = errno;
    if (output_errno != 0)
        status = cli_fail(OI_ERR_ENV, "cannot write standard output: %s", strerror(output_errno));
    return status == OI_NOT_FOUND ? 1 : (int)status;
}
