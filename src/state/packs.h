/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names, reads and writes the packs of the state directory. */

#include "base/ranges.h"
#include "base/vocabulary.h"
#include "pack/pack.h"

#define PACK_NAME_MAX 32U

/* Writes the name of the pack of a stage for a user (UID_INVALID: for everyone): "login.pack",
 * "login@1000.pack". Returns `name`. */
char *packs_name(char name[static PACK_NAME_MAX], Stage stage, uint32_t uid);

/* Returns true for the name of a user's login pack; then *ret_uid is the user. */
bool packs_parse_user_name(const char *name, uint32_t *ret_uid);

/* The login pack of a user. */
typedef struct UserPack {
    uint32_t uid;
    uint64_t changed_nsec; /* wall clock */
} UserPack;

typedef struct UserPacks {
    UserPack *items; /* the newest first, and those of the same time by user */
    size_t n, allocated;
} UserPacks;

void user_packs_done(UserPacks *p);
#define _cleanup_user_packs_ _cleanup_(user_packs_done)

/* Lists the login packs of users without reading them. Returns 0 or a negative errno. */
int packs_list_users(int state_fd, UserPacks *ret);

/* Reads and checks a pack of the state directory. *ret points into *ret_buf, which the caller
 * frees. Returns 0, -ENOENT, or another negative errno. If the content of the file is wrong,
 * *ret_reason becomes a static string with the reason; otherwise it is untouched. ret_reason may be
 * NULL. */
int packs_read(int state_fd, const char *name, char **ret_buf, Pack *ret, const char **ret_reason);

/* Reads and checks the header of a pack of the state directory, and that the pack has the size that
 * the header states. That takes a small part of the time of packs_read(), and notices a truncated
 * pack, but not other damage of the tables. Returns as packs_read() does. */
int packs_read_header(int state_fd, const char *name, PackHeader *ret, const char **ret_reason);

/* Compresses a pack and writes it into the state directory in place of the old pack. Returns 0 or a
 * negative errno. */
int packs_write(int state_fd, const char *name, const void *bytes, size_t size);

/* Reads the salt of the pack that will be replaced. Returns 0, or a negative errno if there is no
 * usable pack. */
int packs_read_salt(int state_fd, const char *name, uint64_t *ret_salt);

/* Adds to *set the positions of the pack's data on the device of the filesystem with that UUID.
 * Returns 0, -ENOMEM, or another negative errno if there is no usable pack. */
int packs_read_places(int state_fd, const char *name, const uint8_t uuid[static 16], RangeSet *set);

/* Reads and checks the pack of this stage and user, or the pack for everyone if the user has none
 * or `uid` is UID_INVALID. *ret points into *ret_buf, which the caller frees. Returns 0, or a
 * negative errno. */
int packs_read_of(int state_fd, Stage stage, uint32_t uid, char **ret_buf, Pack *ret);

/* Returns why a stage is not replayed: the reason of the pack that packs_read_of() would read, if
 * the pack's policy is `off`. Without a user the packs of all users count, too, and the stage
 * counts as replayed if one of the packs is. Returns _POLICY_REASON_INVALID if the stage is
 * replayed, or if there is no usable pack. Reads only the heads of the packs. */
PolicyReason packs_off_reason(int state_fd, Stage stage, uint32_t uid);

/* Reads the control interval N of the packs of a stage (0: no control session). The login packs of
 * all users have the same. Returns 0, or a negative errno if the stage has no usable pack. Reads
 * only the head of a pack. */
int packs_read_control_interval(int state_fd, Stage stage, uint32_t *ret);

/* Returns true if the state directory has a pack for everyone. */
bool packs_exist(int state_fd);

/* Returns true if packs for everyone exist and none of them is older than the model, the model
 * below `root` that the distribution ships, and the last change of the configuration
 * (config_changed_nsec()). Returns false if one of them is newer than `now_nsec` (wall clock),
 * because its time then shows nothing. */
bool packs_are_current(int state_fd, uint64_t config_nsec, uint64_t now_nsec, const char *root);
