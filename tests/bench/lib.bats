#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests of those parts of the bench that need neither disk nor root: test_lib.py.

load ../bats/helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_command python3
    cd "$BATS_TEST_DIRNAME" || return
}

@test "options: valid options are measured, and invalid ones are refused in one line" {
    unittests test_lib.Options
}

@test "an interrupted series continues where it stopped, if it is the same series" {
    unittests test_lib.Resume
}

@test "coverage and waste of packs, computed from the requests to the disk" {
    unittests test_lib.Coverage test_lib.Log
}

@test "progress: percent and time left on a terminal, plain lines elsewhere" {
    unittests test_lib.Steps
}

@test "bounds, tables and charts" {
    unittests test_lib.Reports test_lib.Charts
}

@test "a long series: the interval of status, and the effects that the bench measures" {
    unittests test_lib.Benefit
}

@test "the package that is put into the system, and its units on the bus" {
    unittests test_lib.Packages test_lib.Bus
}

@test "the figures in README and docs are those that the bench has measured" {
    run -0 ./results
    [[ $output == *" figures are as measured" ]]
    # The program finds a wrong digit, a time without a comment, a comment without a figure, a name
    # that no result has, and a text without figures.
    mkdir -p "$HS_TMP/tests/bench" "$HS_TMP/docs"
    cp results "$HS_TMP/tests/bench"
    cp ../../docs/results.json "$HS_TMP/docs"
    local text cold wrong
    cold=$(jq '."hdd7200 boot".cold.seconds' ../../docs/results.json)
    wrong=$(printf '%.1f' "$(jq -n "$cold + 0.2")")
    cold=$(printf '%.1f' "$cold")
    for text in "$wrong s<!-- hdd7200 boot cold seconds -->" "$cold s" 'x<!-- hdd7200 boot cold seconds -->' \
        "$cold s<!-- hdd7200 boot wram seconds -->" 'no figure'; do
        echo "$text" >"$HS_TMP/README.md"
        run ! "$HS_TMP/tests/bench/results"
    done
    echo "**$cold s**<!-- hdd7200 boot cold seconds -->" >"$HS_TMP/README.md"
    run -0 "$HS_TMP/tests/bench/results"
    # The program also reads the results from the printed report.
    printf '%s\n' 'A Debian XFCE desktop on a simulated ssd (8 GiB ext4, none)' '' 'Boot: power-on; medians of 3' '' \
        'cold  -  -  -  9.07  9.00..9.10   1206  44.7  8.07  1.43    0.3    1.00' '' >"$HS_TMP/report"
    "$HS_TMP/tests/bench/results" "$HS_TMP/report"
    jq -e '."ssd boot".cold | .seconds == 9.07 and .runs == 3 and .reads == 1206' "$HS_TMP/docs/results.json"
    # Another filesystem or desktop has results of its own.
    sed -i 's/XFCE/GNOME/; s/ext4/xfs/; s/9.07/1.5/' "$HS_TMP/report"
    "$HS_TMP/tests/bench/results" "$HS_TMP/report"
    jq -e '."ssd-xfs-gnome boot".cold.seconds == 1.5 and ."ssd boot".cold.seconds == 9.07' "$HS_TMP/docs/results.json"
}

@test "times of system calls are added up, and versions of a program are made" {
    unittests test_lib.Calls test_lib.Workloads
}

@test "desktops: sessions, images and the windows of GNOME Shell" {
    unittests test_lib.Desktops
}

@test "the results of the predictors: tables, and the document that shows them" {
    unittests test_lib.Results test_lib.Predictors
}
