/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/sampling.h"

#include "base/clock.h"
#include "observe/file-pages.h"

#include <limits.h>
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
    int r = grow_array(&s->files, &s->allocated, n_objects, sizeof(RangeSet));

    if (r >= 0)
        r = grow_array(&s->rounds, &s->allocated_rounds, n_objects, sizeof(uint32_t));
    if (r < 0)
        return r;
    for (; s->n < n_objects; s->n++) {
        s->files[s->n] = (RangeSet){0};
        s->rounds[s->n] = 0;
    }
    return 0;
}

/* Reads the resident ranges of the file. There are none if the file cannot be opened. Returns 0 or
 * -ENOMEM. */
static int read_file_residency(const EventLog *log, Fanotify *f, uint32_t object, usec_t deadline,
                               RangeSet *ret)
{
    _cleanup_close_ int path_fd = -EBADF;
    char path[PATH_MAX];
    struct stat st;
    LoggedObject o;
    int r;

    event_log_object(log, object, &o);
    if (o.directory)
        return 0;
    path_fd = fanotify_resolve(f, &o, path, sizeof(path));
    if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    r = file_pages_read(fanotify_call_dev(f, &o), path_fd,
                        &(FilePagesQuery){.size_bytes = (uint64_t)st.st_size, .deadline = deadline},
                        ret);
    return r == -ENOMEM ? r : 0;
}

static int sample_file(Sampling *s, const EventLog *log, UserShares *shares, Fanotify *f,
                       const LoggedEvent *e, usec_t batch_deadline)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    _cleanup_range_set_ RangeSet now = {0};
    int r;

    s->rounds[e->object] = s->round;
    r = read_file_residency(log, f, e->object, MIN(batch_deadline, start + SAMPLING_FILE_USEC),
                            &now);
    user_shares_charge(shares, e->user, SHARED_SAMPLE_USEC, clock_now(CLOCK_MONOTONIC) - start);
    if (r < 0 || !user_shares_try_charge(shares, e->user, SHARED_SAMPLE_RANGES, now.n))
        return r;
    return range_set_unite(&s->files[e->object], &now);
}

int sampling_run(Sampling *s, const EventLog *log, UserShares *shares, Fanotify *f, usec_t now)
{
    static const usec_t delays[] = {SAMPLING_EARLY_USEC, SAMPLING_LATE_USEC};
    usec_t deadline = clock_now(CLOCK_MONOTONIC) + SAMPLING_BATCH_USEC;
    const LoggedEvent *events;
    unsigned n_files = 0;
    size_t n;
    int r;

    if (!s->unfinished && now < s->last + SAMPLING_ROUND_USEC)
        return 0;
    s->round += !s->unfinished;
    s->last = now;
    s->unfinished = false;
    events = event_log_events(log, &n);
    r = make_room(s, event_log_n_objects(log));
    for (size_t d = 0; d < ELEMENTSOF(delays); d++)
        for (; r >= 0 && s->next[d] < n; s->next[d]++) {
            const LoggedEvent *e = &events[s->next[d]];

            if (e->at_msec * USEC_PER_MSEC + delays[d] > now)
                break;
            /* Another user who opened the same object may have time left. */
            if (s->rounds[e->object] == s->round ||
                user_shares_left(shares, e->user, SHARED_SAMPLE_USEC) == 0)
                continue;
            if (n_files++ >= SAMPLING_BATCH_FILES || clock_now(CLOCK_MONOTONIC) >= deadline) {
                s->unfinished = true;
                break;
            }
            r = sample_file(s, log, shares, f, e, deadline);
        }
    fanotify_resolve_done(f);
    return r < 0 ? r : !s->unfinished;
}
