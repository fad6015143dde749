/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/plan-predict.h"

#include "plan/plan-cut.h"
#include "plan/stage-time.h"

#include <stdio.h>
#include <string.h>

typedef struct Predictor {
    StageDevice *devices;
    const Volume **volumes; /* device -> one of its volumes */
    size_t n_devices;
    StageRead *reads;
    size_t n_reads;
} Predictor;

static void predictor_done(Predictor *x)
{
    free(x->devices);
    free(x->volumes);
    free(x->reads);
}

/* The profile of a disk that was not measured and does not seek slowly: a request has a fixed cost,
 * independent of the distance. */
static const DeviceProfile unmeasured = {
        .rate_bytes_per_usec = 100, .fixed_usec = 1000, .depth = 1};

static const DeviceProfile *profile_of(const Volume *v, const PlanParameters *p)
{
    const DeviceProfile *profile = plan_device_profile(v, p);
    bool seeks = v->seeks_slowly || plan_device_class(v, p) == DEVICE_CLASS_HDD;

    return profile->seek_max_usec > 0 && !seeks ? &unmeasured : profile;
}

/* Returns the index of the volume's disk, which is added if it is new. Volumes on one disk share
 * the time of that disk. Their positions on the disk are not known here, so each volume counts as
 * if it began at the start of the disk. */
static uint32_t add_device(Predictor *x, const Volume *v, const PlanParameters *p)
{
    uint32_t i = 0;

    while (i < x->n_devices && (!v->disk[0] || strcmp(x->volumes[i]->disk, v->disk) != 0))
        i++;
    if (i == x->n_devices) {
        x->volumes[i] = v;
        x->devices[i] = (StageDevice){profile_of(v, p), v->size_bytes,
                                      device_engine_of_class(plan_device_class(v, p))};
        x->n_devices++;
    }
    x->devices[i].size_bytes = MAX(x->devices[i].size_bytes, v->size_bytes);
    return i;
}

/* A range is in memory if the boot or the login reads it with this probability. */
#define IN_MEMORY_PROBABILITY 0.5

uint64_t plan_missing_bytes(const PackContentVolume *g, size_t k, const Prediction *in_memory)
{
    const PlacedRange *r = &g->data[k];
    bool top = strcmp(g->mountpoint, "/") == 0;
    const char *name = g->files[r->file].path;
    _cleanup_free_ char *path = NULL;
    uint64_t bytes;

    if (!in_memory || asprintf(&path, "%s/%s", top ? "" : g->mountpoint, name) < 0)
        return r->length;
    bytes = prediction_likely_bytes(in_memory, path, (Range){r->offset, r->length},
                                    IN_MEMORY_PROBABILITY);
    bytes = r->length - MIN(bytes, r->length);
    return bytes < PACK_PAGE_SIZE ? 0 : bytes;
}

/* Collects the metadata of the filesystem that is probably in memory. Returns 0 or -ENOMEM. */
static int metadata_in_memory(const Prediction *in_memory, const char *uuid, RangeSet *ret)
{
    for (size_t i = 0; in_memory && i < in_memory->n_metadata; i++) {
        const PredictedMetadata *m = &in_memory->metadata[i];

        if (m->range.probability >= IN_MEMORY_PROBABILITY && strcmp(m->uuid, uuid) == 0)
            CHECK(range_set_insert(ret, m->range.offset, m->range.length));
    }
    return 0;
}

static int add_reads(Predictor *x, uint32_t device, uint32_t volume, const char *uuid,
                     const PackContentVolume *g, const Prediction *in_memory)
{
    _cleanup_range_set_ RangeSet have = {0};

    CHECK(metadata_in_memory(in_memory, uuid, &have));
    for (size_t k = 0; k < g->n_metadata; k++) {
        const Range range = {g->metadata[k].offset, g->metadata[k].length};
        uint64_t bytes = range.length - range_set_covered(&have, range);

        /* It is not known which blocks of such a filesystem are in memory when a session runs. */
        if (bytes == 0 || (in_memory && g->metadata[k].item.reader != METADATA_OF_DEVICE))
            continue;
        x->reads[x->n_reads++] = (StageRead){
                .device = device,
                .volume = volume,
                .metadata = true,
                .place = range.offset,
                .length = bytes,
                .need = USEC_INFINITY,
                .probability = g->metadata[k].probability,
        };
    }
    for (size_t k = 0; k < g->n_data; k++) {
        uint64_t bytes = plan_missing_bytes(g, k, in_memory);

        if (bytes == 0)
            continue;
        x->reads[x->n_reads++] = (StageRead){
                .device = device,
                .volume = volume,
                .place = g->data[k].physical,
                .length = bytes,
                .need = g->data[k].need,
                .advance = g->data[k].advance,
                .probability = g->data[k].probability,
                .alone = !(g->flags & PACK_VOLUME_PHYSICAL),
        };
    }
    return 0;
}

static int predictor_make(const VolumeTable *t, const PlanParameters *p,
                          const Prediction *in_memory, const PackContent *c, Predictor *ret)
{
    _cleanup_(predictor_done) Predictor x = {0};
    size_t n = 0;

    for (size_t i = 0; i < c->n_volumes; i++)
        n += c->volumes[i].n_metadata + c->volumes[i].n_data;
    x.devices = calloc(c->n_volumes + 1, sizeof(*x.devices));
    x.volumes = calloc(c->n_volumes + 1, sizeof(const Volume *));
    x.reads = calloc(n + 1, sizeof(*x.reads));
    if (!x.devices || !x.volumes || !x.reads)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_volumes; i++) {
        const Volume *v = plan_volume_of(t, &c->volumes[i]);

        if (v)
            CHECK(add_reads(&x, add_device(&x, v, p), (uint32_t)i, v->uuid, &c->volumes[i],
                            in_memory));
    }
    *ret = x;
    x = (Predictor){0};
    return 0;
}

static usec_t known(usec_t predicted)
{
    return predicted == USEC_INFINITY ? 0 : predicted;
}

/* Stores the predicted times and what was chosen. `ready` is how long the stage takes without
 * replay; 0: not known. */
static void store_prediction(PackContent *c, const StagePrediction *s, usec_t ready, Policy policy,
                             PolicyReason reason)
{
    c->policy = policy;
    c->reason = reason;
    for (Policy p = 0; p < _POLICY_MAX; p++)
        c->predicted_usec[p] = known(s->usec[p]);
    c->predicts_waits = ready == 0;
}

static void set_order(PackContent *c, const StagePrediction *s)
{
    c->hold_usec = c->bin_usec = 0;
    for (size_t i = 0; i < c->n_volumes; i++)
        c->volumes[i].sweep_start = 0;
    if (c->policy == POLICY_CONCURRENT)
        c->bin_usec = s->concurrent_bin > 0 ? s->concurrent_bin : USEC_INFINITY;
    else if (c->policy == POLICY_GATE && !s->gate_whole) {
        c->hold_usec = s->hold;
        c->bin_usec = s->gate_bin > 0 ? s->gate_bin : USEC_INFINITY;
    } else if (c->policy == POLICY_GATE && s->sweep_start > 0)
        c->volumes[s->sweep_volume].sweep_start = s->sweep_start;
}

/* Predicts the stage of the pack. The caller has set the facts of `f` that the pack does not have.
 * Returns 0 or -ENOMEM. */
static int predict(const VolumeTable *volumes, const PlanParameters *p, const Prediction *in_memory,
                   const PackContent *c, StageFacts f, StagePrediction *ret)
{
    _cleanup_(predictor_done) Predictor x = {0};

    CHECK(predictor_make(volumes, p, in_memory, c, &x));
    f.devices = x.devices;
    f.n_devices = x.n_devices;
    f.reads = x.reads;
    f.n_reads = x.n_reads;
    f.pack_bytes = pack_content_size(c);
    for (size_t i = 0; i < c->n_volumes; i++) {
        f.n_opens += c->volumes[i].n_files;
        f.opens_first = f.opens_first || (c->volumes[i].flags & PACK_VOLUME_TOUCH_ENTRIES);
    }
    return stage_time_predict(&f, ret);
}

int plan_predict(const VolumeTable *volumes, const PlanParameters *p, Policy configured,
                 StageMeasured measured, PackContent *c)
{
    const StageFacts f = {
            .ready = measured.ready,
            .stalled = measured.stalled,
            .deadline = p->deadline_usec,
            .waits = c->stage == STAGE_LOGIN,
    };
    bool chosen = (int)configured >= 0;
    StagePrediction s;

    CHECK(predict(volumes, p, NULL, c, f, &s));
    store_prediction(c, &s, f.ready, chosen ? configured : s.best,
                     chosen ? POLICY_REASON_CONFIGURED : s.reason);
    set_order(c, &s);
    return 0;
}

int plan_predict_start(const VolumeTable *volumes, const PlanParameters *p,
                       const Prediction *in_memory, usec_t ready, PackContent *c)
{
    const StageFacts f = {.start = true, .ready = ready, .bin = c->bin_usec};
    StagePrediction s;

    CHECK(predict(volumes, p, in_memory, c, f, &s));
    store_prediction(c, &s, ready, s.best, s.reason);
    return 0;
}
