/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/model-util.h"

#include "util/synthetic.h"

#include <malloc.h>
#include <sys/resource.h>

/* Makes a model with everything that a model can contain: two generations, users, directories,
 * unknown values, assumptions, chains. */
static Model *rich_model(void)
{
    Model *m = model_new(H);
    UserHistory *w;
    Trace *launch;
    uint32_t a, b;

    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-4 A>d/ ?>z B>x=0-4", "1-3,7-9"));
    learn_late(&m, session(STAGE_BOOT, UID_INVALID, T0 + DECAYED_SUM_SPAN * H, 0,
                           "A>x=2-6 C>\xc3\xa4\xff%=1-2", "2-4"));
    learn(&m, session(STAGE_LOGIN, 0, T0 + DECAYED_SUM_SPAN * H, TRACE_REPLAYED,
                      "A>new=0-1,3-5 A>d/", NULL));
    learn(&m, session(STAGE_LOGIN, 1000, T0 + DECAYED_SUM_SPAN * H + 1, TRACE_RESIDENCY_OFF, "D>y",
                      "1-2"));
    learn(&m, session(STAGE_LOGIN, 2000, T0 + DECAYED_SUM_SPAN * H + 1, TRACE_EXACT,
                      "D>y=1-2 A>x=0-1", NULL));
    launch = session(STAGE_SESSION, 1000, T0 + DECAYED_SUM_SPAN * H + 2, 0, "A>x A>y=0-3", NULL);
    touch(launch, "1-2,4-6");
    learn(&m, launch);
    assert_int_equal(chains_new(H, 600 * USEC_PER_SEC, &m->chains), 0);
    assert_int_equal(chains_add_name(m->chains, "/bin/A", &a), 0);
    assert_int_equal(chains_add_name(m->chains, "/bin/B", &b), 0);
    assert_int_equal(chains_history(m->chains, UID_INVALID, &w), 0);
    for (unsigned i = 0; i < 3; i++) {
        chains_set_time(m->chains,
                        (EventTime){(1 + i * 100) * USEC_PER_SEC, T0 + i * 100 * USEC_PER_SEC});
        assert_int_equal(chains_begin(m->chains, w->user), 0);
        assert_int_equal(chains_start(m->chains, a), 1);
        assert_int_equal(chains_start(m->chains, b), 1);
        chains_end(m->chains);
    }
    return m;
}

static Model *read_back(const char *text)
{
    _cleanup_free_ char *line = NULL;
    Model *m = NULL;

    assert_int_equal(model_from_json(text, strlen(text), &m, &line), 0);
    assert_null(line);
    return m;
}

static void refuse(const char *text, size_t size, int error)
{
    Model *m = (Model *)1;
    char *line = (char *)1;

    assert_int_equal(model_from_json(text, size, &m, &line), error);
    assert_ptr_equal(m, (Model *)1);
    assert_non_null(line);
    assert_true(line[0] && !strchr(line, '\n') && strlen(line) < 120);
    free(line);
    assert_int_equal(model_from_json(text, size, &m, NULL), error);
}

static char *edited(const char *from, const char *to)
{
    _cleanup_model_ Model *m = rich_model();
    _cleanup_free_ char *text = bytes_of(m);
    size_t before = 0, after;
    char *out;

    while (strncmp(text + before, from, strlen(from)) != 0)
        assert_true(text[++before]);
    after = before + strlen(from);
    out = malloc(strlen(text) + strlen(to) + 1);
    memcpy(out, text, before);
    strcpy(out + before, to);
    strcat(out, text + after);
    return out;
}

static void same_prediction(const Model *a, const Model *b, Stage stage)
{
    _cleanup_prediction_ Prediction *p = predict(a, stage, UID_INVALID),
                                    *q = predict(b, stage, UID_INVALID);

    assert_int_equal(p->n_files, q->n_files);
    assert_int_equal(p->n_metadata, q->n_metadata);
    assert_int_equal(p->horizon, q->horizon);
    for (size_t i = 0; i < p->n_files; i++) {
        const PredictedFile *f = &p->files[i], *g = &q->files[i];

        assert_string_equal(f->path, g->path);
        assert_int_equal(f->directory, g->directory);
        assert_int_equal(f->first_use, g->first_use);
        assert_int_equal(f->n_maps, g->n_maps);
        assert_memory_equal(&f->probability, &g->probability, sizeof(double));
        if (f->n_maps > 0)
            assert_memory_equal(f->maps, g->maps, f->n_maps * sizeof(PredictedRange));
    }
    for (size_t i = 0; i < p->n_metadata; i++)
        assert_memory_equal(&p->metadata[i].range.probability, &q->metadata[i].range.probability,
                            sizeof(double));
}

static void models_come_back(void **state)
{
    _cleanup_model_ Model *m = rich_model(), *back = NULL;
    _cleanup_free_ char *text = bytes_of(m), *again = NULL;

    back = read_back(text);
    again = bytes_of(back);
    assert_string_equal(text, again);
    assert_int_equal(back->clock, m->clock);
    assert_int_equal(back->generation, m->generation);
    assert_int_equal(back->n_learned, 6);
    assert_int_equal(back->n_stages, 5);
    assert_non_null(back->chains);
    same_prediction(m, back, STAGE_BOOT);
    same_prediction(m, back, STAGE_LOGIN);
}

static void empty_models_come_back(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *back = NULL;
    _cleanup_free_ char *text = bytes_of(m);

    back = read_back(text);
    assert_same(m, back);
    assert_null(back->chains);
    assert_int_equal(back->n_files, 0);
}

/* A model that was saved and loaded learns like the original. */
static void learning_goes_on_after_loading(void **state)
{
    _cleanup_model_ Model *kept = model_new(H), *stored = model_new(H);

    for (unsigned i = 0; i < 12; i++) {
        SyntheticParameters p = synthetic_login(i);
        _cleanup_trace_ Trace *t = NULL;
        _cleanup_free_ char *text = NULL;

        p.n_files = 300;
        p.n_applications = 12;
        p.n_accesses = 700;
        p.start_realtime += i * 3 * H;
        p.flags = i % 3 ? TRACE_REPLAYED : 0;
        assert_int_equal(synthetic_trace(&p, &t), 0);
        assert_int_equal(model_learn(&kept, t, p.start_realtime), 0);
        assert_int_equal(model_learn(&stored, t, p.start_realtime), 0);
        text = bytes_of(stored);
        model_free(stored);
        stored = read_back(text);
        assert_int_equal(model_learn(&stored, t, p.start_realtime), -EALREADY);
        assert_same(kept, stored);
    }
}

static void extreme_sums_come_back(void **state)
{
    _cleanup_model_ Model *m = rich_model(), *back = NULL;

    m->stages[0].sessions = (DecayedSum){DECAYED_SUM_MAX, DECAYED_SUM_MAX};
    m->stages[0].duration = (DecayedSum){DECAYED_SUM_MAX, DECAYED_SUM_MAX};
    m->stages[0].autologins = (DecayedSum){DECAYED_SUM_MAX, 5};
    m->stages[0].late = (DecayedSum){7, DECAYED_SUM_MAX};
    m->stages[0].timing = (ModelTiming){{1, 2}, {DECAYED_SUM_MAX, 3}, {4, DECAYED_SUM_MAX}};
    m->stages[0].applications[0].active = (DecayedSum){DECAYED_SUM_MAX, DECAYED_SUM_MAX};
    m->stages[0].files[0].first_use = (DecayedSum){DECAYED_SUM_MAX, DECAYED_SUM_MAX};
    m->clock = INT64_MAX;
    m->generation = decayed_sum_generation(m->clock, H);
    {
        _cleanup_free_ char *text = bytes_of(m);

        back = read_back(text);
        assert_same(m, back);
    }
}

static void every_truncation_is_refused(void **state)
{
    _cleanup_model_ Model *m = rich_model();
    _cleanup_free_ char *text = bytes_of(m);
    size_t size = strlen(text);

    for (size_t n = 0; n + 1 < size; n++) {
        _cleanup_free_ char *part = malloc(n + 1); /* ASan detects overruns */

        memcpy(part, text, n);
        refuse(part, n, -EBADMSG);
    }
}

/* Predicts with the model, merges, writes and reads it, sets its clock back, and prunes it. */
static void use(Model *m)
{
    _cleanup_model_ Model *fine = model_of(
                                  session(STAGE_BOOT, UID_INVALID, T0 + H, 0, "A>x=0-9", "1-5")),
                          *sum = NULL, *back = NULL;
    _cleanup_free_ char *text = NULL;
    size_t size;

    for (Stage s = 0; s < _STAGE_MAX; s++) {
        _cleanup_prediction_ Prediction *p = predict(m, s, UID_INVALID);

        for (size_t i = 0; i < p->n_files; i++) {
            assert_true(p->files[i].probability >= 0 && p->files[i].probability <= 1);
            assert_true(p->files[i].path[0] == '/');
            for (size_t k = 0; k < p->files[i].n_maps; k++)
                assert_true(p->files[i].maps[k].probability >= 0 &&
                            p->files[i].maps[k].probability <= 1);
        }
        for (size_t i = 0; i < p->n_metadata; i++)
            assert_true(p->metadata[i].range.probability >= 0 &&
                        p->metadata[i].range.probability <= 1);
    }
    if (m->halflife_usec == fine->halflife_usec) {
        assert_int_equal(model_merge(m, fine, &sum), 0);
        text = bytes_of(sum);
        assert_int_equal(model_from_json(text, strlen(text), &back, NULL), 0);
        assert_same(sum, back);
    }
    free(TAKE_PTR(text));
    assert_int_equal(model_to_json(m, &text, &size), 0);
    back = model_free(back);
    assert_int_equal(model_from_json(text, size, &back, NULL), 0);
    assert_int_equal(model_settle_clock(&back, MODEL_CLOCK_MIN), 0);
    assert_int_equal(model_prune(&back, 0.5), 0);
}

/* Each bit of each byte is flipped in turn: the result is an error, or a model on which the
 * operations of use() work. */
static void every_bit_flip_is_survived(void **state)
{
    _cleanup_model_ Model *m = rich_model();
    _cleanup_free_ char *text = bytes_of(m);
    size_t size = strlen(text), accepted = 0;
    /* An emulator is a hundred times slower: tests/cross flips one bit of each byte. */
    int step = getenv("HEADSTART_TEST_EMULATED") ? 8 : 1;

    for (size_t i = 0; i < size; i++)
        for (int bit = (int)(i % (size_t)step); bit < 8; bit += step) {
            _cleanup_free_ char *line = NULL;
            _cleanup_model_ Model *got = NULL;
            int r;

            text[i] = (char)(text[i] ^ (1 << bit));
            r = model_from_json(text, size, &got, &line);
            text[i] = (char)(text[i] ^ (1 << bit));
            if (r < 0) {
                assert_non_null(line);
                assert_null(got);
                continue;
            }
            use(got);
            accepted++;
        }
    assert_true(accepted > (size_t)(500 / step));
}

static void what_is_not_a_model_is_told_apart(void **state)
{
    static const struct {
        const char *text;
        int error;
    } cases[] = {
            {"", -EBADMSG},
            {"hello", -EBADMSG},
            {"{}", -EMEDIUMTYPE},
            {"[]", -EMEDIUMTYPE},
            {"{\"format\":\"headstart-trace\",\"version\":1}", -EMEDIUMTYPE},
            {"{\"format\":\"headstart-model\"}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-model\",\"version\":5}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-model\",\"version\":0}", -EPROTONOSUPPORT},
            {"{\"format\":\"headstart-model\",\"version\":1}", -EBADMSG},
            {"{\"format\":\"headstart-model\",\"version\":2}", -EBADMSG},
            {"{\"format\":\"headstart-model\",\"version\":3}", -EBADMSG},
            {"{\"format\":\"headstart-model\",\"version\":4}", -EBADMSG},
            {"{\"format\":\"headstart-model\",\"version\":4,\"halflife_usec\":0}", -EBADMSG},
            {"{\"format\":\"headstart-model\",\"version\":4,\"halflife_usec\":1,", -EBADMSG},
    };
    static char deep[100001];

    for (size_t i = 0; i < ELEMENTSOF(cases); i++)
        refuse(cases[i].text, strlen(cases[i].text), cases[i].error);
    memset(deep, '[', sizeof(deep) - 1);
    refuse(deep, sizeof(deep) - 1, -EBADMSG);
}

static void wrong_members_are_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
            {"\"halflife_usec\":", "\"halflife_usec\":-"},
            {"\"halflife_usec\":", "\"halflife_usec\":99"},
            {"\"halflife_usec\":604800000000",
             "\"halflife_usec\":604800000001"}, /* not the chains' one */
            {"\"clock_usec\":", "\"clock_usec\":-"},
            {"\"clock_usec\":", "\"clock_usec\":99999999999"},
            {"\"clock_usec\":", "\"clock_usec\":NaN,\"x\":"},
            {"\"clock_usec\":", "\"clock_usec\":1,\"x\":"}, /* earlier than the learned sessions */
            {"\"learned\":[[", "\"learned\":[[-1,1,1],["},
            {"\"learned\":[[", "\"learned\":[[1,1],["},
            {"\"learned\":[[", "\"learned\":[1,["},
            {"\"learned\":[[", "\"learned\":[[1848268800000001,1,1],["},
            {"\"current\":[0", "\"current\":[1"},
            {"\"current\":[0", "\"current\":[-1"},
            {"\"current\":[0,0", "\"current\":[0,256"}, /* out of order */
            {"\"current\":[0", "\"current\":[0,1.5"},
            {"\"current\":[0", "\"current\":[0,Infinity"},
            {"\"current\":[0", "\"current\":[0,null"},
            {"\"current\":[0", "\"current\":["},
            {"\"previous\":[0", "\"previous\":[0,0"},
            {"\"directory\":[0", "\"directory\":[99"},
            {"\"directory\":[0", "\"directory\":[-1"},
            {"\"shared\":[0", "\"shared\":[1"},
            {"\"shared\":[0", "\"shared\":[0,99"},
            {"\"rest\":[\"/bin/A\"", "\"rest\":[\"bin/A\""},
            {"\"rest\":[\"/bin/A\"", "\"rest\":[\"/bin/../A\""},
            {"\"rest\":[\"/bin/A\"", "\"rest\":[\"/bin//A\""},
            {"\"rest\":[\"/bin/A\"", "\"rest\":[\"/bin/A/\""},
            {"\"rest\":[\"/bin/A\"", "\"rest\":[\"/bin/C\""}, /* "B" comes after */
            {"\"rest\":[\"/bin/A\"", "\"rest\":[\"/bin/A%\""},
            {"\"rest\":[\"/bin/A\"", "\"rest\":[\"/bin/A\\u0000\""},
            {"\"rest\":[\"/bin/A\"", "\"rest\":[7"},
            {"\"rest\":[\"/bin/A\",\"B\"", "\"rest\":[\"/bin/A\",\"A\""}, /* twice */
            {"\"stage\":\"boot\"", "\"stage\":\"login\""},
            {"\"stage\":\"boot\"", "\"stage\":\"noon\""},
            {"\"stage\":\"boot\",\n\"uid\":-1", "\"stage\":\"boot\",\n\"uid\":-2"},
            {"\"sessions\":", "\"sessions\":99"},
            {"\"sessions\":", "\"sessions\":0,\"x\":"},
            {"\"sessions\":", "\"sessions\":1,\"x\":"}, /* less than its parts */
            {"\"duration_msec\":[", "\"duration_msec\":[-"},
            {"\"duration_msec\":[", "\"duration_msec\":[0,0,"},
            {"\"duration_msec\":[", "\"duration_msec\":[],\"x\":["},
            {"\"duration_msec\":", "\"timing\":[1,0,1,0,1],\"duration_msec\":"},
            {"\"duration_msec\":", "\"timing\":[1,0,1,0,1,0,0],\"duration_msec\":"},
            {"\"duration_msec\":", "\"timing\":[0,0,1,0,1,0],\"duration_msec\":"},
            {"\"duration_msec\":", "\"timing\":[1,0,-1,0,1,0],\"duration_msec\":"},
            {"\"duration_msec\":", "\"timing\":{},\"duration_msec\":"},
            {"\"duration_msec\":", "\"autologins\":[1],\"duration_msec\":"},
            {"\"duration_msec\":", "\"autologins\":[9223372036854775807,0],\"duration_msec\":"},
            {"\"duration_msec\":", "\"late\":[-1,0],\"duration_msec\":"},
            {"\"duration_msec\":", "\"autologins\":7,\"duration_msec\":"},
            {"\"applications\":{\"file\":[0", "\"applications\":{\"file\":[99"},
            {"\"applications\":{\"file\":[0", "\"applications\":{\"file\":[-1"},
            {"\"applications\":{\"file\":[0", "\"applications\":{\"file\":[-2"},
            {"\"applications\":{\"file\":[0,1", "\"applications\":{\"file\":[1,1"},
            {"\"applications\":{\"file\":[0", "\"applications\":{\"file\":[0,0"},
            {"\"active\":[3", "\"active\":[3,3"},
            {"\"active\":[3", "\"active\":[0"},
            {"\"active\":[3", "\"active\":[99"},
            {"\"uses_delta\":[[4,2", "\"uses_delta\":[[4,2,1"},
            {"\"uses_delta\":[[4,2", "\"uses_delta\":[[4,99"},
            {"\"uses_delta\":[[4,2", "\"uses_delta\":[[4,-1"},
            {"\"uses_delta\":[[4,2", "\"uses_delta\":[[4,0"},
            {"\"uses_delta\":[[", "\"uses_delta\":[1,["},
            {"\"uses_delta\":[[", "\"uses_delta\":[[],["},
            {"\"used\":[[1,3]", "\"used\":[[0,3]"},
            {"\"used\":[[1,3],[1]", "\"used\":[[1,3],[2]"}, /* more than its application */
            {"\"used\":[[", "\"used\":[[],["},
            {"\"file_delta\":[4,2,", "\"file_delta\":[4,"},
            {"\"file_delta\":[4,2,", "\"file_delta\":[4,0,"},
            {"\"file_delta\":[4,2,", "\"file_delta\":[4,99,"},
            {"\"used\":[1,3,1,2]", "\"used\":[0,3,1,2]"},
            {"\"observed\":[0,", "\"observed\":[99,"},
            {"\"observed\":[0,", "\"observed\":[3,"},   /* more than it was used */
            {"\"observed\":[0,3", "\"observed\":[0,1"}, /* less than its ranges */
            {"\"first_use_msec\":[0", "\"first_use_msec\":[-1"},
            {"\"first_use_msec\":[0", "\"first_use_msec\":[1e9"},
            {"\"first_use_msec\":[0", "\"first_use_msec\":[9223372036854775808"},
            {"\"resident\":[[],[0,8192,1", "\"resident\":[[],[0,8192"},
            {"\"resident\":[[],[0,8192,1", "\"resident\":[[],[0,8192,0"},
            {"\"resident\":[[],[0,8192,1", "\"resident\":[[],[0,0,1"},
            {"\"resident\":[[],[0,8192,1",
             "\"resident\":[[],[0,8192,3"}, /* equal to its neighbour */
            {"\"resident\":[[],[0,8192,1", "\"resident\":[[],[9223372036854775807,1,1"},
            {"\"resident\":[[],[0,8192,1", "\"resident\":[[],[0,-8192,1"},
            {"\"resident\":[[", "\"resident\":[[],["},
            {"\"assumed\":[[", "\"assumed\":[[0,1],["},
            {"\"assumed\":[[", "\"assumed\":[[99,1,[]],["},
            {"\"assumed\":[[", "\"assumed\":[[1,0,[]],["},
            {"\"assumed\":[[", "\"assumed\":[1,["},
            {"\"exact\":[[", "\"exact\":[[0,1],["},
            {"\"exact\":[[", "\"exact\":[[99,1,[]],["},
            {"\"exact\":[[", "\"exact\":[[1,0,[]],["},
            {"\"exact\":[[", "\"exact\":[1,["},
            {"\"metadata\":[{", "\"metadata\":[1,{"},
            {"\"metadata\":[{\"uuid\":\"", "\"metadata\":[{\"uuid\":\"%zz"},
            {"\"metadata\":[{\"uuid\":\"", "\"metadata\":[{\"ouid\":\""},
            {"\"observed\":3,\n\"ranges\"", "\"observed\":0,\n\"ranges\""},
            {"\"observed\":3,\n\"ranges\"", "\"observed\":1,\n\"ranges\""},
            {"\"ranges\":[", "\"ranges\":[0,"},
            {"\"ranges\":[", "\"ranges\":[0,0,1,"},
            {"\"chains\":{", "\"chains\":[1],\"x\":{"},
            {"\"chains\":{", "\"chains\":null,\"x\":{"},
            {"\"chains\":{", "\"chains\":{},\"x\":{"},
            {"\"type\":\"headstart-chains\",\"version\":4",
             "\"type\":\"headstart-chains\",\"version\":7"},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        _cleanup_free_ char *text = edited(cases[i].from, cases[i].to);

        print_message("# %s -> %s\n", cases[i].from, cases[i].to);
        refuse(text, strlen(text), -EBADMSG);
    }
}

static void files_that_were_looked_up_come_back(void **state)
{
    /* Two files: one that was opened, and one that was looked up. */
    static const char column[] = "\"looked_up\":[0,1]";
    static const char *const bad_columns[] = {"\"looked_up\":[0,99]",  "\"looked_up\":[1]",
                                              "\"looked_up\":[0,1,0]", "\"looked_up\":[0,-1]",
                                              "\"looked_up\":[0,1.5]", "\"looked_up\":7"};
    _cleanup_model_ Model *m = model_new(H), *copy = NULL;
    _cleanup_free_ char *text = NULL, *again = NULL;
    Trace *t = session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-4", NULL);
    uint32_t path, file;
    size_t before = 0;

    assert_int_equal(trace_add_path(t, "/f/y", &path), 0);
    assert_int_equal(trace_add_file(t, path, 0, false, &file), 0);
    t->files[file].looked_up = true;
    learn(&m, t);
    text = bytes_of(m);
    copy = read_back(text);
    again = bytes_of(copy);
    assert_string_equal(text, again);
    same_prediction(m, copy, STAGE_BOOT);
    while (strncmp(text + before, column, strlen(column)) != 0)
        assert_true(text[before++]);
    for (size_t i = 0; i < ELEMENTSOF(bad_columns); i++) {
        _cleanup_free_ char *bad = NULL;

        assert_true(asprintf(&bad, "%.*s%s%s", (int)before, text, bad_columns[i],
                             text + before + strlen(column)) > 0);
        refuse(bad, strlen(bad), -EBADMSG);
    }
}

static void what_stands_beside_is_ignored(void **state)
{
    _cleanup_free_ char *text = edited("\"stages\":", "\"of_a_later_version\":[{}],\n\"stages\":");
    _cleanup_model_ Model *m = read_back(text), *rich = rich_model();

    m->n_learned = rich->n_learned = 0; /* every session has another boot ID */
    assert_same(m, rich);
}

/* 16 traces of a desktop login make a small model. */
static void sixteen_logins_stay_small(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_free_ char *text = NULL;

    for (unsigned i = 0; i < 16; i++) {
        SyntheticParameters p = synthetic_login(i);
        _cleanup_trace_ Trace *t = NULL;

        assert_int_equal(synthetic_trace(&p, &t), 0);
        assert_int_equal(model_learn(&m, t, p.start_realtime), 0);
    }
    assert_true(m->n_files > 8000);
    text = bytes_of(m);
    assert_true(strlen(text) < 2000000);
}

static void append(char **text, size_t *n, size_t *allocated, const char *s)
{
    size_t l = strlen(s);

    assert_int_equal(grow_array(text, allocated, *n + l + 1, 1), 0);
    memcpy(*text + *n, s, l + 1);
    *n += l;
}

/* Returns the text of a model with n_histories histories of n_applications applications. Each
 * application has a chain with each of the n_next applications after it. */
static char *text_of_habits(unsigned n_applications, unsigned n_next, unsigned n_histories)
{
    _cleanup_model_ Model *m = model_new(H);
    char *text = bytes_of(m), part[160];
    size_t n = strlen(text), allocated = n + 1;

    n -= strlen("\n}\n");
    snprintf(part, sizeof(part),
             ",\n\"chains\":{\"type\":\"headstart-chains\",\"version\":4,\"halflife_usec\":%llu,"
             "\"window_usec\":1,\"generation\":9,\"revision\":0",
             (unsigned long long)H);
    append(&text, &n, &allocated, part);
    append(&text, &n, &allocated, ",\"names\":[");
    for (unsigned i = 0; i < n_applications; i++) {
        snprintf(part, sizeof(part), "%s\"/usr/bin/application-%06u\"", i ? "," : "", i);
        append(&text, &n, &allocated, part);
    }
    append(&text, &n, &allocated, "],\"histories\":[");
    for (unsigned w = 0; w < n_histories; w++) {
        snprintf(part, sizeof(part), "%s{\"user\":%u", w ? "," : "", 1000 + w);
        append(&text, &n, &allocated, w + 1 < n_histories ? part : ",{\"user\":null");
        append(&text, &n, &allocated, ",\"sums\":[");
        for (unsigned i = 0; i < 2 * CHAINS_HISTORY_SUMS; i++)
            append(&text, &n, &allocated, i ? ",0" : "0");
        append(&text, &n, &allocated, "],\"applications\":[");
        for (unsigned i = 0; i <= n_applications; i++) {
            snprintf(part, sizeof(part), "%s[%u", i ? "," : "", i);
            append(&text, &n, &allocated, part);
            for (unsigned k = 0; k < 7; k++)
                append(&text, &n, &allocated, ",234567,0");
            append(&text, &n, &allocated, "]");
        }
        append(&text, &n, &allocated, "],\"pairs\":[");
        for (unsigned i = 1; i < n_applications; i++)
            for (unsigned k = i + 1; k <= MIN(i + n_next, n_applications); k++) {
                snprintf(part, sizeof(part), "%s[%u,%u,2", i > 1 || k > i + 1 ? "," : "", i, k);
                append(&text, &n, &allocated, part);
                for (unsigned j = 0; j < 16; j++)
                    append(&text, &n, &allocated, ",345678,0");
                append(&text, &n, &allocated, "]");
            }
        append(&text, &n, &allocated, "],\"log\":[]}");
    }
    append(&text, &n, &allocated, "]}\n}\n");
    return text;
}

/* ASan keeps freed memory, so the test sets no limit of memory under ASan. */
#ifdef __SANITIZE_ADDRESS__
#define ADDRESS_SANITIZER true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER true
#endif
#endif
#ifndef ADDRESS_SANITIZER
#define ADDRESS_SANITIZER false
#endif

/* Returns the bytes of private memory of this process, as RLIMIT_DATA counts them. */
static size_t data_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    size_t kib = 0;
    char line[200];

    assert_non_null(f);
    while (fgets(line, sizeof(line), f) && sscanf(line, "VmData: %zu", &kib) != 1)
        continue;
    fclose(f);
    assert_true(kib > 0);
    return kib * 1024;
}

/* json-c uses fifty bytes per number. Our reader may take three times the size of the text, in
 * addition to the text itself. */
static void reading_takes_four_times_the_text(void **state)
{
    _cleanup_free_ char *text = text_of_habits(1000, 51, 2), *again = NULL;
    _cleanup_model_ Model *m = NULL;
    struct rlimit before, limit;
    size_t size = strlen(text);
    int r;

    malloc_trim(0); /* the reader must not get memory that was freed before */
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    limit = before;
    if (!ADDRESS_SANITIZER)
        limit.rlim_cur = data_bytes() + 3 * size;
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    r = model_from_json(text, size, &m, NULL);
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_int_equal(r, 0);
    assert_int_equal(m->chains->n_histories, 2);
    assert_int_equal(m->chains->histories[0]->n_applications, 1001);
    assert_true(m->chains->histories[0]->n_pairs > 49000);
    again = bytes_of(m);
    assert_true(strcmp(text, again) == 0);
}

/* Replaces every `a` by `b`. */
static char *replaced(const char *text, const char *a, const char *b)
{
    char *out = calloc(2, strlen(text) + 1), *to = out;

    assert_non_null(out);
    for (const char *p = text; *p;)
        if (strncmp(p, a, strlen(a)) == 0) {
            to = stpcpy(to, b);
            p += strlen(a);
        } else
            *to++ = *p++;
    return out;
}

static DecayedSum lengthen(DecayedSum f)
{
    return (DecayedSum){f.current << DECAYED_SUM_BITS, f.previous << DECAYED_SUM_BITS};
}

/* Converts the sums of times to versions 1 and 2, where a millisecond has the weight of a session.
 */
static void lengthen_times(Model *m)
{
    ModelStage *s = &m->stages[0];

    s->duration = lengthen(s->duration);
    s->timing.ready = lengthen(s->timing.ready);
    s->timing.stalled = lengthen(s->timing.stalled);
    for (size_t k = 0; k < s->n_files; k++)
        s->files[k].first_use = lengthen(s->files[k].first_use);
}

static void version_1_is_read_and_becomes_version_4(void **state)
{
    static const char *const words[][2] = {
            {"\"version\":4,\n\"halflife", "\"version\":1,\n\"halflife"},
            {"\"sums\"", "\"fades\""},
            {"\"observed\"", "\"truth\""}};
    Trace *t = session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-2 B>y=1-3", "5-9");
    _cleanup_model_ Model *m = NULL, *empty = model_new(H), *longer = NULL, *back = NULL;
    _cleanup_free_ char *text = NULL;
    char *old;

    t->timing = (TraceTiming){.ready = 9 * USEC_PER_SEC, .stalled = 7 * USEC_PER_SEC};
    m = model_of(t);
    assert_false(decayed_sum_is_zero(m->stages[0].timing.stalled));
    longer = merged(m, empty);
    lengthen_times(longer);
    text = bytes_of(longer);
    old = strdup(text);

    for (size_t i = 0; i < ELEMENTSOF(words); i++) {
        char *next = replaced(old, words[i][0], words[i][1]);

        assert_string_not_equal(next, old);
        free(old);
        old = next;
    }
    assert_int_equal(model_from_json(old, strlen(old), &back, NULL), 0);
    free(old);
    assert_same(m, back);

    /* The old names are refused in the new version. */
    old = replaced(text, "\"sums\"", "\"fades\"");
    assert_int_equal(model_from_json(old, strlen(old), &back, NULL), -EBADMSG);
    free(old);
}

static void the_chains_can_be_left_out(void **state)
{
    _cleanup_model_ Model *m = rich_model(), *back = NULL;
    _cleanup_free_ char *text = bytes_of(m);

    assert_int_equal(model_stages_from_json(text, strlen(text), &back, NULL), 0);
    assert_non_null(m->chains);
    assert_null(back->chains);
    chains_free(TAKE_PTR(m->chains));
    assert_same(m, back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(version_1_is_read_and_becomes_version_4),
            cmocka_unit_test(models_come_back),
            cmocka_unit_test(empty_models_come_back),
            cmocka_unit_test(learning_goes_on_after_loading),
            cmocka_unit_test(extreme_sums_come_back),
            cmocka_unit_test(every_truncation_is_refused),
            cmocka_unit_test(every_bit_flip_is_survived),
            cmocka_unit_test(what_is_not_a_model_is_told_apart),
            cmocka_unit_test(wrong_members_are_refused),
            cmocka_unit_test(files_that_were_looked_up_come_back),
            cmocka_unit_test(what_stands_beside_is_ignored),
            cmocka_unit_test(the_chains_can_be_left_out),
            cmocka_unit_test(sixteen_logins_stay_small),
            cmocka_unit_test(reading_takes_four_times_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
