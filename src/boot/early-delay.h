/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A file in the runtime directory: the number of microseconds for which headstart-init has delayed
 * the system manager or the initrd. headstart-init writes the file if it has started a recording
 * or a replay: not while headstart is off, and not while `boot-idle` exists without a request to
 * record the boot again. headstartd adds the number to the history (SessionRecord.early_usec). */
#define EARLY_DELAY_FILE "early-usec"
