/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests learning and predicting with examples computed by hand. */

#include "util/model-util.h"

#include <time.h>

/* Four sessions at one moment, so that each counts the same. E1 (A) is active in two of them and
 * uses M (x) in one of those: P(E1) P(M|E1) = 1/2 * 1/2. E2 (B) is active in all and uses M in two:
 * 1 * 1/2. Thesis eq. 4.16: P(M) = 1 - (1 - 1/4)(1 - 1/2) = 5/8. */
/* The applications that use a file may run in the same sessions or in different ones. */
static void needed_by_either_application(void **state)
{
    static const char *const uses[] = {"A>x B>x B>y", "A>z B>y", "B>x B>y", "B>y"};
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    for (size_t i = 0; i < 4; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, uses[i], NULL));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(chance(p, "/f/x"), 0.5); /* two sessions: A used it in one, B in both */
    assert_near(chance(p, "/f/y"), 1);
    assert_near(chance(p, "/f/z"), 0.25);
    assert_near(chance(p, "/bin/A"), 0); /* no session opened it */
    assert_near(model_sessions(m, &m->stages[0], T0), 4);
}

static void needed_by_one_application_or_the_other(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    for (size_t i = 0; i < 4; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, i < 2 ? "A>x" : "B>x", NULL));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(chance(p, "/f/x"), 1);
}

/* A hundred applications use the file, all of them in the same one of 20 sessions. */
static void a_hundred_applications_in_one_session(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    for (unsigned i = 0; i < 20; i++) {
        char uses[4000] = "Z>y";

        for (unsigned a = 0; i == 0 && a < 100; a++)
            snprintf(uses + strlen(uses), sizeof(uses) - strlen(uses), " A%u>x", a);
        learn(&m, session(STAGE_LOGIN, 1000, T0, 0, uses, NULL));
    }
    p = predict(m, STAGE_LOGIN, 1000);
    assert_near(chance(p, "/f/x"), 0.05);
}

static void unknown_applications_count_as_one(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "?>x ?>y A>y", NULL));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>y A>z", NULL));
    assert_int_equal(m->stages[0].n_applications, 2);
    assert_int_equal(m->stages[0].applications[1].file, MODEL_NONE);
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(chance(p, "/f/x"), 0.5);
    assert_near(chance(p, "/f/y"), 1);
}

static void ranges_by_their_frequency(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;
    const PredictedFile *f;

    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-4 A>d/", "10-20"));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=2-6 A>d/", "15-25"));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=3-4,8-9", "15-16"));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>y", NULL)); /* metadata not known */
    p = predict(m, STAGE_BOOT, UID_INVALID);

    f = predicted(p, "/f/x");
    assert_near(f->probability, 0.75);
    assert_int_equal(f->n_maps, 5); /* 0-2 2-3 3-4 4-6 8-9 */
    assert_near(page_chance(p, "/f/x", 0), 0.75 / 3);
    assert_near(page_chance(p, "/f/x", 2), 0.75 * 2 / 3);
    assert_near(page_chance(p, "/f/x", 3), 0.75);
    assert_near(page_chance(p, "/f/x", 4), 0.75 / 3);
    assert_near(page_chance(p, "/f/x", 6), 0);
    assert_near(page_chance(p, "/f/x", 8), 0.75 / 3);
    f = predicted(p, "/f/d");
    assert_true(f->directory && f->n_maps == 0);
    assert_false(predicted(p, "/f/y")->directory);

    assert_near(metadata_chance(p, 9), 0);
    assert_near(metadata_chance(p, 10), 1.0 / 3);
    assert_near(metadata_chance(p, 15), 1);
    assert_near(metadata_chance(p, 16), 2.0 / 3);
    assert_near(metadata_chance(p, 24), 1.0 / 3);
    assert_string_equal(p->metadata[0].uuid, UUID);
}

/* After one half-life the older session counts half. The same holds across the start of a
 * generation. */
static void older_sessions_fade(void **state)
{
    static const usec_t starts[] = {T0, T0 + 5 * H, T0 + (DECAYED_SUM_SPAN - 1) * H};

    for (size_t i = 0; i < ELEMENTSOF(starts); i++) {
        _cleanup_model_ Model *m = model_new(H);
        _cleanup_prediction_ Prediction *p = NULL;

        learn(&m, session(STAGE_BOOT, UID_INVALID, starts[i], 0, "A>x=0-1 A>z=0-1", "0-1"));
        learn(&m, session(STAGE_BOOT, UID_INVALID, starts[i] + H, 0, "A>y A>z=1-2", "1-2"));
        p = predict(m, STAGE_BOOT, UID_INVALID);
        assert_near(chance(p, "/f/x"), 1.0 / 3);
        assert_near(chance(p, "/f/y"), 2.0 / 3);
        assert_near(chance(p, "/f/z"), 1);
        assert_near(page_chance(p, "/f/z", 0), 1.0 / 3);
        assert_near(page_chance(p, "/f/z", 1), 2.0 / 3);
        assert_near(metadata_chance(p, 0), 1.0 / 3);
        assert_near(metadata_chance(p, 1), 2.0 / 3);
        assert_near(model_sessions(m, &m->stages[0], starts[i] + 2 * H), 0.75);
    }
}

static void what_has_decayed_is_gone(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *fresh = NULL;

    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-1 B>d/", "0-1"));
    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-1", NULL));
    learn_late(&m,
               session(STAGE_BOOT, UID_INVALID, T0 + 2 * DECAYED_SUM_SPAN * H, 0, "C>y", "5-6"));
    fresh = model_of(
            session(STAGE_BOOT, UID_INVALID, T0 + 2 * DECAYED_SUM_SPAN * H, 0, "C>y", "5-6"));
    assert_int_equal(m->n_stages, 1);
    assert_int_equal(m->n_files, 2);
    assert_int_equal(m->n_learned, 3); /* the decayed traces are remembered, too */
    free(m->learned);
    m->learned = NULL;
    m->n_learned = fresh->n_learned = 0;
    assert_same(m, fresh);
}

static void horizon_and_first_use_are_means(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;
    Trace *t = session(STAGE_LOGIN, 1000, T0, 0, "A>y A>x", NULL); /* x at 2 s */

    t->duration = 20 * USEC_PER_SEC;
    learn(&m, t);
    t = session(STAGE_LOGIN, 1000, T0 + H, 0, "A>y A>z A>z A>z A>x A>x", NULL); /* at 5 s */
    t->duration = 50 * USEC_PER_SEC;
    learn(&m, t);
    p = predict(m, STAGE_LOGIN, UID_INVALID);
    assert_int_equal(p->stage, STAGE_LOGIN);
    assert_int_equal(p->horizon, 40 * USEC_PER_SEC); /* (20 + 2 * 50) / 3 */
    assert_int_equal(predicted(p, "/f/x")->first_use, 4 * USEC_PER_SEC);
    assert_int_equal(predicted(p, "/f/y")->first_use, 1 * USEC_PER_SEC);
    assert_int_equal(predicted(p, "/f/z")->first_use, 2 * USEC_PER_SEC);
}

static Trace *timed_session(usec_t start, unsigned flags, usec_t ready, usec_t stalled)
{
    Trace *t = session(STAGE_BOOT, UID_INVALID, start, flags, "A>x=0-1", NULL);

    t->timing = (TraceTiming){.ready = ready, .stalled = stalled, .n_cpus = 2};
    return t;
}

/* A replay changes both times, and older recorders measured neither of them. */
static void timing_is_learned_without_replay(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    learn(&m, timed_session(T0, 0, 0, 0));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_int_equal(p->ready, 0);
    p = prediction_free(p);
    learn(&m, timed_session(T0, 0, 8 * USEC_PER_SEC, 6 * USEC_PER_SEC));
    learn(&m, timed_session(T0 + H, 0, 2 * USEC_PER_SEC, USEC_PER_SEC));
    learn(&m, timed_session(T0 + H, TRACE_REPLAYED, USEC_PER_MSEC, USEC_PER_MSEC));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_int_equal(p->ready, 4 * USEC_PER_SEC); /* (8 + 2 * 2) / 3 */
    assert_int_equal(p->stalled, 2666666);        /* (6 + 2 * 1) / 3 */
}

/* Adds the model of another machine with that many logins, as an import does. */
static void import_logins(Model **m, unsigned n)
{
    _cleanup_model_ Model *other = model_new(H), *portable = NULL;
    Model *both;

    for (unsigned i = 0; i < n; i++)
        learn(&other, session(STAGE_LOGIN, 1000, T0 + H + i, 0, "A>x=0-1", NULL));
    assert_int_equal(model_make_portable(other, &portable), 0);
    both = merged(*m, portable);
    model_free(*m);
    *m = both;
}

/* Only the habit of one user counts, and only while it is the majority of what was learned. */
static void an_automatic_login_is_a_habit(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    uint32_t uid = 0;

    assert_false(model_predict_autologin(m, &uid));
    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-1", NULL));
    assert_false(model_predict_autologin(m, &uid));
    learn(&m, session(STAGE_LOGIN, 1001, T0, TRACE_AUTOLOGIN, "A>x=0-1", NULL));
    assert_false(model_predict_autologin(m, &uid));
    learn(&m, session(STAGE_LOGIN, 1001, T0 + H, TRACE_AUTOLOGIN, "A>x=0-1", NULL));
    assert_true(model_predict_autologin(m, &uid));
    assert_int_equal(uid, 1001);
    /* A hundred logins of other machines have no user, and hide none of this machine. */
    import_logins(&m, 100);
    uid = 0;
    assert_true(model_predict_autologin(m, &uid));
    assert_int_equal(uid, 1001);
    learn(&m, session(STAGE_LOGIN, 1001, T0 + 3 * H, 0, "A>x=0-1", NULL));
    assert_false(model_predict_autologin(m, &uid));
}

static void most_boots_are_recorded_late(void **state)
{
    _cleanup_model_ Model *m = model_new(H);

    assert_false(model_boots_are_late(m));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, TRACE_LATE, "A>x=0-1", NULL));
    assert_true(model_boots_are_late(m));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + 1, 0, "A>x=0-1", NULL));
    assert_false(model_boots_are_late(m));
}

static void one_prediction_follows_another(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *boot = NULL, *login = NULL;

    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-1", "0-2"));
    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>a=0-1 B>y=2-3", "1-3"));
    boot = predict(m, STAGE_BOOT, UID_INVALID);
    login = predict(m, STAGE_LOGIN, 1000);
    assert_int_equal(prediction_append(boot, login, 7 * USEC_PER_SEC), 0);
    assert_int_equal(boot->n_files, 3);
    assert_int_equal(boot->n_metadata, 2);
    assert_int_equal(login->n_files + login->n_metadata, 0);
    assert_string_equal(boot->files[0].path, "/f/a");
    assert_true(predicted(boot, "/f/x")->first_use < 7 * USEC_PER_SEC);
    assert_true(predicted(boot, "/f/y")->first_use >= 7 * USEC_PER_SEC);
    assert_near(page_chance(boot, "/f/y", 2), 1);
}

/* A login that begins before the boot has finished ends the boot, whose time is then not known. */
static void both_are_ready_when_the_second_is(void **state)
{
    Prediction boot = {.stalled = 1}, login = {.ready = 5, .stalled = 3}, unknown = {0};

    assert_int_equal(prediction_append(&boot, &login, 7), 0);
    assert_int_equal(boot.ready, 12);
    assert_int_equal(boot.stalled, 4);
    assert_int_equal(prediction_append(&boot, &unknown, 7), 0);
    assert_int_equal(boot.ready, 0);
    assert_int_equal(boot.stalled, 0);
}

static void users_apart_and_together(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-1 A>z=0-1", "0-2"));
    learn(&m, session(STAGE_LOGIN, 1001, T0, 0, "B>y A>z=0-1", "1-3"));
    learn(&m, session(STAGE_LOGIN, 1001, T0, 0, "B>y A>z", "1-3"));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>boot", NULL));
    assert_int_equal(m->n_stages, 3);

    p = predict(m, STAGE_LOGIN, 1000);
    assert_int_equal(p->n_files, 2);
    assert_near(chance(p, "/f/x"), 1);
    p = prediction_free(p);
    p = predict(m, STAGE_LOGIN, 1001);
    assert_near(chance(p, "/f/x"), 0);
    assert_near(chance(p, "/f/y"), 1);
    assert_near(page_chance(p, "/f/z", 0), 0.5);
    p = prediction_free(p);
    p = predict(m, STAGE_LOGIN, UID_INVALID);
    assert_near(chance(p, "/f/x"), 1.0 / 3);
    assert_near(chance(p, "/f/y"), 2.0 / 3);
    assert_near(chance(p, "/f/z"), 1);
    assert_near(page_chance(p, "/f/z", 0), 2.0 / 3);
    assert_near(metadata_chance(p, 0), 1.0 / 3);
    assert_near(metadata_chance(p, 1), 1);
    assert_near(chance(p, "/f/boot"), 0);
    p = prediction_free(p);
    p = predict(m, STAGE_LOGIN, 1002);
    assert_int_equal(p->n_files, 0);
    p = prediction_free(p);
    p = predict(m, STAGE_SESSION, UID_INVALID);
    assert_int_equal(p->n_files + p->n_metadata, 0);
    for (size_t i = 0; i < m->n_stages; i++)
        if (m->stages[i].stage == STAGE_LOGIN)
            assert_near(model_sessions(m, &m->stages[i], T0), m->stages[i].uid == 1001 ? 2 : 1);
}

/* The opens of a replayed session count. Its residency and its metadata count neither in the
 * numerator nor in the denominator of a probability. */
static void replayed_sessions_tell_of_use_only(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-2", "0-2"));
    learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_CONTROL, "A>x=1-2", "1-2"));
    for (unsigned i = 0; i < 2; i++)
        learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_REPLAYED, "A>x=0-9 A>y", "0-9"));
    p = predict(m, STAGE_LOGIN, UID_INVALID);
    assert_near(chance(p, "/f/x"), 1);
    assert_near(chance(p, "/f/y"), 0.5);
    assert_near(page_chance(p, "/f/x", 0), 0.5);
    assert_near(page_chance(p, "/f/x", 1), 1);
    assert_near(page_chance(p, "/f/x", 2), 0);
    assert_near(metadata_chance(p, 0), 0.5);
    assert_near(metadata_chance(p, 1), 1);
    assert_near(metadata_chance(p, 5), 0);
}

/* Metadata of replayed sessions is predicted until a session without replay shows the truth. */
static void metadata_is_assumed_until_it_is_observed(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_REPLAYED, "A>x", "0-2"));
    learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_REPLAYED, "A>x", "1-3"));
    p = predict(m, STAGE_LOGIN, 1000);
    assert_near(metadata_chance(p, 0), 0.5);
    assert_near(metadata_chance(p, 1), 1);
    assert_true(p->n_metadata > 0 && p->metadata[0].assumed);
    p = prediction_free(p);

    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x", "2-4"));
    learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_REPLAYED, "A>x", "0-9"));
    assert_int_equal(m->stages[0].n_metadata, 2);
    p = predict(m, STAGE_LOGIN, 1000);
    assert_near(metadata_chance(p, 1), 0);
    assert_near(metadata_chance(p, 2), 1);
    assert_true(p->n_metadata > 0 && !p->metadata[0].assumed);
}

/* If the metadata of one of two stages was not observed, the planner derives it from the files. */
static void files_without_observed_metadata_are_marked(void **state)
{
    for (int k = 0; k < 4; k++) {
        bool boot_known = k & 1, login_known = k & 2;
        _cleanup_model_ Model *m = model_new(H);
        _cleanup_prediction_ Prediction *boot = NULL, *login = NULL;

        learn(&m,
              session(STAGE_BOOT, UID_INVALID, T0, boot_known ? 0 : TRACE_REPLAYED, "A>x", "0-2"));
        learn(&m, session(STAGE_LOGIN, 1000, T0, login_known ? 0 : TRACE_REPLAYED, "A>y", "4-6"));
        boot = predict(m, STAGE_BOOT, UID_INVALID);
        login = predict(m, STAGE_LOGIN, 1000);
        assert_int_equal(prediction_append(boot, login, 0), 0);
        assert_int_equal(predicted(boot, "/f/x")->metadata_unknown, login_known && !boot_known);
        assert_int_equal(predicted(boot, "/f/y")->metadata_unknown, boot_known && !login_known);
    }
}

/* The replay of a boot with an automatic login also reads the metadata of the login. The later
 * logins read none of it, but the boots do. */
static void metadata_of_the_login_is_read_in_the_boot(void **state)
{
    for (int k = 0; k < 2; k++) {
        _cleanup_model_ Model *m = model_new(H);
        _cleanup_prediction_ Prediction *boot = NULL, *login = NULL;

        learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x", "0-2"));
        learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_REPLAYED, "A>y", "4-6"));
        for (unsigned i = 1; i <= 9; i++) {
            learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + i, TRACE_REPLAYED, "A>x", "0-2,4-6"));
            learn(&m, session(STAGE_LOGIN, 1000, T0 + i, TRACE_REPLAYED, "A>y", "8-9"));
        }
        if (k)
            learn(&m, session(STAGE_LOGIN, 1000, T0 + 10, TRACE_CONTROL, "A>y", "4-5"));
        boot = predict(m, STAGE_BOOT, UID_INVALID);
        assert_near(metadata_chance(boot, 4), 0);
        login = predict(m, STAGE_LOGIN, 1000);
        assert_near(metadata_chance(login, 4), k ? 1 : 0.1);
        assert_int_equal(prediction_append(boot, login, 0), 0);
        assert_near(metadata_chance(boot, 4), 1);
        assert_near(metadata_chance(boot, 5), k ? 0 : 1);
        assert_near(metadata_chance(boot, 8), k ? 0 : 0.9);
    }
}

/* A name that was looked up is needed like an opened file, but nothing of its content is. */
static void looked_up_names_are_needed(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;
    Trace *t = session(STAGE_BOOT, UID_INVALID, T0, TRACE_RESIDENCY_OFF, "A>x", NULL);
    uint32_t path, file;

    assert_int_equal(trace_add_path(t, "/f/link", &path), 0);
    assert_int_equal(trace_add_file(t, path, 0, false, &file), 0);
    t->files[file].looked_up = true;
    assert_int_equal(trace_add_path(t, "/f/names", &path), 0);
    assert_int_equal(trace_add_file(t, path, 0, true, &file), 0);
    t->files[file].looked_up = true;
    learn(&m, t);
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x", NULL));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(chance(p, "/f/link"), 0.5);
    assert_int_equal(predicted(p, "/f/link")->n_maps, 0);
    assert_int_equal(predicted(p, "/f/link")->first_use, 0);
    assert_near(chance(p, "/f/names"), 0.5);
    assert_false(predicted(p, "/f/names")->directory); /* none of its entries is needed */
}

/* A directory is listed if at least half of the sessions that needed it opened it. */
static void directories_are_listed_if_most_sessions_open_them(void **state)
{
    for (int opened = 0; opened <= 3; opened++) {
        _cleanup_model_ Model *m = model_new(H);
        _cleanup_prediction_ Prediction *p = NULL;

        for (int i = 0; i < 3; i++) {
            Trace *t = session(STAGE_BOOT, UID_INVALID, T0, TRACE_RESIDENCY_OFF, "A>x", NULL);
            uint32_t path, file;

            assert_int_equal(trace_add_path(t, "/f/names", &path), 0);
            assert_int_equal(trace_add_file(t, path, 0, true, &file), 0);
            t->files[file].looked_up = i >= opened;
            if (i < opened)
                assert_int_equal(trace_add_access(t, &(TraceAccess){.at = t->duration,
                                                                    .file = file,
                                                                    .application = TRACE_NONE}),
                                 0);
            learn(&m, t);
        }
        p = predict(m, STAGE_BOOT, UID_INVALID);
        assert_near(chance(p, "/f/names"), 1);
        assert_int_equal(predicted(p, "/f/names")->directory, opened >= 2);
    }
}

/* Learns a boot or login that looks the path up, or opens it. */
static void learn_name(Model **m, Stage stage, uint32_t uid, const char *name, bool directory,
                       bool opened)
{
    Trace *t = session(stage, uid, T0, 0, "A>other", NULL);
    uint32_t path, file;

    assert_int_equal(trace_add_path(t, name, &path), 0);
    assert_int_equal(trace_add_file(t, path, 0, directory, &file), 0);
    t->files[file].size_bytes = directory ? 0 : 4 * PAGE;
    t->files[file].looked_up = !opened;
    if (opened && !directory)
        assert_int_equal(range_set_insert(&t->files[file].resident, 0, 4 * PAGE), 0);
    if (opened)
        assert_int_equal(trace_add_access(t, &(TraceAccess){.at = t->duration,
                                                            .file = file,
                                                            .application = TRACE_NONE}),
                         0);
    learn(m, t);
}

/* Replay opens a file that is no longer used. A lookup is left of it, and none of its data. */
static void data_of_a_file_that_is_only_looked_up_is_not_needed(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *copy = NULL;
    _cleanup_prediction_ Prediction *p = NULL, *q = NULL;
    usec_t first;

    learn_name(&m, STAGE_BOOT, UID_INVALID, "/f/unused", false, true);
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(page_chance(p, "/f/unused", 0), 1);
    first = predicted(p, "/f/unused")->first_use;
    assert_true(first > 0);
    for (int i = 0; i < 9; i++)
        learn_name(&m, STAGE_BOOT, UID_INVALID, "/f/unused", false, false);
    assert_int_equal(model_merge(m, m, &copy), 0); /* merging keeps the shares */
    q = predict(copy, STAGE_BOOT, UID_INVALID);
    assert_near(chance(q, "/f/unused"), 1);
    assert_near(page_chance(q, "/f/unused", 0), 0.1);
    assert_near((double)predicted(q, "/f/unused")->first_use / (double)first, 1);
}

/* An application opens the file in every second boot. The others only look it up. */
static void an_open_and_a_lookup_exclude_each_other(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    for (int i = 0; i < 8; i++)
        if (i % 2)
            learn_name(&m, STAGE_BOOT, UID_INVALID, "/f/x", false, false);
        else
            learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-4", NULL));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(page_chance(p, "/f/x", 0), 0.5);
}

/* A shell lists /usr/bin in each session. The boot only looks it up. */
static void a_directory_is_listed_in_the_stages_that_open_it(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *boot = NULL, *login = NULL;

    for (int i = 0; i < 3; i++) {
        learn_name(&m, STAGE_BOOT, UID_INVALID, "/f/names", true, false);
        learn_name(&m, STAGE_LOGIN, 1000, "/f/names", true, true);
    }
    boot = predict(m, STAGE_BOOT, UID_INVALID);
    login = predict(m, STAGE_LOGIN, 1000);
    assert_false(predicted(boot, "/f/names")->directory);
    assert_true(predicted(login, "/f/names")->directory);
}

/* Programs that the boot has started read their executables while an automatic login begins. */
static void an_automatic_login_needs_the_running_programs(void **state)
{
    for (int k = 0; k < 2; k++) {
        _cleanup_model_ Model *m = model_new(H);
        _cleanup_prediction_ Prediction *p = NULL;
        Trace *t = session(STAGE_LOGIN, 1000, T0, k ? TRACE_AUTOLOGIN : 0, "A>x", NULL);
        uint32_t path, file, application;

        assert_int_equal(trace_add_path(t, "/f/daemon", &path), 0);
        assert_int_equal(trace_add_file(t, path, 0, false, &file), 0);
        t->files[file].size_bytes = 4 * PAGE;
        assert_int_equal(range_set_insert(&t->files[file].resident, PAGE, PAGE), 0);
        assert_int_equal(trace_add_application(t, file, &application), 0);
        learn(&m, t);
        p = predict(m, STAGE_LOGIN, 1000);
        assert_near(chance(p, "/f/daemon"), k);
        if (k) {
            assert_near(page_chance(p, "/f/daemon", 0), 0);
            assert_near(page_chance(p, "/f/daemon", 1), 1);
        }
    }
}

/* A file that only sessions with replay have used was in no pack. Its assumed residency is used. */
static void assumed_until_the_truth_is_known(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;
    Trace *t;

    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-2", NULL));
    learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_REPLAYED, "A>new=0-3", NULL));
    learn(&m, session(STAGE_LOGIN, 1000, T0, TRACE_REPLAYED, "A>new=2-4", NULL));
    p = predict(m, STAGE_LOGIN, UID_INVALID);
    assert_near(chance(p, "/f/new"), 2.0 / 3);
    assert_near(page_chance(p, "/f/new", 0), 1.0 / 3);
    assert_near(page_chance(p, "/f/new", 2), 2.0 / 3);
    p = prediction_free(p);

    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>new=3-4", NULL));
    p = predict(m, STAGE_LOGIN, UID_INVALID);
    assert_near(chance(p, "/f/new"), 0.75);
    assert_near(page_chance(p, "/f/new", 0), 0);
    assert_near(page_chance(p, "/f/new", 3), 0.75);
    p = prediction_free(p);

    /* If residency could not be read, the whole file counts, up to its last page. */
    t = session(STAGE_LOGIN, 1000, T0, TRACE_RESIDENCY_OFF, "A>whole", NULL);
    learn(&m, t);
    p = predict(m, STAGE_LOGIN, UID_INVALID);
    assert_near(page_chance(p, "/f/whole", 0), 0.2);
    assert_near(page_chance(p, "/f/whole", 9), 0.2);
    assert_near(page_chance(p, "/f/whole", 10), 0);
}

/* Ranges of an exact recording replace those of other sessions, which contain pages that only the
 * kernel's read-ahead brought in. Files that it did not open keep theirs. */
static void exact_ranges_come_before_others(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-31 A>y=0-3", NULL));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, TRACE_EXACT, "A>x=2-4", NULL));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, TRACE_EXACT, "A>x=3-5", NULL));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, TRACE_REPLAYED, "A>x=0-31 A>y=0-9", NULL));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(page_chance(p, "/f/x", 0), 0);
    assert_near(page_chance(p, "/f/x", 2), 0.5);
    assert_near(page_chance(p, "/f/x", 3), 1);
    assert_near(page_chance(p, "/f/x", 5), 0);
    assert_near(page_chance(p, "/f/y", 0), 0.5);
    assert_near(page_chance(p, "/f/y", 9), 0);
    p = prediction_free(p);

    /* What no plan uses is not shipped. */
    assert_int_equal(model_prune(&m, 0.1), 0);
    for (size_t i = 0; i < m->stages[0].n_files; i++)
        for (Residency k = 0; k < _RESIDENCY_MAX; k++) {
            const ModelResidency *known = &m->stages[0].files[i].residency[k];

            assert_int_equal(known->ranges.n > 0,
                             known == model_best_residency(&m->stages[0].files[i]) &&
                                     !decayed_sum_is_zero(known->sessions));
        }
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(page_chance(p, "/f/x", 3), 1);
    assert_near(page_chance(p, "/f/y", 0), 0.5);
}

static void a_trace_is_learned_once(void **state)
{
    _cleanup_trace_ Trace *t = session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-1", "0-1");
    _cleanup_model_ Model *m = model_new(H), *once = NULL, *empty = model_new(H);

    assert_false(model_knows_trace(m, t));
    assert_int_equal(model_learn(&m, t, T0), 0);
    assert_true(model_knows_trace(m, t));
    once = merged(m, empty);
    assert_int_equal(model_learn(&m, t, T0 + H), -EALREADY);
    assert_same(m, once);
    t->stage = STAGE_LOGIN; /* of the same boot and moment, but another stage */
    assert_int_equal(model_learn(&m, t, T0), 0);
    t->start_realtime++;
    assert_int_equal(model_learn(&m, t, T0), 0);
    assert_int_equal(m->n_learned, 3);
}

static void the_latest_learned_are_remembered(void **state)
{
    _cleanup_model_ Model *m = model_new(H);

    for (unsigned i = 0; i < MODEL_LEARNED_MAX + 5; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + i * USEC_PER_SEC, 0, "A>x", NULL));
    assert_int_equal(m->n_learned, MODEL_LEARNED_MAX);
    assert_int_equal(m->learned[0].start_realtime, T0 + 5 * USEC_PER_SEC);
}

/* On a machine without a clock all traces have the same time. An old trace is older than all traces
 * that are listed. In both cases a trace that was just learned is remembered. */
static void traces_of_any_time_are_remembered(void **state)
{
    static const usec_t starts[] = {USEC_PER_SEC, T0 - 9 * H};

    for (size_t k = 0; k < ELEMENTSOF(starts); k++) {
        _cleanup_model_ Model *m = model_new(H);

        for (unsigned i = 0; i < MODEL_LEARNED_MAX; i++)
            learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + i, 0, "A>x", NULL));
        for (unsigned i = 0; i < 40; i++) {
            /* Each trace starts before the previous ones: among equal times it would be dropped
             * first. */
            Trace *t = session(STAGE_BOOT, UID_INVALID, starts[k] + (40 - i), 0, "A>x", NULL);

            learn(&m, t);
            assert_int_equal(m->n_learned, MODEL_LEARNED_MAX);
            for (unsigned j = 0; j <= i; j++)
                assert_int_equal(m->learned[MODEL_LEARNED_MAX - 1 - j].start_realtime,
                                 starts[k] + 40 - i + j);
        }
        assert_int_equal(m->learned[0].start_realtime, T0 + 40);
        free(bytes_of(m));
    }
}

static void unfit_traces_are_told(void **state)
{
    static const unsigned flags[] = {TRACE_OFFLINE_UPDATE, TRACE_FSCK, TRACE_SOFT_REBOOT,
                                     TRACE_SECOND_LOGIN};
    static const unsigned fine[] = {0, TRACE_EXACT, TRACE_REPLAYED, TRACE_CONTROL,
                                    TRACE_RESIDENCY_OFF};
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_trace_ Trace *t = session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x", NULL);

    for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
        t->flags = flags[i];
        assert_non_null(model_trace_unfit(m, t));
    }
    for (size_t i = 0; i < ELEMENTSOF(fine); i++) {
        t->flags = fine[i];
        assert_null(model_trace_unfit(m, t));
    }
    /* An incomplete trace is learned only while no complete one of its stage was learned. */
    t->flags = TRACE_INCOMPLETE;
    assert_null(model_trace_unfit(m, t));
    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x", NULL));
    assert_null(model_trace_unfit(m, t));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x", NULL));
    assert_non_null(model_trace_unfit(m, t));
    t->flags = 0;
    t->n_accesses = 0;
    assert_non_null(model_trace_unfit(m, t));
}

/* --- clocks ----------------------------------------------------------------------------------- */

static double chance_of(const Model *m, const char *path)
{
    _cleanup_prediction_ Prediction *p = predict(m, STAGE_BOOT, UID_INVALID);

    return chance(p, path);
}

static Model *three_sessions(usec_t at)
{
    Model *m = model_new(H);

    for (unsigned i = 0; i < 3; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, at, 0, "A>x=0-1", "0-1"));
    return m;
}

/* Traces with impossible time stamps (no clock, or a clock far ahead) count as made now. */
static void wild_stamps_wipe_nothing(void **state)
{
    static const usec_t stamps[] = {
            0,        1, 86400 * USEC_PER_SEC, MODEL_CLOCK_MIN - 1, T0 + 100 * DECAYED_SUM_SPAN * H,
            INT64_MAX};

    for (size_t i = 0; i < ELEMENTSOF(stamps); i++) {
        _cleanup_model_ Model *m = three_sessions(T0 + H);
        _cleanup_trace_ Trace *t = session(STAGE_BOOT, UID_INVALID, stamps[i], 0, "A>y=0-1", "0-1");

        assert_int_equal(model_learn(&m, t, T0 + H), 0);
        assert_near(chance_of(m, "/f/x"), 0.75);
        assert_near(chance_of(m, "/f/y"), 0.25);
        assert_int_equal(m->clock, T0 + H);
        assert_true(model_knows_trace(m, t));
    }
}

/* An early stamp that is wrong but credible: the trace counts as that old, and nothing else
 * changes. */
static void early_stamps_fade(void **state)
{
    _cleanup_model_ Model *m = three_sessions(T0 + H);
    _cleanup_trace_ Trace *t =
            session(STAGE_BOOT, UID_INVALID, T0 - 20 * DECAYED_SUM_SPAN * H, 0, "A>z", NULL);

    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>y", NULL));
    assert_near(chance_of(m, "/f/x"), 6.0 / 7);
    assert_near(chance_of(m, "/f/y"), 1.0 / 7);
    assert_int_equal(model_learn(&m, t, T0 + H), 0);
    assert_near(chance_of(m, "/f/x"), 6.0 / 7);
    assert_near(chance_of(m, "/f/z"), 0);
    assert_int_equal(m->clock, T0 + H);
}

/* The present time itself is wrong: no clock, or one that was set back a little. Decay pauses. */
static void a_clock_that_runs_back_wipes_nothing(void **state)
{
    static const usec_t nows[] = {0,
                                  5 * USEC_PER_SEC,
                                  MODEL_CLOCK_MIN - 1,
                                  T0 + H - 1,
                                  T0,
                                  T0 + H - DECAYED_SUM_SPAN * H};

    for (size_t i = 0; i < ELEMENTSOF(nows); i++) {
        _cleanup_model_ Model *m = three_sessions(T0 + H);
        _cleanup_trace_ Trace *t =
                session(STAGE_BOOT, UID_INVALID, nows[i] < MODEL_CLOCK_MIN ? nows[i] : T0 + 9 * H,
                        0, "A>y", NULL);

        assert_int_equal(model_learn(&m, t, nows[i]), 0);
        assert_near(chance_of(m, "/f/x"), 0.75);
        assert_near(chance_of(m, "/f/y"), 0.25);
        assert_int_equal(m->clock, T0 + H);
        learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + 2 * H, 0, "A>x", NULL));
        assert_near(chance_of(m, "/f/y"), 1.0 / 6);
    }
}

/* The model was made while the clock ran ahead. The clock of the model is set back, and the weights
 * keep their proportions. */
static void a_model_from_the_future_is_brought_back(void **state)
{
    usec_t future = T0 + 50 * DECAYED_SUM_SPAN * H + 7 * H;
    _cleanup_model_ Model *m = model_new(H);

    learn(&m, session(STAGE_BOOT, UID_INVALID, future - H, 0, "A>x=0-1 A>d/", "0-1"));
    learn(&m, session(STAGE_BOOT, UID_INVALID, future, 0, "A>y A>d/", "1-2"));
    assert_near(chance_of(m, "/f/x"), 1.0 / 3);
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + 3 * H, 0, "A>z A>d/", "1-2"));
    assert_int_equal(m->clock, future);
    assert_int_equal(model_wall_clock(m), T0 + 3 * H);
    assert_int_equal(model_settle_clock(&m, T0 + 3 * H), 0);
    assert_int_equal(m->clock, T0 + 3 * H);
    assert_int_equal(m->generation, decayed_sum_generation(T0, H));
    /* The weights are 1/2, 1, 1, except for rounding. */
    assert_true(fabs(chance_of(m, "/f/x") - 0.2) < 0.001);
    assert_true(fabs(chance_of(m, "/f/y") - 0.4) < 0.001);
    assert_true(fabs(chance_of(m, "/f/z") - 0.4) < 0.001);
    assert_near(chance_of(m, "/f/d"), 1);
    assert_true(m->learned[0].at <= m->clock);
    assert_true(m->files[model_find_file(m, "/f/d")].directory);
    free(bytes_of(m));
}

/* Makes a model of sixteen boots, a week apart. */
static Model *weekly_boots(usec_t *ret_now)
{
    Model *m = model_new(H);

    for (unsigned i = 0; i < 16; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + i * H, 0, i % 2 ? "A>x A>y" : "A>x", NULL));
    *ret_now = T0 + 16 * H;
    return m;
}

/* One boot with a date half a year ahead: nothing is erased, and the right date counts again at the
 * next boot. */
static void a_date_half_a_year_ahead_erases_nothing(void **state)
{
    usec_t now;
    _cleanup_model_ Model *m = weekly_boots(&now), *right = weekly_boots(&now);

    learn(&m, session(STAGE_BOOT, UID_INVALID, now + 26 * H, 0, "A>x A>z", NULL));
    assert_int_equal(m->n_learned, 17);
    assert_true(m->clock <= T0 + 15 * H + DECAY_CLOCK_STEP);
    assert_int_equal(m->clock + (usec_t)m->clock_offset_usec, now + 26 * H);
    assert_true(chance_of(m, "/f/y") > 0.3);
    learn(&right, session(STAGE_BOOT, UID_INVALID, now, 0, "A>x A>z", NULL));
    for (unsigned i = 1; i < 8; i++) {
        learn(&m, session(STAGE_BOOT, UID_INVALID, now + i * H, 0, "A>x", NULL));
        learn(&right, session(STAGE_BOOT, UID_INVALID, now + i * H, 0, "A>x", NULL));
    }
    assert_int_equal(m->clock, right->clock);
    assert_int_equal(m->clock_offset_usec, 0);
    assert_true(fabs(chance_of(m, "/f/y") - chance_of(right, "/f/y")) < 0.01);
    free(bytes_of(m));
}

/* One boot with a date two months ahead, which is less than what a sum spans. */
static void a_date_two_months_ahead_erases_nothing(void **state)
{
    usec_t now;
    _cleanup_model_ Model *m = weekly_boots(&now), *right = weekly_boots(&now);

    learn(&m, session(STAGE_BOOT, UID_INVALID, now + 8 * H, 0, "A>x A>z", NULL));
    learn(&right, session(STAGE_BOOT, UID_INVALID, now, 0, "A>x A>z", NULL));
    for (unsigned i = 1; i < 8; i++) {
        Trace *t = session(STAGE_BOOT, UID_INVALID, now + i * H, 0, "A>x A>w", NULL);

        /* The machine learns at once, or months later, when a trace is old. */
        assert_int_equal(model_learn(&m, t, i % 2 ? now + i * H : now + 40 * H), 0);
        assert_int_equal(m->clock, now + i * H);
        assert_int_equal(m->clock_offset_usec, 0);
        learn(&right, t);
    }
    assert_true(fabs(chance_of(m, "/f/w") - chance_of(right, "/f/w")) < 0.01);
}

/* A real-time clock without a battery: each boot begins at the same old date. */
static void a_dead_clock_at_each_boot_erases_nothing(void **state)
{
    static const usec_t dates[] = {0, MODEL_CLOCK_MIN + 1, T0 - 40 * H};

    for (size_t k = 0; k < ELEMENTSOF(dates); k++) {
        usec_t now;
        _cleanup_model_ Model *m = weekly_boots(&now);
        double before = chance_of(m, "/f/y");

        for (unsigned i = 0; i < 6; i++)
            learn(&m, session(STAGE_BOOT, UID_INVALID, dates[k] + i * USEC_PER_SEC, 0,
                              i % 2 ? "A>x" : "A>x A>z", NULL));
        assert_int_equal(m->clock / H, (T0 + 15 * H) / H);
        assert_true(chance_of(m, "/f/z") > 0.3);
        assert_true(chance_of(m, "/f/y") > 0.2 * before && chance_of(m, "/f/y") < before);
        /* The network sets the clock, which then is right. */
        learn(&m, session(STAGE_BOOT, UID_INVALID, now, 0, "A>x", NULL));
        assert_int_equal(m->clock, now);
        assert_int_equal(m->clock_offset_usec, 0);
    }
}

/* A machine that was off for nine months forgets nothing. The clock of its model has an offset. The
 * offset is removed before the model is merged with that of another machine, so that neither model
 * erases the other. */
static void clocks_are_settled_before_merging(void **state)
{
    usec_t now;
    _cleanup_model_ Model *ahead = weekly_boots(&now), *m = model_new(H), *copy = NULL, *sum = NULL;
    _cleanup_free_ char *text = NULL;

    learn(&ahead, session(STAGE_BOOT, UID_INVALID, now + 40 * H, 0, "A>x", NULL));
    text = bytes_of(ahead);
    assert_int_equal(model_from_json(text, strlen(text), &copy, NULL), 0);
    assert_same(ahead, copy);
    for (unsigned i = 0; i < 4; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, now + (38 + i) * H, 0, "A>w", NULL));
    assert_int_equal(model_settle_clock(&ahead, now + 42 * H), 0);
    assert_int_equal(ahead->clock, now + 40 * H);
    assert_int_equal(ahead->clock_offset_usec, 0);
    assert_true(fabs(chance_of(ahead, "/f/y") - chance_of(copy, "/f/y")) < 0.01);
    sum = merged(ahead, m);
    assert_true(chance_of(sum, "/f/y") > 0.05);
    assert_true(chance_of(sum, "/f/w") > 0.3);
}

static void settling_leaves_sound_clocks_alone(void **state)
{
    _cleanup_model_ Model *m = three_sessions(T0), *empty = model_new(H), *copy = NULL;

    copy = merged(m, empty);
    assert_int_equal(model_settle_clock(&m, T0), 0);
    assert_int_equal(model_settle_clock(&m, T0 + 900 * H), 0);
    assert_int_equal(model_settle_clock(&m, 0), 0);
    assert_int_equal(model_settle_clock(&m, T0 - DECAYED_SUM_SPAN * H), 0);
    assert_same(m, copy);
    assert_int_equal(model_settle_clock(&empty, T0), 0);
}

/* An old stage and a new one: the old one is gone after two generations. */
static void jumps_over_generations(void **state)
{
    for (unsigned spans = 0; spans < 4; spans++) {
        _cleanup_model_ Model *m = model_new(H);

        learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-1", NULL));
        learn_late(&m, session(STAGE_BOOT, UID_INVALID, T0 + spans * DECAYED_SUM_SPAN * H, 0, "A>y",
                               NULL));
        assert_int_equal(m->n_stages, spans < 2 ? 2 : 1);
        assert_near(chance_of(m, "/f/y"), 1);
    }
}

static void rare_things_are_pruned(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    for (unsigned i = 0; i < 10; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0,
                          i == 0 ? "A>x R>tmp=0-1 A>tmp" : "A>x=0-1", NULL));
    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "B>tmp", NULL));
    assert_int_equal(model_prune(&m, 0.1), 0); /* exactly at the threshold */
    assert_near(chance_of(m, "/f/tmp"), 0.1);
    assert_int_equal(model_prune(&m, 0.11), 0);
    assert_near(chance_of(m, "/f/tmp"), 0);
    assert_near(chance_of(m, "/f/x"), 1);
    assert_int_equal(model_find_file(m, "/bin/R"), MODEL_NONE);
    p = predict(m, STAGE_LOGIN, UID_INVALID); /* logins need the file often */
    assert_near(chance(p, "/f/tmp"), 1);
    free(bytes_of(m));
}

/* An assumption is dropped once residency was observed, and may return when the observation has
 * decayed. */
static void assumptions_are_pruned(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_prediction_ Prediction *p = NULL;

    for (unsigned i = 0; i < 6; i++)
        learn(&m, session(STAGE_BOOT, UID_INVALID, T0 + i, TRACE_REPLAYED, "A>x=0-5", NULL));
    learn(&m, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-1", NULL));
    assert_int_equal(model_prune(&m, 0.01), 0);
    assert_true(decayed_sum_is_zero(m->stages[0].files[0].residency[RESIDENCY_ASSUMED].sessions));
    assert_int_equal(m->stages[0].files[0].residency[RESIDENCY_ASSUMED].ranges.n, 0);
    /* After two generations the session without replay is forgotten; after one it is not. */
    learn_late(&m, session(STAGE_BOOT, UID_INVALID, T0 + DECAYED_SUM_SPAN * H, TRACE_REPLAYED,
                           "A>x=2-5", NULL));
    learn_late(&m, session(STAGE_BOOT, UID_INVALID, T0 + 2 * DECAYED_SUM_SPAN * H, TRACE_REPLAYED,
                           "A>x=3-5", NULL));
    p = predict(m, STAGE_BOOT, UID_INVALID);
    assert_near(page_chance(p, "/f/x", 0), 0);
    assert_near(page_chance(p, "/f/x", 3), 1);
}

static void the_same_path_twice_in_a_trace(void **state)
{
    Trace *t = session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-2 A>y", NULL);
    _cleanup_model_ Model *m = NULL;

    /* A trace that was read from a file may contain one path twice. */
    free(t->paths[t->files[2].path].name);
    t->paths[t->files[2].path].name = strdup("x");
    assert_int_equal(trace_validate(t), 0);
    m = model_of(t);
    assert_int_equal(m->stages[0].n_files, 1);
    assert_near(chance_of(m, "/f/x"), 1);
    free(bytes_of(m));
}

static bool uses(const Model *m, const char *application, const char *file)
{
    const ModelStage *s = &m->stages[0];

    for (size_t i = 0; i < s->n_uses; i++) {
        uint32_t a = s->applications[s->uses[i].application].file;

        if (a != MODEL_NONE && strcmp(m->files[a].path, application) == 0 &&
            strcmp(m->files[s->uses[i].file].path, file) == 0)
            return true;
    }
    return false;
}

/* B is started at 4.5 s; A and an unknown application open files at 5, 6, 7 and 8 s. In a
 * session the files of the first three seconds count as uses of B, too; in a login they do not. */
static void read_on_behalf_of_what_was_started(void **state)
{
    static const Stage stages[] = {STAGE_SESSION, STAGE_LOGIN};

    for (size_t k = 0; k < 2; k++) {
        Trace *t = session(stages[k], 1000, T0, 0, "A>a A>b B>own A>c A>icon ?>theme A>d A>late",
                           NULL);
        _cleanup_model_ Model *m = NULL;

        for (uint32_t i = 0; i < t->n_applications; i++)
            assert_int_equal(trace_add_lifetime(t,
                                                &(TraceLifetime){
                                                        .application = i,
                                                        .pid = 10 + i,
                                                        .uid = 1000,
                                                        .start = i * 4500 * USEC_PER_MSEC,
                                                        .end = USEC_INFINITY,
                                                }),
                             0);
        m = model_of(t);
        assert_true(uses(m, "/bin/B", "/f/own"));
        assert_false(uses(m, "/bin/B", "/f/c"));
        assert_true(uses(m, "/bin/B", "/f/icon") == (k == 0));
        assert_true(uses(m, "/bin/B", "/f/theme") == (k == 0));
        assert_true(uses(m, "/bin/B", "/f/d") == (k == 0));
        assert_false(uses(m, "/bin/B", "/f/late"));
        assert_true(uses(m, "/bin/A", "/f/icon"));
        assert_false(uses(m, "/bin/A", "/f/own"));
        free(bytes_of(m));
    }
}

/* Makes a session of user 1000 with accesses at 1, 2, 3, … s; application i starts at starts[i]. */
static Trace *session_with_starts(usec_t at, const char *text, const usec_t *starts, size_t n)
{
    Trace *t = session(STAGE_SESSION, 1000, at, 0, text, NULL);

    assert_int_equal(t->n_applications, n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(trace_add_lifetime(t,
                                            &(TraceLifetime){
                                                    .application = i,
                                                    .pid = 10 + i,
                                                    .uid = 1000,
                                                    .start = starts[i],
                                                    .end = USEC_INFINITY,
                                            }),
                         0);
    return t;
}

static const PredictedFile *file_of(const Prediction *p, const char *path)
{
    for (size_t i = 0; i < p->n_files; i++)
        if (strcmp(p->files[i].path, path) == 0)
            return &p->files[i];
    return NULL;
}

/* B starts at 0.5 s, its helper C at 3.5 s. A has run since before the session. B opens nothing
 * between 6 and 10 s, which ends its start. */
static void a_start_reads_with_its_helpers(void **state)
{
    static const usec_t starts[] = {0, 500 * USEC_PER_MSEC, 3500 * USEC_PER_MSEC};
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    const PredictedFile *f;
    size_t n;

    learn(&m, session_with_starts(
                      T0,
                      "A>a B>own=0-3 A>icon=0-1 A>a C>helper=0-1 B>last=0-1 A>later A>a A>a "
                      "B>menu=0-9",
                      starts, 3));
    learn(&m, session_with_starts(T0 + 1, "A>a B>own=0-3 A>a A>a C>helper=0-1", starts, 3));
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.6, PAGE, &l, &n), 0);
    assert_int_equal(n, 2);
    assert_string_equal(l[0].path, "/bin/B");
    assert_int_equal(l[0].bytes, 4 * PAGE); /* opened by B and by its helper C */
    assert_near(l[0].sessions, 2);
    assert_string_equal(l[1].path, "/bin/C");
    assert_int_equal(model_predict_launch(sum, l[0].application, &p), 0);

    f = file_of(p, "/f/own");
    assert_near(f->probability, 1);
    assert_int_equal(f->first_use, 1500 * USEC_PER_MSEC);
    assert_int_equal(f->n_maps, 1);
    assert_false(f->touched);
    assert_near(file_of(p, "/f/icon")->probability, 0.5);
    assert_int_equal(file_of(p, "/f/helper")->first_use, 4500 * USEC_PER_MSEC);
    assert_near(file_of(p, "/f/last")->probability, 0.5);
    assert_null(file_of(p, "/f/later")); /* by A, more than three seconds after the start */
    assert_null(file_of(p, "/f/menu"));  /* the start was over */
    free(TAKE_PTR(l));
    assert_int_equal(model_list_launches(sum, 0.6, 6 * PAGE, &l, &n), 0);
    assert_int_equal(n, 0);
    free(bytes_of(m)); /* the model can be written */
}

/* B starts at 0.5 s. An unknown process opens one file every three seconds, once shortly after that
 * start. A opens the icon as often then as at another time. */
static void a_start_has_nothing_that_is_opened_all_the_time(void **state)
{
    static const usec_t starts[] = {500 * USEC_PER_MSEC, 0};
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    size_t n;

    learn(&m, session_with_starts(T0,
                                  "?>scan=0-9 B>own=0-3 A>icon=0-1 ?>scan=0-9 A>icon=0-1 A>a "
                                  "?>scan=0-9",
                                  starts, 2));
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.3, PAGE, &l, &n), 0);
    assert_int_equal(n, 1);
    assert_string_equal(l[0].path, "/bin/B");
    assert_int_equal(l[0].bytes, 4 * PAGE);
    assert_int_equal(model_predict_launch(sum, l[0].application, &p), 0);
    assert_non_null(file_of(p, "/f/own"));
    assert_non_null(file_of(p, "/f/icon"));
    assert_null(file_of(p, "/f/scan"));
}

/* In two of three sessions the user starts D while B still starts. In all of them both open the
 * file `both`. In the last session B touches `used`, which D opens, too. */
static void a_start_has_nothing_of_what_often_follows(void **state)
{
    static const usec_t soon[] = {500 * USEC_PER_MSEC, 4500 * USEC_PER_MSEC};
    static const usec_t late[] = {500 * USEC_PER_MSEC, 8500 * USEC_PER_MSEC};
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    Trace *t = session_with_starts(T0 + 2,
                                   "B>own=0-3 B>both=0-1 B>used=0-2 B>/bin/B D>/bin/D D>big=0-9 "
                                   "D>both=0-1 D>used=0-2",
                                   soon, 2);
    size_t n;

    touch_opened(t, 0, "0-1");
    learn(&m, session_with_starts(
                      T0,
                      "B>own=0-3 B>both=0-1 B>/bin/B ?>x ?>x ?>x ?>x ?>x D>/bin/D D>big=0-9 "
                      "D>both=0-1 D>used=0-2",
                      late, 2));
    learn(&m, session_with_starts(T0 + 1,
                                  "B>own=0-3 B>both=0-1 B>/bin/B ?>x D>/bin/D D>big=0-9 D>both=0-1 "
                                  "D>used=0-2",
                                  soon, 2));
    learn(&m, t);
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.3, PAGE, &l, &n), 0);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        bool follower = strcmp(l[i].path, "/bin/D") == 0;

        assert_int_equal(model_predict_launch(sum, l[i].application, &p), 0);
        assert_near(file_of(p, "/f/both")->probability, 1);
        assert_int_equal(file_of(p, "/f/big") != NULL, follower);
        assert_int_equal(file_of(p, "/bin/D") != NULL, follower);
        assert_int_equal(file_of(p, "/f/own") != NULL, !follower);
        assert_int_equal(l[i].bytes, follower ? 12 * PAGE : 4 * PAGE);
        assert_non_null(file_of(p, "/f/used"));
        assert_false(l[i].helper);
        prediction_free(TAKE_PTR(p));
    }
}

/* B starts C, which reads much, in each session. D starts while B does in one of two. */
static void helpers_are_listed_last(void **state)
{
    static const usec_t alone[] = {500 * USEC_PER_MSEC, 1500 * USEC_PER_MSEC, 8500 * USEC_PER_MSEC};
    static const usec_t together[] = {500 * USEC_PER_MSEC, 1500 * USEC_PER_MSEC,
                                      3500 * USEC_PER_MSEC};
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    size_t n;

    learn(&m, session_with_starts(T0,
                                  "B>/bin/B C>/bin/C C>big=0-9 B>own=0-3 ?>x ?>x ?>x ?>x D>/bin/D "
                                  "D>d=0-2",
                                  alone, 3));
    learn(&m, session_with_starts(T0 + 1, "B>/bin/B C>/bin/C C>big=0-9 D>/bin/D D>d=0-2 B>own=0-3",
                                  together, 3));
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.6, PAGE, &l, &n), 0);
    assert_int_equal(n, 3);
    assert_string_equal(l[0].path, "/bin/B");
    assert_false(l[0].helper);
    assert_string_equal(l[1].path, "/bin/D");
    assert_false(l[1].helper);
    assert_string_equal(l[2].path, "/bin/C");
    assert_true(l[2].helper);
    assert_true((double)l[2].bytes * l[2].sessions > (double)l[1].bytes * l[1].sessions);
}

/* C and D start while B does, in the only session. C reads much, but its own process touches
 * nothing, like a program that ends at once. D touches what it opens. */
static void helpers_that_touch_pages_come_first(void **state)
{
    static const usec_t starts[] = {500 * USEC_PER_MSEC, 1500 * USEC_PER_MSEC,
                                    3500 * USEC_PER_MSEC};
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    Trace *t = session_with_starts(T0, "B>/bin/B C>/bin/C C>big=0-9 D>/bin/D D>d=0-2 B>own=0-3",
                                   starts, 3);
    size_t n;

    touch_opened(t, 2, "0-2");
    learn(&m, t);
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.6, PAGE, &l, &n), 0);
    assert_int_equal(n, 3);
    assert_string_equal(l[0].path, "/bin/B");
    assert_string_equal(l[1].path, "/bin/D");
    assert_true(l[1].helper);
    assert_true(l[1].touched_bytes > 0);
    assert_string_equal(l[2].path, "/bin/C");
    assert_true(l[2].helper);
    assert_int_equal(l[2].touched_bytes, 0);
    assert_true(l[2].bytes > l[1].bytes);
}

/* C is a helper of B. Both open something shortly before the kernel reports their starts at 1.4 and
 * 3.2 s, as each program opens itself. A has run since before the session. What A opens belongs to
 * no start of its own. */
static void a_start_begins_before_it_is_reported(void **state)
{
    static const usec_t starts[] = {1400 * USEC_PER_MSEC, 0, 3200 * USEC_PER_MSEC};
    static const usec_t late[] = {1600 * USEC_PER_MSEC, 0, 3200 * USEC_PER_MSEC};
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    size_t n;

    learn(&m, session_with_starts(T0, "B>own=0-3 A>icon=0-1 C>helper=0-2", starts, 3));
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.6, PAGE, &l, &n), 0);
    assert_int_equal(n, 2);
    assert_string_equal(l[0].path, "/bin/B");
    assert_int_equal(model_predict_launch(sum, l[0].application, &p), 0);
    assert_near(file_of(p, "/f/own")->probability, 1);
    assert_int_equal(file_of(p, "/f/own")->first_use, 0);
    assert_int_equal(file_of(p, "/f/helper")->first_use, 1600 * USEC_PER_MSEC);
    prediction_free(TAKE_PTR(p));
    assert_string_equal(l[1].path, "/bin/C");
    assert_int_equal(model_predict_launch(sum, l[1].application, &p), 0);
    assert_near(file_of(p, "/f/helper")->probability, 1);
    assert_null(file_of(p, "/f/own"));
    free(TAKE_PTR(l));
    model_free(TAKE_PTR(sum));
    model_free(TAKE_PTR(m));

    /* More than half a second earlier is no part of the start. */
    m = model_new(H);
    learn(&m, session_with_starts(T0, "B>own=0-3 A>icon=0-1 C>helper=0-2", late, 3));
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    prediction_free(TAKE_PTR(p));
    assert_int_equal(model_list_launches(sum, 0.6, PAGE, &l, &n), 0);
    assert_int_equal(model_predict_launch(sum, l[0].application, &p), 0);
    assert_null(file_of(p, "/f/own"));
}

/* A and B use the library x. The session shows pages 0 to 7 of it in memory. A has touched pages 1
 * and 2 in the first session, 2 and 3 in the second. In the third nothing is known. */
static void a_start_needs_what_it_touches(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *sum = NULL, *portable = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    static const usec_t start = 500 * USEC_PER_MSEC;
    Trace *one = session(STAGE_SESSION, 1000, T0, 0, "A>x=0-8 A>y=0-2", NULL);
    Trace *two = session(STAGE_SESSION, 1000, T0 + 1, 0, "A>x=0-8 A>y=0-2", NULL);
    const PredictedFile *f;
    size_t n;

    touch(one, "1-3");
    touch(two, "2-4");
    learn(&m, one);
    learn(&m, two);
    learn(&m, session_with_starts(T0 + 2, "A>x=0-8 A>y=0-2", &start, 1));
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.5, PAGE, &l, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(l[0].bytes, 2 * 3 * PAGE); /* pages 1 to 3 of x and of y */
    assert_int_equal(model_predict_launch(sum, l[0].application, &p), 0);
    f = file_of(p, "/f/x");
    assert_near(f->probability, 1);
    assert_int_equal(f->n_maps, 3);
    assert_int_equal(f->maps[0].offset, PAGE);
    assert_near(f->maps[0].probability, 0.5);
    assert_int_equal(f->maps[1].offset, 2 * PAGE);
    assert_near(f->maps[1].probability, 1);
    assert_near(f->maps[2].probability, 0.5);
    assert_true(f->touched);
    prediction_free(TAKE_PTR(p));

    /* The session itself needs what was in memory. */
    assert_int_equal(model_predict_stage(m, STAGE_SESSION, 1000, &p), 0);
    assert_false(file_of(p, "/f/x")->touched);
    assert_int_equal(file_of(p, "/f/x")->n_maps, 1);
    assert_int_equal(file_of(p, "/f/x")->maps[0].length, 8 * PAGE);

    /* A model that leaves the machine has no touched pages. */
    assert_int_equal(model_make_portable(m, &portable), 0);
    for (size_t i = 0; i < portable->n_stages; i++)
        for (size_t k = 0; k < portable->stages[i].n_uses; k++)
            assert_null(portable->stages[i].uses[k].touched);
}

/* The script A executes B, which touches pages 1 and 2 of x. A itself has touched nothing. */
static void a_script_needs_what_its_program_touches(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    Trace *t = session(STAGE_SESSION, 1000, T0, 0, "A>/bin/A=0-1 B>x=0-8 A>/bin/B=0-1 A>own=0-1",
                       NULL);
    size_t n;

    start_all(t);
    touch_opened(t, 1, "1-3");
    learn(&m, t);
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.5, PAGE, &l, &n), 0);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(l[i].path, "/bin/A") != 0)
            continue;
        assert_int_equal(model_predict_launch(sum, l[i].application, &p), 0);
        assert_true(file_of(p, "/f/x")->touched);
        assert_int_equal(file_of(p, "/f/x")->n_maps, 1);
        assert_int_equal(file_of(p, "/f/x")->maps[0].offset, PAGE);
        assert_int_equal(file_of(p, "/f/x")->maps[0].length, 2 * PAGE);
        assert_false(file_of(p, "/f/own")->touched);
    }
    assert_non_null(p);
}

static void append_blocks(char text[static 64], const PredictedMetadata *m, size_t n)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < n; i++)
        length += (size_t)snprintf(text + length, 64 - length, "%s%u-%u", i ? "," : "",
                                   (unsigned)(m[i].range.offset / PAGE),
                                   (unsigned)((m[i].range.offset + m[i].range.length) / PAGE));
}

/* Lists the blocks that the start of the application with that path needs, and those that it may
 * need: "1-3/8-9". */
static const char *metadata_of(const Model *m, const char *application)
{
    static char text[64];
    _cleanup_model_ Model *sum = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    uint32_t i = 0;

    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    while (strcmp(sum->files[sum->stages[0].applications[i].file].path, application) != 0)
        i++;
    assert_int_equal(model_predict_launch(sum, i, &p), 0);
    text[0] = 0;
    append_blocks(text, p->metadata, p->n_metadata);
    text[strlen(text) + 1] = 0;
    text[strlen(text)] = '/';
    append_blocks(text, p->seen, p->n_seen);
    return text;
}

/* Checks whether control starts have shown what each of the two applications needs. */
static void assert_controlled(const Model *m, bool a, bool b)
{
    _cleanup_model_ Model *sum = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    size_t n;

    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, 1000, &sum), 0);
    assert_int_equal(model_list_launches(sum, 0.1, 0, &l, &n), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(l[i].controlled, strcmp(l[i].path, "/bin/A") == 0 ? a : b);
}

/* The session without replay reads blocks 0 to 9. Control starts of A need blocks 1 and 2, then 2
 * and 20; nothing shows what B needs. */
static void a_start_needs_the_metadata_of_control_starts(void **state)
{
    static const usec_t starts[] = {500 * USEC_PER_MSEC, 600 * USEC_PER_MSEC};
    _cleanup_model_ Model *m = model_new(H), *copy = NULL, *portable = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ char *text = NULL, **to = NULL;
    Trace *one = session(STAGE_SESSION, 1000, T0, 0, "A>x=0-8 B>y=0-2", "0-10"), *t;
    char gone[] = "";
    size_t size;

    learn(&m, one);
    assert_controlled(m, false, false);
    t = session_with_starts(T0 + 1, "A>x=0-8 B>y=0-2", starts, 2);
    t->flags |= TRACE_REPLAYED | TRACE_CONTROL;
    need(t, 0, "1-3");
    learn(&m, t);
    assert_string_equal(metadata_of(m, "/bin/A"), "1-3/");
    assert_string_equal(metadata_of(m, "/bin/B"), "/0-10");
    assert_controlled(m, true, false);
    t = session_with_starts(T0 + 2, "A>x=0-8 B>y=0-2", starts, 2);
    need(t, 0, "2-3,20-21");
    learn(&m, t);
    assert_string_equal(metadata_of(m, "/bin/A"), "1-2,2-3,20-21/");

    /* The session itself reads what sessions have read. */
    assert_int_equal(model_predict_stage(m, STAGE_SESSION, 1000, &p), 0);
    assert_int_equal(p->n_metadata, 1);
    assert_int_equal(p->metadata[0].range.length, 10 * PAGE);

    /* The rows come back from a file. */
    text = bytes_of(m);
    size = strlen(text);
    assert_int_equal(model_from_json(text, size, &copy, NULL), 0);
    assert_string_equal(metadata_of(copy, "/bin/A"), "1-2,2-3,20-21/");

    /* They follow the application to a new name, and go with it. */
    to = calloc(copy->n_files, sizeof(*to));
    assert_non_null(to[model_find_file(copy, "/bin/A")] = strdup("/bin/N"));
    assert_int_equal(model_move_files(copy, to), 0);
    assert_string_equal(metadata_of(copy, "/bin/N"), "1-2,2-3,20-21/");
    free(TAKE_PTR(to));
    to = calloc(copy->n_files, sizeof(*to));
    to[model_find_file(copy, "/bin/N")] = gone;
    assert_int_equal(model_move_files(copy, to), 0);
    assert_int_equal(copy->stages[0].n_metadata, 1);
    assert_null(copy->stages[0].metadata[0].application);

    /* A model that leaves the machine has none. */
    assert_int_equal(model_make_portable(m, &portable), 0);
    for (size_t i = 0; i < portable->n_stages; i++)
        assert_int_equal(portable->stages[i].n_metadata, 0);
}

/* A start that was not observed tells nothing, nor does one of an application that is gone. */
static void metadata_needs_an_observed_start(void **state)
{
    static const usec_t starts[] = {0, 500 * USEC_PER_MSEC};
    _cleanup_model_ Model *m = model_new(H);
    Trace *t = session_with_starts(T0, "A>x=0-8 B>y=0-2", starts, 2);

    need(t, 0, "1-3"); /* it ran before the session */
    need(t, 1, "4-5");
    learn(&m, t);
    assert_int_equal(m->stages[0].n_metadata, 1);
    assert_string_equal(m->stages[0].metadata[0].application, "/bin/B");
    for (int i = 1; i <= 60; i++)
        learn(&m, session(STAGE_SESSION, 1000, T0 + (usec_t)i, 0, "A>x=0-8", NULL));
    assert_int_equal(model_prune(&m, 0.05), 0);
    assert_int_equal(m->stages[0].n_metadata, 0);
}

static void limits_of_a_merger(void **state)
{
    _cleanup_model_ Model *a = model_new(H), *b = model_new(H + 1), *m = NULL;

    assert_int_equal(model_merge(a, b, &m), -EINVAL);
    assert_null(m);
}

static bool is_path(const char *list, const char *path)
{
    return strcmp(list, path) == 0;
}

static void a_prediction_is_cut_to_the_likeliest(void **state)
{
    static const double chances[] = {0.5, 0.9, 0.5, 0.1, 0.7};
    _cleanup_prediction_ Prediction *p = calloc(1, sizeof(*p));
    char path[8];

    assert_non_null(p);
    p->files = calloc(5, sizeof(PredictedFile));
    assert_non_null(p->files);
    for (; p->n_files < 5; p->n_files++) {
        snprintf(path, sizeof(path), "/f%zu", p->n_files);
        p->files[p->n_files] = (PredictedFile){
                .path = strdup(path),
                .probability = chances[p->n_files],
                .maps = calloc(1, sizeof(PredictedRange)),
                .n_maps = 1,
        };
    }
    prediction_keep_likeliest(p, 5);
    assert_int_equal(p->n_files, 5);
    prediction_keep_likeliest(p, 3);
    assert_int_equal(p->n_files, 3);
    assert_string_equal(p->files[0].path, "/f0"); /* as likely as /f2, and before it */
    assert_string_equal(p->files[1].path, "/f1");
    assert_string_equal(p->files[2].path, "/f4");
    prediction_remove_files(p, is_path, "/f1");
    assert_int_equal(p->n_files, 2);
    assert_string_equal(p->files[0].path, "/f0");
    assert_string_equal(p->files[1].path, "/f4");
    prediction_keep_likeliest(p, 0);
    assert_int_equal(p->n_files, 0);
}

#define FRAGMENTS 300000U

static void likely_bytes_of_a_fragmented_file(void **state)
{
    PredictedRange *maps = calloc(FRAGMENTS, sizeof(*maps));
    PredictedFile f = {.path = (char *)"/f", .probability = 1, .maps = maps, .n_maps = FRAGMENTS};
    const Prediction p = {.files = &f, .n_files = 1};
    clock_t begin = clock();
    uint64_t bytes = 0;

    assert_non_null(maps);
    for (size_t i = 0; i < FRAGMENTS; i++)
        maps[i] = (PredictedRange){2 * i * PAGE, PAGE, i % 2 ? 0.6 : 0.4};
    for (size_t i = 0; i < FRAGMENTS; i++)
        bytes += prediction_likely_bytes(&p, "/f", (Range){2 * i * PAGE, PAGE}, 0.5);
    assert_int_equal(bytes, FRAGMENTS / 2 * PAGE);
    assert_in_range(clock() - begin, 0, 10 * CLOCKS_PER_SEC);
    /* A range begins and ends within other ranges. */
    assert_int_equal(prediction_likely_bytes(&p, "/f", (Range){2 * PAGE + 1, 4 * PAGE}, 0.5), PAGE);
    free(maps);
}

#define NEEDING (MODEL_NEEDED_MAX / 2 + 50)

/* Learns a session of the user in which NEEDING applications of the folder needed metadata. */
static void learn_needing(Model **m, uint32_t uid, const char *folder)
{
    _cleanup_trace_ Trace *t = session(STAGE_SESSION, uid, T0 + uid, 0, "A>x=0-1", NULL);
    ModelStage *s = NULL;

    for (unsigned i = 0; i < NEEDING; i++) {
        uint32_t file, application;
        char name[16];

        snprintf(name, sizeof(name), "%05u", i);
        file = test_file(t, folder, name, false);
        assert_int_equal(trace_add_application(t, file, &application), 0);
        assert_int_equal(trace_add_access(t, &(TraceAccess){.at = t->duration,
                                                            .file = file,
                                                            .application = application}),
                         0);
    }
    assert_int_equal(model_learn(m, t, T0 + uid), 0);
    for (size_t i = 0; i < (*m)->n_stages; i++)
        s = (*m)->stages[i].uid == uid ? &(*m)->stages[i] : s;
    assert_non_null(s);
    assert_int_equal(
            grow_array(&s->metadata, &s->allocated_metadata, NEEDING, sizeof(ModelMetadata)), 0);
    for (unsigned i = 0; i < NEEDING; i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/%05u", folder, i);
        s->metadata[s->n_metadata++] = (ModelMetadata){
                .uuid = strdup(UUID), .application = strdup(path), .observed = s->sessions};
    }
}

/* One user's applications do not make the sum of all users fail. */
static void needed_metadata_is_bounded(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *sum = NULL;
    const ModelStage *s;
    size_t n = 0;

    (void)state;
    learn_needing(&m, 1001, "/home/u");
    learn_needing(&m, 1000, "/usr/bin");
    assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, UID_INVALID, &sum), 0);
    s = &sum->stages[0];
    assert_int_equal(s->n_metadata, MODEL_NEEDED_MAX);
    for (size_t i = 0; i < s->n_metadata; i++) {
        n += strncmp(s->metadata[i].application, "/usr/", 5) == 0;
        assert_true(i == 0 ||
                    strcmp(s->metadata[i - 1].application, s->metadata[i].application) < 0);
    }
    assert_int_equal(n, NEEDING);
}

#define MOUNTED (TRACE_VOLUMES_MAX / 2 + 50)

/* Learns a session of the user that read metadata of MOUNTED filesystems that no session with
 * another `i` has, and of the filesystem UUID. */
static void learn_mounting(Model **m, unsigned i, uint32_t uid, unsigned flags)
{
    _cleanup_trace_ Trace *t = session(STAGE_SESSION, uid, T0, flags, "A>x=0-1", "0-1");
    uint32_t id;

    for (unsigned k = 0; k < MOUNTED; k++) {
        char uuid[37];
        TraceVolume v = {
                .uuid = uuid,
                .fstype = (char *)"ext4",
                .size_bytes = 1U << 30,
                .metadata_source = METADATA_SOURCE_CACHESTAT,
        };

        snprintf(uuid, sizeof(uuid), "%08x-0000-0000-0000-%012x", i, k);
        test_ranges("0-1", PAGE, &v.metadata);
        assert_int_equal(trace_add_volume(t, &v, &id), 0);
        range_set_done(&v.metadata);
    }
    assert_int_equal(model_learn(m, t, T0), 0);
}

/* The filesystems that users have mounted do not make the sum of all users fail. The sum keeps what
 * most sessions show, and is the same in any order. */
static void metadata_of_filesystems_is_bounded(void **state)
{
    static const unsigned flags[] = {0, TRACE_REPLAYED};

    (void)state;
    for (size_t f = 0; f < ELEMENTSOF(flags); f++) {
        _cleanup_model_ Model *m = model_new(H), *sum = NULL, *other = model_new(H);
        _cleanup_model_ Model *one = model_new(H), *ab = NULL, *ba = NULL;
        _cleanup_free_ char *text = NULL, *again = NULL;
        size_t n = 0, size, size_again;

        for (unsigned i = 0; i < 2; i++)
            learn_mounting(&m, i, 1000 + i, flags[f]);
        assert_int_equal(model_sum_stages(m, 1U << STAGE_SESSION, UID_INVALID, &sum), 0);
        assert_int_equal(sum->stages[0].n_metadata, TRACE_VOLUMES_MAX);
        for (size_t i = 0; i < TRACE_VOLUMES_MAX; i++) {
            const ModelMetadata *d = &sum->stages[0].metadata[i];

            n += strcmp(d->uuid, UUID) == 0;
            assert_int_equal(d->assumed, flags[f] != 0);
            assert_true(i == 0 || strcmp(d[-1].uuid, d->uuid) < 0);
        }
        assert_int_equal(n, 1);

        learn_mounting(&one, 0, 1000, flags[f]);
        learn_mounting(&other, 1, 1000, flags[f]);
        assert_int_equal(model_merge(one, other, &ab), 0);
        assert_int_equal(model_merge(other, one, &ba), 0);
        assert_int_equal(model_to_json(ab, &text, &size), 0);
        assert_int_equal(model_to_json(ba, &again, &size_again), 0);
        assert_int_equal(size, size_again);
        assert_memory_equal(text, again, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_prediction_is_cut_to_the_likeliest),
            cmocka_unit_test(likely_bytes_of_a_fragmented_file),
            cmocka_unit_test(needed_by_either_application),
            cmocka_unit_test(needed_by_one_application_or_the_other),
            cmocka_unit_test(needed_metadata_is_bounded),
            cmocka_unit_test(a_hundred_applications_in_one_session),
            cmocka_unit_test(metadata_of_filesystems_is_bounded),
            cmocka_unit_test(unknown_applications_count_as_one),
            cmocka_unit_test(ranges_by_their_frequency),
            cmocka_unit_test(older_sessions_fade),
            cmocka_unit_test(what_has_decayed_is_gone),
            cmocka_unit_test(horizon_and_first_use_are_means),
            cmocka_unit_test(timing_is_learned_without_replay),
            cmocka_unit_test(an_automatic_login_is_a_habit),
            cmocka_unit_test(most_boots_are_recorded_late),
            cmocka_unit_test(one_prediction_follows_another),
            cmocka_unit_test(both_are_ready_when_the_second_is),
            cmocka_unit_test(users_apart_and_together),
            cmocka_unit_test(replayed_sessions_tell_of_use_only),
            cmocka_unit_test(metadata_is_assumed_until_it_is_observed),
            cmocka_unit_test(files_without_observed_metadata_are_marked),
            cmocka_unit_test(metadata_of_the_login_is_read_in_the_boot),
            cmocka_unit_test(looked_up_names_are_needed),
            cmocka_unit_test(directories_are_listed_if_most_sessions_open_them),
            cmocka_unit_test(data_of_a_file_that_is_only_looked_up_is_not_needed),
            cmocka_unit_test(an_open_and_a_lookup_exclude_each_other),
            cmocka_unit_test(a_directory_is_listed_in_the_stages_that_open_it),
            cmocka_unit_test(an_automatic_login_needs_the_running_programs),
            cmocka_unit_test(assumed_until_the_truth_is_known),
            cmocka_unit_test(exact_ranges_come_before_others),
            cmocka_unit_test(a_trace_is_learned_once),
            cmocka_unit_test(the_latest_learned_are_remembered),
            cmocka_unit_test(traces_of_any_time_are_remembered),
            cmocka_unit_test(unfit_traces_are_told),
            cmocka_unit_test(wild_stamps_wipe_nothing),
            cmocka_unit_test(early_stamps_fade),
            cmocka_unit_test(a_clock_that_runs_back_wipes_nothing),
            cmocka_unit_test(a_model_from_the_future_is_brought_back),
            cmocka_unit_test(a_date_half_a_year_ahead_erases_nothing),
            cmocka_unit_test(a_date_two_months_ahead_erases_nothing),
            cmocka_unit_test(a_dead_clock_at_each_boot_erases_nothing),
            cmocka_unit_test(clocks_are_settled_before_merging),
            cmocka_unit_test(settling_leaves_sound_clocks_alone),
            cmocka_unit_test(jumps_over_generations),
            cmocka_unit_test(rare_things_are_pruned),
            cmocka_unit_test(assumptions_are_pruned),
            cmocka_unit_test(the_same_path_twice_in_a_trace),
            cmocka_unit_test(read_on_behalf_of_what_was_started),
            cmocka_unit_test(a_start_reads_with_its_helpers),
            cmocka_unit_test(a_start_has_nothing_that_is_opened_all_the_time),
            cmocka_unit_test(a_start_has_nothing_of_what_often_follows),
            cmocka_unit_test(helpers_are_listed_last),
            cmocka_unit_test(helpers_that_touch_pages_come_first),
            cmocka_unit_test(a_start_begins_before_it_is_reported),
            cmocka_unit_test(a_start_needs_what_it_touches),
            cmocka_unit_test(a_script_needs_what_its_program_touches),
            cmocka_unit_test(a_start_needs_the_metadata_of_control_starts),
            cmocka_unit_test(metadata_needs_an_observed_start),
            cmocka_unit_test(limits_of_a_merger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
