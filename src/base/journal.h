/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sends to the journal the events that administrators and programs look for there. Each event has a
 * message, a MESSAGE_ID, which data/headstart.catalog explains, and fields
 * (headstart.journal-fields(7)). Events are sent with the protocol that systemd documents as
 * "Native Journal Protocol". Needs only libc. */

#include "base/macros.h"

typedef enum JournalEvent {
    JOURNAL_REPLAY_FINISHED,
    JOURNAL_HOLD_EXPIRED,   /* the boot was held until the deadline */
    JOURNAL_PACK_REFUSED,   /* a pack cannot be used */
    JOURNAL_RECORDED,       /* a stage was recorded */
    JOURNAL_RERECORD,       /* stages are recorded again, without replay */
    JOURNAL_POLICY_CHANGED, /* a new pack has another policy than the old pack */
    _JOURNAL_EVENT_MAX,
} JournalEvent;

/* Returns the MESSAGE_ID of the event: 32 hexadecimal digits. */
const char *journal_event_id(JournalEvent e);

/* An entry of the journal. If a field did not fit, the entry is incomplete, and
 * journal_entry_send() fails. */
typedef struct JournalEntry {
    char text[3072];
    size_t n;
    bool failed;
} JournalEntry;

/* Begins an entry with MESSAGE_ID, PRIORITY and SYSLOG_IDENTIFIER. */
void journal_entry_begin(JournalEntry *e, JournalEvent event, int level);

/* Adds a field. The name consists of upper-case letters, digits and underscores; the value may
 * contain any byte but NUL, and at most 1023 bytes of it are kept. */
void journal_entry_add(JournalEntry *e, const char *name, const char *format, ...) _printf_(3, 4);

/* Sends the entry to the socket `path` without waiting. Returns 0; -E2BIG if the fields do not fit;
 * or the negative errno of socket(2) or sendto(2), such as -EAGAIN if the journal is busy. */
int journal_entry_send(const JournalEntry *e, const char *path);

/* Adds the message and sends the entry, if standard error is the journal. Returns false if standard
 * error is not the journal, or if the entry was not sent. */
bool journal_take(JournalEntry *e, const char *message);

/* Calls journal_take(). If that returns false, prints the message with log_full(). */
void journal_log(JournalEntry *e, int level, const char *format, ...) _printf_(3, 4);
