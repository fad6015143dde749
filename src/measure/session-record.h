/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The times of one boot or login and the work of replay for it: one line of STATE/history.jsonl
 * (docs/formats.md). Pure: text in memory. */

#include "base/json-util.h"
#include "base/time-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"

#include <stdbool.h>

#define SESSION_RECORD_VERSION 1

/* Longest line of a history, with its newline. */
#define SESSION_RECORD_SIZE_MAX 8192U

/* An unknown number. Such numbers are left out of the line. */
#define SESSION_UNKNOWN UINT64_MAX

/* Properties of a session. Most of them make the session incomparable with others
 * (sessions_exclude()). */
typedef enum SessionFlags {
    SESSION_CONTROL = 1 << 0, /* replay was off on purpose */
    SESSION_INCOMPLETE = 1 << 1,
    SESSION_EXACT = 1 << 2, /* read-ahead was lowered */
    SESSION_SECOND_LOGIN = 1 << 3,
    SESSION_SOFT_REBOOT = 1 << 4,
    SESSION_OFFLINE_UPDATE = 1 << 5,
    SESSION_FSCK = 1 << 6,
    SESSION_UNSETTLED = 1 << 7, /* the stage was cut at its time limit */
    SESSION_SHARED = 1 << 8,    /* several users logged in at once */
    SESSION_AUTOLOGIN = 1 << 9, /* no greeter ran before the login */
    SESSION_LIGHT = 1 << 10, /* a boot with the policy `off` that was not recorded: the record has
                                the times of the system manager and counters only */
    _SESSION_FLAGS_ALL = (1 << 11) - 1,
} SessionFlags;

/* The way in which the use of the pack was observed. */
typedef enum UsageSource {
    USAGE_NONE,
    USAGE_PER_FILE, /* replayed session: a file of the pack was opened or not */
    USAGE_PER_PAGE, /* session without replay: each page was read or not */
    _USAGE_SOURCE_MAX,
    _USAGE_SOURCE_INVALID = -EINVAL,
} UsageSource;

/* Classes of predicted probability: [0, 0.1), [0.1, 0.2), …, [0.9, 1]. */
#define USAGE_CLASSES 10U

/* How well the pack predicted the reads of the session. */
typedef struct PackUsage {
    UsageSource source;
    uint64_t hit_files, waste_files, miss_files;
    uint64_t hit_bytes;   /* in the pack and used */
    uint64_t waste_bytes; /* in the pack and not used */
    uint64_t miss_bytes;  /* read from the disk and not in the pack */
    /* For each class: the number of files of the pack, and how many of these the session opened. */
    uint32_t planned[USAGE_CLASSES], opened[USAGE_CLASSES];
} PackUsage;

/* Returns a PackUsage in which nothing is known. */
PackUsage pack_usage_empty(void);

/* Adds the members `usage`, `hit_files`, … that are known. */
void pack_usage_write(const PackUsage *u, JsonWriter *w);

/* Reads these members; what is missing is unknown. Returns 0 or -EBADMSG. */
int pack_usage_read(json_object *o, PackUsage *ret);

typedef struct SessionRecord {
    Stage stage;    /* boot or login */
    unsigned flags; /* SessionFlags */
    char boot_id[33];
    uint32_t uid; /* of a login; UID_INVALID: several users, or not known */
    usec_t start_realtime_usec;
    /* Boot: from the start of the kernel until the greeter was quiet or the default target was
     * reached. Login: from the start of its recording, which begins with the user's session, until
     * the session had settled. An automatic login is one wait together with its boot, so its time
     * begins with the kernel, too. */
    uint64_t ready_usec;
    uint64_t early_usec; /* of a boot, and of an automatic login: the part in which headstart-init
                            delayed the system manager or the initrd (boot/early-delay.h) */
    uint64_t began_usec; /* of an automatic login: the part of ready_usec before the user's session
                            began. If it is not known, ready_usec begins with the session. */
    /* Parts of a boot, from the system manager */
    uint64_t firmware_usec, loader_usec, kernel_usec, initrd_usec;
    uint64_t finished_usec; /* from the start of the kernel until all jobs of the boot were done */
    /* During the stage: time in which some tasks, or all, waited for I/O; reads of the disk below
     * the root filesystem */
    uint64_t io_some_usec, io_full_usec;
    uint64_t disk_reads, disk_read_bytes;
    /* The report of headstart-replay. Without a report the outcome is "". Policy, reason and
     * outcome of an automatic login are those of its boot if the boot was replayed. */
    Policy policy;   /* of the pack; POLICY_OFF if there was none */
    char reason[16]; /* PolicyReason of the policy; "": not known */
    char outcome[16];
    uint64_t replay_usec, replay_files, replay_data_bytes, replay_metadata_bytes;
    uint64_t predicted_usec; /* the planner's prediction of ready_usec */
    PackUsage usage;
    /* The machine */
    uint64_t memory_bytes;
    usec_t packages_usec; /* wall clock: when the package database last changed */
    char kernel[64], distribution[64];
    char device[32], scheduler[32]; /* of the root filesystem */
    char disk[17]; /* hash of what identifies the disk below the root filesystem, 16 hexadecimal
                      digits */
} SessionRecord;

/* Returns a record in which nothing is known. */
SessionRecord session_record_empty(Stage stage);

/* Writes the record as one line with a newline. The caller frees *ret. Returns 0 or -ENOMEM. */
int session_record_to_line(const SessionRecord *s, char **ret, size_t *ret_size);

/* Reads a line (without its newline). Unknown members are ignored. Returns 0, -EBADMSG (malformed),
 * -EPROTONOSUPPORT (another version), -ENOMEM. */
int session_record_from_line(const char *line, size_t size, SessionRecord *ret);

/* Returns true if the session was replayed, at least in part. */
bool session_was_replayed(const SessionRecord *s);

/* Returns the time by which the session is compared with others: ready_usec, which must be known.
 * If the session was not replayed, early_usec is subtracted: without headstart it would not have
 * passed. */
uint64_t session_compared_usec(const SessionRecord *s);

/* Returns the time of a boot from the end of the initrd, or of the kernel without one, until all
 * jobs of the boot were done; SESSION_UNKNOWN if its parts are not known. */
uint64_t session_userspace_usec(const SessionRecord *s);

const char *usage_source_to_string(UsageSource s);
/* Returns the unit in which hits and waste were observed, "file" or "page"; NULL if nothing was
 * observed. Misses are always observed per page. */
const char *usage_source_unit(UsageSource s);
UsageSource usage_source_from_string(const char *s);
/* Returns a new array of the words of SessionFlags, such as ["exact"]. NULL: out of memory. */
struct json_object *session_flags_to_json(unsigned flags);
