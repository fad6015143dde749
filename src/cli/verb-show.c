/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart show FILE: shows the content of a trace, model or pack. */

#include "base/compressed-file.h"
#include "base/log.h"
#include "base/parse.h"
#include "command/progress.h"
#include "trace/trace-json.h"
#include "view/show.h"

#include <fcntl.h>
#include <string.h>

enum {
    OPTION_LIMIT = 1,
};

static const Option options[] = {
        {OPTION_LIMIT, 'n', "limit", "N", "Maximum number of rows of each long table; 0: all [10]"},
        {0},
};

/* Ends the progress before it prints. */
static int show_bytes(const Context *c, const char *path, const char *buf, size_t size,
                      uint64_t limit, Progress *progress)
{
    _cleanup_trace_ Trace *trace = NULL;
    _cleanup_model_ Model *model = NULL;
    _cleanup_free_ char *error = NULL;
    int r;

    if (size == 0)
        return cli_error(EBADMSG, "%s: empty file", path);
    if (size >= strlen(PACK_MAGIC) && memcmp(buf, PACK_MAGIC, strlen(PACK_MAGIC)) == 0) {
        const char *reason = NULL;
        Pack pack;

        r = pack_open(buf, size, &pack, &reason);
        if (r < 0)
            return cli_error(r, "%s: bad pack (%s)", path, reason ? reason : error_text(r));
        progress_done(progress);
        return show_pack(c, path, &pack, limit);
    }

    /* A file that does not begin with a JSON object has none of the known formats. For any other
     * file, the readers of the JSON formats say what is wrong. */
    if (buf[strspn(buf, " \t\r\n")] != '{')
        return cli_error(EMEDIUMTYPE, "%s: neither a headstart trace, model nor pack", path);
    r = trace_from_json(buf, size, &trace, &error);
    if (r >= 0) {
        progress_done(progress);
        return show_trace(c, path, trace, limit);
    }
    if (r != -EMEDIUMTYPE)
        return cli_error(r, "%s: %s", path, error ? error : error_text(r));
    free(error);
    error = NULL;
    r = model_from_json(buf, size, &model, &error);
    if (r >= 0) {
        progress_done(progress);
        return show_model(c, path, model, limit);
    }
    if (r != -EMEDIUMTYPE)
        return cli_error(r, "%s: %s", path, error ? error : error_text(r));
    return cli_error(EMEDIUMTYPE, "%s: neither a headstart trace, model nor pack", path);
}

static int run(Context *c)
{
    _cleanup_(progress_done) Progress progress = {0};
    _cleanup_free_ char *buf = NULL;
    uint64_t limit = 10;
    _cleanup_free_ char *error = NULL;
    const char *value;
    size_t size;
    int k, n, r;
    char **args;

    while ((k = cli_next_option(c, &value)) > 0)
        if (cli_parse_limit(c, value, &limit) < 0)
            return CLI_WRONG_USAGE;
    if (k < 0)
        return k;
    args = cli_arguments(c, &n);

    progress = progress_start("Reading", c->quiet);
    r = compressed_file_load(AT_FDCWD, args[0], MODEL_JSON_SIZE_MAX, &buf, &size, &error);
    if (r < 0)
        return cli_error(r, "%s: %s", args[0], error ? error : error_text(r));
    return show_bytes(c, args[0], buf, size, limit, &progress);
}

const Verb verb_show = {
        .name = "show",
        .arguments = "TRACE|MODEL|PACK",
        .min_arguments = 1,
        .max_arguments = 1,
        .summary = "Show the content of a trace, model or pack",
        .description =
                "Finds out the kind of file by its content. With --json= all rows of the\n"
                "tables and more fields are printed. Files of a trace are printed in the order\n"
                "of their first use, with their resident ranges.",
        .options = options,
        .run = run,
};
