/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which files may be in a set. The packs of boots and logins, launch sets and the session
 * cycle share this rule.
 *
 * A set is read into memory as root. Without a rule one user could create a large file, let others
 * open it once, and then enlarge it. headstart would read the file at each login of those users.
 * Therefore a set contains only files that the user or root controls:
 *
 * - The owner is root or the user. Two accounts of one person are two users.
 * - No other user may write. The bit for others must be unset, on directories too: the sticky bit
 *   of /tmp does not stop anyone from adding entries. Group write is allowed only where by
 *   convention no other user is in the group. For a file of root, this group is root's group (GID
 *   0). For a file of a user, it is the user's private group (GID equal to UID), which
 *   distributions with the umask 002 use. An administrator who adds members to a private group
 *   gives them this access. With a POSIX ACL the group bits are the ACL's mask. An ACL that lets
 *   another user write therefore counts as group write.
 *
 * The caller opens the file and passes what fstat(2) returns for that descriptor. It never checks a
 * path. Directories above the file are not checked. A user who may write there can replace the
 * file, but then the replacement is checked. Symbolic links are not followed. A user can make a
 * hard link to a file of another user only if fs.protected_hardlinks is 0, or if the user may read
 * and write that file.
 *
 * Pure. */

#include "base/macros.h"

/* The set of a boot. It may contain files of root and files of system accounts: services and the
 * greeter read their own files during a boot, and no user logs in as one of these accounts. */
#define OWNERSHIP_SYSTEM (UINT32_MAX - 1)

/* The set for any user who logs in: only files of root. */
#define OWNERSHIP_ANYBODY UINT32_MAX

/* The highest UID of a system account (SYS_UID_MAX of login.defs, SYSTEM_UID_MAX of systemd). */
#define OWNERSHIP_SYSTEM_UID_MAX 999U

/* Returns true if a file with this owner, group and mode (st_uid, st_gid, st_mode) may be in the
 * set of the user `uid`, or of OWNERSHIP_SYSTEM or OWNERSHIP_ANYBODY. */
bool ownership_allows(uint32_t st_uid, uint32_t st_gid, uint32_t st_mode, uint32_t uid);
