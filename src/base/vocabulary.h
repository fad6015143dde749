/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Enums whose words are the same in code, JSON, command line and documents, with their spelling.
 * Pure. */

#include <errno.h>
#include <stddef.h>

typedef enum Stage {
    STAGE_BOOT,    /* from the start of the recorder until the greeter or default target is up */
    STAGE_LOGIN,   /* from the start of a user's session until it settles */
    STAGE_SESSION, /* after the login */
    _STAGE_MAX,
    _STAGE_INVALID = -EINVAL,
} Stage;

typedef enum AccessKind {
    ACCESS_OPEN,
    ACCESS_EXEC,
    ACCESS_READ,
    ACCESS_READDIR,
    _ACCESS_KIND_MAX,
    _ACCESS_KIND_INVALID = -EINVAL,
} AccessKind;

typedef enum Policy {
    POLICY_OFF,
    POLICY_METADATA,   /* only the blocks that stat(2) and getdents(2) read */
    POLICY_CONCURRENT, /* the whole pack at best-effort priority while programs start, earliest
                          needed first */
    POLICY_GATE,       /* boot only: one undisturbed sweep before the boot continues */
    POLICY_IDLE,       /* the whole pack at idle priority */
    _POLICY_MAX,
    _POLICY_INVALID = -EINVAL,
} Policy;

/* Why a pack has its policy. Packs store the numeric values. */
typedef enum PolicyReason {
    POLICY_REASON_UNKNOWN,    /* an older version planned the pack */
    POLICY_REASON_CONFIGURED, /* the administrator has set the policy */
    POLICY_REASON_FASTEST,    /* it has the least predicted time */
    POLICY_REASON_NO_GAIN,    /* `off`: no policy gains more than it may cost */
    POLICY_REASON_HARMFUL,    /* `off`: sessions without replay were shown to take less time */
    POLICY_REASON_MEASURED,   /* the policy of the previous pack: sessions with it were measured to
                                 take less time */
    POLICY_REASON_UNDECIDED,  /* the policy of the previous pack: its gain is not certain yet */
    _POLICY_REASON_MAX,
    _POLICY_REASON_INVALID = -EINVAL,
} PolicyReason;

/* The kind of storage below a filesystem. It selects the parameters of the cost model and of
 * replay.
 */
typedef enum DeviceClass {
    DEVICE_CLASS_UNKNOWN, /* treated as a hard disk: one ordered stream */
    DEVICE_CLASS_HDD,
    DEVICE_CLASS_SD,
    DEVICE_CLASS_EMMC,
    DEVICE_CLASS_NETDISK,
    DEVICE_CLASS_SSD,
    _DEVICE_CLASS_MAX,
    _DEVICE_CLASS_INVALID = -EINVAL,
} DeviceClass;

/* Returns the index of `s` in a table that maps the values of an enum to words; -EINVAL if `s` is
 * NULL or not in the table. */
int string_table_lookup(const char *const *table, size_t n, const char *s);

/* Convert an enum to its word (NULL if out of range), and a word to its enum (-EINVAL if
 * unknown). */
const char *stage_to_string(Stage s);
Stage stage_from_string(const char *s);
const char *policy_to_string(Policy p);
Policy policy_from_string(const char *s); /* "beside" is an alias of "concurrent" */
const char *policy_reason_to_string(PolicyReason r);
PolicyReason policy_reason_from_string(const char *s);
/* Returns the reason as a clause for people: "no policy is predicted to gain more than it may
 * cost". */
const char *policy_reason_to_text(PolicyReason r);
const char *device_class_to_string(DeviceClass c);
DeviceClass device_class_from_string(const char *s);
