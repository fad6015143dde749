/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/prefetcher-model.h"

#include "base/atomic-file.h"
#include "base/log.h"
#include "daemon/state-write.h"
#include "state/state.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>

/* At a shutdown two saves can follow one another. Both have to end within TimeoutStopSec=10s. */
#define LOCK_USEC (3 * USEC_PER_SEC)

struct ModelSave {
    StateWrite write;
    char *state;
    Chains *chains;
    ModelKnown known;
    int result;
};

static int load_at(int state_fd, const char *state, const ModelLimits *limits, Model **ret,
                   size_t *ret_dropped)
{
    _cleanup_free_ char *error = NULL;
    _cleanup_model_ Model *m = NULL;
    size_t dropped = 0;
    int r;

    r = state_load_model(state_fd, &m, &error);
    if (r >= 0)
        r = model_limit(m, limits, &dropped);
    /* The package was upgraded while this program ran. The new version reads the model. */
    if (r == -EPROTONOSUPPORT)
        return r;
    if (state_is_bad_content(r)) {
        log_warning("headstartd: %s/" STATE_MODEL ": %s; set aside", state,
                    error ? error : error_text(r));
        r = file_set_aside(state_fd, STATE_MODEL);
    } else if (r == -ENOENT)
        r = 0;
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    *ret_dropped = dropped;
    return 0;
}

int prefetcher_model_load(const char *state, const ModelLimits *limits, Model **ret,
                          size_t *ret_dropped)
{
    _cleanup_close_ int fd = -EBADF;
    int r = state_directory_open(state, false, &fd);

    if (r == -ENOENT) {
        *ret = NULL;
        *ret_dropped = 0;
        return 0;
    }
    return r < 0 ? r : load_at(fd, state, limits, ret, ret_dropped);
}

static int save(ModelSave *s)
{
    _cleanup_close_ int fd = -EBADF;
    _cleanup_model_ Model *m = NULL;
    uint64_t revision;
    size_t dropped;
    int r;

    r = state_directory_open(s->state, true, &fd);
    if (r >= 0)
        r = state_directory_lock(fd, LOCK_USEC);
    if (r >= 0 && s->known.was_there && faccessat(fd, STATE_MODEL, F_OK, 0) < 0)
        r = -errno;
    if (r >= 0)
        r = load_at(fd, s->state, &MODEL_LIMITS_DEFAULT, &m, &dropped); /* as in learning */
    if (r < 0)
        return r;
    revision = m ? chains_revision(m->chains) : s->known.revision;
    if (!m)
        m = model_new(s->chains->halflife_usec);
    if (!m)
        return -ENOMEM;
    if (m->halflife_usec != s->chains->halflife_usec ||
        (revision != s->known.revision && revision != s->known.left_revision))
        return -ESTALE;
    chains_free(m->chains);
    m->chains = TAKE_PTR(s->chains);
    r = state_write_model(fd, m);
    /* These chains have followed sessions whose traces a rebuild has not learned yet. */
    return r < 0 ? r : state_end_rebuild(fd);
}

static void run(StateWrite *w)
{
    ModelSave *s = (ModelSave *)w;

    s->result = save(s);
    malloc_trim(0);
}

static void release(StateWrite *w)
{
    ModelSave *s = (ModelSave *)w;

    chains_free(s->chains);
    free(s->state);
    free(s);
}

int model_save_start(const char *state, Chains *chains, const ModelKnown *known, ModelSave **ret)
{
    ModelSave *s = calloc(1, sizeof(*s));
    int r;

    if (!s) {
        chains_free(chains);
        return -ENOMEM;
    }
    *s = (ModelSave){
            .write = {.run = run, .free = release},
            .state = strdup(state),
            .chains = chains,
            .known = *known,
    };
    r = s->state ? state_write_start(&s->write) : -ENOMEM;
    if (r < 0) {
        release(&s->write);
        return r;
    }
    *ret = s;
    return 0;
}

int model_save_finish(ModelSave **s, Recorder *recorder)
{
    int r;

    if (!*s)
        return 0;
    if (!recorder && !state_write_has_ended(&(*s)->write))
        return -EAGAIN;
    r = state_write_finish(&(*s)->write, recorder);
    if (r >= 0) {
        r = (*s)->result;
        release(&(*s)->write);
    }
    *s = NULL;
    return r;
}
