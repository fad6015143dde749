/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out to which user a subordinate UID belongs (subuid(5)). A user may run processes as each
 * of usually 65,536 UIDs in user namespaces. Without this look-up each UID would count as a user,
 * and one user could take the shares of all others. Pure, except for subordinate_uids_read(). */

#include "base/uid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UIDs below this one are never looked up. By default subordinate UIDs begin at 100,000. */
#define SUBORDINATE_UID_MIN 65536U

/* How many answers are kept. */
#define SUBORDINATE_KNOWN_MAX 64U

typedef struct SubordinateUids {
    char *subuid, *passwd; /* the texts of subuid(5) and passwd(5), or NULL; owned */
    struct {
        uint32_t first, count, owner;
    } known[SUBORDINATE_KNOWN_MAX]; /* answers */
    size_t n_known;
} SubordinateUids;

/* Reads /etc/subuid and /etc/passwd below `root`. Without these files no UID is a subordinate one.
 * Frees what *s contained. */
void subordinate_uids_read(const char *root, SubordinateUids *s);
void subordinate_uids_done(SubordinateUids *s);

/* Returns true if the UID may be a subordinate one. */
bool subordinate_uid_is_possible(uint32_t uid);

/* Returns the user to whom the subordinate UID belongs. Returns UID_INVALID if this is root or a
 * user that passwd(5) does not name, because several administrators and services may share such
 * UIDs. Returns the UID itself if it is not a subordinate one. */
uint32_t subordinate_uids_owner(SubordinateUids *s, uint32_t uid);
