# SPDX-License-Identifier: LGPL-2.1-or-later
# file-prefetch: the papers' predictors read files ahead while other processes open files.
# file-benchmarks measures what this gains.

bats_require_minimum_version 1.5.0
load helpers

TOOL=$HS_BUILD/tests/bench/file-prefetch

setup() {
    hs_setup
    need_root
    need_binary "$TOOL"
    hs_filesystem ext4 16
    for name in a b c d; do
        head -c 50000 /dev/zero >"$HS_MNT/$name"
    done
}

# begin PREDICTOR MINIMUM: starts the program. The ends of its pipes are copied, because bash unsets
# the variables of a coprocess when the coprocess ends.
begin() {
    coproc PREFETCH { exec "$TOOL" "$@" 2>"$HS_TMP/said" 3>&-; }
    # shellcheck disable=SC2154 # set by coproc
    TO=${PREFETCH[1]} FROM=${PREFETCH[0]} PID=$PREFETCH_PID
    hs_defer hs_wait 10 eval "! kill $PID 2>/dev/null"
}

# say COMMAND: sends the command, and sets `answer` to the reply.
say() {
    echo "$1" >&"$TO"
    read -r -t 30 answer <&"$FROM"
}

# opens FILE…: opens the files one after the other in one run, and prints the answer.
opens() {
    say "begin $HS_MNT"
    cat "${@/#/$HS_MNT/}" >/dev/null
    say end
    echo "$*: $answer"
}

resident() {
    [ "$(fincore --bytes --noheadings --output RES "$HS_MNT/$1")" -gt 0 ]
}

@test "file-prefetch: successors are learned, read ahead when asked, and counted" {
    need_command fincore
    begin last-successor 0.01
    opens a b c
    [ "$answer" = "opens 3 requests 0 used 0" ]
    say on
    opens a b c
    [ "$answer" = "opens 3 requests 2 used 2" ]
    say off
    opens a b c
    [ "$answer" = "opens 3 requests 0 used 0" ]
    # What was learned is kept when the filesystem is mounted again. The caches are then cold, so
    # reads reach the disk.
    say on
    hs_cold
    run ! resident b
    say "begin $HS_MNT"
    cat "$HS_MNT/a" >/dev/null
    hs_wait 20 resident b
    run ! resident d
    say end
    # Nothing keeps the filesystem busy.
    umount "$HS_MNT"
}

@test "file-prefetch: EPCM requests a run of files at once" {
    begin epcm 0.5
    for ((i = 0; i < 6; i++)); do
        opens a b c d
    done
    say on
    say "begin $HS_MNT"
    cat "$HS_MNT/a" "$HS_MNT/b" >/dev/null
    say end
    [ "$answer" = "opens 2 requests 3 used 1" ]
}

@test "file-prefetch: EPCM that jumps to the next partition predicts further" {
    begin epcm 0.5 1
    opens a b c d
    say on
    say "begin $HS_MNT"
    cat "$HS_MNT/a" >/dev/null
    say end
    # Each partition knows one successor.
    [ "$answer" = "opens 1 requests 3 used 0" ]
}

# sample WORKLOAD VARIANT KEY: prints a result of the only run.
sample() {
    jq -r ".[] | select(.scenario == \"$1\" and .variant == \"$2\") | .$3" "$HS_TMP/json"
}

@test "file-benchmarks: each workload runs with each predictor, on few files" {
    need_loop
    need_command jq gcc ld patch diff awk
    need_binary "$HS_BUILD/tests/bench/disksim"
    [ -d /sys/kernel/tracing ] || skip "the kernel has no tracefs"
    HEADSTART_BENCH_LOCKED=1 "$HS_SOURCE/tests/bench/file-benchmarks" --small --runs=1 --training=1 --rounds-max=1 \
        --builddir="$HS_BUILD" --profile=ssd --json="$HS_TMP/json" --quiet >"$HS_TMP/table"
    cat "$HS_TMP/table"
    [ "$(jq length "$HS_TMP/json")" -eq 42 ]
    for workload in search index compile link patch index-after-all link-and-search; do
        # A cold run reads the disk, a warm one does not, and a predictor sees the opens.
        [ "$(sample $workload none reads)" -gt "$(sample $workload warm reads)" ]
        [ "$(sample $workload none requests)" = null ]
        [ "$(sample $workload none read_calls)" -gt 0 ]
        for predictor in last-successor pcm epcm epcm-jump; do
            [ "$(sample $workload $predictor opens)" -gt 0 ]
            [ "$(sample $workload $predictor used)" -gt 0 ]
        done
    done
    # All files of the first version are known, and its patch adds one with a header.
    [ "$(sample patch last-successor opens)" -gt "$(sample patch last-successor used)" ]
}

@test "file-prefetch: an unknown predictor or command is refused" {
    run -2 "$TOOL" magic 0.5
    run -2 "$TOOL" pcm
    run -2 "$TOOL" pcm 0
    run -2 "$TOOL" epcm 0.5 none
    run -2 "$TOOL" epcm 0.5 64
    run -1 "$TOOL" pcm 0.5 <<<"end"
    run -1 "$TOOL" pcm 0.5 <<<"begin /none"
}
