/* file_test.c: whole files in and out. */
#define _XOPEN_SOURCE 700
#include "base/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/oi_file_test.XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    static const char *const made[] = {"a", "link", "loop", "fifo", "pipe", "dir/x", "dir"};
    for (size_t i = 0; i < OI_COUNT(made); i++)
        remove(made[i]);
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1; /* fails if a temporary file stayed */
}

static void reads(const char *path, const char *want)
{
    char *text = NULL;
    size_t n = 0;
    assert_int_equal(oi_file_read(path, 1 << 20, &text, &n, NULL), OI_OK);
    assert_int_equal(n, strlen(want));
    assert_string_equal(text, want);
    oi_free(text);
}

static void fails(const char *path, uint64_t limit, oi_status want, const char *message)
{
    char *text = NULL;
    size_t n = 0;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_file_read(path, limit, &text, &n, d), want);
    assert_null(text);
    assert_string_equal(oi_diag_at(d, 0).file, path);
    assert_non_null(strstr(oi_diag_at(d, 0).text, message));
    oi_diag_free(d);
}

static void there_and_back(void **state)
{
    (void)state;
    assert_int_equal(oi_file_write("a", "hello", 5, NULL), OI_OK);
    reads("a", "hello");
    assert_int_equal(oi_file_write("a", "", 0, NULL), OI_OK);
    reads("a", "");
    char *big = malloc(3000001);
    memset(big, 'x', 3000000);
    big[3000000] = '\0';
    assert_int_equal(oi_file_write("a", big, 3000000, NULL), OI_OK);
    char *text = NULL;
    size_t n = 0;
    assert_int_equal(oi_file_read("a", 3000000, &text, &n, NULL), OI_OK);
    assert_int_equal(n, 3000000);
    assert_string_equal(text, big);
    oi_free(text);
    free(big);
    fails("a", 2999999, OI_ERR_INPUT, "larger than the 2999999 bytes");
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    fails("missing", 100, OI_ERR_ENV, "cannot open: No such file");
    fails("-", 100, OI_ERR_ENV, "cannot open");
    fails(".", 100, OI_ERR_ENV, "cannot read: Is a directory");
    fails("/dev/zero", 100000, OI_ERR_INPUT, "larger than the 100000 bytes");
}

/* A pipe tells no size. */
static void pipes(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char path[64], text[10000];
    memset(text, 'p', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(write(ends[1], text, sizeof text - 1), sizeof text - 1);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    reads(path, text);
    close(ends[0]);
}

/* A named pipe is read when a program writes to it, even one that takes its time, and refused when
 * there is none. */
static void named_pipes(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    oi_diag *d = oi_diag_new();
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(oi_file_read("pipe", 100, &text, &n, d), OI_ERR_ENV);
    assert_non_null(strstr(oi_diag_at(d, 0).text, "no program writes to this pipe"));
    oi_diag_free(d);
    for (int slow = 0; slow < 2; slow++) {
        pid_t child = fork();
        if (child == 0) {
            const struct timespec more_than_we_wait = {.tv_sec = 2, .tv_nsec = 200000000};
            int fd = open("pipe", O_WRONLY);
            if (slow)
                nanosleep(&more_than_we_wait, NULL);
            _exit(write(fd, "one ", 4) == 4 && write(fd, "two", 3) == 3 ? 0 : 1);
        }
        reads("pipe", "one two");
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
}

static void replaces_whole(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(oi_file_write("a", "old", 3, NULL), OI_OK);
    assert_int_equal(chmod("a", 0600), 0);
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(oi_file_write("link", "new", 3, NULL), OI_OK);
    reads("a", "new");
    assert_true(lstat("link", &st) == 0 && S_ISLNK(st.st_mode)); /* the link stays a link */
    assert_true(stat("a", &st) == 0 && (st.st_mode & 0777) == 0600);
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_file_write("no/such/folder", "x", 1, d), OI_ERR_ENV);
    assert_non_null(strstr(oi_diag_at(d, 0).text, "cannot create: No such file"));
    assert_int_equal(mkdir("dir", 0777), 0);
    assert_int_equal(oi_file_write("dir", "x", 1, d), OI_ERR_ENV);
    assert_int_equal(oi_file_write("/dev/full", "x", 1, d), OI_ERR_ENV);
    assert_non_null(strstr(oi_diag_at(d, 2).text, "cannot write: No space left"));
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(oi_file_write("loop/x", "x", 1, d), OI_ERR_ENV);
    assert_int_equal(oi_diag_errors(d), 4);
    oi_diag_free(d);
}

/* A device is written, never replaced. */
static void devices(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(oi_file_write("/dev/null", "x", 1, NULL), OI_OK);
    assert_true(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    assert_int_equal(mkfifo("fifo", 0600), 0);
    int fd = open("fifo", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(oi_file_write("fifo", "xyz", 3, NULL), OI_OK);
    char got[4] = {0};
    assert_int_equal(read(fd, got, 3), 3);
    assert_string_equal(got, "xyz");
    close(fd);
    assert_true(stat("fifo", &st) == 0 && S_ISFIFO(st.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(pipes),
        cmocka_unit_test(named_pipes),
        cmocka_unit_test(replaces_whole),
        cmocka_unit_test(devices),
        cmocka_unit_test(what_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
