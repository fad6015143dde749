/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests opening, listing and replacing files: base/open.h, base/directory.h, base/atomic-file.h. */

#include "base/atomic-file.h"
#include "base/directory.h"
#include "base/open.h"
#include "util/root-util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static TestRoot root;

static int set_up(void **state)
{
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

static void make_file(const char *name, const char *text)
{
    test_root_put(&root, name, text);
}

static void assert_holds(const char *name, const char *text)
{
    _cleanup_free_ char *got = NULL;
    size_t size;

    assert_int_equal(file_read_whole(root.fd, name, 1000, &got, &size), 0);
    assert_string_equal(got, text);
}

static void beneath_nothing_is_followed(void **state)
{
    int fd;

    assert_int_equal(mkdirat(root.fd, "d", 0700), 0);
    make_file("d/f", "x");
    assert_int_equal(symlinkat("d", root.fd, "link"), 0);
    assert_int_equal(symlinkat("d/f", root.fd, "last"), 0);
    fd = open_beneath(root.fd, "d/f");
    assert_true(fd >= 0);
    close(fd);
    fd = open_beneath(root.fd, "last"); /* the symlink itself */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(open_beneath(root.fd, "link/f"), -ELOOP);
    assert_int_equal(open_beneath(root.fd, "d/../.."), -EXDEV);
    assert_int_equal(open_beneath(root.fd, "/etc/passwd"), -EXDEV);
    assert_int_equal(open_beneath(root.fd, "none"), -ENOENT);
    assert_int_equal(open_beneath(-EACCES, "d"), -EACCES);
    fd = open_beneath(AT_FDCWD, "/proc");
    assert_int_equal(fd, AT_FDCWD); /* a negative descriptor is an error */
}

static void a_descriptor_is_opened_again_and_tells_its_path(void **state)
{
    char path[256], want[256], byte, small[4];
    int place, fd;

    make_file("again", "y");
    place = open_beneath(root.fd, "again");
    assert_true(place >= 0);
    assert_true(read(place, &byte, 1) < 0); /* O_PATH */
    fd = fd_reopen_noatime(place, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &byte, 1), 1);
    assert_int_equal(byte, 'y');
    snprintf(want, sizeof(want), "%s/again", root.path);
    assert_int_equal(fd_get_path(fd, path, sizeof(path)), 0);
    assert_string_equal(path, want);
    assert_int_equal(fd_get_path(fd, small, sizeof(small)), -ENAMETOOLONG);
    close(fd);
    assert_int_equal(fd_reopen(place, O_RDONLY | O_DIRECTORY), -ENOTDIR);
    close(place);
}

static void a_directory_is_listed_without_dots(void **state)
{
    DIR *d = NULL;
    unsigned n = 0;

    assert_int_equal(mkdirat(root.fd, "list", 0700), 0);
    make_file("list/.hidden", "");
    make_file("list/shown", "");
    assert_int_equal(directory_open(root.fd, "list", 0, &d), 0);
    for (const struct dirent *e; (e = directory_next(d));)
        n += strcmp(e->d_name, ".hidden") == 0 || strcmp(e->d_name, "shown") == 0 ? 1 : 100;
    assert_int_equal(n, 2);
    closedir(d);
    d = NULL;
    assert_int_equal(directory_open(root.fd, "list/shown", 0, &d), -ENOTDIR);
    assert_int_equal(directory_from_fd(-EMFILE, &d), -EMFILE);
    assert_null(d);
}

static unsigned count_temporaries(const char *directory)
{
    DIR *d = NULL;
    unsigned n = 0;

    assert_int_equal(directory_open(root.fd, directory, 0, &d), 0);
    for (const struct dirent *e; (e = directory_next(d));)
        n += strstr(e->d_name, ".tmp") != NULL;
    closedir(d);
    return n;
}

/* The next write removes the temporary files of killed writers, but not that of a running one, and
 * no file that is named otherwise. */
static void temporary_files_of_killed_writers_go(void **state)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd;

    assert_int_equal(mkdirat(root.fd, "t", 0700), 0);
    make_file("t/model.1234.tmp", "half");
    make_file("t/model.99.tmp", "half");
    make_file("t/model.77.tmp", "being written");
    make_file("t/model.x.tmp", "not ours");
    make_file("t/other.5.tmp", "of another file");
    fd = openat(root.fd, "t/model.77.tmp", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
    assert_int_equal(atomic_file_write(root.fd, "t/model", "new", 3, 0600), 0);
    assert_holds("t/model", "new");
    assert_int_equal(count_temporaries("t"), 3);
    close(fd);
    assert_int_equal(atomic_file_write(root.fd, "t/model", "newer", 5, 0600), 0);
    assert_holds("t/model", "newer");
    assert_int_equal(count_temporaries("t"), 2);
}

/* If writers of one file are killed, each at another moment, at most one temporary file is left.
 * The next write removes it. */
static void killed_writers_leave_one_temporary_at_most(void **state)
{
    static char data[1 << 20];

    assert_int_equal(mkdirat(root.fd, "k", 0700), 0);
    for (unsigned i = 0; i < 50; i++) {
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0)
            for (;;)
                atomic_file_write(root.fd, "k/file", data, sizeof(data), 0600);
        usleep(i * 97 % 1500);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(count_temporaries("k") <= 1);
    }
    assert_int_equal(atomic_file_write(root.fd, "k/file", "end", 3, 0600), 0);
    assert_int_equal(count_temporaries("k"), 0);
}

static int write_output(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", root.path, name);
    return output_file_write(path, "out", 3, 0600);
}

static void an_output_is_replaced_and_a_symlink_to_it_stays(void **state)
{
    struct stat st;

    assert_int_equal(mkdirat(root.fd, "o", 0700), 0);
    make_file("o/old", "old");
    assert_int_equal(symlinkat("old", root.fd, "o/to-old"), 0);
    assert_int_equal(symlinkat("new", root.fd, "o/to-new"), 0);
    assert_int_equal(symlinkat("o", root.fd, "to-o"), 0);
    assert_int_equal(symlinkat("circle", root.fd, "o/circle"), 0);
    assert_int_equal(write_output("o/to-old"), 0);
    assert_holds("o/old", "out");
    assert_int_equal(fstatat(root.fd, "o/to-old", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(write_output("o/to-new"), 0);
    assert_holds("o/new", "out");
    assert_int_equal(write_output("to-o/../o/third"), 0);
    assert_holds("o/third", "out");
    assert_int_equal(write_output("o/circle"), -ELOOP);
    assert_int_equal(write_output("o"), -EISDIR);
    assert_int_equal(write_output("o/"), -EISDIR);
    assert_int_equal(write_output("o/."), -EISDIR);
    assert_int_equal(write_output("o/fourth/"), -EISDIR);
    assert_int_equal(faccessat(root.fd, "o/fourth", F_OK, 0), -1);
    assert_int_equal(write_output("o/third/"), -ENOTDIR);
    assert_int_equal(write_output("o/third//"), -ENOTDIR);
    assert_int_equal(write_output("o/none/x"), -ENOENT);
    assert_int_equal(output_file_write("/dev/null", "out", 3, 0600), 0);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* In a directory that all users may write, such as /tmp, no symlink of another user is followed,
 * and no file of another user is written. */
static void an_output_through_somebody_elses_symlink_is_refused(void **state)
{
    static const char *const prepared[] = {"s/file", "s/link", "s/fifo", "s/dir"};

    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdirat(root.fd, "s", 0700), 0);
    assert_int_equal(mkdirat(root.fd, "target", 0700), 0);
    make_file("target/victim", "untouched");
    make_file("s/file", "theirs");
    assert_int_equal(symlinkat("../target/victim", root.fd, "s/link"), 0);
    assert_int_equal(symlinkat("../target", root.fd, "s/dir"), 0);
    assert_int_equal(mkfifoat(root.fd, "s/fifo", 0666), 0);
    for (size_t i = 0; i < ELEMENTSOF(prepared); i++)
        assert_int_equal(fchownat(root.fd, prepared[i], 4711, 4711, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(fchmodat(root.fd, "s", 01777, 0), 0);
    assert_int_equal(write_output("s/link"), -EACCES);
    assert_int_equal(write_output("s/dir/victim"), -EACCES);
    assert_int_equal(write_output("s/dir/new"), -EACCES);
    assert_int_equal(write_output("s/file"), -EACCES);
    assert_int_equal(write_output("s/fifo"), -EACCES);
    assert_holds("target/victim", "untouched");
    assert_int_equal(faccessat(root.fd, "target/new", F_OK, 0), -1);
    assert_int_equal(write_output("s/mine"), 0);
    assert_int_equal(symlinkat("mine", root.fd, "s/own-link"), 0);
    assert_int_equal(write_output("s/own-link"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(beneath_nothing_is_followed),
            cmocka_unit_test(a_descriptor_is_opened_again_and_tells_its_path),
            cmocka_unit_test(a_directory_is_listed_without_dots),
            cmocka_unit_test(temporary_files_of_killed_writers_go),
            cmocka_unit_test(killed_writers_leave_one_temporary_at_most),
            cmocka_unit_test(an_output_is_replaced_and_a_symlink_to_it_stays),
            cmocka_unit_test(an_output_through_somebody_elses_symlink_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
