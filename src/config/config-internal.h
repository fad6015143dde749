/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The interface between the keys (config.c) and the files (config-files.c). */

#include "config/config.h"

/* Sets a key. Returns 0 and the key's index; -ENOENT if the section has no such key; or -EINVAL if
 * the value cannot be used. *ret_reason (static) is then the reason, and *c is unchanged. */
int config_set(Config *c, const char *section, const char *key, const char *value,
               size_t *ret_index, const char **ret_reason);
