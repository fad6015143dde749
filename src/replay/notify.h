/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* sd_notify(3) without its library: one datagram to $NOTIFY_SOCKET, if there is one. Failing is no
 * reason to fail. */
void notify_manager(const char *state);
