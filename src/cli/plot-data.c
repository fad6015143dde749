/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/plot-data.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/rooted.h"
#include "report/timeline-trace.h"
#include "state/packs.h"
#include "state/replay-status.h"
#include "state/state.h"
#include "state/trace-store.h"
#include "volume/extents.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int plot_find_trace(int state_fd, Stage stage, TraceChoice choice, Trace **ret)
{
    _cleanup_trace_names_ TraceNames names = {0};
    int r = state_list_traces(state_fd, &names);

    if (r < 0)
        return r;
    for (size_t i = names.n; i-- > 0;) {
        _cleanup_free_ char *path = NULL, *error = NULL;
        _cleanup_trace_ Trace *t = NULL;

        if (names.items[i].stage != stage)
            continue;
        if (asprintf(&path, STATE_TRACES "/%s", names.items[i].name) < 0)
            return -ENOMEM;
        r = state_read_trace(state_fd, path, &t, &error);
        if (r == -ENOMEM)
            return r;
        if (r < 0 || (choice != TRACE_NEWEST &&
                      (choice == TRACE_NEWEST_REPLAYED) != ((t->flags & TRACE_REPLAYED) != 0)))
            continue;
        *ret = TAKE_PTR(t);
        return 0;
    }
    return -ENOENT;
}

typedef struct Places {
    int root_fd;
    usec_t deadline; /* CLOCK_MONOTONIC */
    ExtentList extents;
} Places;

/* Returns the place of the first extent of a file, if the file at that path is still the recorded
 * one. */
static bool find_place(void *arg, const TraceFile *f, const char *path, uint64_t *ret_place,
                       uint64_t *ret_length)
{
    Places *p = arg;
    _cleanup_close_ int fd = -EBADF;
    struct stat st;

    if (clock_now(CLOCK_MONOTONIC) > p->deadline)
        return false;
    fd = rooted_open(p->root_fd, path, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != f->inode)
        return false;
    closep(&fd);
    fd = rooted_open(p->root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || extents_read(fd, EXTENTS_PER_FILE_MAX, &p->extents) < 0 || p->extents.n == 0)
        return false;
    *ret_place = p->extents.extents[0].physical;
    *ret_length = p->extents.extents[0].length;
    return true;
}

/* Finds the time of the replay of this boot, on CLOCK_BOOTTIME. The status file is that of the
 * present boot, so only traces of this boot get the time. */
static void find_replay(const Context *c, const Trace *t, TimelineSources *s)
{
    _cleanup_close_ int fd = rooted_open(c->system_fd, "/run/headstart", O_PATH | O_DIRECTORY);
    _cleanup_replay_status_ ReplayStatusList l = {0};
    char boot_id[KERNEL_BOOT_ID_SIZE];

    if (fd < 0 || kernel_boot_id(c->system_fd, boot_id) < 0 || strcmp(boot_id, t->boot_id) != 0 ||
        replay_status_read(fd, t->stage, &l) < 0)
        return;
    for (size_t i = 0; i < l.n; i++) {
        uint64_t start, duration;

        if ((l.items[i].uid != UID_INVALID && l.items[i].uid != t->uid) ||
            json_get_u64(l.items[i].object, "start_boottime_usec", UINT64_MAX / 4, &start) < 0 ||
            json_get_u64(l.items[i].object, "duration_usec", UINT64_MAX / 4, &duration) < 0)
            continue;
        s->replay_start = start;
        s->replay_end = start + duration;
    }
}

int plot_make_timeline(const Context *c, int state_fd, const Trace *t, usec_t timeout,
                       Timeline *ret)
{
    _cleanup_close_ int root_fd = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    Places places = {.root_fd = root_fd, .deadline = clock_now(CLOCK_MONOTONIC) + timeout};
    TimelineSources s = {
            .trace = t, .place = root_fd < 0 ? NULL : find_place, .place_arg = &places};
    _cleanup_free_ char *buf = NULL;
    Pack p;
    int r;

    if (packs_read_of(state_fd, t->stage, t->uid, &buf, &p) >= 0)
        s.pack = &p;
    find_replay(c, t, &s);
    r = timeline_from_trace(&s, ret);
    extent_list_done(&places.extents);
    if (r >= 0 && s.pack && t->flags & TRACE_REPLAYED &&
        le64toh(p.header->created_realtime_usec) > t->start_realtime)
        r = timeline_add_note(ret, "The pack was planned again since; it is compared as it is now");
    return r;
}
