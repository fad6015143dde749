/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/prefetcher-model.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>

#define MODEL_NAME "model.json"       /* as in cli/state.h */
#define LOCK_USEC  (3 * USEC_PER_SEC) /* twice at most, at a shutdown: TimeoutStopSec=10s */

struct ModelSave {
    pthread_t thread;
    char *state;
    Chains *chains;
    bool was_there;
    int result;
    atomic_bool done;
};

static int load_at(int state_fd, const char *state, const ModelLimits *limits, Model **ret,
                   size_t *ret_dropped)
{
    _cleanup_free_ char *text = NULL, *error = NULL;
    _cleanup_model_ Model *m = NULL;
    size_t size, dropped = 0;
    int r;

    r = file_read_whole(state_fd, MODEL_NAME, MODEL_JSON_SIZE_MAX, &text, &size);
    if (r >= 0)
        r = model_from_json(text, size, &m, &error);
    free(text); /* it may be large, and limiting needs memory */
    text = NULL;
    if (r >= 0)
        r = model_limit(m, limits, &dropped);
    switch (r) {
    case -EBADMSG:
    case -EMEDIUMTYPE:
    case -EPROTONOSUPPORT:
    case -E2BIG:
        log_warning("headstartd: %s/" MODEL_NAME ": %s; set aside", state,
                    error ? error : strerror(-r));
        r = file_set_aside(state_fd, MODEL_NAME);
        break;
    case -ENOENT:
        r = 0;
        break;
    default:
        break;
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    *ret_dropped = dropped;
    return 0;
}

int prefetcher_model_load(const char *state, const ModelLimits *limits, Model **ret,
                          size_t *ret_dropped)
{
    _cleanup_close_ int fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        *ret = NULL;
        *ret_dropped = 0;
        return 0;
    }
    return fd < 0 ? -errno : load_at(fd, state, limits, ret, ret_dropped);
}

static int lock(int fd)
{
    usec_t end = clock_now(CLOCK_MONOTONIC) + LOCK_USEC;

    /* flock(2) knows no time limit, so we ask again. */
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (clock_now(CLOCK_MONOTONIC) > end)
            return -EBUSY;
        usleep(50 * USEC_PER_MSEC);
    }
    return 0;
}

static int save(ModelSave *s)
{
    _cleanup_close_ int fd = -EBADF;
    _cleanup_model_ Model *m = NULL;
    _cleanup_free_ char *text = NULL;
    size_t size, dropped;
    int r;

    r = make_directories(s->state, 0700);
    if (r < 0)
        return r;
    fd = open(s->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = lock(fd);
    if (r >= 0 && s->was_there && faccessat(fd, MODEL_NAME, F_OK, 0) < 0)
        r = -errno;
    if (r >= 0)
        r = load_at(fd, s->state, &MODEL_LIMITS_DEFAULT, &m, &dropped); /* as learning does */
    if (r < 0)
        return r;
    if (!m)
        m = model_new(s->chains->halflife_usec);
    if (!m)
        return -ENOMEM;
    if (m->halflife_usec != s->chains->halflife_usec)
        return -EINVAL;
    chains_free(m->chains);
    m->chains = TAKE_PTR(s->chains);
    r = model_to_json(m, &text, &size);
    return r < 0 ? r : atomic_file_write(fd, MODEL_NAME, text, size, 0600);
}

static void *work(void *arg)
{
    ModelSave *s = arg;

    s->result = save(s);
    malloc_trim(0);
    atomic_store(&s->done, true);
    return NULL;
}

static void release(ModelSave *s)
{
    chains_free(s->chains);
    free(s->state);
    free(s);
}

int model_save_start(const char *state, Chains *chains, bool was_there, ModelSave **ret)
{
    ModelSave *s = calloc(1, sizeof(*s));
    int r;

    if (!s) {
        chains_free(chains);
        return -ENOMEM;
    }
    s->chains = chains;
    s->was_there = was_there;
    s->state = strdup(state);
    r = s->state ? pthread_create(&s->thread, NULL, work, s) : ENOMEM;
    if (r != 0) {
        release(s);
        return -r;
    }
    *ret = s;
    return 0;
}

int model_save_finish(ModelSave **s, bool wait)
{
    int r;

    if (!*s)
        return 0;
    if (!wait && !atomic_load(&(*s)->done))
        return -EAGAIN;
    pthread_join((*s)->thread, NULL);
    r = (*s)->result;
    release(*s);
    *s = NULL;
    return r;
}
