/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/thermal.h"
#include "util/root-util.h"

#define ZONE "sys/class/thermal/thermal_zone0/"

static void a_machine_is_hot_from_a_trip_point_on(void **state)
{
    TestRoot root;

    (void)state;
    assert_int_equal(test_root_make(&root), 0);
    assert_false(thermal_is_hot(root.fd)); /* no thermal zones */
    test_root_put(&root, "sys/class/thermal/cooling_device0/type", "Processor\n");
    test_root_put(&root, ZONE "temp", "79999\n");
    assert_false(thermal_is_hot(root.fd)); /* no trip points */
    test_root_put(&root, ZONE "trip_point_0_type", "active\n");
    test_root_put(&root, ZONE "trip_point_0_temp", "40000\n");
    test_root_put(&root, ZONE "trip_point_1_type", "passive\n");
    test_root_put(&root, ZONE "trip_point_1_temp", "80000\n");
    assert_false(thermal_is_hot(root.fd)); /* a fan is no reason */
    test_root_put(&root, ZONE "temp", "80000\n");
    assert_true(thermal_is_hot(root.fd));
    /* The firmware has not set the trip point. */
    test_root_put(&root, ZONE "trip_point_1_temp", "-274000\n");
    assert_false(thermal_is_hot(root.fd));
    test_root_put(&root, ZONE "trip_point_1_temp", "0\n");
    assert_false(thermal_is_hot(root.fd));
    test_root_put(&root, ZONE "trip_point_2_type", "critical\n");
    test_root_put(&root, ZONE "trip_point_2_temp", "70000\n");
    assert_true(thermal_is_hot(root.fd));
    test_root_put(&root, ZONE "temp", "nonsense\n");
    assert_false(thermal_is_hot(root.fd));
    assert_int_equal(test_root_remove(&root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_machine_is_hot_from_a_trip_point_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
