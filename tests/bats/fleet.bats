# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests, without Spark, the job that adds up the models of a fleet (data/fleet). tests/fleet/run
# tests the job with Spark.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_command python3
    need_binary "$HEADSTART"
    export HEADSTART
    cd "$HS_SOURCE/tests/fleet" || return
}

@test "fleet: the functions of the job" {
    unittests test_fleet.Functions
}

@test "fleet: any tree of merges gives the same bytes, without rare files and without home directories" {
    unittests test_fleet.Job
}

@test "fleet: the event log of a bad run is refused" {
    unittests test_fleet.EventLog
}
