/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Functions for tests of the model: one line of text describes a small session. */

#include "model/model.h"
#include "util/range-util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

#define H    DECAYED_SUM_HALFLIFE_DEFAULT
#define PAGE UINT64_C(4096)
#define UUID "0a0b0c0d-0001-0002-0003-000000000001"

/* The start of a generation, in 2028: a session then weighs 256, one H later 512. */
#define T0 (UINT64_C(190) * DECAYED_SUM_SPAN * H)

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static inline void test_ranges(const char *text, uint64_t unit, RangeSet *ret)
{
    unsigned long long a, b;
    int n;

    for (; sscanf(text, "%llu-%llu%n", &a, &b, &n) == 2; text += n + (text[n] == ','))
        assert_int_equal(range_set_insert_span(ret, a * unit, b * unit), 0);
}

static inline uint32_t test_file(Trace *t, const char *folder, const char *name, bool directory)
{
    uint32_t path, file;
    char text[256];

    snprintf(text, sizeof(text), "%s/%s", folder, name);
    assert_int_equal(trace_add_path(t, text, &path), 0);
    assert_int_equal(trace_add_file(t, path, 0, directory, &file), 0);
    return file;
}

/* `uses`: "A>x=0-2,5-6 A>d/ ?>y" means: /bin/A opens the file /f/x, of which pages 0, 1 and 5 are
 * resident, and the directory /f/d; an unknown application opens /f/y. A name that begins with a
 * slash is the whole path of a file. The opens are a second apart, the first at 1 s. `metadata`:
 * ranges of pages of the device; NULL: not known. */
static inline Trace *session(Stage stage, uint32_t uid, usec_t at, unsigned flags, const char *uses,
                             const char *metadata)
{
    static unsigned serial;
    TraceVolume v = {.uuid = (char *)UUID, .fstype = (char *)"ext4", .size_bytes = 1U << 30};
    _cleanup_free_ char *words = strdup(uses);
    Trace *t = trace_new(stage);
    uint32_t volume;

    t->uid = uid;
    t->flags = flags;
    t->start_realtime = at;
    t->duration = 10 * USEC_PER_SEC;
    free(t->boot_id);
    assert_true(asprintf(&t->boot_id, "%032x", serial++) > 0);
    if (metadata) {
        v.metadata_source = METADATA_SOURCE_CACHESTAT;
        test_ranges(metadata, PAGE, &v.metadata);
    }
    assert_int_equal(trace_add_volume(t, &v, &volume), 0);
    range_set_done(&v.metadata);

    for (char *save = NULL, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char application[64], file[64], ranges[64] = "";
        TraceAccess a = {.at = (t->n_accesses + 1) * USEC_PER_SEC, .application = TRACE_NONE};
        size_t l;

        assert_true(sscanf(w, "%63[^>]>%63[^=]=%63s", application, file, ranges) >= 2);
        l = strlen(file);
        if (file[l - 1] == '/') {
            file[l - 1] = 0;
            a.file = test_file(t, "/f", file, true);
        } else {
            a.file = file[0] == '/' ? test_file(t, "", file + 1, false)
                                    : test_file(t, "/f", file, false);
            if (!t->files[a.file].directory) { /* unless an earlier use names it as a directory */
                test_ranges(ranges, PAGE, &t->files[a.file].resident);
                t->files[a.file].size_bytes = 10 * PAGE - 5;
            }
        }
        if (application[0] != '?')
            assert_int_equal(trace_add_application(t, test_file(t, "/bin", application, false),
                                                   &a.application),
                             0);
        assert_int_equal(trace_add_access(t, &a), 0);
    }
    assert_int_equal(trace_validate(t), 0);
    return t;
}

/* The start of the application has touched these pages of each file that the application opened.
 * Add the applications in rising order. */
static inline void touch_opened(Trace *t, uint32_t application, const char *pages)
{
    for (uint32_t file = 0; file < t->n_files; file++) {
        _cleanup_range_set_ RangeSet ranges = {0};
        bool opened = false;

        for (size_t k = 0; k < t->n_accesses; k++)
            opened = opened ||
                     (t->accesses[k].file == file && t->accesses[k].application == application);
        if (!opened || t->files[file].directory)
            continue;
        test_ranges(pages, PAGE, &ranges);
        assert_int_equal(trace_add_touched(t, application, file, &ranges), 0);
    }
}

/* Starts every application of the session at 0.5 s. */
static inline void start_all(Trace *t)
{
    for (uint32_t i = 0; i < t->n_applications; i++)
        assert_int_equal(trace_add_lifetime(t, &(TraceLifetime){.application = i,
                                                                .pid = 10 + i,
                                                                .uid = 1000,
                                                                .start = 500 * USEC_PER_MSEC,
                                                                .end = USEC_INFINITY}),
                         0);
}

/* Starts every application of the session at 0.5 s. Each has touched these pages of each file that
 * it opened. */
static inline void touch(Trace *t, const char *pages)
{
    start_all(t);
    for (uint32_t i = 0; i < t->n_applications; i++)
        touch_opened(t, i, pages);
    assert_int_equal(trace_validate(t), 0);
}

/* A control start of the application needed these blocks. Add the applications in rising order. */
static inline void need(Trace *t, uint32_t application, const char *pages)
{
    _cleanup_range_set_ RangeSet ranges = {0};

    test_ranges(pages, PAGE, &ranges);
    assert_int_equal(trace_add_needed(t, application, 0, &ranges), 0);
    assert_int_equal(trace_validate(t), 0);
}

/* Learns the session and frees it. */
static inline void learn(Model **m, Trace *t)
{
    assert_int_equal(model_learn(m, t, MAX(t->start_realtime, MODEL_CLOCK_MIN) + 60 * USEC_PER_SEC),
                     0);
    trace_free(t);
}

/* Learns the session a year after it was recorded. The time between this session and the previous
 * one never counts as a step of the clock, so earlier sessions decay by this whole time. */
static inline void learn_late(Model **m, Trace *t)
{
    assert_int_equal(model_learn(m, t, t->start_realtime + 52 * 168 * USEC_PER_HOUR), 0);
    trace_free(t);
}

static inline Model *model_of(Trace *t)
{
    Model *m = model_new(H);

    learn(&m, t);
    return m;
}

static inline char *bytes_of(const Model *m)
{
    char *text = NULL;
    size_t size;

    assert_int_equal(model_to_json(m, &text, &size), 0);
    assert_int_equal(strlen(text), size);
    return text;
}

static inline void assert_same(const Model *a, const Model *b)
{
    _cleanup_free_ char *x = bytes_of(a), *y = bytes_of(b);

    assert_string_equal(x, y);
}

static inline Model *merged(const Model *a, const Model *b)
{
    Model *m;

    assert_int_equal(model_merge(a, b, &m), 0);
    return m;
}

static inline Prediction *predict(const Model *m, Stage stage, uint32_t uid)
{
    Prediction *p;

    assert_int_equal(model_predict_stage(m, stage, uid, &p), 0);
    return p;
}

static inline const PredictedFile *predicted(const Prediction *p, const char *path)
{
    for (size_t i = 0; i < p->n_files; i++)
        if (strcmp(p->files[i].path, path) == 0)
            return &p->files[i];
    return NULL;
}

/* Returns the probability that the file is needed, or 0 if the file is not predicted. */
static inline double chance(const Prediction *p, const char *path)
{
    const PredictedFile *f = predicted(p, path);

    return f ? f->probability : 0;
}

/* Returns the probability that the page of the file is needed. */
static inline double page_chance(const Prediction *p, const char *path, uint64_t page)
{
    const PredictedFile *f = predicted(p, path);

    for (size_t i = 0; f && i < f->n_maps; i++)
        if (f->maps[i].offset <= page * PAGE && page * PAGE < f->maps[i].offset + f->maps[i].length)
            return f->maps[i].probability;
    return 0;
}

/* Returns the highest probability with which that page of the device is read. */
static inline double metadata_chance(const Prediction *p, uint64_t page)
{
    double most = 0;

    for (size_t i = 0; i < p->n_metadata; i++)
        if (p->metadata[i].range.offset <= page * PAGE &&
            page * PAGE < p->metadata[i].range.offset + p->metadata[i].range.length)
            most = MAX(most, p->metadata[i].range.probability);
    return most;
}
