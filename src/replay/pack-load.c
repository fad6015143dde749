/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/pack-load.h"

#include "base/clock.h"
#include "base/compressed-file.h"
#include "base/journal.h"
#include "base/log.h"
#include "boot/last-control.h"
#include "replay/notify.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* This many bytes of a compressed file contain the header of the pack. */
#define HEAD_SIZE 4096U

typedef struct Loading {
    char *const *paths;
    Policy policy; /* _POLICY_INVALID: that of the pack */
    LoadedPack result;
    int error;
    pthread_mutex_t lock; /* guards the fields below; until `done` is set, only load() uses those
                             above */
    pthread_cond_t changed;
    bool done;
    const Hold *hold;
    usec_t ready_at; /* when the hold ends */
    HoldEnd hold_end;
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
    char id[KERNEL_BOOT_ID_SIZE];
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
    ret->is_control = kernel_boot_id(AT_FDCWD, id) >= 0 && pack_is_control(&ret->pack, id) &&
                      !last_control_is_other_boot(path, id);
    return 0;
}

/* Reads the header before the rest of the file, because it states how long the pack may hold the
 * boot. The header is not validated, so it may only shorten the hold. */
static void read_header(Loading *l, const char *path)
{
    union {
        PackHeader header;
        char bytes[HEAD_SIZE];
    } head = {0};
    const PackHeader *h = &head.header;
    HoldEnd end;
    usec_t at;

    if (compressed_file_read_head(AT_FDCWD, path, head.bytes, sizeof(head.bytes), NULL) < 0 ||
        memcmp(h->magic, PACK_MAGIC, sizeof(h->magic)) != 0 ||
        le32toh(h->version) != PACK_FORMAT_VERSION || le32toh(h->header_size) != sizeof(PackHeader))
        return;
    at = hold_until(l->hold, h, (int)l->policy >= 0 ? l->policy : (Policy)h->policy, &end);
    pthread_mutex_lock(&l->lock);
    if (at < l->ready_at) {
        l->ready_at = at;
        l->hold_end = end;
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Returns the path of the first file that exists, or of the newest file of the same name. If no
 * file exists, returns the last path. */
static const char *choose(char *const *paths)
{
    const char *chosen = NULL;
    struct stat best, st;

    for (; *paths; paths++) {
        if ((chosen && strcmp(name_of(chosen), name_of(*paths)) != 0) || stat(*paths, &st) < 0)
            continue;
        if (chosen && timespec_nsec(&st.st_mtim) <= timespec_nsec(&best.st_mtim))
            continue;
        chosen = *paths;
        best = st;
    }
    return chosen ? chosen : paths[-1];
}

static void *load(void *arg)
{
    Loading *l = arg;
    const char *path = choose(l->paths);

    read_header(l, path);
    l->error = read_pack(path, &l->result);
    pthread_mutex_lock(&l->lock);
    l->done = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Lets the boot continue. */
static void end_hold(HoldEnd end, Report *report)
{
    notify_manager(end == HOLD_END_NONE ? "READY=1" : "READY=1\nSTATUS=Waiting for the disk");
    if (end == HOLD_END_NONE || !getenv("NOTIFY_SOCKET"))
        return;
    report_hold_ended(report, end);
    (void)report_save(report);
}

/* Waits for the thread, at the latest until `timeout`. Returns false if it is not done by then. */
static bool await(Loading *l, usec_t timeout, Report *report, bool *ret_ready_sent)
{
    bool done;

    pthread_mutex_lock(&l->lock);
    while (!l->done) {
        usec_t until = *ret_ready_sent ? timeout : MIN(l->ready_at, timeout);
        struct timespec ts = timespec_of(until);

        if (clock_now(CLOCK_MONOTONIC) < until)
            (void)pthread_cond_timedwait(&l->changed, &l->lock, &ts);
        else if (until == timeout)
            break;
        else {
            *ret_ready_sent = true;
            end_hold(l->hold_end, report);
        }
    }
    done = l->done;
    pthread_mutex_unlock(&l->lock);
    return done;
}

int pack_load(const PackLoadOptions *o, Report *report, LoadedPack *ret)
{
    /* The thread may use it when this function has returned. */
    static Loading l = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t attributes;
    bool ready_sent = false;
    pthread_t thread;
    int r;

    l.paths = o->paths;
    l.policy = o->policy;
    l.hold = &report->hold;
    l.ready_at = hold_unread_until(&report->hold);
    l.hold_end = HOLD_END_PACK;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&l.changed, &attributes);
    r = -pthread_create(&thread, NULL, load, &l);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: cannot start: %m");
    if (!await(&l, report->hold.start + o->timeout, report, &ready_sent))
        return log_error_errno(-ETIMEDOUT,
                               "headstart-replay: the pack could not be read in time: %m");
    pthread_join(thread, NULL);
    if (l.error < 0)
        return l.error;
    *ret = l.result;
    ret->ready_sent = ready_sent;
    return 0;
}
