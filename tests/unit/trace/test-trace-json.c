/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "trace/trace-json.h"

#include "util/range-util.h"
#include "util/synthetic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

static Trace *small_trace(void)
{
    SyntheticParameters p = synthetic_login(0);
    Trace *t;

    p.n_files = 24;
    p.n_applications = 3;
    p.n_accesses = 40;
    p.own_files = 1;
    p.flags = TRACE_EXACT | TRACE_RESIDENCY_OFF;
    assert_int_equal(synthetic_trace(&p, &t), 0);
    return t;
}

/* If gcc 12 inlines this function with -O3, it takes the result for a pointer to a local variable.
 */
__attribute__((noinline)) static char *text_of(const Trace *t, size_t *ret_size)
{
    size_t size;
    char *text;

    assert_int_equal(trace_to_json(t, &text, &size), 0);
    assert_int_equal(strlen(text), size);
    if (ret_size)
        *ret_size = size;
    return text;
}

/* Checks that the text is refused, with one line that states the reason. */
static void refuse(const char *text, size_t size, int error)
{
    Trace *t = (Trace *)1;
    char *line = (char *)1;

    assert_int_equal(trace_from_json(text, size, &t, &line), error);
    assert_ptr_equal(t, (Trace *)1);
    assert_non_null(line);
    assert_true(line[0] && !strchr(line, '\n') && strlen(line) < 120);
    free(line);
    assert_int_equal(trace_from_json(text, size, &t, NULL), error);
}

/* Returns the text of the small trace with the first `from` replaced by `to`. */
static char *edited(const char *from, const char *to)
{
    _cleanup_trace_ Trace *t = small_trace();
    _cleanup_free_ char *text = text_of(t, NULL);
    char *at = strstr(text, from), *out;

    assert_non_null(at);
    assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    return out;
}

static void same_facts(const Trace *a, const Trace *b)
{
    assert_int_equal(a->stage, b->stage);
    assert_int_equal(a->flags, b->flags);
    assert_string_equal(a->boot_id, b->boot_id);
    assert_string_equal(a->kernel, b->kernel);
    assert_string_equal(a->distribution, b->distribution);
    assert_int_equal(a->uid, b->uid);
    assert_int_equal(a->start_realtime, b->start_realtime);
    assert_int_equal(a->start_boottime, b->start_boottime);
    assert_int_equal(a->duration, b->duration);
    assert_int_equal(a->policy, b->policy);
    assert_int_equal(a->process_source, b->process_source);
    assert_int_equal(a->n_unknown_application, b->n_unknown_application);
    assert_int_equal(a->n_unresolved, b->n_unresolved);
    assert_int_equal(a->n_own, b->n_own);
    assert_int_equal(a->n_overflows, b->n_overflows);
}

static void same_volume(const TraceVolume *a, const TraceVolume *b)
{
    assert_string_equal(a->uuid, b->uuid);
    assert_string_equal(a->fstype, b->fstype);
    assert_string_equal(a->subvolume, b->subvolume);
    assert_string_equal(a->mountpoint, b->mountpoint);
    assert_string_equal(a->device, b->device);
    assert_string_equal(a->scheduler, b->scheduler);
    assert_int_equal(a->device_class, b->device_class);
    assert_int_equal(a->rotational, b->rotational);
    assert_int_equal(a->size_bytes, b->size_bytes);
    assert_int_equal(a->metadata_source, b->metadata_source);
    assert_true(range_set_equal(&a->metadata, &b->metadata));
}

static void same_file(const TraceFile *a, const TraceFile *b)
{
    assert_int_equal(a->path, b->path);
    assert_int_equal(a->volume, b->volume);
    assert_int_equal(a->directory, b->directory);
    assert_int_equal(a->looked_up, b->looked_up);
    assert_int_equal(a->inode, b->inode);
    assert_int_equal(a->size_bytes, b->size_bytes);
    assert_int_equal(a->mtime_nsec, b->mtime_nsec);
    assert_true(range_set_equal(&a->resident, &b->resident));
}

static void same(const Trace *a, const Trace *b)
{
    same_facts(a, b);
    assert_int_equal(a->n_volumes, b->n_volumes);
    for (size_t i = 0; i < a->n_volumes; i++)
        same_volume(&a->volumes[i], &b->volumes[i]);
    assert_int_equal(a->n_paths, b->n_paths);
    for (size_t i = 0; i < a->n_paths; i++) {
        assert_int_equal(a->paths[i].parent, b->paths[i].parent);
        assert_string_equal(a->paths[i].name, b->paths[i].name);
    }
    assert_int_equal(a->n_files, b->n_files);
    for (size_t i = 0; i < a->n_files; i++)
        same_file(&a->files[i], &b->files[i]);
    assert_int_equal(a->n_applications, b->n_applications);
    for (size_t i = 0; i < a->n_applications; i++)
        assert_int_equal(a->applications[i].file, b->applications[i].file);
    assert_int_equal(a->n_lifetimes, b->n_lifetimes);
    for (size_t i = 0; i < a->n_lifetimes; i++) {
        assert_int_equal(a->lifetimes[i].application, b->lifetimes[i].application);
        assert_int_equal(a->lifetimes[i].pid, b->lifetimes[i].pid);
        assert_int_equal(a->lifetimes[i].uid, b->lifetimes[i].uid);
        assert_int_equal(a->lifetimes[i].start, b->lifetimes[i].start);
        assert_int_equal(a->lifetimes[i].end, b->lifetimes[i].end);
    }
    assert_int_equal(a->n_accesses, b->n_accesses);
    for (size_t i = 0; i < a->n_accesses; i++) {
        assert_int_equal(a->accesses[i].at, b->accesses[i].at);
        assert_int_equal(a->accesses[i].file, b->accesses[i].file);
        assert_int_equal(a->accesses[i].application, b->accesses[i].application);
        assert_int_equal(a->accesses[i].kind, b->accesses[i].kind);
    }
    assert_int_equal(a->n_touched, b->n_touched);
    for (size_t i = 0; i < a->n_touched; i++) {
        assert_int_equal(a->touched[i].application, b->touched[i].application);
        assert_int_equal(a->touched[i].file, b->touched[i].file);
        assert_true(range_set_equal(&a->touched[i].ranges, &b->touched[i].ranges));
    }
    assert_int_equal(a->n_needed, b->n_needed);
    for (size_t i = 0; i < a->n_needed; i++) {
        assert_int_equal(a->needed[i].application, b->needed[i].application);
        assert_int_equal(a->needed[i].volume, b->needed[i].volume);
        assert_true(range_set_equal(&a->needed[i].ranges, &b->needed[i].ranges));
    }
    assert_int_equal(a->timing.ready, b->timing.ready);
    assert_int_equal(a->timing.stalled, b->timing.stalled);
    assert_int_equal(a->timing.busy, b->timing.busy);
    assert_int_equal(a->timing.n_cpus, b->timing.n_cpus);
    assert_int_equal(a->n_left_out, b->n_left_out);
    for (size_t i = 0; i < a->n_left_out; i++) {
        assert_int_equal(a->left_out[i].uid, b->left_out[i].uid);
        assert_int_equal(a->left_out[i].n_events, b->left_out[i].n_events);
        assert_int_equal(a->left_out[i].n_files, b->left_out[i].n_files);
        assert_int_equal(a->left_out[i].n_cut, b->left_out[i].n_cut);
    }
}

/* Parsing and writing again gives the same text. */
static void round_trip(const Trace *t)
{
    _cleanup_free_ char *text = NULL, *again = NULL, *line = NULL;
    _cleanup_trace_ Trace *back = NULL;
    size_t size, size_again;

    text = text_of(t, &size);
    assert_int_equal(trace_from_json(text, size, &back, &line), 0);
    assert_null(line);
    same(t, back);
    assert_int_equal(trace_validate(back), 0);
    again = text_of(back, &size_again);
    assert_int_equal(size, size_again);
    assert_string_equal(text, again);
}

/* Adds what the application touched of the file: its pages 1 and 3. */
static void touch(Trace *t, uint32_t application, uint32_t file)
{
    _cleanup_range_set_ RangeSet ranges = {0};

    range_set_insert(&ranges, 4096, 4096);
    range_set_insert(&ranges, 3 * 4096, 4096);
    assert_int_equal(trace_add_touched(t, application, file, &ranges), 0);
}

static void touched_pages_come_back(void **state)
{
    _cleanup_trace_ Trace *t = small_trace();
    _cleanup_range_set_ RangeSet ranges = {0};
    _cleanup_free_ char *text = NULL;
    uint32_t file[2], n = 0;
    char *at;

    for (uint32_t i = 0; i < t->n_files && n < 2; i++)
        if (!t->files[i].directory)
            file[n++] = i;
    assert_int_equal(n, 2);
    touch(t, 0, file[1]);
    touch(t, 2, file[0]);
    touch(t, 2, file[1]);
    round_trip(t);

    range_set_insert(&ranges, 0, 4096);
    assert_int_equal(trace_add_touched(t, 2, file[1], &ranges), -EINVAL); /* does not rise */
    assert_int_equal(trace_add_touched(t, 1, file[1], &ranges), -EINVAL);
    assert_int_equal(trace_add_touched(t, 3, file[1], &ranges), -EINVAL); /* no such application */
    assert_int_equal(trace_add_touched(t, 2, (uint32_t)t->n_files, &ranges), -EINVAL);
    assert_int_equal(trace_add_touched(t, 2, file[1] + 1, &(RangeSet){0}), -EINVAL);
    assert_int_equal(ranges.n, 1);

    text = text_of(t, NULL);
    at = strstr(text, "\"application_delta\":[0,2,0]");
    assert_non_null(at);
    at[strlen("\"application_delta\":[0,")] = '0'; /* application 0 and a lower file */
    refuse(text, strlen(text), -EBADMSG);
    at[strlen("\"application_delta\":[0,")] = '3'; /* no such application */
    refuse(text, strlen(text), -EBADMSG);
}

static void looked_up_names_come_back(void **state)
{
    _cleanup_trace_ Trace *t = small_trace();
    _cleanup_free_ char *text = NULL;
    char *at;

    t->files[0].looked_up = t->files[t->n_files - 1].looked_up = true;
    round_trip(t);
    text = text_of(t, NULL);
    at = strstr(text, "\"looked_up\":{\"file_delta\":[0,");
    assert_non_null(at);
    at = strchr(at, ']');
    assert_true(at[-1] < '9');
    at[-1]++; /* no such file */
    refuse(text, strlen(text), -EBADMSG);
}

static void need(Trace *t, uint32_t application)
{
    _cleanup_range_set_ RangeSet ranges = {0};

    range_set_insert(&ranges, 8192, 4096);
    assert_int_equal(trace_add_needed(t, application, 0, &ranges), 0);
}

static void needed_metadata_comes_back(void **state)
{
    _cleanup_trace_ Trace *t = small_trace();
    _cleanup_range_set_ RangeSet ranges = {0};
    _cleanup_free_ char *text = NULL;
    char *at;

    need(t, 0);
    need(t, 2);
    round_trip(t);

    range_set_insert(&ranges, 0, 4096);
    assert_int_equal(trace_add_needed(t, 2, 0, &ranges), -EINVAL); /* does not rise */
    assert_int_equal(trace_add_needed(t, 3, 0, &ranges), -EINVAL); /* no such application */
    assert_int_equal(trace_add_needed(t, 2, (uint32_t)t->n_volumes, &ranges), -EINVAL);
    assert_int_equal(trace_add_needed(t, 2, 1, &(RangeSet){0}), -EINVAL);
    assert_int_equal(ranges.n, 1);

    text = text_of(t, NULL);
    at = strstr(text, "\"application_delta\":[0,2]");
    assert_non_null(at);
    at[strlen("\"application_delta\":[0,")] = '0'; /* the same row again */
    refuse(text, strlen(text), -EBADMSG);
    at[strlen("\"application_delta\":[0,")] = '3'; /* no such application */
    refuse(text, strlen(text), -EBADMSG);
}

static TraceTouched row(uint32_t application, uint32_t file)
{
    TraceTouched x = {.application = application, .file = file};

    assert_int_equal(range_set_insert(&x.ranges, 0, 4096), 0);
    return x;
}

static void touched_rows_are_merged_in_order(void **state)
{
    _cleanup_trace_ Trace *t = small_trace();
    uint32_t file[2], n = 0;

    for (uint32_t i = 0; i < t->n_files && n < 2; i++)
        if (!t->files[i].directory)
            file[n++] = i;
    touch(t, 0, file[1]);
    touch(t, 2, file[0]);

    TraceTouched rows[] = {
            row(0, file[0]), row(0, file[1]), row(1, file[1]), row(1, file[1]), row(2, file[1]),
    };
    const size_t kept[] = {1, 3}; /* there is such a row */

    assert_int_equal(trace_merge_touched(t, rows, 0), 0);
    assert_int_equal(trace_merge_touched(t, rows, 1), 0);
    assert_int_equal(rows[0].ranges.n, 0);
    rows[0] = row(3, file[1]);
    assert_int_equal(trace_merge_touched(t, rows, 1), -EINVAL); /* no such application */
    assert_int_equal(trace_merge_touched(t, rows, 2), -EINVAL); /* nor in order */
    assert_int_equal(rows[0].ranges.n, 1);
    range_set_done(&rows[0].ranges);
    assert_int_equal(trace_merge_touched(t, rows + 1, 4), 0);
    for (size_t i = 1; i < ELEMENTSOF(rows); i++)
        assert_int_equal(rows[i].ranges.n, i == kept[0] || i == kept[1]);
    for (size_t i = 0; i < ELEMENTSOF(kept); i++)
        range_set_done(&rows[kept[i]].ranges);
    assert_int_equal(t->n_touched, 5);
    assert_int_equal(trace_validate(t), 0);
    round_trip(t);
}

static void traces_come_back(void **state)
{
    for (uint64_t session = 0; session < 3; session++) {
        SyntheticParameters p = synthetic_login(session);
        _cleanup_trace_ Trace *t = NULL;

        assert_int_equal(synthetic_trace(&p, &t), 0);
        t->flags = 1U << session | TRACE_FSCK;
        t->policy = POLICY_GATE;
        t->n_overflows = INT64_MAX;
        t->start_realtime = INT64_MAX;
        if (session > 0) {
            assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){0, INT64_MAX, 0, 1}), 0);
            assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){TRACE_NONE, 1, 2, 3}), 0);
            t->timing = (TraceTiming){INT64_MAX, 7, 0, TRACE_CPUS_MAX};
        }
        round_trip(t);
    }
}

static void empty_traces_come_back(void **state)
{
    for (Stage s = 0; s < _STAGE_MAX; s++) {
        _cleanup_trace_ Trace *t = trace_new(s);

        round_trip(t);
    }
}

static void extreme_numbers_come_back(void **state)
{
    static const uint64_t numbers[] = {0, UINT64_MAX, 1, INT64_MAX, (uint64_t)INT64_MAX + 1};
    _cleanup_trace_ Trace *t = trace_new(STAGE_SESSION);
    TraceVolume v = {.uuid = (char *)"", .size_bytes = INT64_MAX};
    TraceAccess a = {.application = TRACE_NONE, .kind = ACCESS_READ};
    uint32_t id, path;

    assert_int_equal(range_set_insert_span(&v.metadata, 0, 1), 0);
    assert_int_equal(range_set_insert_span(&v.metadata, 2, INT64_MAX), 0);
    assert_int_equal(trace_add_volume(t, &v, &id), 0);
    range_set_done(&v.metadata);
    for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
        char name[8];

        snprintf(name, sizeof(name), "/%zu", i);
        assert_int_equal(trace_add_path(t, name, &path), 0);
        assert_int_equal(trace_add_file(t, path, i % 2 ? TRACE_NONE : 0, false, &id), 0);
        t->files[id].inode = numbers[i];
        t->files[id].mtime_nsec = (int64_t)numbers[i];
        t->files[id].size_bytes = MIN(numbers[i], (uint64_t)INT64_MAX);
        assert_int_equal(range_set_insert_span(&t->files[id].resident, numbers[i] / 3, INT64_MAX),
                         0);
    }
    t->files[2].mtime_nsec = INT64_MIN;
    a.at = TRACE_NUMBER_MAX;
    assert_int_equal(trace_add_access(t, &a), 0);
    round_trip(t);
}

/* Names are bytes. Tests every byte that a name can contain, and byte sequences that are almost
 * UTF-8. */
static void names_are_bytes(void **state)
{
    static const char *const names[] = {
            "a%41",
            "%",
            "%%00",
            "%zz",
            "100%",
            "\"quoted\"",
            "back\\sl",
            "\x7f",
            "tab\tline\n",
            "ä€😀",
            "\xc3",
            "\xc3(",
            "\xe2\x82",
            "\xf0\x9f\x98",
            "\xc0\xaf",
            "\xed\xa0\x80",
            "\xf4\x90\x80\x80",
            "\xff\xfe",
            "ä\xffö",
            "<script>",
            "\xf8\x88\x80\x80\x80",
    };
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    _cleanup_free_ char *text = NULL;
    char path[300];
    uint32_t id;

    for (int c = 1; c < 256; c++) {
        if (c == '/' || c == '.')
            continue;
        snprintf(path, sizeof(path), "/%c", c);
        assert_int_equal(trace_add_path(t, path, &id), 0);
    }
    for (size_t i = 0; i < ELEMENTSOF(names); i++) {
        snprintf(path, sizeof(path), "/d/%s", names[i]);
        assert_int_equal(trace_add_path(t, path, &id), 0);
    }
    assert_int_equal(t->n_paths, 1 + 253 + ELEMENTSOF(names)); /* "d" is one of the bytes */
    round_trip(t);

    /* JSON is UTF-8, so other bytes are escaped. "%" is always escaped. */
    text = text_of(t, NULL);
    assert_non_null(strstr(text, "\"a%2541\""));
    assert_non_null(strstr(text, "\"ä€😀\""));
    assert_non_null(strstr(text, "\"ä%FFö\""));
    assert_non_null(strstr(text, "\"%C0%AF\""));
    assert_null(strstr(text, "\xff"));
    assert_null(strstr(text, "\xc0"));
}

/* Only the whole text is a trace. No truncated text makes the reader read beyond its end. */
static void every_truncation_is_refused(void **state)
{
    _cleanup_trace_ Trace *t = small_trace();
    _cleanup_free_ char *text = NULL;
    size_t size;

    text = text_of(t, &size);
    for (size_t n = 0; n + 1 < size; n++) {
        _cleanup_free_ char *part = malloc(n + 1); /* ASan detects overruns */

        memcpy(part, text, n);
        refuse(part, n, -EBADMSG);
    }
}

/* Each bit of each byte is flipped in turn: the result is an error, or a trace that is valid and
 * can be written. */
static void every_bit_flip_is_survived(void **state)
{
    _cleanup_trace_ Trace *t = small_trace();
    _cleanup_free_ char *text = NULL;
    size_t size, accepted = 0;

    text = text_of(t, &size);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            _cleanup_trace_ Trace *got = NULL;
            _cleanup_free_ char *line = NULL;
            int r;

            text[i] = (char)(text[i] ^ (1 << bit));
            r = trace_from_json(text, size, &got, &line);
            text[i] = (char)(text[i] ^ (1 << bit));
            if (r < 0) {
                assert_non_null(line);
                assert_null(got);
                continue;
            }
            assert_int_equal(trace_validate(got), 0);
            free(text_of(got, NULL));
            accepted++;
        }
    assert_true(accepted > size); /* other numbers and names are valid, too */
}

static void what_is_not_a_trace_is_told_apart(void **state)
{
    static const struct {
        const char *text;
        int error;
    } cases[] = {
            {"", -EBADMSG},
            {" ", -EBADMSG},
            {"\n", -EBADMSG},
            {"hello", -EBADMSG},
            {"{", -EBADMSG},
            {"{}", -EMEDIUMTYPE},
            {"[]", -EMEDIUMTYPE},
            {"null", -EBADMSG},
            {"1", -EBADMSG} /* may be the beginning of a longer number */,
            {"\"headstart-trace\"", -EMEDIUMTYPE},
            {"{\"format\":\"headstart-model\",\"version\":1}", -EMEDIUMTYPE},
            {"{\"format\":1}", -EMEDIUMTYPE},
            {"{\"format\":\"headstart-trace\\u0000\",\"version\":1}", -EMEDIUMTYPE},
            {"{\"format\":\"headstart-trace\"}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-trace\",\"version\":2}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-trace\",\"version\":0}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-trace\",\"version\":-1}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-trace\",\"version\":\"1\"}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-trace\",\"version\":1.0}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-trace\",\"version\":1}", -EBADMSG},
            {"{\"format\":\"headstart-trace\",\"version\":1,\"stage\":\"sleep\"}", -EBADMSG},
            {"{\"format\":\"headstart-trace\",\"version\":1} x", -EBADMSG},
            {"// a comment\n{}", -EBADMSG},
            {"{'format':'headstart-trace'}", -EBADMSG},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        print_message("# %s\n", cases[i].text);
        refuse(cases[i].text, strlen(cases[i].text), cases[i].error);
    }
    refuse("\0{}", 3, -EBADMSG);
}

static void too_deep_is_refused(void **state)
{
    static char deep[200001];

    memset(deep, '[', 100000);
    memset(deep + 100000, ']', 100000);
    refuse(deep, 200000, -EBADMSG);
    memset(deep, '[', 200000);
    refuse(deep, 200000, -EBADMSG);
}

static void wrong_members_are_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
            {"\"flags\":[\"exact\"", "\"flags\":[\"sharp\""},
            {"\"flags\":[", "\"flags\":[1,"},
            {"\"uid\":1000", "\"uid\":-2"},
            {"\"uid\":1000", "\"uid\":4294967295"},
            {"\"uid\":1000", "\"uid\":null"},
            {"\"uid\":1000", "\"uid\":1e3"},
            {"\"uid\":1000", "\"uid\":NaN"},
            {"\"duration_usec\":", "\"duration_usec\":-"},
            {"\"duration_usec\":", "\"duration_usec\":99999999999999999999"},
            {"\"duration_usec\":", "\"duration_msec\":"},
            {"\"policy\":\"off\"", "\"policy\":\"on\""},
            {"\"process_source\":\"connector\"", "\"process_source\":\"\""},
            {"\"boot_id\":\"0", "\"boot_id\":\"%0g"},
            {"\"boot_id\":\"0", "\"boot_id\":\"%00"},
            {"\"boot_id\":\"0", "\"boot_id\":\"%"},
            {"\"rotational\":true", "\"rotational\":1"},
            {"\"device_class\":\"hdd\"", "\"device_class\":\"tape\""},
            {"\"metadata\":[", "\"metadata\":[0,"},
            {"\"metadata\":[", "\"metadata\":[0,0,"},
            {"\"metadata\":[", "\"metadata\":[-4,4,"},
            {"\"metadata\":[", "\"metadata\":[\"4\",4,"},
            {"\"metadata\":[", "\"metadata\":[18446744073709551615,1,"},
            {"\"volumes\":[{", "\"volumes\":[1,{"},
            {"\"parent\":[0,0", "\"parent\":[0,1"},
            {"\"parent\":[0,0", "\"parent\":[0"},
            {"\"parent\":[0,0", "\"parent\":[0,-1"},
            {"\"name\":[\"\",\"usr\"", "\"name\":[\"\",\"\""},
            {"\"name\":[\"\",\"usr\"", "\"name\":[\"\",\"..\""},
            {"\"name\":[\"\",\"usr\"", "\"name\":[\"\",\"a/b\""},
            {"\"name\":[\"\",\"usr\"", "\"name\":[\"\",\"a\\u0000b\""},
            {"\"name\":[\"\",\"usr\"", "\"name\":[\"\",\"%2F\""},
            {"\"name\":[\"\",\"usr\"", "\"name\":[\"\",7"},
            {"\"path_delta\":[", "\"path_delta\":[-"},
            {"\"path_delta\":[", "\"path_delta\":[0,"},
            {"\"path_delta\":[", "\"path_delta\":[9223372036854775807,9223372036854775807,"},
            {"\"volume\":[0", "\"volume\":[1"},
            {"\"volume\":[0", "\"volume\":[-2"},
            {"\"directory\":[0", "\"directory\":[2"},
            {"\"directory\":[0", "\"directory\":[1"}, /* a directory has no resident ranges */
            {"\"size_bytes\":[", "\"size_bytes\":[-"},
            {"\"resident\":[[", "\"resident\":[[[],"},
            {"\"resident\":[[", "\"resident\":[[1,"},
            {"\"applications\":[0", "\"applications\":[4000000000"},
            {"\"applications\":[0", "\"applications\":[-1"},
            {"\"application\":[0", "\"application\":[3"},
            {"\"end_usec\":[", "\"end_usec\":[-"},
            {"\"at_usec_delta\":[", "\"at_usec_delta\":[-"},
            {"\"at_usec_delta\":[", "\"at_usec_delta\":[9223372036854775807,1,"},
            {"\"file_delta\":[0", "\"file_delta\":[-1"},
            {"\"file_delta\":[0", "\"file_delta\":[9999"},
            {"\"kind\":[1", "\"kind\":[4"},
            {"\"kind\":[1", "\"kind\":[1.5"},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        _cleanup_free_ char *text = edited(cases[i].from, cases[i].to);

        print_message("# %s -> %s\n", cases[i].from, cases[i].to);
        refuse(text, strlen(text), -EBADMSG);
    }
}

/* The member "left_out" is optional, but must be valid if it exists. */
static void left_out_is_checked(void **state)
{
    static const char *const wrong[] = {
            "[]",
            "{\"uid\":[1],\"n_events\":[1],\"n_files\":[1]}",
            "{\"uid\":[1],\"n_events\":[1],\"n_files\":[1],\"n_cut\":[]}",
            "{\"uid\":[2,1],\"n_events\":[1,1],\"n_files\":[1,1],\"n_cut\":[1,1]}",
            "{\"uid\":[-1,1],\"n_events\":[1,1],\"n_files\":[1,1],\"n_cut\":[1,1]}",
            "{\"uid\":[-2],\"n_events\":[1],\"n_files\":[1],\"n_cut\":[1]}",
            "{\"uid\":[1],\"n_events\":[-1],\"n_files\":[1],\"n_cut\":[1]}",
    };

    for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
        _cleanup_free_ char *member = NULL, *text = NULL;

        assert_true(asprintf(&member, "\"left_out\":%s,\"stage\":", wrong[i]) > 0);
        text = edited("\"stage\":", member);
        refuse(text, strlen(text), -EBADMSG);
    }
}

/* Samples and the time of the replay are written and read. Falling totals and too many samples are
 * refused. */
static void samples_are_checked(void **state)
{
    _cleanup_trace_ Trace *t = small_trace(), *u = NULL;
    _cleanup_free_ char *text = NULL, *falling = NULL, *replay = NULL;
    size_t size;

    for (unsigned i = 1; i <= TRACE_SAMPLES_MAX; i++)
        assert_int_equal(trace_add_sample(t, &(TraceSample){i * 100000, i * 7, i * i}), 0);
    assert_int_equal(trace_add_sample(t, &(TraceSample){1U << 30, 1U << 30, 1U << 30}), -E2BIG);
    t->replay = (TraceReplay){.known = true, .start = 5, .end = 500000};
    text = text_of(t, &size);
    assert_int_equal(trace_from_json(text, size, &u, NULL), 0);
    assert_int_equal(u->n_samples, TRACE_SAMPLES_MAX);
    assert_memory_equal(u->samples, t->samples, sizeof(TraceSample) * TRACE_SAMPLES_MAX);
    assert_true(u->replay.known);
    assert_int_equal(u->replay.start, 5);
    assert_int_equal(u->replay.end, 500000);

    t->n_samples = 1;
    assert_int_equal(trace_add_sample(t, &(TraceSample){100000, 7, 1}), -EINVAL);
    assert_int_equal(trace_add_sample(t, &(TraceSample){100001, 6, 1}), -EINVAL);
    assert_int_equal(trace_add_sample(t, &(TraceSample){100001, 7, 0}), -EINVAL);

    falling = edited("\"paths\":", "\"samples\":{\"at_usec_delta\":[0],\"busy_usec_delta\":[0],"
                                   "\"stalled_usec_delta\":[0]},\"paths\":");
    refuse(falling, strlen(falling), -EBADMSG);
    replay = edited("\"paths\":", "\"replay\":{\"start_usec\":2,\"end_usec\":1},\"paths\":");
    refuse(replay, strlen(replay), -EBADMSG);
}

static void timing_is_checked(void **state)
{
    static const char *const wrong[] = {
            "[]",
            "{\"ready_usec\":1,\"stalled_usec\":1,\"busy_usec\":1}",
            "{\"ready_usec\":-1,\"stalled_usec\":1,\"busy_usec\":1,\"n_cpus\":1}",
            "{\"ready_usec\":1,\"stalled_usec\":1.5,\"busy_usec\":1,\"n_cpus\":1}",
            "{\"ready_usec\":1,\"stalled_usec\":2,\"busy_usec\":1,\"n_cpus\":1}",
            "{\"ready_usec\":1,\"stalled_usec\":1,\"busy_usec\":1,\"n_cpus\":65537}",
    };

    for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
        _cleanup_free_ char *member = NULL, *text = NULL;

        assert_true(asprintf(&member, "\"timing\":%s,\"stage\":", wrong[i]) > 0);
        text = edited("\"stage\":", member);
        refuse(text, strlen(text), -EBADMSG);
    }
}

static void what_stands_beside_is_ignored(void **state)
{
    _cleanup_free_ char *text = edited("\"stage\":", "\"of_a_later_version\":[{}],\n\"stage\":");
    _cleanup_free_ char *blank = NULL, *after = NULL;
    _cleanup_trace_ Trace *t = NULL;

    assert_int_equal(trace_from_json(text, strlen(text), &t, NULL), 0);
    t = trace_free(t);
    assert_true(asprintf(&blank, "%s \r\n\t ", text) > 0);
    assert_int_equal(trace_from_json(blank, strlen(blank), &t, NULL), 0);
    t = trace_free(t);
    assert_true(asprintf(&after, "%s{}", text) > 0);
    refuse(after, strlen(after), -EBADMSG);
}

/* A file with one range more than TRACE_RANGES_MAX is refused; a file with exactly that many is
 * read. */
static void too_many_ranges_are_refused(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    _cleanup_free_ char *text = NULL;
    uint32_t id, file;
    size_t size;

    assert_int_equal(trace_add_path(t, "/a", &id), 0);
    assert_int_equal(trace_add_file(t, id, TRACE_NONE, false, &file), 0);
    for (uint64_t k = 0; k <= TRACE_RANGES_MAX; k++)
        assert_int_equal(range_set_insert_span(&t->files[file].resident, 2 * k, 2 * k + 1), 0);
    assert_int_equal(trace_to_json(t, &text, &size), 0);
    refuse(text, size, -EBADMSG);
    t->files[file].resident.n--;
    free(TAKE_PTR(text));
    assert_int_equal(trace_to_json(t, &text, &size), 0);
    t = trace_free(t);
    assert_int_equal(trace_from_json(text, size, &t, NULL), 0);
}

static void a_read_trace_is_not_built_on(void **state)
{
    _cleanup_free_ char *text = edited("x", "x");
    _cleanup_trace_ Trace *t = NULL;
    uint32_t id;

    assert_int_equal(trace_from_json(text, strlen(text), &t, NULL), 0);
    free(t->index);
    t->index = NULL;
    assert_int_equal(trace_add_path(t, "/a", &id), -EINVAL);
    assert_int_equal(trace_add_file(t, 0, TRACE_NONE, false, &id), -EINVAL);
    assert_int_equal(trace_add_application(t, 0, &id), -EINVAL);
}

/* The text of a trace with 20,000 accesses is smaller than 1.5 MB. */
static void twenty_thousand_accesses_stay_small(void **state)
{
    SyntheticParameters p = synthetic_login(0);
    _cleanup_trace_ Trace *t = NULL;
    size_t size;

    p.n_files = 16000;
    p.n_accesses = 21500;
    assert_int_equal(synthetic_trace(&p, &t), 0);
    assert_true(t->n_accesses >= 20000 && t->n_files >= 15000);
    free(text_of(t, &size));
    assert_true(size < 1500000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(traces_come_back),
            cmocka_unit_test(touched_pages_come_back),
            cmocka_unit_test(looked_up_names_come_back),
            cmocka_unit_test(needed_metadata_comes_back),
            cmocka_unit_test(touched_rows_are_merged_in_order),
            cmocka_unit_test(empty_traces_come_back),
            cmocka_unit_test(extreme_numbers_come_back),
            cmocka_unit_test(names_are_bytes),
            cmocka_unit_test(every_truncation_is_refused),
            cmocka_unit_test(every_bit_flip_is_survived),
            cmocka_unit_test(what_is_not_a_trace_is_told_apart),
            cmocka_unit_test(too_deep_is_refused),
            cmocka_unit_test(wrong_members_are_refused),
            cmocka_unit_test(left_out_is_checked),
            cmocka_unit_test(timing_is_checked),
            cmocka_unit_test(samples_are_checked),
            cmocka_unit_test(what_stands_beside_is_ignored),
            cmocka_unit_test(too_many_ranges_are_refused),
            cmocka_unit_test(a_read_trace_is_not_built_on),
            cmocka_unit_test(twenty_thousand_accesses_stay_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
