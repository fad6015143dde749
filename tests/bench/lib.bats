#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests of those parts of the bench that need neither disk nor root: test_lib.py.

load ../bats/helpers

setup() {
    hs_setup
    need_command python3
    cd "$BATS_TEST_DIRNAME" || return
}

unittests() {
    # Prints the output of the tests only if one of them fails.
    run python3 -B -m unittest -v "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -E '^Ran [1-9][0-9]* tests? in' <<<"$output"
}

@test "options: valid options are measured, and invalid ones are refused in one line" {
    unittests test_lib.Options
}

@test "a series goes on where it was interrupted, and only the same series" {
    unittests test_lib.Resume
}

@test "coverage and waste of packs, computed from the requests to the disk" {
    unittests test_lib.Coverage test_lib.Log
}

@test "bounds and tables" {
    unittests test_lib.Reports
}

@test "the package that is put into the system, and its units on the bus" {
    unittests test_lib.Packages test_lib.Bus
}
