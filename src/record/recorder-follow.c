/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Telling what starts and exits while a stage goes on. */

#include "record/recorder-internal.h"

#include "base/clock.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

const char *recorder_below_root(const Recorder *r, const char *path)
{
    size_t l = strlen(r->root);

    if (!path_is_below(path, r->root))
        return NULL;
    while (l > 0 && r->root[l - 1] == '/')
        l--;
    return path[l] ? path + l : "/";
}

/* The path of what has just been executed: nothing is read from a disk. */
static char *name_object(void *arg, uint32_t object)
{
    Recorder *r = arg;
    _cleanup_close_ int fd = -EBADF;
    char path[PATH_MAX];
    const char *below;
    LoggedObject o;
    struct stat st;

    event_log_object(r->log, object, &o);
    if (o.filesystem == EVENT_LOG_REMOTE) {
        below = recorder_below_root(r, o.name);
        return below ? strdup(below) : NULL;
    }
    fd = fanotify_resolve(r->fanotify, &o, path, sizeof(path));
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    below = recorder_below_root(r, path);
    return below ? strdup(below) : NULL;
}

static void tell(void *arg, const char *name, const ProcessRun *run, bool started)
{
    Recorder *r = arg;

    r->tell(r->tell_arg, &(RecordedApplication){
                                 .path = name,
                                 .pid = run->pid,
                                 .uid = run->uid,
                                 .at_boottime = r->start_boottime +
                                                (started ? run->start : MAX(run->start, run->end)),
                                 .started = started,
                         });
}

int recorder_tell(Recorder *r)
{
    const ProcessRun *runs;
    size_t n;
    int k;

    if (!r->following)
        return 0;
    runs = process_table_runs(r->processes, &n);
    k = following_update(r->following, runs, n, clock_now(CLOCK_BOOTTIME) - r->start_boottime,
                         name_object, tell, r);
    fanotify_resolve_done(r->fanotify);
    return k;
}

int recorder_follow(Recorder *r, recorder_tell_t f, void *arg)
{
    Following *following = f ? following_new() : NULL;

    if (f && !following)
        return -ENOMEM;
    following_free(r->following);
    r->following = following;
    r->tell = f;
    r->tell_arg = arg;
    return 0;
}
