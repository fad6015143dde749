/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The interface between the keys (config.c) and the files (config-files.c). */

#include "config/config.h"

/* Sets a key. 0 and its index; -ENOENT: no such key in this section; -EINVAL: *ret_reason (static)
 * says why the value cannot be used, and *c is unchanged. */
int config_set(Config *c, const char *section, const char *key, const char *value,
               size_t *ret_index, const char **ret_reason);
