/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks whether this process has the capabilities that a verb needs, so that the verb can name the
 * missing ones. */

#include "base/macros.h"
#include "system/capability.h"

/* Returns true if the capability is effective, or if that is unknown. */
bool capability_have(int capability);

/* Writes the capabilities of the list (ended by -1) that are missing into buf, for example as
 * "CAP_SYS_ADMIN and CAP_FOWNER". Returns true if any is missing. */
bool capability_missing(const int *capabilities, char *buf, size_t size);
