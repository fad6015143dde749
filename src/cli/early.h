/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /etc/headstart/boot.pack: a copy of STATE/boot.pack for early boot, where the state directory is
 * on a filesystem (/var) that is mounted later. There is none where both are on the root
 * filesystem. */

#include "cli/cli.h"

/* The pack for boots is this now (NULL: there is none any more): the copy is made, replaced or
 * removed. Nothing is done for a state directory that the units do not use. 0, or an error that was
 * reported. */
int early_pack_update(const Context *c, int state_fd, const void *bytes, size_t size);
