/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the verbs enable and disable. */

#include "command/cli.h"

/* Parses the verb's options (only --now) and turns headstart on or off. Returns as Verb.run(). */
int switch_headstart(Context *c, bool enable);
