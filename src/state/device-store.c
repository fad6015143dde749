/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/device-store.h"

#include "base/json-document.h"

#include <string.h>

#define FORMAT_NAME    "headstart-devices"
#define FORMAT_VERSION 1

/* The columns of the samples of one kind. */
enum { PLAN, DISTANCE, LENGTH, REQUESTS, DEPTH, USEC, ZEROED, N_COLUMNS };

static const char *const columns[N_COLUMNS] = {
        [PLAN] = "plan",   [DISTANCE] = "distance", [LENGTH] = "length", [REQUESTS] = "requests",
        [DEPTH] = "depth", [USEC] = "usec",         [ZEROED] = "zeroed",
};

static void record_free(DeviceRecord *d)
{
    if (!d)
        return;
    free(d->uuid);
    free(d->identity);
    free(d);
}

void device_store_done(DeviceStore *s)
{
    for (size_t i = 0; i < s->n; i++)
        record_free(s->records[i]);
    *s = (DeviceStore){0};
}

static DeviceRecord *record_new(const char *uuid, const char *identity)
{
    DeviceRecord *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->uuid = strndup(uuid, DEVICE_UUID_MAX);
    d->identity = strndup(identity, DEVICE_IDENTITY_MAX);
    if (!d->uuid || !d->identity) {
        record_free(d);
        return NULL;
    }
    return d;
}

DeviceRecord *device_store_find(DeviceStore *s, const char *uuid, const char *identity)
{
    for (size_t i = 0; i < s->n; i++)
        if (strncmp(s->records[i]->uuid, uuid, DEVICE_UUID_MAX) == 0 &&
            strncmp(s->records[i]->identity, identity, DEVICE_IDENTITY_MAX) == 0)
            return s->records[i];
    return NULL;
}

DeviceRecord *device_store_add(DeviceStore *s, const char *uuid, const char *identity)
{
    DeviceRecord *d = device_store_find(s, uuid, identity);
    size_t oldest = 0;

    if (d)
        return d;
    d = record_new(uuid, identity);
    if (!d)
        return NULL;
    if (s->n < DEVICE_STORE_MAX)
        return s->records[s->n++] = d;
    for (size_t i = 1; i < s->n; i++)
        if (s->records[i]->measured_realtime < s->records[oldest]->measured_realtime)
            oldest = i;
    record_free(s->records[oldest]);
    return s->records[oldest] = d;
}

void device_record_add_sweep(DeviceRecord *d, usec_t start_realtime, const DeviceSweep *sweep)
{
    if (d->n_sweeps == DEVICE_SWEEPS_MAX) {
        memmove(d->sweeps, d->sweeps + 1, (DEVICE_SWEEPS_MAX - 1) * sizeof(*sweep));
        d->n_sweeps--;
    }
    d->sweeps[d->n_sweeps++] = *sweep;
    d->sweep_realtime = start_realtime;
}

/* --- writing ---------------------------------------------------------------------------------- */

static uint64_t value_of(const DeviceSample *s, int column)
{
    switch (column) {
    case PLAN:
        return s->plan;
    case DISTANCE:
        return s->distance;
    case LENGTH:
        return s->length;
    case REQUESTS:
        return s->requests;
    case DEPTH:
        return s->depth;
    case USEC:
        return s->usec;
    default:
        return s->zeroed;
    }
}

static void write_samples(JsonWriter *w, const DeviceSamples *s)
{
    uint64_t v[DEVICE_SAMPLES_MAX];

    json_writer_open(w, "samples", '{');
    for (DeviceSampleKind k = 0; k < _DEVICE_SAMPLE_KIND_MAX; k++) {
        json_writer_open(w, device_sample_kind_to_string(k), '{');
        for (int c = 0; c < N_COLUMNS; c++) {
            for (unsigned i = 0; i < s->n[k]; i++)
                v[i] = value_of(&s->items[k][i], c);
            json_writer_add_numbers(w, columns[c], v, s->n[k]);
        }
        json_writer_close(w, '}');
    }
    json_writer_close(w, '}');
}

static void write_sweeps(JsonWriter *w, const DeviceRecord *d)
{
    uint64_t predicted[DEVICE_SWEEPS_MAX], measured[DEVICE_SWEEPS_MAX];

    for (unsigned i = 0; i < d->n_sweeps; i++) {
        predicted[i] = d->sweeps[i].predicted_usec;
        measured[i] = d->sweeps[i].measured_usec;
    }
    json_writer_open(w, "sweeps", '{');
    json_writer_add_numbers(w, "predicted_usec", predicted, d->n_sweeps);
    json_writer_add_numbers(w, "measured_usec", measured, d->n_sweeps);
    json_writer_close(w, '}');
}

static void write_record(JsonWriter *w, const DeviceRecord *d)
{
    json_writer_open(w, NULL, '{');
    json_writer_add_string(w, "uuid", d->uuid);
    json_writer_add_string(w, "disk", d->identity);
    json_writer_add_u64(w, "measured_realtime_usec", d->measured_realtime);
    json_writer_add_u64(w, "plans", d->n_plans);
    json_writer_add_u64(w, "sweep_realtime_usec", d->sweep_realtime);
    write_sweeps(w, d);
    write_samples(w, &d->samples);
    json_writer_close(w, '}');
}

int device_store_to_json(const DeviceStore *s, char **ret, size_t *ret_size)
{
    _cleanup_json_writer_ JsonWriter w = {0};

    json_writer_add_string(&w, "format", FORMAT_NAME);
    json_writer_add_u64(&w, "version", FORMAT_VERSION);
    json_writer_open(&w, "devices", '[');
    for (size_t i = 0; i < s->n; i++)
        write_record(&w, s->records[i]);
    json_writer_close(&w, ']');
    return json_writer_finish(&w, ret, ret_size);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_kind(const JsonDocument *document, struct json_object *o, DeviceSampleKind k,
                     DeviceSamples *s)
{
    static const uint64_t limits[N_COLUMNS] = {
            [PLAN] = UINT32_MAX,
            [DISTANCE] = INT64_MAX,
            [LENGTH] = DEVICE_SAMPLE_LENGTH_MAX,
            [REQUESTS] = DEVICE_SAMPLE_REQUESTS_MAX,
            [DEPTH] = UINT32_MAX,
            [USEC] = DEVICE_SAMPLE_USEC_MAX,
            [ZEROED] = 1,
    };
    JsonColumn c[N_COLUMNS];
    struct json_object *table;
    int r = json_get_object(o, device_sample_kind_to_string(k), &table);

    if (r >= 0)
        r = json_get_columns(document, table, columns, N_COLUMNS, DEVICE_SAMPLES_MAX, c);
    while (r >= 0 && c[0].n > 0) {
        uint64_t v[N_COLUMNS] = {0};
        DeviceSample x;

        for (int i = 0; r >= 0 && i < N_COLUMNS; i++)
            r = json_next_u64(&c[i], limits[i], &v[i]);
        x = (DeviceSample){
                .plan = (uint32_t)v[PLAN],
                .distance = v[DISTANCE],
                .length = (uint32_t)v[LENGTH],
                .requests = (uint32_t)v[REQUESTS],
                .depth = (uint32_t)v[DEPTH],
                .usec = v[USEC],
                .zeroed = v[ZEROED] != 0,
        };
        if (r >= 0 && !device_sample_is_valid(k, &x))
            r = -EBADMSG;
        if (r >= 0)
            device_samples_add(s, k, &x);
    }
    return r;
}

static int read_sweeps(const JsonDocument *document, struct json_object *o, DeviceRecord *d)
{
    static const char *const names[] = {"predicted_usec", "measured_usec"};
    struct json_object *table;
    JsonColumn c[2];
    int r = json_get_object(o, "sweeps", &table);

    if (r >= 0)
        r = json_get_columns(document, table, names, 2, DEVICE_SWEEPS_MAX, c);
    while (r >= 0 && c[0].n > 0) {
        DeviceSweep *s = &d->sweeps[d->n_sweeps];

        r = json_next_u64(&c[0], INT64_MAX, &s->predicted_usec);
        if (r >= 0)
            r = json_next_u64(&c[1], INT64_MAX, &s->measured_usec);
        d->n_sweeps += r >= 0;
    }
    return r;
}

static int read_record(const JsonDocument *document, struct json_object *o, DeviceStore *s)
{
    const char *uuid, *identity;
    struct json_object *samples;
    uint64_t plans;
    DeviceRecord *d;
    int r;

    if (json_get_string(o, "uuid", &uuid) < 0 || strlen(uuid) > DEVICE_UUID_MAX ||
        json_get_string(o, "disk", &identity) < 0 || strlen(identity) > DEVICE_IDENTITY_MAX ||
        device_store_find(s, uuid, identity))
        return -EBADMSG;
    d = device_store_add(s, uuid, identity);
    if (!d)
        return -ENOMEM;
    r = json_get_u64(o, "measured_realtime_usec", INT64_MAX, &d->measured_realtime);
    if (r >= 0)
        r = json_get_u64(o, "sweep_realtime_usec", INT64_MAX, &d->sweep_realtime);
    if (r >= 0)
        r = json_get_u64(o, "plans", UINT32_MAX, &plans);
    if (r >= 0)
        r = json_get_object(o, "samples", &samples);
    if (r < 0)
        return r;
    d->n_plans = (uint32_t)plans;
    r = read_sweeps(document, o, d);
    for (DeviceSampleKind k = 0; r >= 0 && k < _DEVICE_SAMPLE_KIND_MAX; k++)
        r = read_kind(document, samples, k, &d->samples);
    return r;
}

static int fail(int error, const char *reason, char **ret_error)
{
    *ret_error = strdup(reason ? reason : strerror(-error));
    return error;
}

int device_store_from_json(const char *text, size_t size, DeviceStore *ret, char **ret_error)
{
    _cleanup_device_store_ DeviceStore s = {0};
    _cleanup_json_document_ JsonDocument document = {0};
    const char *reason = NULL, *word;
    struct json_object *devices;
    uint64_t version;
    int r;

    if (size > DEVICE_STORE_SIZE_MAX)
        return fail(-E2BIG, "larger than the file of devices may be", ret_error);
    r = json_document_parse(text, size, 8, &document, &reason);
    if (r < 0)
        return fail(r, reason, ret_error);
    if (json_get_string(document.root, "format", &word) < 0 || strcmp(word, FORMAT_NAME) != 0)
        return fail(-EMEDIUMTYPE, "not headstart's file of devices", ret_error);
    if (json_get_u64(document.root, "version", UINT32_MAX, &version) < 0 ||
        version != FORMAT_VERSION)
        return fail(-EPROTONOSUPPORT, "another format version", ret_error);
    if (json_get_array(document.root, "devices", DEVICE_STORE_MAX, &devices) < 0)
        return fail(-EBADMSG, "no list of devices", ret_error);
    for (size_t i = 0; r >= 0 && i < json_object_array_length(devices); i++)
        r = read_record(&document, json_object_array_get_idx(devices, i), &s);
    if (r < 0)
        return fail(r, r == -EBADMSG ? "a device with invalid values" : NULL, ret_error);
    *ret = s;
    s = (DeviceStore){0};
    return 0;
}
