/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/sampling.h"

#include "base/clock.h"
#include "base/open.h"
#include "record/recorder-internal.h"
#include "record/residency.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

void sampling_done(Sampling *s)
{
    for (size_t i = 0; i < s->n; i++)
        range_set_done(&s->files[i]);
    free(s->files);
    free(s->rounds);
    *s = (Sampling){0};
}

static int make_room(Sampling *s, size_t n_objects)
{
    int k = grow_array(&s->files, &s->allocated, n_objects, sizeof(RangeSet));

    if (k >= 0)
        k = grow_array(&s->rounds, &s->allocated_rounds, n_objects, sizeof(uint32_t));
    if (k < 0)
        return k;
    for (; s->n < n_objects; s->n++) {
        s->files[s->n] = (RangeSet){0};
        s->rounds[s->n] = 0;
    }
    return 0;
}

static int look_at_file(Recorder *r, uint32_t object, uint16_t user, usec_t deadline)
{
    _cleanup_close_ int place = -EBADF, fd = -EBADF;
    _cleanup_range_set_ RangeSet now = {0};
    char path[PATH_MAX];
    struct stat st;
    LoggedObject o;
    int k;

    event_log_object(r->log, object, &o);
    if (o.directory)
        return 0;
    place = fanotify_resolve(r->fanotify, &o, path, sizeof(path));
    if (place < 0 || fstat(place, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    fd = fd_reopen(place, O_RDONLY | O_NOATIME);
    if (fd < 0)
        return 0;
    k = residency_read(fd, (uint64_t)st.st_size, deadline, &now);
    if (k < 0)
        return k == -ENOMEM ? k : 0;
    if (!user_shares_take(&r->shares, user, SHARED_SAMPLE_RANGES, now.n))
        return 0;
    return range_set_unite(&r->sampling.files[object], &now);
}

/* Looks at the file at the expense of the user who opened it. */
static int look_for_user(Recorder *r, const LoggedEvent *e, usec_t batch_deadline)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    int k;

    if (user_shares_left(&r->shares, e->user, SHARED_SAMPLE_USEC) == 0)
        return 0;
    k = look_at_file(r, e->object, e->user, MIN(batch_deadline, start + SAMPLING_FILE_USEC));
    user_shares_charge(&r->shares, e->user, SHARED_SAMPLE_USEC, clock_now(CLOCK_MONOTONIC) - start);
    return k;
}

static int look_at_metadata(Recorder *r)
{
    for (size_t i = 0; i < r->n_watched; i++) {
        WatchedVolume *w = &r->watched[i];
        const Volume *v = volume_by_dev(&r->volumes, w->st_dev);
        _cleanup_range_set_ RangeSet now = {0};
        int k;

        if (!v || !w->has_snapshot || recorder_snapshot(r, v, CACHESTAT_RESIDENT, &now) < 0)
            continue;
        k = range_set_unite(&w->resident_since, &now);
        if (k < 0)
            return k;
    }
    return 0;
}

int recorder_sample(Recorder *r, usec_t now)
{
    static const usec_t delays[] = {SAMPLING_EARLY_USEC, SAMPLING_LATE_USEC};
    Sampling *s = &r->sampling;
    const LoggedEvent *events;
    usec_t deadline = clock_now(CLOCK_MONOTONIC) + SAMPLING_BATCH_USEC;
    unsigned looks = 0;
    size_t n;
    int k;

    if (!r->recording || (!s->unfinished && now < s->last + SAMPLING_ROUND_USEC))
        return 0;
    if (!s->unfinished)
        s->round++;
    s->last = now;
    s->unfinished = false;
    events = event_log_events(r->log, &n);
    k = make_room(s, event_log_n_objects(r->log));
    for (size_t d = 0; r->observable && d < ELEMENTSOF(delays); d++)
        for (; k >= 0 && s->next[d] < n; s->next[d]++) {
            const LoggedEvent *e = &events[s->next[d]];

            if (e->at_msec * USEC_PER_MSEC + delays[d] > now)
                break;
            if (s->rounds[e->object] == s->round)
                continue;
            if (looks == SAMPLING_LOOKS_MAX || clock_now(CLOCK_MONOTONIC) >= deadline) {
                s->unfinished = true;
                break;
            }
            looks++;
            s->rounds[e->object] = s->round;
            k = look_for_user(r, e, deadline);
        }
    fanotify_resolve_done(r->fanotify);
    if (k < 0 || s->unfinished ||
        (r->stage == STAGE_SESSION && now < s->last_metadata + SAMPLING_SESSION_USEC))
        return k;
    s->last_metadata = now;
    return look_at_metadata(r);
}
