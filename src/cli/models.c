/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/models.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/compressed-file.h"
#include "base/log.h"

#include <fcntl.h>
#include <string.h>

#include "config-paths.h"

/* Returns 0, or a negative errno and one line in *ret_error, which the caller frees. */
static int read_model(const char *path, Model **ret, char **ret_error)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    r = compressed_file_load(AT_FDCWD, path, MODEL_JSON_SIZE_MAX, &text, &size, ret_error);
    if (r >= 0 && size == 0) {
        *ret_error = strdup("empty file");
        return -EBADMSG;
    }
    if (r >= 0)
        r = model_from_json(text, size, ret, ret_error);
    if (r < 0 && !*ret_error)
        *ret_error = strdup(error_text(r));
    return r;
}

int models_load(const char *path, usec_t now, Model **ret)
{
    _cleanup_model_ Model *model = NULL;
    _cleanup_free_ char *error = NULL;
    uint64_t generation;
    usec_t clock;
    int r;

    r = read_model(path, &model, &error);
    if (r < 0)
        return cli_error(r, "%s: %s", path, error ? error : "out of memory");
    clock = model->clock;
    generation = model->chains ? model->chains->generation : 0;
    r = model_settle_clock(&model, now);
    if (r < 0)
        return cli_error(r, "%s: %m", path);
    if (model->clock < clock || (model->chains && model->chains->generation < generation))
        cli_warning(0, "%s: learned with a clock that ran ahead; its times are moved back to now",
                    path);
    *ret = TAKE_PTR(model);
    return 0;
}

/* Counts the traces that both models have learned. These traces count twice in the sum. */
static size_t count_shared(const Model *a, const Model *b)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n_learned; i++)
        for (size_t k = 0; k < b->n_learned; k++)
            if (a->learned[i].id == b->learned[k].id &&
                a->learned[i].start_realtime == b->learned[k].start_realtime) {
                n++;
                break;
            }
    return n;
}

int models_add(Model **sum, Model *m, const char *path)
{
    char ours[FORMAT_TIMESPAN_MAX], theirs[FORMAT_TIMESPAN_MAX];
    _cleanup_model_ Model *model = m, *both = NULL;
    size_t n_shared;
    int r;

    if (!*sum) {
        *sum = TAKE_PTR(model);
        return 0;
    }
    if (model->halflife_usec != (*sum)->halflife_usec)
        return cli_error(EINVAL, "%s: its half-life is %s, that of the others %s", path,
                         format_timespan(theirs, sizeof(theirs), model->halflife_usec),
                         format_timespan(ours, sizeof(ours), (*sum)->halflife_usec));
    n_shared = count_shared(*sum, model);
    if (n_shared > 0)
        cli_warning(0, "%s: %zu of its sessions are also in the other models and count twice", path,
                    n_shared);
    r = model_merge(*sum, model, &both);
    if (r == -EINVAL)
        return cli_error(r, "%s: its chains were learned with another window than the others'",
                         path);
    if (r == -E2BIG)
        return cli_error(r, "%s: the sum with the other models is too large", path);
    if (r < 0)
        return cli_error(r, "%s: %m", path);
    model_free(*sum);
    *sum = TAKE_PTR(both);
    return 0;
}

int models_save(const Model *m, const char *path)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = model_to_json(m, &text, &size);

    if (r >= 0 && strcmp(path, "-") == 0)
        r = fwrite(text, 1, size, stdout) == size ? 0 : -errno;
    else if (r >= 0)
        r = output_file_write(path, text, size, 0600);
    return r < 0 ? cli_error(r, "%s: %m", path) : 0;
}

int models_load_default(const Context *c, Model **ret)
{
    _cleanup_free_ char *path = NULL, *error = NULL;
    _cleanup_model_ Model *m = NULL;
    int r;

    *ret = NULL;
    if (asprintf(&path, "%s" HEADSTART_DATA_DIR "/default.model",
                 strcmp(c->root, "/") == 0 ? "" : c->root) < 0)
        return -ENOMEM;
    r = read_model(path, &m, &error);
    if (r == -ENOENT)
        return 0;
    if (r >= 0)
        r = model_settle_clock(&m, clock_now(CLOCK_REALTIME));
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        cli_warning(r, "%s: %s; ignoring", path, error ? error : error_text(r));
        return 0;
    }
    model_drop_machine_facts(m); /* exports of older versions have them */
    *ret = TAKE_PTR(m);
    return 0;
}
