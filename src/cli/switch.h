/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the verbs enable and disable share. */

#include "cli/cli.h"

/* Reads the verb's options (each is --now) and turns headstart on or off. As Verb.run(). */
int switch_headstart(Context *c, bool enable);
