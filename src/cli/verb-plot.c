/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart plot: draws a recorded boot, login or start of an application as SVG. */

#include "base/atomic-file.h"
#include "base/log.h"
#include "base/parse.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "state/trace-store.h"
#include "view/plot-data.h"

#include <fcntl.h>
#include <string.h>

enum {
    OPTION_LAST = 1,
    OPTION_COMPARE,
    OPTION_OUTPUT,
    OPTION_WIDTH,
};

#define WIDTH_MIN 300U
#define WIDTH_MAX 4000U

/* The time limit for finding the positions on disk of files that the pack does not contain. */
#define PLACES_TIMEOUT (20 * USEC_PER_SEC)

static const Option options[] = {
        {OPTION_LAST, 0, "last", NULL, "Draw the newest trace [default]"},
        {OPTION_COMPARE, 0, "compare", "TRACE",
         "Draw another trace below: a file, or 'control'\nfor the newest trace without replay"},
        {OPTION_OUTPUT, 'o', "output", "FILE", "Write to FILE, which is replaced as a whole"},
        {OPTION_WIDTH, 'w', "width", "PIXELS", "Width of the picture, 300 to 4000 [960]"},
        {0},
};

typedef struct Plot {
    const Context *c;
    int state_fd;
    const char *output, *compare;
    unsigned width;
} Plot;

static int load_file(const char *path, Trace **ret)
{
    _cleanup_free_ char *error = NULL;
    int r = state_read_trace(AT_FDCWD, path, ret, &error);

    return r < 0 ? cli_error(r, "%s: %s", path, error ? error : error_text(r)) : 0;
}

static int find_failed(const Plot *p, int r, const char *what)
{
    if (r == -ENOENT)
        return cli_error(r, "%s: no %s was recorded", p->c->state, what);
    return cli_error(r, "%s: cannot find a trace of a %s: %m", p->c->state, what);
}

static bool compares_with_control(const Plot *p)
{
    return p->compare && strcasecmp(p->compare, "control") == 0;
}

/* Loads the newest trace of a stage, or the file of a trace. To compare with a session without
 * replay, the newest one with replay comes first, because the newest may itself be without. Returns
 * 0, or an error that was reported. */
static int load(const Plot *p, const char *what, Trace **ret)
{
    Stage stage = stage_from_string(what);
    int r;

    if ((int)stage < 0 && !strpbrk(what, "./"))
        return cli_usage_error(p->c, "no such stage: '%s'", what);
    if ((int)stage < 0)
        return load_file(what, ret);
    if (p->state_fd < 0)
        return cli_error(ENOENT, "%s: nothing was recorded yet", p->c->state);
    r = compares_with_control(p) ? plot_find_trace(p->state_fd, stage, TRACE_NEWEST_REPLAYED, ret)
                                 : -ENOENT;
    if (r == -ENOENT)
        r = plot_find_trace(p->state_fd, stage, TRACE_NEWEST, ret);
    return r < 0 ? find_failed(p, r, what) : 0;
}

/* Loads the trace to compare with. Returns 0, or an error that was reported. */
static int load_other(const Plot *p, const Trace *t, Trace **ret)
{
    int r;

    if (!compares_with_control(p))
        return load_file(p->compare, ret);
    r = p->state_fd < 0 ? -ENOENT : plot_find_control(p->state_fd, t, ret);
    return r < 0 ? cli_error(r, "%s: no other trace of a %s without replay: %m", p->c->state,
                             stage_to_string(t->stage))
                 : 0;
}

/* Finds a start of the same application to compare with. Returns 0, or an error that was
 * reported. */
static int load_other_launch(const Plot *p, const PlotLaunch *one, PlotLaunch *ret)
{
    const Trace *t = one->trace;
    char path[TRACE_PATH_MAX];
    int r = trace_format_path(t, t->files[t->applications[one->application].file].path, path,
                              sizeof(path));

    if (r >= 0 && compares_with_control(p))
        r = plot_find_launch(p->state_fd, path, TRACE_NEWEST_CONTROL, one, ret);
    else if (r >= 0) {
        r = load_file(p->compare, &ret->trace);
        if (r < 0)
            return r;
        r = plot_find_launch_in(ret->trace, path, &ret->application, &ret->at);
    }
    return r < 0 ? cli_error(r, "no other start of %s%s: %m", path,
                             compares_with_control(p) ? " without replay" : "")
                 : 0;
}

static int write_output(const Plot *p, const Timeline *timelines, size_t n)
{
    _cleanup_markup_ Markup m = {0};
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    timeline_document(&m, timelines, n, p->width);
    r = markup_finish(&m, &text, &size);
    if (r < 0)
        return cli_error(r, "%m");
    if (!p->output) {
        (void)fwrite(text, 1, size, stdout); /* main() reports errors */
        return 0;
    }
    r = output_file_write(p->output, text, size, 0600);
    return r < 0 ? cli_error(r, "%s: %m", p->output) : 0;
}

static int plot_stage(const Plot *p, const char *what)
{
    Timeline timelines[2] = {0};
    Trace *traces[2] = {0};
    size_t n = 0;
    int r = load(p, what, &traces[n++]);

    if (r >= 0 && p->compare)
        r = load_other(p, traces[0], &traces[n++]);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        r = plot_make_timeline(p->c, p->state_fd, traces[i], PLACES_TIMEOUT, &timelines[i]);
        if (r < 0)
            cli_error(r, "%m");
    }
    if (r >= 0)
        r = write_output(p, timelines, n);
    for (size_t i = 0; i < ELEMENTSOF(traces); i++) {
        timeline_done(&timelines[i]);
        trace_free(traces[i]);
    }
    return r;
}

static int plot_launch(const Plot *p, const char *name)
{
    Timeline timelines[2] = {0};
    PlotLaunch launches[2] = {0};
    size_t n = 1;
    int r = -ENOENT;

    if (p->state_fd >= 0 && compares_with_control(p))
        r = plot_find_launch(p->state_fd, name, TRACE_NEWEST_REPLAYED, NULL, &launches[0]);
    if (p->state_fd >= 0 && r == -ENOENT)
        r = plot_find_launch(p->state_fd, name, TRACE_NEWEST, NULL, &launches[0]);
    if (r < 0)
        return cli_error(r, "%s: no start of %s was recorded: %m", p->c->state,
                         name ? name : "an application");
    if (p->compare)
        r = load_other_launch(p, &launches[0], &launches[n++]);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        r = plot_make_launch(p->c, p->state_fd, &launches[i], PLACES_TIMEOUT, &timelines[i]);
        if (r < 0)
            cli_error(r, "%m");
    }
    if (r >= 0)
        r = write_output(p, timelines, n);
    for (size_t i = 0; i < ELEMENTSOF(launches); i++) {
        timeline_done(&timelines[i]);
        plot_launch_done(&launches[i]);
    }
    return r;
}

static int run(Context *c)
{
    _cleanup_(progress_done) Progress progress = {0};
    _cleanup_close_ int fd = -EBADF;
    Plot p = {.c = c, .width = TIMELINE_WIDE};
    uint64_t width;
    const char *value;
    char **arguments;
    int k, r, n;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_LAST:
            p.compare = NULL;
            break;
        case OPTION_COMPARE:
            p.compare = value;
            break;
        case OPTION_OUTPUT:
            p.output = value;
            break;
        case OPTION_WIDTH:
            if (parse_u64(value, &width) < 0 || width < WIDTH_MIN || width > WIDTH_MAX)
                return cli_usage_error(c, "--width=%s: not a number from 300 to 4000", value);
            p.width = (unsigned)width;
            break;
        }
    if (k < 0)
        return k;
    r = cli_state_open(c, false, &fd);
    if (r < 0 && r != -ENOENT)
        return r;
    p.state_fd = fd;
    arguments = cli_arguments(c, &n);
    progress = progress_start("Drawing", c->quiet);
    if (strcmp(arguments[0], "launch") == 0)
        return plot_launch(&p, arguments[1]);
    if (n > 1)
        return cli_usage_error(c, "only 'launch' takes the name of an application");
    return plot_stage(&p, arguments[0]);
}

const Verb verb_plot = {
        .name = "plot",
        .arguments = "boot|login|session|launch|TRACE [APPLICATION]",
        .min_arguments = 1,
        .max_arguments = 2,
        .summary = "Draw a recorded boot, login or start as SVG",
        .description =
                "Draws when and where the stage read the disk, what replay read and what was opened,\n"
                "the applications and units that started, and what CPU and disk did. 'launch' draws\n"
                "the last start of the application, given as a path or a name. The picture contains\n"
                "names of applications. What was not recorded is not drawn, and the picture says so.",
        .options = options,
        .run = run,
};
