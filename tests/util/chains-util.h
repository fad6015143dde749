/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Chains as a JSON text of their own, for tests: if two texts are equal, the chains have learned
 * the same. */

#include "base/json-util.h"
#include "chains/chains-json.h"

/* Writes the chains to *ret, which the caller frees. Returns 0, the error of chains_write(), or
 * -ENOMEM. */
static inline int chains_to_json(const Chains *c, char **ret)
{
    _cleanup_json_writer_ JsonWriter w = {.compact = true};
    size_t size;
    int r = chains_write(c, &w);

    return r < 0 ? r : json_writer_finish(&w, ret, &size);
}

/* Reads chains from the text. Returns 0, -EBADMSG (no JSON), -E2BIG (the text is too long),
 * -ENOMEM, or the error of chains_read(). */
static inline int chains_from_json(const char *text, size_t size, Chains **ret)
{
    _cleanup_json_document_ JsonDocument d = {0};
    const char *reason;
    int r;

    if (size > INT32_MAX - 1)
        return -E2BIG;
    r = json_document_parse(text, size, 8, &d, &reason);
    if (r < 0)
        return r;
    return d.root ? chains_read(&d, d.root, ret) : -EBADMSG;
}
