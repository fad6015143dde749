/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* No user, an unknown user, or all users. The comment of each field says which of these it means.
 * The kernel assigns this UID to no user; systemd gives it the same name. */
#define UID_INVALID UINT32_MAX

/* Returns true for root and for accounts of services, greeters and transient units, as which no
 * person logs in: up to 999 (SYS_UID_MAX of login.defs), and 60514 to 65535 (the greeters of GDM
 * and DynamicUser= of systemd; systemd's "Users, Groups, UIDs and GIDs on systemd Systems"). */
static inline bool uid_is_system(uint32_t uid)
{
    return uid <= 999 || (uid >= 60514 && uid <= 65535);
}
