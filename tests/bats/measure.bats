# SPDX-License-Identifier: LGPL-2.1-or-later
# The programs that print figures for the documents (tests/measure) run at small sizes. A test checks
# what a program prints, and no time. `ninja measure` builds the programs.

bats_require_minimum_version 1.5.0
load helpers

setup() {
    hs_setup
}

# measure NAME ARGUMENT…: runs the program. A benchmark that misses a limit of time exits with 1.
measure() {
    local program=$HS_BUILD/tests/measure/measure-$1
    need_binary "$program"
    shift
    run "$program" "$@"
    echo "$output"
}

@test "measure-cli times status, explain and report, and removes its state" {
    # A machine under load may miss a limit here. tests/full holds the limits (step cli).
    measure cli "$HEADSTART" 1 40 20
    for verb in status explain 'explain --last-login' report; do
        grep -qE "^$verb +[0-9.]+ +[0-9.]+ +[0-9.]+ ms, limit [0-9]+ ms$" <<<"$output"
    done
    # The report of a small state is small.
    [[ $output =~ 'report of '([0-9]+)' of 500000 bytes, '[0-9]' limits missed' ]]
    [ "${BASH_REMATCH[1]}" -gt 10000 ]
    [ "${BASH_REMATCH[1]}" -lt 500000 ]
    # The exit status says whether a limit was missed.
    [ "$status" -eq "$(($(grep -oE '[0-9]+ limits' <<<"$output" | cut -d' ' -f1) > 0))" ]
    run find /tmp -maxdepth 1 -name 'measure-cli.*'
    [ -z "$output" ]
}

@test "measure-learn prints what learning and planning cost" {
    measure learn 1 100 5 300
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -gt 2 ]
}

@test "measure-scale prints one line of ten columns for a size" {
    measure scale 20 100 1000
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 2 ]
    [ "$(awk -F'\t' 'NR == 2 { print NF }' <<<"$output")" -eq 10 ]
}

@test "measure-regimes prints a row for each predictor, and the bound" {
    measure regimes 1 1 odd-even mixture,session-share 20
    [ "$status" -eq 0 ]
    grep -qE '^mixture +filled hit ' <<<"$output"
    grep -qE '^session-share +filled hit ' <<<"$output"
    grep -qE '^bound +[01]\.[0-9]{3}' <<<"$output"
}

@test "measure-predict prints the mixture's share of hits" {
    measure predict 1 1 4
    [ "$status" -eq 0 ]
    grep -qE '^\| mixture \| [01]\.[0-9]{3}' <<<"$output"
}

@test "measure-benefit prints a row for each effect, and fails if a limit is missed" {
    local n_missed
    measure benefit 2
    n_missed=$(sed -n 's/^measure-benefit: \([0-9]*\) of 15 scenarios miss a limit$/\1/p' <<<"$output")
    [ "$status" -eq $((n_missed > 0)) ]
    [ "$(grep -cE '^\| [-+][0-9]+ % \|' <<<"$output")" -ge 10 ]
}

@test "measure-session prints what a cycle costs" {
    need_loop
    hs_filesystem ext4 64
    measure session "$HS_MNT" '' 5 40 3
    [ "$status" -eq 0 ]
    grep -qE '^CPU a cycle [0-9.]+ ms' <<<"$output"
}
