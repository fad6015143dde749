/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which data may leave the machine: model_make_portable(). */

#include "util/model-util.h"

static void paths(void **state)
{
    static const char *const yes[] = {"/usr",
                                      "/usr/bin/app",
                                      "/usr/lib",
                                      "/lib/x",
                                      "/etc/passwd",
                                      "/etc/ssl/certs/ca.pem",
                                      "/etc/pam.d/login",
                                      "/var/cache/fontconfig/a.cache-8"};
    static const char *const no[] = {"/",
                                     "/home/alice/.ssh/id",
                                     "/root/x",
                                     "/usr/local/bin/secret",
                                     "/usr/local",
                                     "/etc/NetworkManager/system-connections/Home.nmconnection",
                                     "/etc/ssh/sshd_config",
                                     "/etc/ssl/private/key",
                                     "/etc/netctl/wlan0-AliceHome",
                                     "/etc/sysconfig/network-scripts/ifcfg-ClinicWifi",
                                     "/etc/libvirt/qemu/secretvm.xml",
                                     "/etc/ppp/peers/isp",
                                     "/etc/systemd/system/bobs-backup.service",
                                     "/etc",
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
        Trace *t = session(sessions[i].stage, sessions[i].uid, T0, 0, "A>x=0-2 B>y=0-1", "0-4");

        assert_int_equal(model_learn(&m, t, T0), 0);
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
        /* Two logins count twice, one boot once. */
        assert_int_equal(s->sessions.current, (s->stage == STAGE_LOGIN ? 2 : 1) * 256);
    }
    assert_int_equal(model_find_file(portable, "/f/x"), MODEL_NONE);
    assert_int_not_equal(model_find_file(portable, "/bin/A"), MODEL_NONE);
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

static void nothing_learned(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *portable = NULL;

    assert_int_equal(model_make_portable(m, &portable), 0);
    assert_int_equal(portable->n_stages, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(paths),
            cmocka_unit_test(users_become_one),
            cmocka_unit_test(once_is_enough),
            cmocka_unit_test(nothing_learned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
