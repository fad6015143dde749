/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which data may leave the machine (model_make_portable()), and which data stays in the sum
 * of a fleet's models (model_drop_rare()). */

#include "util/model-util.h"

static void paths(void **state)
{
    static const char *const yes[] = {"/usr",
                                      "/usr/bin/app",
                                      "/usr/lib",
                                      "/lib/x",
                                      "/etc/passwd",
                                      "/etc/ssl/certs",
                                      "/etc/ssl/certs/ca-certificates.crt",
                                      "/etc/default/locale",
                                      "/etc/init.d",
                                      "/etc/init.d/udev",
                                      "/etc/pam.d/login",
                                      "/etc",
                                      "/usr/local",
                                      "/var/lib/systemd",
                                      "/etc/NetworkManager/system-connections",
                                      "/etc/systemd/system",
                                      "/etc/systemd/system/getty.target.wants",
                                      "/etc/systemd/user/sockets.target.requires",
                                      "/var/cache/fontconfig/a.cache-8"};
    static const char *const no[] = {"/",
                                     "/home/alice/.ssh/id",
                                     "/root/x",
                                     "/usr/local/bin/secret",
                                     "/etc/NetworkManager/system-connections/Home.nmconnection",
                                     "/etc/ssh/sshd_config",
                                     "/etc/ssl/certs/ca.pem",
                                     "/etc/ssl/certs/clinic-internal-ca.pem",
                                     "/etc/default/bobs-backup",
                                     "/etc/init.d/bobs-backup",
                                     "/etc/ssl/private/key",
                                     "/etc/netctl/wlan0-AliceHome",
                                     "/etc/sysconfig/network-scripts/ifcfg-ClinicWifi",
                                     "/etc/libvirt/qemu/secretvm.xml",
                                     "/etc/ppp/peers/isp",
                                     "/etc/systemd/system/bobs-backup.service",
                                     "/etc/systemd/system/getty.target.wants/getty@tty9.service",
                                     "/etc/systemd/system/clinic.target.wants",
                                     "/etc/systemd/system/gettys.target.wants",
                                     "/etc/systemd/network/40-home.network",
                                     "/var/lib/AccountsService/users/alice",
                                     "/var/spool/cron/crontabs/alice",
                                     "/root/.cache",
                                     "/usr/home/alice",
                                     "/opt/tool",
                                     "/srv",
                                     "/var/lib/x",
                                     "/var/cache/fontconfig2",
                                     "/usrlocal",
                                     "/libfoo",
                                     ""};

    for (size_t i = 0; i < ELEMENTSOF(yes); i++)
        assert_true(model_path_is_portable(yes[i]));
    for (size_t i = 0; i < ELEMENTSOF(no); i++)
        assert_false(model_path_is_portable(no[i]));
}

/* Traces name files below /f and /bin; those below /f stay on the machine. */
static void users_become_one(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *portable = NULL;
    const struct {
        Stage stage;
        uint32_t uid;
    } sessions[] = {{STAGE_LOGIN, 1000}, {STAGE_LOGIN, 1001}, {STAGE_BOOT, TRACE_NONE}};

    for (size_t i = 0; i < ELEMENTSOF(sessions); i++) {
        const usec_t at = T0 + 5 * USEC_PER_SEC;
        Trace *t = session(sessions[i].stage, sessions[i].uid, at, 0, "A>x=0-2 B>y=0-1", "0-4");

        assert_int_equal(model_learn(&m, t, at), 0);
        trace_free(t);
    }
    assert_int_equal(model_make_portable(m, &portable), 0);
    assert_int_equal(portable->n_stages, 2);
    assert_int_equal(portable->n_learned, 0);
    assert_null(portable->chains);
    for (size_t i = 0; i < portable->n_stages; i++) {
        const ModelStage *s = &portable->stages[i];

        assert_int_equal(s->uid, UID_INVALID);
        assert_int_equal(s->n_metadata, 0);
        assert_int_equal(s->n_uses, 0);
        assert_int_equal(s->n_applications, 2);
        /* Two logins count as two sessions, and one boot as one. */
        assert_int_equal(s->sessions.current, (s->stage == STAGE_LOGIN ? 2 : 1) * 256);
    }
    assert_int_equal(model_find_file(portable, "/f/x"), MODEL_NONE);
    assert_int_not_equal(model_find_file(portable, "/bin/A"), MODEL_NONE);
    /* Nobody sees when the last session was. */
    assert_int_equal(portable->clock % USEC_PER_HOUR, 0);
    assert_in_range(m->clock - portable->clock, 1, 24 * USEC_PER_HOUR - 1);
    assert_int_equal(decayed_sum_generation(portable->clock, H), portable->generation);
    /* The original model is unchanged. */
    assert_int_equal(m->n_stages, 3);
    assert_int_not_equal(model_find_file(m, "/f/x"), MODEL_NONE);
}

/* A portable model does not change when it is made portable again. */
static void once_is_enough(void **state)
{
    static const Stage stages[] = {STAGE_BOOT, STAGE_LOGIN, STAGE_SESSION};
    _cleanup_model_ Model *m = model_new(H), *portable = NULL, *again = NULL;
    size_t n_directories = 0;

    for (size_t i = 0; i < ELEMENTSOF(stages); i++) {
        /* Data that only one stage has, and data that all stages have. */
        Trace *t = session(stages[i], 1000, T0, 0, i == 1 ? "A>x=0-2" : "B>y=0-1", "0-4");
        TraceAccess a = {.at = 9 * USEC_PER_SEC, .application = TRACE_NONE};

        a.file = test_file(t, "/usr/share", "icons", true);
        assert_int_equal(trace_add_access(t, &a), 0);
        assert_int_equal(model_learn(&m, t, T0), 0);
        trace_free(t);
    }
    assert_int_equal(model_make_portable(m, &portable), 0);
    assert_int_equal(model_make_portable(portable, &again), 0);
    for (size_t i = 0; i < portable->n_files; i++)
        if (portable->files[i].directory) {
            assert_int_equal(portable->files[i].as_directory.current, 3 * 256);
            n_directories++;
        }
    assert_int_equal(n_directories, 1);
    assert_same(portable, again);
}

/* Makes a recording of a stage with its times. */
static Trace *timed(Stage stage, uint32_t uid, usec_t at, unsigned flags)
{
    Trace *t = session(stage, uid, at, flags, "A>x=0-2", NULL);

    t->timing = (TraceTiming){.ready = 4 * USEC_PER_SEC, .stalled = 2 * USEC_PER_SEC, .n_cpus = 2};
    return t;
}

static bool has_times(const Model *m)
{
    for (size_t i = 0; i < m->n_stages; i++)
        if (!decayed_sum_is_zero(m->stages[i].timing.sessions) ||
            !decayed_sum_is_zero(m->stages[i].timing.ready) ||
            !decayed_sum_is_zero(m->stages[i].timing.stalled))
            return true;
    return false;
}

/* Another disk needs other times, and another machine has other habits. That the beginning of a
 * boot is missing holds for the files of the export, too. */
static void times_and_habits_stay_on_the_machine(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *portable = NULL;
    uint32_t uid;

    learn(&m, timed(STAGE_BOOT, TRACE_NONE, T0, TRACE_LATE));
    learn(&m, timed(STAGE_LOGIN, 1000, T0, TRACE_AUTOLOGIN));
    assert_true(has_times(m));
    assert_int_equal(model_make_portable(m, &portable), 0);
    assert_false(has_times(portable));
    assert_int_equal(portable->n_stages, 2);
    for (size_t i = 0; i < portable->n_stages; i++)
        assert_true(decayed_sum_is_zero(portable->stages[i].autologins));
    assert_true(model_boots_are_late(portable));
    /* A sum of exports of older versions has them, too. */
    portable->stages[0].timing = m->stages[0].timing;
    portable->stages[1].timing = m->stages[1].timing;
    portable->stages[1].autologins = portable->stages[1].sessions;
    assert_true(has_times(portable));
    assert_int_equal(model_drop_rare(&portable, 1), 0);
    assert_int_equal(portable->n_stages, 2);
    assert_false(has_times(portable));
    assert_true(decayed_sum_is_zero(portable->stages[1].autologins));
    /* A user's own automatic logins stay in a model that this machine has learned before. */
    model_drop_machine_facts(m);
    assert_false(has_times(m));
    assert_true(model_predict_autologin(m, &uid));
}

static void nothing_learned(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *portable = NULL;

    assert_int_equal(model_make_portable(m, &portable), 0);
    assert_int_equal(portable->n_stages, 0);
}

/* --- counts of machines ----------------------------------------------------------------------- */

/* Makes the model of a machine that has learned one login at `at`: /bin/A opens /f/x and the files
 * of /usr/share that `names` lists. */
static Model *learned(usec_t at, const char *names)
{
    _cleanup_free_ char *words = strdup(names);
    Trace *t = session(STAGE_LOGIN, 1000, at, 0, "A>x=0-2", "0-4");

    for (char *save = NULL, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        TraceAccess a = {.at = 5 * USEC_PER_SEC, .application = 0};

        a.file = test_file(t, "/usr/share", w, false);
        assert_int_equal(trace_add_access(t, &a), 0);
    }
    return model_of(t);
}

/* Makes the model that such a machine exports. */
static Model *exported(usec_t at, const char *names)
{
    _cleanup_model_ Model *m = learned(at, names);
    Model *portable;

    assert_int_equal(model_make_portable(m, &portable), 0);
    return portable;
}

/* Replaces *m by its sum with `next`, which is freed. */
static void add_to(Model **m, Model *next)
{
    Model *sum = merged(*m, next);

    model_free(*m);
    model_free(next);
    *m = sum;
}

/* Returns the number of machines that have seen the file in the first stage, or 0. */
static uint64_t machines_of(const Model *m, const char *path)
{
    uint32_t file = model_find_file(m, path);

    for (size_t i = 0; m->n_stages > 0 && i < m->stages[0].n_files; i++)
        if (m->stages[0].files[i].file == file)
            return model_count_machines(m->stages[0].files[i].machines);
    return 0;
}

static void rare_files_are_dropped(void **state)
{
    _cleanup_model_ Model *sum = model_new(H), *all = NULL, *empty = model_new(H);

    add_to(&sum, exported(T0, "common two"));
    add_to(&sum, exported(T0 + H, "common two secret"));
    add_to(&sum, exported(T0 + 2 * H, "common"));
    /* This model was not exported: it counts as no machine. */
    add_to(&sum, learned(T0 + 2 * H, "common raw"));
    assert_int_equal(sum->n_stages, 2);

    for (uint64_t k = 1; k <= 4; k++) {
        all = merged(sum, empty);
        assert_int_equal(model_drop_rare(&all, k), 0);
        assert_int_equal(all->n_stages, k <= 3);
        assert_int_equal(machines_of(all, "/usr/share/common"), k <= 3 ? 3 : 0);
        assert_int_equal(machines_of(all, "/usr/share/two"), k <= 2 ? 2 : 0);
        assert_int_equal(machines_of(all, "/usr/share/secret"), k <= 1 ? 1 : 0);
        assert_int_equal(all->n_files, k == 1 ? 4 : k == 2 ? 3 : k == 3 ? 2 : 0);
        /* The uses of dropped files are dropped, too. */
        assert_int_equal(k <= 3 ? all->stages[0].n_uses : 0, k <= 3 ? 4 - k : 0);
        assert_int_equal(all->n_learned, 0);
        all = model_free(all);
    }
}

/* A stage and two uses are rare although their files are not. */
static void rare_uses_are_dropped(void **state)
{
    _cleanup_model_ Model *sum = model_new(H);
    const struct {
        Stage stage;
        const char *uses;
    } machines[] = {{STAGE_LOGIN, "A>x B>x"}, {STAGE_LOGIN, "B>x A>x"}, {STAGE_BOOT, "A>x"}};

    for (size_t i = 0; i < ELEMENTSOF(machines); i++) {
        Trace *t = session(machines[i].stage, 1000, T0, 0, machines[i].uses, NULL);
        TraceAccess a = {.at = 9 * USEC_PER_SEC, .application = 0};
        _cleanup_model_ Model *m = NULL;
        Model *portable;

        a.file = test_file(t, "/usr/share", "icons", false);
        assert_int_equal(trace_add_access(t, &a), 0);
        m = model_of(t);
        assert_int_equal(model_make_portable(m, &portable), 0);
        add_to(&sum, portable);
    }
    assert_int_equal(model_drop_rare(&sum, 2), 0);
    /* A used the icons on one machine, B on another; two machines have opened them. */
    assert_int_equal(sum->n_stages, 1);
    assert_int_equal(sum->stages[0].stage, STAGE_LOGIN);
    assert_int_equal(sum->stages[0].n_applications, 2);
    assert_int_equal(sum->stages[0].n_uses, 0);
    assert_int_equal(machines_of(sum, "/usr/share/icons"), 2);
}

/* Counts expire with the sessions, in any order and grouping. */
static void machines_expire_with_their_sessions(void **state)
{
    const usec_t generation = DECAYED_SUM_SPAN * H;
    Model *m[] = {exported(T0, "a b"), exported(T0 + generation, "a c"),
                  exported(T0 + 2 * generation, "b"), exported(T0 + 2 * generation + H, "a b")};
    _cleanup_model_ Model *first = NULL;
    static const uint8_t orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};

    for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
        const uint8_t *o = orders[i];
        _cleanup_model_ Model *x = merged(m[o[0]], m[o[1]]), *y = merged(m[o[2]], m[o[3]]),
                              *pairs = merged(x, y), *xz = merged(x, m[o[2]]),
                              *chain = merged(xz, m[o[3]]);

        assert_same(pairs, chain);
        if (!first)
            first = merged(pairs, chain);
        else {
            _cleanup_model_ Model *twice = merged(pairs, chain);

            assert_same(first, twice);
        }
        assert_int_equal(machines_of(pairs, "/usr/share/a"), 2);
        assert_int_equal(machines_of(pairs, "/usr/share/b"), 2);
        assert_int_equal(machines_of(pairs, "/usr/share/c"), 1);
        assert_int_equal(model_count_machines(pairs->stages[0].machines), 3);
    }
    /* A machine whose model is merged twice counts twice. */
    assert_int_equal(machines_of(first, "/usr/share/c"), 2);
    for (size_t i = 0; i < ELEMENTSOF(m); i++)
        model_free(m[i]);
}

/* The counts survive saving and loading, and a clock that is set back. The export of a sum counts
 * as one machine. */
static void counts_come_back(void **state)
{
    _cleanup_model_ Model *m = exported(T0, "a"), *back = NULL, *again = NULL;
    _cleanup_free_ char *text = NULL;

    add_to(&m, exported(T0 + H, "a"));
    text = bytes_of(m);
    assert_int_equal(model_from_json(text, strlen(text), &back, NULL), 0);
    assert_same(m, back);
    assert_int_equal(model_settle_clock(&back, T0 - 20 * DECAYED_SUM_SPAN * H), 0);
    assert_int_equal(machines_of(back, "/usr/share/a"), 2);
    assert_int_equal(model_make_portable(m, &again), 0);
    assert_int_equal(machines_of(again, "/usr/share/a"), 1);
}

/* Invalid numbers of machines are refused in each member. */
static void impossible_counts_are_refused(void **state)
{
    static const char *const columns[] = {"\"stage\":", "\"applications\":[", "\"uses\":[",
                                          "\"files\":["};
    _cleanup_model_ Model *m = exported(T0, "a"), *refused = NULL;
    _cleanup_free_ char *text = bytes_of(m);

    for (size_t i = 0; i < ELEMENTSOF(columns); i++)
        for (int how = 0; how < 2; how++) {
            char *copy = strdup(text), *at = strstr(strstr(copy, "\"machines\""), columns[i]);

            assert_non_null(at);
            at += strlen(columns[i]);
            /* Row 1 of the sums is one machine, and row 2 is one session of weight 256. There is no
             * row 3. */
            assert_int_equal(*at, '1');
            *at = how == 0 ? '3' : i == 0 ? '0' : '-';
            assert_int_equal(model_from_json(copy, strlen(copy), &refused, NULL), -EBADMSG);
            free(copy);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(paths),
            cmocka_unit_test(users_become_one),
            cmocka_unit_test(once_is_enough),
            cmocka_unit_test(times_and_habits_stay_on_the_machine),
            cmocka_unit_test(nothing_learned),
            cmocka_unit_test(rare_files_are_dropped),
            cmocka_unit_test(rare_uses_are_dropped),
            cmocka_unit_test(machines_expire_with_their_sessions),
            cmocka_unit_test(counts_come_back),
            cmocka_unit_test(impossible_counts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
