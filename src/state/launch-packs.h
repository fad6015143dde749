/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The launch sets, one pack for each application of a user in the state directory:
 * `launch@UID-HASH.pack`, and `launch-HASH.pack` for users who have no pack of their own. HASH is
 * launch_pack_hash() of the application's path in 16 hexadecimal digits. */

#include "base/uid.h"
#include "pack/pack.h"

#define LAUNCH_PACK_NAME_MAX 64U

/* A launch pack is at most this large, so that reading it is quick. */
#define LAUNCH_PACK_SIZE_MAX (4U << 20)

uint64_t launch_pack_hash(const char *path);

/* Writes the name of the pack of that user (UID_INVALID: of everybody). Returns `name`. */
char *launch_pack_name(char name[static LAUNCH_PACK_NAME_MAX], uint32_t uid, uint64_t hash);

/* Returns true for the name of a launch pack; then *ret_uid and *ret_hash are the user and the hash
 * in the name. */
bool launch_pack_parse_name(const char *name, uint32_t *ret_uid, uint64_t *ret_hash);

/* Returns true if `name` is the name of a launch pack whose policy is not `off`. *ret_reason (may
 * be NULL) becomes the reason of the policy, and stays untouched if there is no usable launch pack
 * of that name. Reads only the head of the pack. */
bool launch_pack_is_replayed(int state_fd, const char *name, PolicyReason *ret_reason);

/* Returns true if the set of any application is to be replayed: if the policy of a launch pack is
 * not `off`. *ret_off (may be NULL) becomes the reason of one of the packs if there are packs and
 * the policy of all is `off`, and _POLICY_REASON_INVALID otherwise. Reads only the heads of the
 * packs. */
bool launch_packs_are_replayed(int state_fd, PolicyReason *ret_off);

/* Reads the header of the user's pack, or of everybody's if the user has none or a damaged one.
 * Returns as launch_pack_read() does. */
int launch_pack_read_header(int state_fd, uint32_t uid, uint64_t hash, PackHeader *ret);

/* Reads and checks the user's pack, or everybody's if the user has none or a damaged one. *ret
 * points into *ret_buf, which the caller frees. Returns 0, -ENOENT (neither exists), or another
 * negative errno. */
int launch_pack_read(int state_fd, uint32_t uid, uint64_t hash, char **ret_buf, Pack *ret);
