/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "command/progress.h"

#include "base/clock.h"
#include "base/macros.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define FIRST_AFTER (500 * USEC_PER_MSEC)
#define EVERY       (100 * USEC_PER_MSEC)
/* The remaining time is shown after this time, because earlier estimates vary too much. */
#define LEFT_AFTER USEC_PER_SEC
#define BAR_WIDTH  30

struct ProgressCount {
    const char *what;
    usec_t start; /* CLOCK_MONOTONIC */
    _Atomic uint64_t done, total;
    _Atomic bool stop, shown;
};

/* The line of this process, or NULL. A program shows one line at a time. */
static ProgressCount *current;

static void draw_share(const ProgressCount *c, uint64_t done, uint64_t total, usec_t elapsed)
{
    static const char full[] = "##############################";
    double share = done >= total ? 1.0 : (double)done / (double)total;
    int bar = (int)(share * BAR_WIDTH);
    char left[FORMAT_TIMESPAN_MAX] = "";
    usec_t remaining = 0;

    if (done > 0 && elapsed >= LEFT_AFTER)
        remaining = (usec_t)((double)elapsed * (1 - share) / share) / USEC_PER_SEC * USEC_PER_SEC;
    if (remaining > 0)
        format_timespan(left, sizeof(left), remaining);
    fprintf(stderr, "\r\033[K%s [%.*s%*s] %3d%%%s%s%s", c->what, bar, full, BAR_WIDTH - bar, "",
            (int)(share * 100), *left ? ", " : "", left, *left ? " left" : "");
}

static void draw(ProgressCount *c)
{
    uint64_t done = atomic_load(&c->done), total = atomic_load(&c->total);
    usec_t elapsed = clock_now(CLOCK_MONOTONIC) - c->start;

    atomic_store(&c->shown, true);
    if (total > 0)
        draw_share(c, done, total, elapsed);
    else if (done > 0)
        fprintf(stderr, "\r\033[K%s: %" PRIu64, c->what, done);
    else
        fprintf(stderr, "\r\033[K%s, %" PRIu64 "s", c->what, elapsed / USEC_PER_SEC);
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
