/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* sd_notify(3) without libsystemd: sends one datagram to $NOTIFY_SOCKET, if that is set. Errors are
 * logged at debug level and ignored. */
void notify_manager(const char *state);
