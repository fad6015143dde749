/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart: the administrator's command. */

#include "command/cli.h"

#include "base/log.h"
#include "system/call-filter.h"

#include <fcntl.h>
#include <string.h>

#include "config-paths.h"

/* In the order of --help: what users need first, then the steps of the data flow. */
static const Verb *const verbs[] = {
        &verb_status,   &verb_history, &verb_measure, &verb_doctor,   &verb_explain,
        &verb_plot,     &verb_report,  &verb_metrics, &verb_show,     &verb_record,
        &verb_learn,    &verb_plan,    &verb_replay,  &verb_rerecord, &verb_refresh,
        &verb_relocate, &verb_forget,  &verb_enable,  &verb_disable,  &verb_evaluate,
        &verb_merge,    &verb_export,  &verb_import,  &verb_config,   NULL,
};

static void warn_config(void *userdata, const char *file, unsigned line, const char *message)
{
    if (line > 0)
        cli_warning(0, "%s:%u: %s", file, line, message);
    else
        cli_warning(0, "%s: %s", file, message);
}

/* Loads the configuration. If a test sets $HEADSTART_SYSTEM_ROOT, the configuration and facts about
 * the machine are read below that directory. */
static int load_config(Context *c)
{
    const char *root = getenv("HEADSTART_SYSTEM_ROOT");
    int r;

    if (root) {
        c->system_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (c->system_fd < 0)
            return cli_error(errno, "%s: %m", root);
    }
    r = config_load(c->system_fd, warn_config, NULL, &c->config, NULL);
    return r < 0 ? cli_error(r, "cannot read the configuration: %m") : 0;
}

int main(int argc, char **argv)
{
    Context c = cli_context_default();
    int r;

    (void)call_filter_complete(); /* without it, the unit's own filter still applies */
    cli_set_locale();
    log_parse_environment();
    r = cli_parse_global(&c, verbs, argc, argv);
    if (r >= 0)
        r = load_config(&c);
    if (r >= 0)
        r = c.verb->run(&c);
    closep(&c.system_fd);
    return cli_exit_status(r);
}
