/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/pack-load.h"

#include "base/clock.h"
#include "base/compressed-file.h"
#include "base/journal.h"
#include "base/log.h"
#include "replay/notify.h"

#include <fcntl.h>
#include <pthread.h>

typedef struct Loading {
    char *const *paths;
    LoadedPack result;
    int error;
    bool done;
    pthread_mutex_t lock; /* guards `done`; only load() uses the fields above until `done` is set */
    pthread_cond_t changed;
} Loading;

void loaded_pack_done(LoadedPack *p)
{
    free(p->buf);
    *p = (LoadedPack){0};
}

/* Reports a pack that cannot be used. Returns `error`. */
static int refuse(int error, const char *path, const char *reason)
{
    JournalEntry e;

    journal_entry_begin(&e, JOURNAL_PACK_REFUSED, LOG_ERR);
    journal_entry_add(&e, "HEADSTART_PACK", "%s", path);
    journal_entry_add(&e, "HEADSTART_REASON", "%s", reason);
    journal_log(&e, LOG_ERR, "headstart-replay: %s: %s", path, reason);
    return error;
}

static int read_pack(const char *path, LoadedPack *ret)
{
    _cleanup_free_ char *buf = NULL;
    const char *reason = NULL;
    size_t size;
    int r = compressed_file_read(AT_FDCWD, path, PACK_SIZE_MAX, &buf, &size, &reason);

    if (r == -EBADMSG)
        return refuse(r, path, reason);
    if (r == -E2BIG)
        return refuse(r, path, "larger than a pack may be");
    if (r < 0)
        return log_error_errno(r, "headstart-replay: %s: %m", path);
    r = pack_open(buf, size, &ret->pack, &reason);
    if (r < 0)
        return refuse(r, path, size == 0 ? "empty file" : reason);
    ret->path = path;
    ret->buf = TAKE_PTR(buf);
    return 0;
}

static void *load(void *arg)
{
    Loading *l = arg;
    char *const *path = l->paths;

    /* The filesystem of the first path may not be mounted yet. */
    while (path[1] && access(*path, F_OK) < 0)
        path++;
    l->error = read_pack(*path, &l->result);
    pthread_mutex_lock(&l->lock);
    l->done = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int pack_load(char *const *paths, LoadedPack *ret)
{
    struct timespec held_until = timespec_of(clock_now(CLOCK_MONOTONIC) + PACK_LOAD_HELD_MAX);
    Loading l = {.paths = paths, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t attributes;
    pthread_t thread;
    bool late;
    int r;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&l.changed, &attributes);
    r = -pthread_create(&thread, NULL, load, &l);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: cannot start: %m");
    pthread_mutex_lock(&l.lock);
    while (!l.done && pthread_cond_timedwait(&l.changed, &l.lock, &held_until) == 0)
        continue;
    late = !l.done;
    if (late)
        notify_manager("READY=1\nSTATUS=Waiting for the disk");
    while (!l.done)
        pthread_cond_wait(&l.changed, &l.lock);
    pthread_mutex_unlock(&l.lock);
    pthread_join(thread, NULL);
    if (l.error < 0)
        return l.error;
    *ret = l.result;
    ret->ready_sent = late;
    return 0;
}
