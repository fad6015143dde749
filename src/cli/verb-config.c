/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart config: shows the values of headstart.conf in effect, and where each was set. */

#include "command/cli.h"

/* Returns "default" or the place of the assignment, such as "/etc/headstart/headstart.conf:7". The
 * caller frees it. Returns NULL if memory runs out. */
static char *source_text(const ConfigSource *s)
{
    char *text = NULL;

    return asprintf(&text, s->file ? "%s:%u" : "default", s->file, s->line) < 0 ? NULL : text;
}

static int print(const Context *c, const Config *config, const ConfigSources *sources)
{
    static const Column columns[] = {
            {"SECTION", "section", CELL_STRING}, {"KEY", "key", CELL_STRING},
            {"VALUE", "value", CELL_STRING},     {"SET IN", NULL, CELL_PATH},
            {NULL, "file", CELL_PATH}, /* null: the default is in effect */
            {NULL, "line", CELL_COUNT},          {0},
    };
    _cleanup_table_ Table *t = table_new(columns);

    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const ConfigSource *s = sources->keys + i;
        _cleanup_free_ char *value = config_format(config, i), *source = source_text(s);

        if (!value || !source)
            return cli_error(ENOMEM, "%m");
        table_row(t, config_section(i), config_key(i), value, source, s->file,
                  s->file ? (uint64_t)s->line : COUNT_UNKNOWN);
    }
    return cli_print(c, t);
}

static int run(Context *c)
{
    _cleanup_(config_sources_done) ConfigSources sources = {0};
    Config config;
    int r = cli_no_options(c);

    if (r < 0)
        return r;
    /* Lines that cannot be used were reported when the configuration was read at the start. */
    r = config_load(c->system_fd, NULL, NULL, &config, &sources);
    return r < 0 ? cli_error(r, "cannot read the configuration: %m") : print(c, &config, &sources);
}

const Verb verb_config = {
        .name = "config",
        .arguments = "",
        .summary = "Show the configuration in effect",
        .description =
                "Shows each key of headstart.conf(5), its value, and the file and line that set\n"
                "it. Lines that cannot be used are reported on standard error.",
        .run = run,
};
