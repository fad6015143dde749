/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* No user, an unknown user, or all users, as the comment of each field states. The kernel assigns
 * this UID to no user; systemd gives it the same name. */
#define UID_INVALID UINT32_MAX

/* UIDs from 1000 on belong to people, except nobody's (login.defs(5): UID_MIN). */
static inline bool uid_is_person(uint32_t uid)
{
    return uid >= 1000 && uid != 65534 && uid != UID_INVALID;
}
