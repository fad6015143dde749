/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests what a session's save does to the model on the disk. */

#include "daemon/prefetcher-model.h"
#include "state/state.h"

#include "util/root-util.h"

/* The half-life of the session's chains. */
#define HALFLIFE_USEC (7 * 24 * USEC_PER_HOUR)

static TestRoot root;

static int make_root(void **state)
{
    return test_root_make(&root);
}

static int remove_root(void **state)
{
    return test_root_remove(&root);
}

static Chains *make_chains(usec_t halflife_usec, uint64_t revision)
{
    Chains *c;

    assert_int_equal(chains_new(halflife_usec, 600 * USEC_PER_SEC, &c), 0);
    c->revision = revision;
    return c;
}

static void write_model(usec_t halflife_usec, uint64_t revision)
{
    Model *m = model_new(halflife_usec);

    assert_non_null(m);
    m->chains = make_chains(halflife_usec, revision);
    assert_int_equal(state_write_model(root.fd, m), 0);
    model_free(m);
}

/* Saves chains of revision 10. */
static int save(const ModelKnown *known)
{
    ModelSave *s;
    int r;

    assert_int_equal(model_save_start(root.path, make_chains(HALFLIFE_USEC, 10), known, &s), 0);
    for (int i = 0; (r = model_save_finish(&s, NULL)) == -EAGAIN && i < 2000; i++)
        usleep(10000);
    return r;
}

static void assert_on_disk(usec_t halflife_usec, uint64_t revision)
{
    Model *m;

    assert_int_equal(state_load_model(root.fd, &m, NULL), 0);
    assert_int_equal(m->halflife_usec, halflife_usec);
    assert_int_equal(chains_revision(m->chains), revision);
    model_free(m);
}

static void the_known_chains_are_replaced(void **state)
{
    write_model(HALFLIFE_USEC, 5);
    assert_int_equal(save(&(ModelKnown){true, 5, 5}), 0);
    assert_on_disk(HALFLIFE_USEC, 10);
    /* A save that was left behind has ended since. */
    write_model(HALFLIFE_USEC, 7);
    assert_int_equal(save(&(ModelKnown){true, 5, 7}), 0);
    assert_on_disk(HALFLIFE_USEC, 10);
}

static void other_chains_are_kept(void **state)
{
    write_model(HALFLIFE_USEC, 6);
    assert_int_equal(save(&(ModelKnown){true, 5, 5}), -ESTALE);
    assert_on_disk(HALFLIFE_USEC, 6);
}

/* HalfLife= was changed, and `headstart learn` has learned again. */
static void a_model_with_another_half_life_is_kept(void **state)
{
    write_model(2 * HALFLIFE_USEC, 5);
    assert_int_equal(save(&(ModelKnown){true, 5, 5}), -ESTALE);
    assert_on_disk(2 * HALFLIFE_USEC, 5);
}

static void a_deleted_model_does_not_come_back(void **state)
{
    assert_int_equal(save(&(ModelKnown){true, 5, 5}), -ENOENT);
    assert_int_equal(faccessat(root.fd, STATE_MODEL, F_OK, 0), -1);
}

static void the_first_save_makes_a_model(void **state)
{
    assert_int_equal(save(&(ModelKnown){false, 0, 0}), 0);
    assert_on_disk(HALFLIFE_USEC, 10);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)
    const struct CMUnitTest tests[] = {
            TEST(the_known_chains_are_replaced),          TEST(other_chains_are_kept),
            TEST(a_model_with_another_half_life_is_kept), TEST(a_deleted_model_does_not_come_back),
            TEST(the_first_save_makes_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
