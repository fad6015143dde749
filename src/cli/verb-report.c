/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart report: writes an HTML page on the benefit, the newest sessions and the predictions. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "report/page.h"
#include "view/launch-history.h"
#include "view/plot-data.h"
#include "view/report-data.h"
#include "view/visible.h"

#include <string.h>
#include <time.h>

#include "config-paths.h"

enum {
    OPTION_OUTPUT = 1,
};

/* The time limit for finding the positions on disk of files that the pack does not contain. */
#define PLACES_TIMEOUT (200 * USEC_PER_MSEC)

static const Option options[] = {
        {OPTION_OUTPUT, 'o', "output", "FILE", "Write to FILE, which is replaced as a whole"},
        {0},
};

typedef struct Report {
    const Context *c;
    int state_fd; /* -EBADF with `visible` */
    bool visible; /* the user cannot read the state: only visible figures are shown */
    Benefits benefits;
    SessionExclusion *exclusions;
    LaunchHistory launches;
    Timeline timelines[2];
    bool has_timeline[2];
    HeavyList applications[2], files[2];
    Graph graph;
    char *machine;
} Report;

static void report_done(Report *x)
{
    benefits_done(&x->benefits);
    launch_history_done(&x->launches);
    free(x->exclusions);
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        timeline_done(&x->timelines[s]);
        heavy_list_done(&x->applications[s]);
        heavy_list_done(&x->files[s]);
    }
    graph_done(&x->graph);
    free(x->machine);
}

static int read_benefits(Report *p, usec_t now)
{
    Visible v;
    int r;

    if (!p->visible)
        return benefits_read(p->c, p->state_fd, now, &p->benefits);
    r = visible_read(p->c, now, &v);
    if (r < 0)
        return r;
    p->benefits = v.benefits;
    p->launches = v.launches;
    return 0;
}

static int read_history(Report *p, usec_t now)
{
    const History *h = &p->benefits.history;
    int r = read_benefits(p, now);

    if (r < 0)
        return r;
    p->exclusions = calloc(h->n + 1, sizeof(*p->exclusions));
    if (!p->exclusions || sessions_label(h->sessions, h->n, HISTORY_WINDOW, p->exclusions) < 0)
        return cli_error(ENOMEM, "%m");
    return p->visible ? 0 : launch_history_read(p->c, p->state_fd, now, &p->launches);
}

/* Describes the machine of the newest session, for example as "debian 13, Linux 6.18, sda, memory
 * 7.8G". */
static int describe_machine(Report *x)
{
    const History *h = &x->benefits.history;
    const SessionRecord *s = h->n > 0 ? &h->sessions[h->n - 1] : NULL;
    char memory[FORMAT_BYTES_MAX];

    if (!s || !*s->kernel)
        return 0;
    format_bytes(memory, sizeof(memory), s->memory_bytes);
    if (asprintf(&x->machine, "%s%sLinux %s%s%s%s%s", s->distribution, *s->distribution ? ", " : "",
                 s->kernel, *s->device ? ", " : "", s->device,
                 s->memory_bytes != SESSION_UNKNOWN ? ", memory " : "",
                 s->memory_bytes != SESSION_UNKNOWN ? memory : "") < 0) {
        x->machine = NULL;
        return cli_error(ENOMEM, "%m");
    }
    return 0;
}

static int read_timelines(Report *x)
{
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        _cleanup_trace_ Trace *t = NULL;
        int r = plot_find_trace(x->state_fd, s, TRACE_NEWEST, &t);

        if (r >= 0)
            r = plot_make_timeline(x->c, x->state_fd, t, PLACES_TIMEOUT, &x->timelines[s]);
        if (r == -ENOMEM)
            return cli_error(r, "%m");
        x->has_timeline[s] = r >= 0;
    }
    return 0;
}

/* Reads what the page shows of the model. Without a usable model, the page lacks these sections. */
static int read_model(Report *x)
{
    _cleanup_free_ char *error = NULL;
    _cleanup_model_ Model *m = NULL;
    int r = state_load_model(x->state_fd, &m, &error);

    if (r == -ENOENT)
        return 0;
    if (r < 0) {
        cli_warning(r, "%s/" STATE_MODEL ": %s", x->c->state, error ? error : error_text(r));
        return r == -ENOMEM ? r : 0;
    }
    for (Stage s = STAGE_BOOT; r >= 0 && s <= STAGE_LOGIN; s++)
        r = report_find_heavy(m, s, &x->applications[s], &x->files[s]);
    if (r >= 0)
        r = report_make_graph(m->chains, &x->graph);
    return r < 0 ? cli_error(r, "%m") : 0;
}

static int write_page(const Report *x, usec_t now, const char *output)
{
    ReportPage p = {
            .version = HEADSTART_VERSION,
            .machine = x->machine,
            .now = now,
            .benefits = x->benefits.stages,
            .off = x->benefits.off,
            .sessions = x->benefits.history.sessions,
            .exclusions = x->exclusions,
            .n_sessions = x->benefits.history.n,
            .launches = &x->launches.benefits,
            .launches_off = x->launches.off,
            .names = !x->visible,
            .applications = x->applications,
            .files = x->files,
            .graph = x->graph.n_edges > 0 ? &x->graph : NULL,
    };
    _cleanup_markup_ Markup m = {0};
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    p.utc_offset_seconds = clock_utc_offset_sec(now);
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        p.kept_on[s] = benefits_is_kept_on(&x->benefits, s);
        p.timelines[s] = x->has_timeline[s] ? &x->timelines[s] : NULL;
    }
    report_page(&m, &p);
    r = markup_finish(&m, &text, &size);
    if (r < 0)
        return cli_error(r, "%m");
    if (!output) {
        (void)fwrite(text, 1, size, stdout); /* main() reports errors */
        return 0;
    }
    r = output_file_write(output, text, size, 0600);
    return r < 0 ? cli_error(r, "%s: %m", output) : 0;
}

static int run(Context *c)
{
    _cleanup_close_ int fd = -EBADF;
    _cleanup_(report_done) Report report = {.c = c};
    _cleanup_(progress_done) Progress progress = {0};
    const char *value, *output = NULL;
    usec_t now = clock_now(CLOCK_REALTIME);
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        output = value;
    if (k < 0)
        return k;
    report.visible = visible_is_needed(c);
    r = report.visible ? 0 : cli_state_open(c, false, &fd);
    if (r == -ENOENT)
        return cli_error(r, "%s: nothing was recorded yet", c->state);
    report.state_fd = fd;
    progress = progress_start("Drawing", c->quiet);
    if (r >= 0)
        r = read_history(&report, now);
    if (r >= 0)
        r = describe_machine(&report);
    if (r >= 0 && !report.visible)
        r = read_timelines(&report);
    if (r >= 0 && !report.visible)
        r = read_model(&report);
    progress_done(&progress);
    return r < 0 ? r : write_page(&report, now, output);
}

const Verb verb_report = {
        .name = "report",
        .arguments = "",
        .summary = "Write an HTML page on what headstart saves and does",
        .description =
                "The page shows the benefit with its interval for boots, logins and starts of\n"
                "applications, the newest boot and login, the newest sessions, predicted and\n"
                "opened files, the applications and files with the most data, and the order in\n"
                "which applications start. It needs no network and no other file. Users other\n"
                "than root see the boots, and their own logins and starts of applications with\n"
                "the names of these applications, but no names of files.",
        .options = options,
        .run = run,
};
