/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* No user, an unknown user, or all users. The comment of each field says which of these it means.
 * The kernel assigns this UID to no user; systemd gives it the same name. */
#define UID_INVALID UINT32_MAX
