/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The code that the verbs enable and disable share. */

#include "command/cli.h"

/* Parses the verb's options (only --now) and turns headstart on or off. Returns the same values as
 * Verb.run(). */
int switch_headstart(Context *c, bool enable);
