/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What of a model means the same on another machine, and tells of nobody: model.h. */

#include "model/model-internal.h"

#include <string.h>

/* What a distribution ships; whatever else there is belongs to the machine or to somebody. */
static const char *const shared[] = {
        "/bin",   "/etc",   "/lib",
        "/lib32", "/lib64", "/libx32",
        "/sbin",  "/usr",   "/var/cache/fontconfig",
};

/* But there names are chosen by whoever runs the machine, and tell of its networks, sites, keys and
 * people. */
static const char *const local[] = {
        "/etc/NetworkManager", "/etc/apache2", "/etc/cups",      "/etc/exports.d",
        "/etc/headstart",      "/etc/httpd",   "/etc/iwd",       "/etc/letsencrypt",
        "/etc/netplan",        "/etc/nginx",   "/etc/openvpn",   "/etc/pki",
        "/etc/samba",          "/etc/skel",    "/etc/ssh",       "/etc/ssl/private",
        "/etc/sudoers.d",      "/etc/systemd", "/etc/wireguard", "/etc/wpa_supplicant",
        "/usr/local",
};

static bool is_below(const char *path, const char *prefix)
{
    size_t l = strlen(prefix);

    return strncmp(path, prefix, l) == 0 && (path[l] == 0 || path[l] == '/');
}

bool model_path_is_portable(const char *path)
{
    for (size_t i = 0; i < ELEMENTSOF(local); i++)
        if (is_below(path, local[i]))
            return false;
    for (size_t i = 0; i < ELEMENTSOF(shared); i++)
        if (is_below(path, shared[i]))
            return true;
    return false;
}

static void drop_metadata(ModelStage *s)
{
    for (size_t i = 0; i < s->n_metadata; i++) {
        free(s->metadata[i].uuid);
        segments_done(&s->metadata[i].ranges);
    }
    s->n_metadata = 0;
}

static int drop_files(Model *m)
{
    char **to = calloc(m->n_files + 1, sizeof(*to));
    size_t n = m->n_files;
    int r = to ? 0 : -ENOMEM;

    for (size_t i = 0; r >= 0 && i < n; i++)
        if (!model_path_is_portable(m->files[i].path)) {
            to[i] = strdup("");
            r = to[i] ? 0 : -ENOMEM;
        }
    if (r >= 0)
        r = model_move_files(m, to);
    for (size_t i = 0; to && i < n; i++)
        free(to[i]);
    free(to);
    return r;
}

int model_make_portable(const Model *m, Model **ret)
{
    _cleanup_model_ Model *sum = model_new(m->halflife);
    int r;

    if (!sum)
        return -ENOMEM;
    sum->generation = m->generation;
    sum->clock = m->clock;
    for (Stage stage = 0; stage < _STAGE_MAX; stage++) {
        _cleanup_model_ Model *part = NULL, *both = NULL;

        r = model_sum_stages(m, 1U << stage, MODEL_NONE, &part);
        if (r < 0)
            return r;
        if (part->n_stages == 0)
            continue;
        part->stages[0].stage = stage;
        drop_metadata(&part->stages[0]);
        r = model_merge(sum, part, &both);
        if (r < 0)
            return r;
        model_free(sum);
        sum = TAKE_PTR(both);
    }
    model_copy_directories(sum, m);
    r = drop_files(sum);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(sum);
    return 0;
}
