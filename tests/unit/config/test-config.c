/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests headstart.conf: precedence, masking, every key, and the message for a bad line. */

#include "base/macros.h"
#include "config/config.h"
#include "util/root-util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Fixture {
    TestRoot root;
    unsigned n_warnings;
    char last[512]; /* "file:line: message" */
} Fixture;

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));

    *state = f;
    return f ? test_root_make(&f->root) : -1;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    int r = test_root_remove(&f->root);

    free(f);
    return r;
}

static void put(Fixture *f, const char *path, const char *text)
{
    test_root_put(&f->root, path, text);
}

static void warned(void *userdata, const char *file, unsigned line, const char *message)
{
    Fixture *f = userdata;

    f->n_warnings++;
    snprintf(f->last, sizeof(f->last), "%s:%u: %s", file, line, message);
}

static Config load(Fixture *f)
{
    Config c;

    f->n_warnings = 0;
    f->last[0] = 0;
    assert_int_equal(config_load(f->root.fd, warned, f, &c, NULL), 0);
    return c;
}

static void defaults(void **state)
{
    Config c = load(*state), d = config_default();

    assert_int_equal(((Fixture *)*state)->n_warnings, 0);
    assert_true(c.halflife_usec == 168 * USEC_PER_HOUR);
    assert_int_equal(c.budget.formula, BUDGET_AVAILABLE);
    assert_int_equal(c.budget.total_percent, -10);
    assert_int_equal(c.budget.free_percent, 100);
    assert_int_equal(c.budget.cached_percent, 30);
    assert_int_equal(c.boot_policy, _POLICY_INVALID);
    assert_int_equal(c.login_policy, _POLICY_INVALID);
    assert_true(c.deadline_usec == d.deadline_usec);
    assert_true(c.deadline_usec > 0 && c.deadline_usec <= 60 * USEC_PER_SEC);
    assert_int_equal(c.maximum_waste_percent, 100);
    assert_int_equal(c.launch_replay, LAUNCH_MODE_AUTO);
}

static void every_key(void **state)
{
    Fixture *f = *state;

    put(f, "etc/headstart/headstart.conf",
        "# a comment\n"
        "[Model]\n"
        "HalfLife = 24h\n"
        "\n"
        "[Memory]\n"
        "Budget=256M\n"
        "MemTotal=-20%\n"
        "  MemFree=50\n"
        "MemCached=0%\n"
        "; another\n"
        "[Replay]\n"
        "BootPolicy=gate\n"
        "LoginPolicy=idle\n"
        "Deadline=2500ms\n"
        "ControlInterval=20");
    Config c = load(f);
    assert_string_equal(f->last, "");
    assert_true(c.halflife_usec == 24 * USEC_PER_HOUR);
    assert_int_equal(c.budget.formula, BUDGET_FIXED);
    assert_true(c.budget.fixed_bytes == 256U << 20);
    assert_int_equal(c.budget.total_percent, -20);
    assert_int_equal(c.budget.free_percent, 50);
    assert_int_equal(c.budget.cached_percent, 0);
    assert_int_equal(c.session_budget.total_percent, -20);
    assert_int_equal(c.boot_policy, POLICY_GATE);
    assert_int_equal(c.login_policy, POLICY_IDLE);
    assert_true(c.deadline_usec == 2500 * USEC_PER_MSEC);
    assert_int_equal(c.control_interval, 20);

    put(f, "etc/headstart/headstart.conf", "[Session]\nMaximumWaste=15%\n");
    assert_int_equal(load(f).maximum_waste_percent, 15);
    put(f, "etc/headstart/headstart.conf", "[Session]\nLaunchReplay=yes\n");
    assert_int_equal(load(f).launch_replay, LAUNCH_MODE_YES);
    put(f, "etc/headstart/headstart.conf", "[Session]\nLaunchReplay=off\n");
    assert_int_equal(load(f).launch_replay, LAUNCH_MODE_NO);
    put(f, "etc/headstart/headstart.conf", "[Session]\nLaunchReplay=auto\n");
    assert_int_equal(load(f).launch_replay, LAUNCH_MODE_AUTO);
    put(f, "etc/headstart/headstart.conf", "[Memory]\nBudget=thesis\n");
    assert_int_equal(load(f).budget.formula, BUDGET_THESIS);
}

static void only_the_first_main_file(void **state)
{
    Fixture *f = *state;

    put(f, "usr/lib/headstart/headstart.conf", "[Replay]\nControlInterval=1\nDeadline=7s\n");
    assert_int_equal(load(f).control_interval, 1);
    put(f, "run/headstart/headstart.conf", "[Replay]\nControlInterval=2\n");
    Config c = load(f);
    assert_int_equal(c.control_interval, 2);
    assert_true(c.deadline_usec ==
                config_default().deadline_usec); /* the file below /usr/lib is not read at all */
    put(f, "etc/headstart/headstart.conf", "[Replay]\nControlInterval=3\n");
    assert_int_equal(load(f).control_interval, 3);
}

static void drop_ins_by_name(void **state)
{
    Fixture *f = *state;

    put(f, "etc/headstart/headstart.conf", "[Replay]\nControlInterval=1\n");
    /* A drop-in wins over the main file, whatever the directory of the drop-in. */
    put(f, "usr/lib/headstart/headstart.conf.d/10-a.conf", "[Replay]\nControlInterval=10\n");
    assert_int_equal(load(f).control_interval, 10);
    /* The later name wins, whatever the directory. */
    put(f, "etc/headstart/headstart.conf.d/05-b.conf",
        "[Replay]\nControlInterval=5\nDeadline=5s\n");
    Config c = load(f);
    assert_int_equal(c.control_interval, 10);
    assert_true(c.deadline_usec == 5 * USEC_PER_SEC);
    /* A file of the same name in a directory of higher precedence masks the drop-in. */
    put(f, "run/headstart/headstart.conf.d/10-a.conf", "[Replay]\nControlInterval=11\n");
    assert_int_equal(load(f).control_interval, 11);
    put(f, "etc/headstart/headstart.conf.d/10-a.conf", "");
    assert_int_equal(load(f).control_interval, 5);
    /* A hidden file, or one whose name does not end in .conf, is not read. */
    put(f, "etc/headstart/headstart.conf.d/99-c.conf~", "[Replay]\nControlInterval=99\n");
    put(f, "etc/headstart/headstart.conf.d/.99-c.conf", "[Replay]\nControlInterval=99\n");
    assert_int_equal(load(f).control_interval, 5);
}

static void links_mask(void **state)
{
    Fixture *f = *state;

    put(f, "usr/lib/headstart/headstart.conf", "[Replay]\nControlInterval=1\n");
    put(f, "usr/lib/headstart/headstart.conf.d/a.conf", "[Replay]\nControlInterval=2\n");
    assert_int_equal(load(f).control_interval, 2);
    put(f, "etc/headstart/headstart.conf.d/x", ""); /* makes the directory */
    assert_int_equal(symlinkat("/dev/null", f->root.fd, "etc/headstart/headstart.conf.d/a.conf"),
                     0);
    assert_int_equal(load(f).control_interval, 1);
    assert_int_equal(symlinkat("/dev/null", f->root.fd, "etc/headstart/headstart.conf"), 0);
    assert_int_equal(load(f).control_interval, CONFIG_CONTROL_AUTO);
    assert_int_equal(f->n_warnings, 0);
}

/* Some editors write a byte order mark, and lines that end with CR and LF. */
static void files_of_other_editors(void **state)
{
    Fixture *f = *state;

    put(f, "etc/headstart/headstart.conf", "\xef\xbb\xbf[Replay]\r\nControlInterval=3\r\n");
    assert_int_equal(load(f).control_interval, 3);
    assert_int_equal(f->n_warnings, 0);
}

static void bad_lines(void **state)
{
    static const struct {
        const char *text, *warning;
    } cases[] = {
            {"[Replay]\nFrob=1\n",
             "/etc/headstart/headstart.conf:2: unknown key Frob in section [Replay], ignoring"},
            {"[Memory]\n\n#\nDeadline=1s\n",
             "/etc/headstart/headstart.conf:4: unknown key Deadline in section [Memory], "
             "ignoring"},
            {"Deadline=1s\n",
             "/etc/headstart/headstart.conf:1: key Deadline before the first section, ignoring"},
            {"[Replay]\nnonsense\n",
             "/etc/headstart/headstart.conf:2: neither a section nor an assignment, ignoring"},
            {"[Memory\n", "/etc/headstart/headstart.conf:1: section without ], ignoring"},
            {"[Replay]\nDeadline=61s\n", "/etc/headstart/headstart.conf:2: Deadline=61s: not a "
                                         "time span of at most 60s, ignoring"},
            {"[Replay]\nLoginPolicy=gate\n",
             "/etc/headstart/headstart.conf:2: LoginPolicy=gate: none of auto, off, metadata, "
             "concurrent, idle, ignoring"},
            {"[Replay]\nControlInterval=4294967296\n",
             "/etc/headstart/headstart.conf:2: ControlInterval=4294967296: neither auto nor a number of "
             "sessions, ignoring"},
            {"[Model]\nHalfLife=0\n",
             "/etc/headstart/headstart.conf:2: HalfLife=0: not a time span above zero and of at most "
             "36500d (as in 168h), ignoring"},
            {"[Model]\nHalfLife=36501d\n",
             "/etc/headstart/headstart.conf:2: HalfLife=36501d: not a time span above zero and of at "
             "most 36500d (as in 168h), ignoring"},
            {"[Memory]\nBudget=0\n", "/etc/headstart/headstart.conf:2: Budget=0: neither auto, "
                                     "thesis nor a number of bytes (as in 256M), ignoring"},
            {"[Memory]\nMemFree=101%\n", "/etc/headstart/headstart.conf:2: MemFree=101%: not a "
                                         "percentage from -100% to 100%, ignoring"},
            {"[Session]\nMaximumWaste=-1%\n",
             "/etc/headstart/headstart.conf:2: MaximumWaste=-1%: not a percentage from 0% to 100%, "
             "ignoring"},
    };
    Fixture *f = *state;

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        char text[256];

        /* Lines after a bad line still count. */
        snprintf(text, sizeof(text), "%s[Replay]\nControlInterval=4\n", cases[i].text);
        put(f, "etc/headstart/headstart.conf", text);
        Config c = load(f);
        assert_string_equal(f->last, cases[i].warning);
        assert_int_equal(f->n_warnings, 1);
        assert_int_equal(c.control_interval, 4);
        assert_true(c.deadline_usec == config_default().deadline_usec);
    }

    /* A line longer than inih's buffer is dropped as a whole; its end is not read as an assignment.
     */
    char text[1024] = "[Replay]\n";
    memset(text + 9, '#', 400);
    strcpy(text + 9 + 400, "\nControlInterval=4\n");
    text[9] = 'x';
    memcpy(text + 9 + 198, "Deadline=1s", 11);
    put(f, "etc/headstart/headstart.conf", text);
    assert_int_equal(load(f).control_interval, 4);
    assert_int_equal(f->n_warnings, 1);
    assert_non_null(strstr(f->last, "headstart.conf:2: line longer than"));
}

static void not_a_file(void **state)
{
    Fixture *f = *state;

    put(f, "usr/lib/headstart/headstart.conf", "[Replay]\nControlInterval=1\n");
    put(f, "etc/headstart/headstart.conf/x", "");
    assert_int_equal(load(f).control_interval, CONFIG_CONTROL_AUTO);
    assert_string_equal(f->last, "/etc/headstart/headstart.conf:0: not a regular file, ignoring");

    put(f, "run/headstart/headstart.conf.d/x", "");
    assert_int_equal(mkfifoat(f->root.fd, "run/headstart/headstart.conf.d/f.conf", 0600), 0);
    load(f); /* load() must not block */
    assert_int_equal(f->n_warnings, 2);
}

static void budgets_and_policies(void **state)
{
    BudgetParameters b = {.formula = BUDGET_THESIS, .fixed_bytes = 5};
    Policy p = POLICY_OFF;

    assert_int_equal(config_parse_budget("12x", &b), -EINVAL);
    assert_int_equal(config_parse_budget("99999999999T", &b), -ERANGE);
    assert_int_equal(b.formula, BUDGET_THESIS);
    assert_true(b.fixed_bytes == 5);
    assert_int_equal(config_parse_budget("1G", &b), 0);
    assert_int_equal(b.formula, BUDGET_FIXED);
    assert_true(b.fixed_bytes == 1U << 30);

    assert_int_equal(config_parse_policy("gate", STAGE_LOGIN, &p), -EINVAL);
    assert_int_equal(config_parse_policy("", STAGE_BOOT, &p), -EINVAL);
    assert_int_equal(p, POLICY_OFF);
    assert_int_equal(config_parse_policy("auto", STAGE_LOGIN, &p), 0);
    assert_int_equal(p, _POLICY_INVALID);
}

/* Checks that every value, printed as text and parsed again, is the same value. */
static void values_as_text(void **state)
{
    static const char *const texts[] = {"[Model]\nHalfLife=36h\n",
                                        "[Memory]\nBudget=768M\nMemTotal=-100\n",
                                        "[Memory]\nBudget=1000001\nMemFree=7%\n",
                                        "[Memory]\nBudget=thesis\n",
                                        "[Replay]\nDeadline=0\nBootPolicy=gate\n",
                                        "[Replay]\nDeadline=1500ms\nLoginPolicy=beside\n",
                                        "[Replay]\nControlInterval=4294967294\n",
                                        "[Replay]\nControlInterval=0\n",
                                        "[Session]\nCycle=90s\nPredict=off\nMinSize=0\n",
                                        "[Session]\nSaveInterval=infinity\nMinSize=5G\n",
                                        "[Session]\nMaximumWaste=0\n",
                                        "[Session]\nMaximumWaste=15%\n",
                                        "[Session]\nExclude=/a !/a/b\nExclude=/c\n"};
    Fixture *f = *state;

    for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
        char text[4096] = "";
        Config c, again;

        put(f, "etc/headstart/headstart.conf", texts[i]);
        c = load(f);
        assert_int_equal(f->n_warnings, 0);
        for (size_t k = 0; k < CONFIG_KEYS; k++) {
            char *value = config_format(&c, k);
            size_t n = strlen(text);

            assert_non_null(value);
            snprintf(text + n, sizeof(text) - n, "[%s]\n%s=%s\n", config_section(k), config_key(k),
                     value);
            free(value);
        }
        put(f, "etc/headstart/headstart.conf", text);
        again = load(f);
        assert_int_equal(f->n_warnings, 0);
        for (size_t k = 0; k < CONFIG_KEYS; k++) {
            char *x = config_format(&c, k), *y = config_format(&again, k);

            assert_string_equal(x, y);
            free(x);
            free(y);
        }
        assert_true(c.halflife_usec == again.halflife_usec);
        assert_true(c.deadline_usec == again.deadline_usec);
        assert_true(c.budget.fixed_bytes == again.budget.fixed_bytes);
        assert_true(c.min_size_bytes == again.min_size_bytes);
        assert_string_equal(c.exclude, again.exclude);
    }
}

static void assert_source(const ConfigSources *s, const char *section, const char *key,
                          const char *file, unsigned line)
{
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        if (strcmp(config_section(i), section) == 0 && strcmp(config_key(i), key) == 0) {
            if (file)
                assert_string_equal(s->keys[i].file, file);
            else
                assert_null(s->keys[i].file);
            assert_int_equal(s->keys[i].line, line);
            return;
        }
    fail();
}

/* The source of a key is the last line whose value could be used. */
static void sources(void **state)
{
    Fixture *f = *state;
    ConfigSources s;
    Config c;

    put(f, "etc/headstart/headstart.conf",
        "[Replay]\nControlInterval=1\nDeadline=5s\nDeadline=2h\n[Memory]\nBudget=1M\n");
    put(f, "usr/lib/headstart/headstart.conf.d/10-a.conf",
        "# comment\n[Replay]\nControlInterval=10\n[Session]\nBudget=2M\n");
    assert_int_equal(config_load(f->root.fd, NULL, NULL, &c, &s), 0);
    assert_source(&s, "Replay", "ControlInterval", "/usr/lib/headstart/headstart.conf.d/10-a.conf",
                  3);
    assert_source(&s, "Replay", "Deadline", "/etc/headstart/headstart.conf", 3);
    assert_source(&s, "Memory", "Budget", "/etc/headstart/headstart.conf", 6);
    assert_source(&s, "Session", "Budget", "/usr/lib/headstart/headstart.conf.d/10-a.conf", 5);
    assert_source(&s, "Session", "Cycle", NULL, 0);
    config_sources_done(&s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
            TEST(defaults),         TEST(every_key),  TEST(only_the_first_main_file),
            TEST(drop_ins_by_name), TEST(links_mask), TEST(files_of_other_editors),
            TEST(bad_lines),        TEST(not_a_file), TEST(budgets_and_policies),
            TEST(values_as_text),   TEST(sources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
