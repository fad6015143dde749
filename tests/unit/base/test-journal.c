/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the entries for the journal with a socket of the test in place of the journal's socket. */

#include "base/journal.h"
#include "util/root-util.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

static TestRoot root;
static char path[108];
static int server = -EBADF;

static int set_up(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int r = test_root_make(&root);

    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/socket", root.path);
    strcpy(address.sun_path, path);
    server = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return bind(server, (struct sockaddr *)&address, sizeof(address));
}

static int tear_down(void **state)
{
    close(server);
    return test_root_remove(&root);
}

static void entry_has_its_fields(void **state)
{
    static const char binary[] = "HEADSTART_REASON\n\x03\0\0\0\0\0\0\0a\nb\n";
    char buf[4096];
    JournalEntry e;
    ssize_t n;

    journal_entry_begin(&e, JOURNAL_PACK_REFUSED, LOG_ERR);
    journal_entry_add(&e, "HEADSTART_PACK", "%s.pack", "boot");
    /* A newline in a value must not begin another field. */
    journal_entry_add(&e, "HEADSTART_REASON", "%s", "a\nb");
    assert_int_equal(journal_entry_send(&e, path), 0);
    n = recv(server, buf, sizeof(buf) - 1, 0);
    assert_true(n > 0);
    assert_non_null(memmem(buf, (size_t)n, "MESSAGE_ID=0f48a9f37c32493b9b253b0aabe7c3a1\n", 44));
    assert_non_null(memmem(buf, (size_t)n, "PRIORITY=3\n", 11));
    assert_non_null(memmem(buf, (size_t)n, "HEADSTART_PACK=boot.pack\n", 25));
    assert_memory_equal(buf + n - (sizeof(binary) - 1), binary, sizeof(binary) - 1);
}

static void too_large_an_entry_is_not_sent(void **state)
{
    char value[1000], buf[16];
    JournalEntry e;

    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    journal_entry_begin(&e, JOURNAL_RECORDED, LOG_INFO);
    for (int i = 0; i < 4; i++)
        journal_entry_add(&e, "HEADSTART_TRACE", "%s", value);
    assert_int_equal(journal_entry_send(&e, path), -E2BIG);
    assert_int_equal(recv(server, buf, sizeof(buf), 0), -1);
}

/* Sending an entry does not wait for a journal that does not read. */
static void full_socket_does_not_block(void **state)
{
    JournalEntry e;
    int r = 0;

    journal_entry_begin(&e, JOURNAL_RECORDED, LOG_INFO);
    for (int i = 0; i < 100000 && r == 0; i++)
        r = journal_entry_send(&e, path);
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(journal_entry_send(&e, "/nowhere/socket"), -ENOENT);
}

/* Without $JOURNAL_STREAM, or with that of another stream, the caller prints the message itself. */
static void other_streams_are_not_the_journal(void **state)
{
    JournalEntry e;

    journal_entry_begin(&e, JOURNAL_RECORDED, LOG_INFO);
    unsetenv("JOURNAL_STREAM");
    assert_false(journal_take(&e, "x"));
    setenv("JOURNAL_STREAM", "1:1", 1);
    assert_false(journal_take(&e, "x"));
    setenv("JOURNAL_STREAM", "nonsense", 1);
    assert_false(journal_take(&e, "x"));
    unsetenv("JOURNAL_STREAM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(entry_has_its_fields),
            cmocka_unit_test(too_large_an_entry_is_not_sent),
            cmocka_unit_test(other_streams_are_not_the_journal),
            cmocka_unit_test(full_socket_does_not_block),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
