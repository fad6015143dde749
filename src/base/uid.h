/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* No user, an unknown user, or all users: what the owner of the field says. The kernel gives this
 * UID to nobody; systemd gives it the same name. */
#define UID_INVALID UINT32_MAX
