/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A file in the runtime directory: the number of microseconds for which headstart-init has delayed
 * the system manager or the initrd. headstart-init writes the file, also in a boot that is not
 * replayed, and headstartd adds the number to the history (SessionRecord.early_usec). */
#define EARLY_DELAY_FILE "early-usec"
