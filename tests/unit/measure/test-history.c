/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/history.h"

#include "base/macros.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];
static int fd = -EBADF;

static int set_up(void **state)
{
    /* Each line is synced to the disk. On a real disk the thousands of lines of a rotation would
     * take minutes. */
    snprintf(directory, sizeof(directory), "%s/headstart-test-history.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(directory))
        return -1;
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : 0;
}

static int clear(void **state)
{
    unlinkat(fd, HISTORY_FILE, 0);
    unlinkat(fd, HISTORY_OLD_FILE, 0);
    return 0;
}

static int tear_down(void **state)
{
    close(fd);
    return rmdir(directory);
}

static bool append(usec_t at)
{
    SessionRecord s = session_record_empty(STAGE_BOOT);
    bool torn = false;

    s.start_realtime_usec = at;
    assert_int_equal(history_append(fd, &s, &torn), 0);
    return torn;
}

static void expect(size_t max, usec_t first, size_t n)
{
    _cleanup_history_ History h = {0};

    assert_int_equal(history_read(fd, max, &h), 0);
    assert_int_equal(h.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(h.sessions[i].start_realtime_usec, first + i);
}

static off_t size_of(const char *name)
{
    struct stat st;

    return fstatat(fd, name, &st, 0) < 0 ? -1 : st.st_size;
}

static void test_append(void **state)
{
    expect(0, 0, 0);
    for (usec_t i = 0; i < 5; i++)
        assert_false(append(i));
    expect(0, 0, 5);
    expect(5, 0, 5);
    expect(2, 3, 2);
    expect(1, 4, 1);
}

/* A writer that is killed may leave any prefix of its line. The line is dropped, the others
 * stay. */
static void test_torn(void **state)
{
    off_t before, after;

    append(0);
    before = size_of(HISTORY_FILE);
    append(1);
    after = size_of(HISTORY_FILE);
    for (off_t end = before + 1; end < after; end++) {
        _cleanup_history_ History h = {0};
        _cleanup_close_ int f = openat(fd, HISTORY_FILE, O_WRONLY | O_CLOEXEC);

        assert_int_equal(ftruncate(f, end), 0);
        assert_int_equal(history_read(fd, 0, &h), 0);
        assert_int_equal(h.n, 1);
        assert_true(h.torn);
        assert_true(append(1));
        expect(0, 0, 2);
        assert_int_equal(size_of(HISTORY_FILE), after);
    }
}

static void test_bad_lines(void **state)
{
    static const char bad[] = "not json\n{}\n\n\xff\n";
    _cleanup_history_ History h = {0};
    _cleanup_close_ int f = -EBADF;

    append(0);
    f = openat(fd, HISTORY_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(f, bad, sizeof(bad) - 1), sizeof(bad) - 1);
    append(1);
    assert_int_equal(history_read(fd, 0, &h), 0);
    assert_int_equal(h.n, 2);
    assert_int_equal(h.n_bad, 4);
    assert_false(h.torn);
}

static void test_rotation(void **state)
{
    usec_t n = 0;
    off_t line;

    append(n++);
    line = size_of(HISTORY_FILE);
    while (size_of(HISTORY_OLD_FILE) < 0 && n < 100000)
        append(n++);
    /* The line that caused the rotation is the first of the new file, and reading continues across
     * both files. */
    assert_true(size_of(HISTORY_FILE) <= 2 * line);
    assert_true(size_of(HISTORY_OLD_FILE) >= (off_t)HISTORY_BYTES_MAX);
    expect(0, 0, n);
    expect(3, n - 3, 3);
    expect(1, n - 1, 1);
    /* The second rotation drops the oldest file. */
    for (usec_t end = 2 * n + 10; n < end;)
        append(n++);
    assert_true(size_of(HISTORY_OLD_FILE) + size_of(HISTORY_FILE) <
                (off_t)(2 * HISTORY_BYTES_MAX + 2 * SESSION_RECORD_SIZE_MAX));
    expect(3, n - 3, 3);
}

static bool is_early(const SessionRecord *s, const void *argument)
{
    return s->start_realtime_usec < *(const usec_t *)argument;
}

static void test_delete(void **state)
{
    usec_t limit = 2;
    const HistoryTest early = {is_early, &limit};

    for (usec_t i = 0; i < 7; i++)
        append(i);
    assert_int_equal(history_delete(fd, &early), 0);
    expect(0, 2, 5);
    append(7);
    expect(0, 2, 6);
    limit = USEC_INFINITY;
    assert_int_equal(history_delete(fd, &early), 0);
    assert_int_equal(size_of(HISTORY_FILE), -1);
    assert_int_equal(size_of(HISTORY_OLD_FILE), -1);
    expect(0, 0, 0);
}

/* A line stays in its file, so a kill between the two files loses none. */
static void test_delete_in_both(void **state)
{
    const usec_t limit = 2;
    const HistoryTest early = {is_early, &limit};
    off_t old, new;

    for (usec_t i = 0; i < 4; i++)
        append(i);
    old = size_of(HISTORY_FILE);
    assert_int_equal(renameat(fd, HISTORY_FILE, fd, HISTORY_OLD_FILE), 0);
    for (usec_t i = 4; i < 7; i++)
        append(i);
    new = size_of(HISTORY_FILE);
    assert_int_equal(history_delete(fd, &early), 0);
    assert_int_equal(size_of(HISTORY_OLD_FILE), old / 2);
    assert_int_equal(size_of(HISTORY_FILE), new);
    expect(0, 2, 5);
}

/* headstartd appends lines while another process deletes some. The writer announces each line, and
 * the other process deletes once for each announcement. So the writer never waits longer than for
 * one deletion, however slow the disk is. */
static void test_delete_while_others_append(void **state)
{
    enum { LINES = 300 };
    const usec_t limit = 1;
    const HistoryTest early = {is_early, &limit};
    int status, announce[2];
    char byte = 0;
    pid_t pid;

    assert_int_equal(pipe(announce), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        SessionRecord s = session_record_empty(STAGE_BOOT);
        bool torn;

        close(announce[0]);
        for (s.start_realtime_usec = 1; s.start_realtime_usec <= LINES; s.start_realtime_usec++)
            if (write(announce[1], &byte, 1) != 1 || history_append(fd, &s, &torn) < 0 || torn)
                _exit(EXIT_FAILURE);
        _exit(EXIT_SUCCESS);
    }
    close(announce[1]);
    while (read(announce[0], &byte, 1) == 1) {
        append(0);
        assert_int_equal(history_delete(fd, &early), 0);
    }
    close(announce[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    expect(0, 1, LINES);
    clear(state);
}

static void test_not_a_file(void **state)
{
    SessionRecord s = session_record_empty(STAGE_BOOT);
    _cleanup_history_ History h = {0};
    bool torn;

    s.start_realtime_usec = 1;
    assert_int_equal(symlinkat("elsewhere", fd, HISTORY_FILE), 0);
    assert_int_equal(history_append(fd, &s, &torn), -ELOOP);
    unlinkat(fd, HISTORY_FILE, 0);
    assert_int_equal(mkfifoat(fd, HISTORY_FILE, 0600), 0);
    assert_true(history_append(fd, &s, &torn) < 0);
    assert_true(history_read(fd, 0, &h) < 0);
}

static void metadata_is_observed_without_replay(void **state)
{
    static const unsigned not_learned[] = {SESSION_LIGHT,        SESSION_OFFLINE_UPDATE,
                                           SESSION_FSCK,         SESSION_SOFT_REBOOT,
                                           SESSION_SECOND_LOGIN, SESSION_INCOMPLETE};
    SessionRecord sessions[16];
    History h = {.sessions = sessions};

    assert_int_equal(history_observed_until(&h, STAGE_BOOT, UID_INVALID, 16), USEC_INFINITY);
    for (size_t i = 0; i < ELEMENTSOF(sessions); i++) {
        sessions[i] = session_record_empty(i < 8 ? STAGE_BOOT : STAGE_LOGIN);
        sessions[i].start_realtime_usec = i + 1;
    }
    /* Boots: the second one has observed it. */
    sessions[2].policy = POLICY_CONCURRENT;
    strcpy(sessions[2].outcome, "done");
    for (size_t i = 0; i < 5; i++)
        sessions[3 + i].flags = not_learned[i];
    h.n = 8;
    assert_int_equal(history_observed_until(&h, STAGE_BOOT, UID_INVALID, 16), 2);
    assert_int_equal(history_observed_until(&h, STAGE_LOGIN, 1000, 16), 0);
    /* Logins: the third one. A pack of another owner was replayed in the later ones. */
    sessions[8].uid = sessions[9].uid = 1000;
    sessions[10].uid = 1001;
    sessions[11].flags = not_learned[5];
    for (size_t i = 12; i < ELEMENTSOF(sessions); i++)
        sessions[i].usage.source = USAGE_PER_FILE;
    h.n = ELEMENTSOF(sessions);
    assert_int_equal(history_observed_until(&h, STAGE_LOGIN, UID_INVALID, 16), 11);
    assert_int_equal(history_observed_until(&h, STAGE_LOGIN, 1000, 16), 10);
    assert_int_equal(history_observed_until(&h, STAGE_BOOT, UID_INVALID, 16), 2);
    /* A wrong clock: the session does not count as newer than everything else. */
    sessions[10].start_realtime_usec = 17;
    assert_int_equal(history_observed_until(&h, STAGE_LOGIN, UID_INVALID, 16), 10);
    assert_int_equal(history_observed_until(&h, STAGE_LOGIN, 1001, 16), 0);
}

static void boots_are_counted_without_dates_of_a_wrong_clock(void **state)
{
    const usec_t day = 24 * USEC_PER_HOUR, now = 20000 * day;
    SessionRecord sessions[8];
    History h = {.sessions = sessions, .n = ELEMENTSOF(sessions)};
    HistoryBoots b;

    for (size_t i = 0; i < h.n; i++) {
        sessions[i] = session_record_empty(i == 6 ? STAGE_LOGIN : STAGE_BOOT);
        sessions[i].start_realtime_usec = now - (20 - i) * day;
        if (i != 2) {
            sessions[i].policy = POLICY_GATE;
            strcpy(sessions[i].outcome, "done");
        }
    }
    sessions[2].flags = SESSION_EXACT;
    sessions[7].flags = SESSION_LIGHT;
    b = history_count_boots(&h, now);
    assert_int_equal(b.recorded, now - 15 * day);
    assert_int_equal(b.exact, now - 18 * day);
    assert_int_equal(b.n_replayed, 5);
    assert_int_equal(b.n_replayed_since, 3);

    /* These boots would be the newest for years. */
    sessions[1].start_realtime_usec = now + 1000 * day;
    sessions[2].start_realtime_usec = now + 1001 * day;
    b = history_count_boots(&h, now);
    assert_int_equal(b.recorded, now - 15 * day);
    assert_int_equal(b.exact, 0);
    assert_int_equal(b.n_replayed, 5);
    assert_int_equal(b.n_replayed_since, 3);

    /* The clock of the machine was in local time when this boot began. */
    sessions[2].start_realtime_usec = now + 14 * USEC_PER_HOUR;
    b = history_count_boots(&h, now);
    assert_int_equal(b.recorded, now + 14 * USEC_PER_HOUR);
    assert_int_equal(b.exact, now + 14 * USEC_PER_HOUR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_teardown(test_append, clear),
            cmocka_unit_test(metadata_is_observed_without_replay),
            cmocka_unit_test(boots_are_counted_without_dates_of_a_wrong_clock),
            cmocka_unit_test_teardown(test_torn, clear),
            cmocka_unit_test_teardown(test_bad_lines, clear),
            cmocka_unit_test_teardown(test_rotation, clear),
            cmocka_unit_test_teardown(test_delete, clear),
            cmocka_unit_test_teardown(test_delete_in_both, clear),
            cmocka_unit_test(test_delete_while_others_append),
            cmocka_unit_test_teardown(test_not_a_file, clear),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
