/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/journal.h"

#include "base/log.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define VALUE_MAX      1024U

const char *journal_event_id(JournalEvent e)
{
    static const char *const ids[_JOURNAL_EVENT_MAX] = {
            [JOURNAL_REPLAY_FINISHED] = "4c189a94035e4a8b8c7eae4006cb5fc9",
            [JOURNAL_HOLD_EXPIRED] = "b97bc5abee504427a80c4788001c83bc",
            [JOURNAL_PACK_REFUSED] = "0f48a9f37c32493b9b253b0aabe7c3a1",
            [JOURNAL_RECORDED] = "8fc22f857ba244ca93cd7afccc1a48f1",
            [JOURNAL_RERECORD] = "65b3f3d14225434ba273c8e1e983202c",
            [JOURNAL_POLICY_CHANGED] = "c0082780019644f0b38232009d4d936a",
    };

    return ids[e];
}

static void add_bytes(JournalEntry *e, const void *bytes, size_t size)
{
    if (e->failed || size > sizeof(e->text) - e->n) {
        e->failed = true;
        return;
    }
    memcpy(e->text + e->n, bytes, size);
    e->n += size;
}

static void add_field(JournalEntry *e, const char *name, const char *value)
{
    uint64_t size = htole64(strlen(value));

    add_bytes(e, name, strlen(name));
    if (strchr(value, '\n')) {
        /* The protocol requires that a value with newlines is preceded by its length, in 64 bits,
         * little-endian. */
        add_bytes(e, "\n", 1);
        add_bytes(e, &size, sizeof(size));
    } else
        add_bytes(e, "=", 1);
    add_bytes(e, value, strlen(value));
    add_bytes(e, "\n", 1);
}

void journal_entry_add(JournalEntry *e, const char *name, const char *format, ...)
{
    char value[VALUE_MAX];
    va_list ap;

    va_start(ap, format);
    vsnprintf(value, sizeof(value), format, ap);
    va_end(ap);
    add_field(e, name, value);
}

void journal_entry_begin(JournalEntry *e, JournalEvent event, int level)
{
    e->n = 0;
    e->failed = false;
    add_field(e, "MESSAGE_ID", journal_event_id(event));
    journal_entry_add(e, "PRIORITY", "%d", level);
    add_field(e, "SYSLOG_IDENTIFIER", program_invocation_short_name);
}

int journal_entry_send(const JournalEntry *e, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = -EBADF;
    size_t size = strlen(path) + 1;

    if (e->failed || size > sizeof(address.sun_path))
        return -E2BIG;
    memcpy(address.sun_path, path, size);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (sendto(fd, e->text, e->n, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address,
               sizeof(address)) < 0)
        return -errno;
    return 0;
}

/* Returns true if standard error is the stream that systemd has connected to the journal. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat st;

    return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

bool journal_take(JournalEntry *e, const char *message)
{
    if (!is_journal())
        return false;
    add_field(e, "MESSAGE", message);
    return journal_entry_send(e, JOURNAL_SOCKET) >= 0;
}

void journal_log(JournalEntry *e, int level, const char *format, ...)
{
    char message[VALUE_MAX];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    if (!journal_take(e, message))
        log_full(level, 0, "%s", message);
}
