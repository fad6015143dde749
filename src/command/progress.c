/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "command/progress.h"

#include "base/clock.h"
#include "base/macros.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define FIRST_AFTER (500 * USEC_PER_MSEC)
#define EVERY       (100 * USEC_PER_MSEC)
/* The remaining time is shown after this time, because earlier estimates vary too much. */
#define LEFT_AFTER USEC_PER_SEC
#define BAR_WIDTH  30
/* A narrower bar shows nothing that the percentage does not show. */
#define BAR_WIDTH_MIN 5

struct ProgressCount {
    const char *what;
    usec_t start; /* CLOCK_MONOTONIC */
    _Atomic uint64_t done, total;
    _Atomic bool stop, shown;
};

/* The line of this process, or NULL. A program shows one line at a time. */
static ProgressCount *current;

/* Returns how many characters fit on a line of the terminal. A longer line would continue on a next
 * line, and "\r" would not return to its beginning. The last column stays free, because some
 * terminals continue when it is written. */
static int line_width(void)
{
    struct winsize size = {0};

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return INT_MAX;
    return size.ws_col - 1;
}

/* Writes the line for a known total: with a bar that is as wide as the terminal allows, or without
 * a bar. */
static void format_share(const ProgressCount *c, uint64_t done, uint64_t total, usec_t elapsed,
                         int width, char line[static LINE_MAX])
{
    static const char full[] = "##############################";
    double share = done >= total ? 1.0 : (double)done / (double)total;
    char left[FORMAT_TIMESPAN_MAX] = "", end[FORMAT_TIMESPAN_MAX + 32];
    usec_t remaining = 0;
    int room, filled;

    if (done > 0 && elapsed >= LEFT_AFTER)
        remaining = (usec_t)((double)elapsed * (1 - share) / share) / USEC_PER_SEC * USEC_PER_SEC;
    if (remaining > 0)
        format_timespan(left, sizeof(left), remaining);
    snprintf(end, sizeof(end), "%3d%%%s%s%s", (int)(share * 100), *left ? ", " : "", left,
             *left ? " left" : "");
    room = MIN(width - (int)(strlen(c->what) + strlen(" [] ") + strlen(end)), BAR_WIDTH);
    filled = (int)(share * room);
    if (room < BAR_WIDTH_MIN)
        snprintf(line, LINE_MAX, "%s %s", c->what, end);
    else
        snprintf(line, LINE_MAX, "%s [%.*s%*s] %s", c->what, filled, full, room - filled, "", end);
}

static void draw(ProgressCount *c)
{
    uint64_t done = atomic_load(&c->done), total = atomic_load(&c->total);
    usec_t elapsed = clock_now(CLOCK_MONOTONIC) - c->start;
    int width = line_width();
    char line[LINE_MAX];

    atomic_store(&c->shown, true);
    if (total > 0)
        format_share(c, done, total, elapsed, width, line);
    else if (done > 0)
        snprintf(line, sizeof(line), "%s: %" PRIu64, c->what, done);
    else
        snprintf(line, sizeof(line), "%s, %" PRIu64 "s", c->what, elapsed / USEC_PER_SEC);
    fprintf(stderr, "\r\033[K%.*s", width, line);
    fflush(stderr);
}

/* Draws the line until the parent stops this process or ends. Keeps no descriptor except standard
 * error: a lock that the parent holds through a descriptor must end with the parent. */
static _Noreturn void run_child(ProgressCount *c, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    for (usec_t wait = FIRST_AFTER; getppid() == parent; wait = EVERY) {
        usleep((useconds_t)wait);
        if (atomic_load(&c->stop))
            break;
        draw(c);
    }
    _exit(EXIT_SUCCESS);
}

Progress progress_start(const char *what, bool quiet)
{
    const char *term = getenv("TERM");
    pid_t parent = getpid();
    Progress p = {0};

    if (quiet || !isatty(STDERR_FILENO) || !term || strcmp(term, "dumb") == 0)
        return p;
    p.count =
            mmap(NULL, sizeof(*p.count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.count == MAP_FAILED)
        return (Progress){0};
    p.count->what = what;
    p.count->start = clock_now(CLOCK_MONOTONIC);
    p.child = fork();
    if (p.child == 0)
        run_child(p.count, parent);
    if (p.child < 0)
        progress_done(&p);
    current = p.count;
    return p;
}

void progress_update(Progress *p, uint64_t done, uint64_t total)
{
    if (!p->count)
        return;
    atomic_store(&p->count->total, total);
    atomic_store(&p->count->done, done);
}

void progress_make_room(void)
{
    if (current && atomic_load(&current->shown))
        fputs("\r\033[K", stderr);
}

void progress_done(Progress *p)
{
    if (!p->count)
        return;
    current = NULL;
    atomic_store(&p->count->stop, true);
    if (p->child > 0) {
        kill(p->child, SIGKILL);
        while (waitpid(p->child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (atomic_load(&p->count->shown))
        fputs("\r\033[K", stderr);
    munmap(p->count, sizeof(*p->count));
    *p = (Progress){0};
}
