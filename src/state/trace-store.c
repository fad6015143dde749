/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/trace-store.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/compressed-file.h"
#include "base/directory.h"
#include "base/parse.h"
#include "state/attempt.h"
#include "state/retention.h"
#include "state/state.h"
#include "trace/trace-json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STAMP_LENGTH 15 /* YYYYMMDDTHHMMSS */

int trace_store(const char *state_dir, const Trace *t, char **ret_path)
{
    time_t seconds = (time_t)(t->start_realtime / USEC_PER_SEC);
    _cleanup_free_ char *dir = NULL, *json = NULL, *path = NULL;
    _cleanup_close_ int fd = -EBADF;
    char stamp[32];
    struct tm tm;
    size_t size;
    int r;

    if (asprintf(&dir, "%s/traces", state_dir) < 0)
        return -ENOMEM;
    r = state_directory_open(state_dir, true, &fd);
    if (r >= 0)
        r = make_directories(dir, 0700);
    if (r >= 0)
        r = trace_to_json(t, &json, &size);
    if (r < 0)
        return r;
    if (!gmtime_r(&seconds, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm) == 0)
        return -ERANGE;
    for (int i = 1; i < 1000; i++) {
        char number[16] = "";

        free(path);
        if (i > 1)
            snprintf(number, sizeof(number), "-%d", i);
        if (asprintf(&path, "%s/%s-%s%s.json", dir, stamp, stage_to_string(t->stage), number) < 0) {
            path = NULL;
            return -ENOMEM;
        }
        if (access(path, F_OK) < 0 && errno == ENOENT)
            break;
    }
    r = compressed_file_write(AT_FDCWD, path, json, size, 0600);
    if (r < 0)
        return r;
    (void)state_apply_quotas(fd, clock_now(CLOCK_REALTIME), NULL);
    *ret_path = TAKE_PTR(path);
    return 0;
}

int trace_peek(int dir_fd, const char *name, TraceIdentity *ret)
{
    TraceIdentity id = {.stage = _STAGE_INVALID, .uid = UID_INVALID};
    char head[2048], stage[16];
    int64_t uid;
    bool started = false, booted = false, control = false, replayed = false;
    int r = compressed_file_read_head(dir_fd, name, head, sizeof(head), NULL);

    if (r == -EBADMSG)
        return -ENODATA;
    if (r < 0)
        return r;
    for (char *save = NULL, *l = strtok_r(head, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        if (sscanf(l, "\"stage\":\"%15[a-z]\"", stage) == 1)
            id.stage = stage_from_string(stage);
        else if (sscanf(l, "\"start_realtime_usec\":%" SCNu64, &id.start_realtime) == 1)
            started = true;
        else if (sscanf(l, "\"duration_usec\":%" SCNu64, &id.duration) == 1)
            continue;
        else if (strncmp(l, "\"flags\":", 8) == 0) {
            control = strstr(l, "\"control\"") != NULL;
            replayed = strstr(l, "\"replayed\"") != NULL;
            id.without_replay = !strstr(l, "\"exact\"");
        } else if (sscanf(l, "\"uid\":%" SCNd64, &uid) == 1 && uid >= 0 && uid < UID_INVALID)
            id.uid = (uint32_t)uid;
        else if (strncmp(l, "\"boot_id\":\"", 11) == 0)
            booted = strcmp(l + 11, "\",") == 0 || sscanf(l + 11, "%63[^\"\\]\"", id.boot_id) == 1;
    }
    if (id.stage < 0 || !started || !booted)
        return -ENODATA;
    if (replayed && !(control && id.stage == STAGE_SESSION))
        id.without_replay = false;
    *ret = id;
    return 0;
}

void trace_names_done(TraceNames *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->items[i].name);
    free(t->items);
    *t = (TraceNames){0};
}

int trace_name_parse(const char *name, Stage *ret_stage, unsigned *ret_number)
{
    char rest[32]; /* of "STAGE[-N].json" */
    uint64_t number = 1;
    char *p, *dash;
    Stage stage;

    for (size_t i = 0; i < STAMP_LENGTH; i++)
        if (i == 8 ? name[i] != 'T' : (name[i] < '0' || name[i] > '9'))
            return -EINVAL;
    if (name[STAMP_LENGTH] != '-')
        return -EINVAL;
    name += STAMP_LENGTH + 1;
    if (strlen(name) >= sizeof(rest))
        return -EINVAL;
    memcpy(rest, name, strlen(name) + 1);
    p = strrchr(rest, '.');
    if (!p || strcmp(p, ".json") != 0)
        return -EINVAL;
    *p = 0;
    dash = strchr(rest, '-');
    if (dash) {
        *dash = 0;
        if (parse_u64(dash + 1, &number) < 0 || number < 2 || number > 1000000)
            return -EINVAL;
    }
    stage = stage_from_string(rest);
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

int state_read_trace(int dir_fd, const char *name, Trace **ret, char **ret_error)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    r = compressed_file_load(dir_fd, name, TRACE_JSON_SIZE_MAX, &text, &size, ret_error);
    return r < 0 ? r : trace_from_json(text, size, ret, ret_error);
}

/* The files of STATE/traces, as the quotas count them. */
typedef struct Stock {
    int fd;
    RetainedFile *files;
    char **names;
    size_t n, allocated_files, allocated_names;
} Stock;

static void stock_done(Stock *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->names[i]);
    free(s->names);
    free(s->files);
    closep(&s->fd);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t l = strlen(name), k = strlen(suffix);

    return l > k && strcmp(name + l - k, suffix) == 0;
}

/* Removes a marker whose file is gone, because such a marker has no use. */
static void drop_orphan(const Stock *s, const char *marker)
{
    _cleanup_free_ char *name = strndup(marker, strlen(marker) - strlen(ATTEMPT_SUFFIX));

    if (name && faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        unlinkat(s->fd, marker, 0);
}

static int add_name(Stock *s, const char *name)
{
    char *copy;
    int r = grow_array(&s->names, &s->allocated_names, s->n + 1, sizeof(*s->names));

    if (r < 0)
        return r;
    copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    s->names[s->n++] = copy;
    return 0;
}

static int compare_stock(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(Stock *s)
{
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    Stage stage;
    unsigned number;
    int r = directory_open(s->fd, ".", 0, &dir);

    while (r >= 0 && (e = directory_next(dir)))
        if (ends_with(e->d_name, ATTEMPT_SUFFIX))
            drop_orphan(s, e->d_name);
        else if (ends_with(e->d_name, ".bad") || ends_with(e->d_name, TRACE_SKIPPED_SUFFIX) ||
                 trace_name_parse(e->d_name, &stage, &number) >= 0)
            r = add_name(s, e->d_name);
    /* This order is that of age, because names begin with the time. */
    if (s->n > 1)
        qsort(s->names, s->n, sizeof(*s->names), compare_stock);
    return r;
}

static int describe_files(Stock *s)
{
    int r = grow_array(&s->files, &s->allocated_files, s->n, sizeof(*s->files));

    for (size_t i = 0; r >= 0 && i < s->n; i++) {
        RetainedFile *f = &s->files[i];
        TraceIdentity id = {0};
        struct stat st;
        unsigned number;

        *f = (RetainedFile){.kind = RETENTION_ASIDE, .uid = UID_INVALID};
        if (trace_name_parse(s->names[i], &f->stage, &number) >= 0)
            f->kind = RETENTION_TRACE;
        if (fstatat(s->fd, s->names[i], &st, AT_SYMLINK_NOFOLLOW) >= 0) {
            f->bytes = (uint64_t)MAX(st.st_size, 0);
            f->modified = (usec_t)MAX(st.st_mtim.tv_sec, 0) * USEC_PER_SEC;
        } else if (errno != ENOENT) {
            /* A file of unknown age must not be removed as too old, so this is an error. */
            r = -errno;
            break;
        }
        if (f->kind == RETENTION_TRACE && trace_peek(s->fd, s->names[i], &id) >= 0) {
            f->uid = id.uid;
            f->without_replay = id.without_replay;
        }
    }
    return r;
}

int state_apply_quotas(int state_fd, usec_t now, size_t *ret_removed)
{
    _cleanup_(stock_done) Stock s = {
            .fd = openat(state_fd, STATE_TRACES, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
    };
    _cleanup_free_ bool *remove = NULL;
    size_t removed = 0;
    int r;

    if (s.fd < 0 && errno != ENOENT)
        return -errno;
    r = s.fd < 0 ? 0 : list_names(&s);
    if (r >= 0)
        r = describe_files(&s);
    remove = calloc(s.n + 1, sizeof(bool));
    if (r >= 0 && !remove)
        r = -ENOMEM;
    if (r < 0)
        return r;
    retention_choose(s.files, s.n, RETENTION_QUOTAS_DEFAULT, now, remove);
    for (size_t i = 0; i < s.n; i++)
        removed += remove[i] && unlinkat(s.fd, s.names[i], 0) >= 0;
    if (ret_removed)
        *ret_removed = removed;
    return 0;
}
