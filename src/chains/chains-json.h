/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes and reads chains as a JSON object, which is a member of the model (docs/formats.md).
 * Pure. */

#include "base/json-document.h"
#include "chains/chains.h"

#define CHAINS_FORMAT_VERSION 4 /* versions 1 to 3 are still read */

/* Writes the members of the object that the caller has opened. Equal chains give equal text.
 * Returns 0, -EBUSY (a history learns from a session), -EINVAL (an application has no name),
 * -ENOMEM. */
int chains_write(const Chains *c, JsonWriter *to);

/* Reads an object of the document. Returns 0, -EBADMSG (fields or numbers are wrong),
 * -EPROTONOSUPPORT (an unknown version), -EMEDIUMTYPE (no chains), -E2BIG, -ENOMEM. */
int chains_read(const JsonDocument *d, struct json_object *o, Chains **ret);
