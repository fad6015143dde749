/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/timeline-trace.h"
#include "report/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* If gcc 12 inlines this function with -O3, it takes the result for a pointer to a local variable.
 */
__attribute__((noinline)) static char *draw(const Timeline *t, size_t n)
{
    _cleanup_markup_ Markup m = {0};
    char *text;
    size_t size;

    timeline_document(&m, t, n, TIMELINE_WIDE);
    assert_int_equal(markup_finish(&m, &text, &size), 0);
    return text;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (const char *s = text; (s = strstr(s, part)); s += strlen(part))
        n++;
    return n;
}

static Timeline example(size_t n_reads)
{
    Timeline t = {.duration = 10 * USEC_PER_SEC, .series_names = {[READ_DEMAND] = "read"}};

    assert_int_equal(timeline_set_title(&t, "Boot"), 0);
    for (size_t i = 0; i < n_reads; i++)
        assert_int_equal(timeline_add_read(&t, &(TimelineRead){.at = i * 7919 % t.duration,
                                                               .place = i * 104729 % (1U << 30),
                                                               .length = 4096,
                                                               .bytes = 8192,
                                                               .series = READ_DEMAND}),
                         0);
    return t;
}

/* The picture stays small, however many reads there are. */
static void test_bounded(void **state _unused_)
{
    _cleanup_timeline_ Timeline t = example(300000);
    _cleanup_free_ char *text = draw(&t, 1);
    uint64_t bytes;

    assert_true(strlen(text) < 800000);
    assert_int_equal(timeline_count(&t, READ_DEMAND, &bytes), 300000);
    assert_int_equal(bytes, 300000 * UINT64_C(8192));
    assert_int_equal(timeline_count(&t, READ_REPLAY, &bytes), 0);
}

/* Values that were not recorded are not drawn. */
static void test_missing(void **state _unused_)
{
    _cleanup_timeline_ Timeline t = example(0);
    _cleanup_free_ char *text = NULL;

    assert_int_equal(timeline_add_note(&t, "Replay was %s", "off"), 0);
    text = draw(&t, 1);
    assert_null(strstr(text, "Place on the disk"));
    assert_null(strstr(text, "CPU"));
    assert_null(strstr(text, "class=\"demand\""));
    assert_int_equal(count(text, "Replay was off."), 2); /* below the picture and in <desc> */
}

/* The heaviest applications are drawn, in the order of their starts. */
static void test_rows(void **state _unused_)
{
    _cleanup_timeline_ Timeline t = example(1);
    _cleanup_free_ char *text = NULL;
    const char *at;

    for (unsigned i = 0; i < 100; i++) {
        char name[32];

        snprintf(name, sizeof(name), "app-%u<", i);
        assert_int_equal(
                timeline_add_application(&t, &(TimelineSpan){.name = name,
                                                             .start = (100 - i) * USEC_PER_MSEC,
                                                             .end = USEC_INFINITY,
                                                             .weight = i}),
                0);
    }
    text = draw(&t, 1);
    assert_int_equal(count(text, "class=\"application\""), 14);
    assert_null(strstr(text, "app-85&lt;"));
    at = strstr(text, "app-99&lt;");
    assert_non_null(at);
    assert_non_null(strstr(at, "app-86&lt;"));
}

/* Pictures that are compared have axes of the same length. */
static void test_compare(void **state _unused_)
{
    Timeline t[2] = {example(5), example(5)};
    _cleanup_free_ char *text = NULL;

    t[1].duration = 20 * USEC_PER_SEC;
    timeline_add_mark(&t[0], "ready", 5 * USEC_PER_SEC);
    timeline_add_mark(&t[1], "ready", 5 * USEC_PER_SEC);
    timeline_add_mark(&t[1], "late", 21 * USEC_PER_SEC);
    assert_int_equal(t[1].n_marks, 1);
    text = draw(t, 2);
    assert_int_equal(count(text, ">20 s<"), 2);
    assert_int_equal(count(text, "id=\"timeline-2-title\""), 1);
    timeline_done(&t[0]);
    timeline_done(&t[1]);
}

static bool place(void *arg, const TraceFile *f, const char *path, uint64_t *ret_place,
                  uint64_t *ret_length)
{
    if (!strstr(path, "known"))
        return false;
    *ret_place = f->inode * 4096;
    *ret_length = 1U << 30;
    ++*(int *)arg;
    return true;
}

static uint32_t add_file(Trace *t, const char *path, uint64_t resident)
{
    uint32_t p, f;

    assert_int_equal(trace_add_path(t, path, &p), 0);
    assert_int_equal(trace_add_file(t, p, TRACE_NONE, false, &f), 0);
    t->files[f].inode = 12;
    if (resident > 0)
        assert_int_equal(range_set_insert(&t->files[f].resident, 0, resident), 0);
    return f;
}

static void add_access(Trace *t, usec_t at, uint32_t file, uint32_t application)
{
    assert_int_equal(
            trace_add_access(t, &(TraceAccess){.at = at, .file = file, .application = application}),
            0);
}

/* The first open of a file counts. A file whose data was not read does not count. */
static void test_trace(void **state _unused_)
{
    _cleanup_trace_ Trace *trace = trace_new(STAGE_LOGIN);
    _cleanup_timeline_ Timeline t = {0};
    uint32_t known, other, empty, application;
    int n_asked = 0;

    trace->duration = 4 * USEC_PER_SEC;
    trace->timing.ready = 3 * USEC_PER_SEC;
    known = add_file(trace, "/known", 8192);
    other = add_file(trace, "/other", 4096);
    empty = add_file(trace, "/empty", 0);
    assert_int_equal(trace_add_application(trace, other, &application), 0);
    assert_int_equal(
            trace_add_lifetime(
                    trace, &(TraceLifetime){.application = application, .start = 500, .end = 900}),
            0);
    add_access(trace, 100, known, TRACE_NONE);
    add_access(trace, 200, empty, TRACE_NONE);
    add_access(trace, 300, other, application);
    add_access(trace, 400, known, application);
    assert_int_equal(
            timeline_from_trace(
                    &(TimelineSources){.trace = trace, .place = place, .place_arg = &n_asked}, &t),
            0);
    assert_int_equal(t.n_reads, 2);
    assert_int_equal(n_asked, 1);
    assert_int_equal(t.reads[0].at, 100);
    assert_int_equal(t.reads[0].place, 12 * 4096);
    assert_int_equal(t.reads[0].length, 8192); /* no more than was read */
    assert_int_equal(t.reads[0].series, READ_DEMAND);
    assert_true(t.reads[1].place == PHYSICAL_UNKNOWN);
    assert_int_equal(t.n_applications, 1);
    assert_string_equal(t.applications[0].name, "other");
    assert_int_equal(t.applications[0].weight, 2);
    assert_int_equal(t.n_samples, 0);
    assert_string_equal(t.notes[2], "CPU and pressure were not recorded");
    assert_int_equal(t.n_marks, 1);
    assert_int_equal(t.marks[0].at, 3 * USEC_PER_SEC);
    assert_string_equal(t.notes[0], "The place of 1 of 2 files is not known");
    assert_string_equal(t.notes[1], "Replay was off");
}

/* Samples become shares of time, and marks show the replay. */
static void test_samples(void **state _unused_)
{
    _cleanup_trace_ Trace *trace = trace_new(STAGE_BOOT);
    _cleanup_timeline_ Timeline t = {0};
    _cleanup_free_ char *text = NULL;

    trace->duration = 4 * USEC_PER_SEC;
    trace->flags = TRACE_REPLAYED;
    trace->replay = (TraceReplay){.known = true, .end = USEC_PER_SEC};
    trace->timing.n_cpus = 2;
    assert_int_equal(trace_add_sample(trace, &(TraceSample){USEC_PER_SEC, USEC_PER_SEC, 0}), 0);
    assert_int_equal(trace_add_sample(trace, &(TraceSample){2 * USEC_PER_SEC, 3 * USEC_PER_SEC,
                                                            USEC_PER_SEC / 4}),
                     0);
    assert_int_equal(timeline_from_trace(&(TimelineSources){.trace = trace}, &t), 0);
    assert_int_equal(t.n_samples, 3);
    assert_true(t.samples[1].cpu == 0.5 && t.samples[1].waiting == 0);
    assert_true(t.samples[2].cpu == 1 && t.samples[2].waiting == 0.25);
    assert_int_equal(t.n_marks, 2);
    assert_int_equal(t.marks[1].at, USEC_PER_SEC);
    assert_int_equal(t.n_notes, 0);
    text = draw(&t, 1);
    assert_int_equal(count(text, "class=\"cpu\""), 1);
    assert_int_equal(count(text, "class=\"waiting\""), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_bounded), cmocka_unit_test(test_missing),
            cmocka_unit_test(test_rows),    cmocka_unit_test(test_compare),
            cmocka_unit_test(test_trace),   cmocka_unit_test(test_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
