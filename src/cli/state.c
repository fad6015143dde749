/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/state.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/parse.h"
#include "trace/trace-json.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#define STAMP_LENGTH 15 /* YYYYMMDDTHHMMSS */

void trace_names_done(TraceNames *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->items[i].name);
    free(t->items);
    *t = (TraceNames){0};
}

int state_open(const Context *c, bool create, int *ret_fd)
{
    int fd, r;

    fd = open(c->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && create) {
        r = make_directories(c->state, 0700);
        if (r < 0)
            return cli_error(r, "cannot make the state directory %s: %m", c->state);
        fd = open(c->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0 && errno == ENOENT && !create)
        return -ENOENT;
    if (fd < 0)
        return cli_error(errno, "%s: %m", c->state);
    *ret_fd = fd;
    return 0;
}

int trace_name_parse(const char *name, Stage *ret_stage, unsigned *ret_number)
{
    _cleanup_free_ char *copy = NULL;
    uint64_t number = 1;
    char *p, *dash;
    Stage stage;

    for (size_t i = 0; i < STAMP_LENGTH; i++)
        if (i == 8 ? name[i] != 'T' : (name[i] < '0' || name[i] > '9'))
            return -EINVAL;
    if (name[STAMP_LENGTH] != '-')
        return -EINVAL;
    copy = strdup(name + STAMP_LENGTH + 1);
    if (!copy)
        return -EINVAL;
    p = strrchr(copy, '.');
    if (!p || strcmp(p, ".json") != 0)
        return -EINVAL;
    *p = 0;
    dash = strchr(copy, '-');
    if (dash) {
        *dash = 0;
        if (parse_u64(dash + 1, &number) < 0 || number < 2 || number > 1000000)
            return -EINVAL;
    }
    stage = stage_from_string(copy);
    if (stage < 0)
        return -EINVAL;
    *ret_stage = stage;
    *ret_number = (unsigned)number;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const TraceName *x = a, *y = b;
    int k = strncmp(x->name, y->name, STAMP_LENGTH);

    if (k == 0)
        k = (int)x->stage - (int)y->stage;
    return k ? k : (x->number > y->number) - (x->number < y->number);
}

int state_list_traces(int state_fd, TraceNames *ret)
{
    _cleanup_trace_names_ TraceNames names = {0};
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    int r = directory_open(state_fd, STATE_TRACES, 0, &dir);

    if (r == -ENOENT) {
        *ret = (TraceNames){0};
        return 0;
    }
    while (r == 0 && (e = directory_next(dir))) {
        TraceName t = {0};

        if (trace_name_parse(e->d_name, &t.stage, &t.number) < 0)
            continue;
        r = grow_array(&names.items, &names.allocated, names.n + 1, sizeof(TraceName));
        if (r == 0 && !(t.name = strdup(e->d_name)))
            r = -ENOMEM;
        if (r == 0)
            names.items[names.n++] = t;
    }
    if (r < 0)
        return r;
    if (names.n > 0)
        qsort(names.items, names.n, sizeof(TraceName), compare_names);
    *ret = names;
    names = (TraceNames){0};
    return 0;
}

int state_lock(const Context *c, int state_fd)
{
    usec_t end = clock_now(CLOCK_MONOTONIC) + (c->quiet ? 240 : 5) * USEC_PER_SEC;

    /* flock(2) knows no time limit, so we ask again. */
    while (flock(state_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return cli_error(errno, "%s: cannot lock it: %m", c->state);
        if (clock_now(CLOCK_MONOTONIC) > end)
            return cli_error(EBUSY, "%s: another headstart is at work there", c->state);
        usleep(50 * USEC_PER_MSEC);
    }
    return 0;
}

int state_read_trace(int dir_fd, const char *name, Trace **ret, char **ret_error)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    r = file_read_whole(dir_fd, name, TRACE_JSON_SIZE_MAX, &text, &size);
    if (r == -EBADMSG)
        *ret_error = strdup("not a regular file");
    return r < 0 ? r : trace_from_json(text, size, ret, ret_error);
}

int state_load_model(int state_fd, Model **ret, char **ret_error)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    r = file_read_whole(state_fd, STATE_MODEL, MODEL_JSON_SIZE_MAX, &text, &size);
    if (r == -EBADMSG)
        *ret_error = strdup("not a regular file");
    return r < 0 ? r : model_from_json(text, size, ret, ret_error);
}

int state_save_model(const Context *c, int state_fd, const Model *m)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = model_to_json(m, &text, &size);

    if (r >= 0)
        r = atomic_file_write(state_fd, STATE_MODEL, text, size, 0600);
    return r < 0 ? cli_error(r, "%s/" STATE_MODEL ": %m", c->state) : 0;
}

const char *state_rerecord_name(char buf[STATE_RERECORD_MAX], Stage stage)
{
    snprintf(buf, STATE_RERECORD_MAX, STATE_RERECORD "%s", stage_to_string(stage));
    return buf;
}

const char *state_pack_name(Stage stage)
{
    switch (stage) {
    case STAGE_BOOT:
        return "boot.pack";
    case STAGE_LOGIN:
        return "login.pack";
    default:
        return NULL;
    }
}
