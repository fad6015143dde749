/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The figures for users who cannot read the state directory: those of the machine, and those of
 * their own logins and starts of applications. They come from headstart-bus (headstart-bus(8)), and
 * contain no path but those of the user's own applications. */

#include "view/launch-history.h"

typedef struct Visible {
    Benefits benefits;      /* of all boots, and of the user's own logins */
    LaunchHistory launches; /* the user's own */
    Effect all_logins;      /* of all users together */
    Effect all_launches;    /* of all applications and users together; only counts and shares */
    const char *off_logins; /* word of the reason why logins in general are not replayed, or NULL */
    char state[16];         /* "off", "empty", "recorded", "learned" or "ready" */
} Visible;

void visible_done(Visible *v);
#define _cleanup_visible_ _cleanup_(visible_done)

/* Returns true if the state directory exists and the user may not read it. */
bool visible_is_needed(const Context *c);

/* Asks headstart-bus. headstart-bus reads only the machine's own state, so the function refuses any
 * other --state=. With a fixture ($HEADSTART_SYSTEM_ROOT) it asks about any state directory.
 * Returns 0, or an error that was reported. */
int visible_read(const Context *c, usec_t now, Visible *ret);
