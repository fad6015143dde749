# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart merge: exact in any order and grouping; bad models change nothing.

load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
    M=$HS_TMP/models
    mkdir -p "$M"
}

# learn NAME TRACE…: lets a separate machine learn the traces; its model becomes $M/NAME.
learn() {
    local name=$1
    shift
    "$HEADSTART" --state="$HS_TMP/$name" learn --quiet "$@"
    zcat "$HS_TMP/$name/model.json" >"$M/$name"
}

# Makes the models of five machines with different users, weeks and stages.
fleet() {
    local i t=$HS_TMP/t
    mkdir -p "$t"
    for i in 1 2 3 4 5 6 7; do
        "$BATS_TEST_DIRNAME/make-session" "$i" $((1763668800 + i * 3000000)) 12 $((1000 + i % 3)) >"$t/$i.json"
    done
    sed 's/"stage":"login"/"stage":"boot"/' "$HS_SOURCE/tests/fixtures/trace-small.json" >"$t/boot.json"
    learn a "$t/1.json" "$t/2.json"
    learn b "$t/3.json"
    learn c "$t/4.json" "$t/boot.json"
    learn d "$HS_SOURCE/tests/fixtures/trace-small.json"
    learn e "$t/5.json" "$t/6.json" "$t/7.json"
}

merge() {
    local output=$1
    shift
    hs merge --quiet --output="$output" "$@"
}

content() {
    ls -A "$M"
    find "$M" -type f -exec sha256sum {} +
}

# refused STATUS TEXT ARGUMENT…: checks the exit status, that standard error is one line that
# contains the text, that standard output is empty, and that no file is written.
refused() {
    local status_wanted=$1 text=$2 before
    shift 2
    before=$(content)
    run "-$status_wanted" --separate-stderr hs merge "$@"
    echo "headstart merge $*: status $status, said: $stderr, printed: $output"
    [ "$status" -eq "$status_wanted" ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"$text"* ]]
    [ -z "$output" ]
    [ "$(content)" = "$before" ]
}

@test "merge: any order gives the same bytes" {
    fleet
    cd "$M"
    local order
    merge ../all a b c d e
    # The loop tries all 120 orders.
    for order in $(printf '%s\n' {a..e}{a..e}{a..e}{a..e}{a..e} | grep -vE '(.).*\1'); do
        # shellcheck disable=SC2046 # one word a model
        merge ../other $(grep -o . <<<"$order")
        cmp ../all ../other
    done
    [ "$(stat -c %a ../all)" = 600 ]
}

@test "merge: any grouping gives the same bytes" {
    fleet
    cd "$M"
    merge ../all a b c d e
    # The models are added one after the other from either end, and in groups. The result of one
    # merge is an input of the next.
    cp a ../sum
    for x in b c d e; do merge ../sum ../sum $x; done
    cmp ../all ../sum
    cp e ../sum
    for x in d c b a; do merge ../sum $x ../sum; done
    cmp ../all ../sum
    merge ../ab a b
    merge ../de d e
    merge ../cde c ../de
    merge ../sum ../cde ../ab
    cmp ../all ../sum
    merge ../be b e
    merge ../adc a d c
    merge ../sum ../adc ../be
    cmp ../all ../sum
}

@test "merge: a single model stays as it is, and several give the model that one machine would have learned" {
    fleet
    cd "$M"
    merge ../one e
    cmp e ../one
    # The sum is what one machine would have learned from all traces. --prune drops what `learn`
    # drops.
    learn whole "$HS_TMP"/t/{1,2,3,4,boot,5,6,7}.json "$HS_SOURCE/tests/fixtures/trace-small.json"
    merge ../sum --prune=1 a b c d e
    # The two models are not equal byte for byte, because each learned trace is stored with the time
    # that the clock of its model then showed.
    run -0 hs show --json=short whole
    local whole=$output
    run -0 hs show --json=short ../sum
    jq -e --argjson w "$whole" '.n_learned == 9 and .n_files == $w.n_files and
        [.stages[] | {stage, uid, n_files}] == [$w.stages[] | {stage, uid, n_files}]' <<<"$output"
}

@test "merge: reports what it added, as text and as JSON" {
    fleet
    cd "$M"
    run --separate-stderr -0 hs merge --output=out a c
    [ -z "$stderr" ]
    [[ $output =~ a\ +2\ +2\ +[0-9]+ ]]
    [[ $output =~ out\ +4\ +[34]\ +[0-9]+ ]]
    run -0 hs merge --json=short --output=out a c
    jq -e 'length == 3 and .[2].file == "out" and .[2].n_learned == 4' <<<"$output"
    [ "$(ls -A)" = "$(printf '%s\n' a b c d e out)" ] # and no temporary file
}

@test "merge: a device, FIFO or symlink as output stays one" {
    need_root
    fleet
    cd "$M"
    merge ../sum a c
    mknod "$HS_TMP/null" c 1 3
    hs merge --quiet -o "$HS_TMP/null" a c
    [ -c "$HS_TMP/null" ]
    mkfifo "$HS_TMP/fifo"
    cat "$HS_TMP/fifo" >"$HS_TMP/through" 3>&- &
    hs merge --quiet -o "$HS_TMP/fifo" a c
    wait $!
    cmp "$HS_TMP/through" "$HS_TMP/sum"
    echo old >"$HS_TMP/target"
    ln -s target "$HS_TMP/link"
    hs merge --quiet -o "$HS_TMP/link" a c
    [ -L "$HS_TMP/link" ]
    cmp "$HS_TMP/target" "$HS_TMP/sum"
    refused 1 "directory" -o "$HS_TMP" a c
}

@test "merge: warns of more machines than the sums of time can hold" {
    fleet
    cd "$M"
    local doubled
    cp a ../sum
    for ((doubled = 0; doubled < 60; doubled++)); do
        run --separate-stderr -0 hs merge --quiet -o ../sum ../sum ../sum
        [[ $stderr != *"too many machines"* ]] || break
    done
    # The warning comes, but not before a thousand machines are added up.
    [ "$doubled" -gt 10 ]
    [ "$doubled" -lt 60 ]
    # The sum is still a valid model.
    hs show ../sum >/dev/null
}

@test "merge: warns of sessions that two models share" {
    fleet
    cd "$M"
    merge ../ab a b
    run --separate-stderr -0 hs merge --quiet --output=out ../ab b
    assert_one_error_line "$stderr"
    [[ $stderr == *"b: 1 of its sessions are also in the other models and count twice"* ]]
}

@test "merge: usage" {
    fleet
    refused 2 "--output= is missing" "$M/a"
    refused 2 "--output= is missing" --output= "$M/a"
    refused 2 "merge needs an argument: MODEL" --output="$M/out"
    refused 2 "--prune=-1: not a percentage" --prune=-1 --output="$M/out" "$M/a"
    refused 2 "--prune=nan: not a percentage" --prune=nan --output="$M/out" "$M/a"
}

@test "merge: a bad model at any position is refused in one line, and nothing is written" {
    fleet
    echo precious >"$M/out"
    local bad=$M/bad
    all_refused() {
        refused 1 "$1" --output="$M/out" "$bad"
        refused 1 "$1" --output="$M/out" "$bad" "$M/a"
        refused 1 "$1" --output="$M/out" "$M/a" "$bad" "$M/b"
        refused 1 "$1" --output="$M/new" "$M/a" "$M/b" "$bad"
        [ "$(cat "$M/out")" = precious ]
    }
    all_refused "$bad: No such file or directory"
    : >"$bad"
    all_refused "$bad: empty file"
    echo hello >"$bad"
    all_refused "$bad: "
    cp "$HS_SOURCE/tests/fixtures/trace-small.json" "$bad"
    all_refused "$bad: "
    head -c 700 "$M/a" >"$bad"
    all_refused "$bad: "
    sed 's/"version":4/"version":7/' "$M/a" >"$bad"
    all_refused "version"
    sed 's/"sessions":[0-9]*/"sessions":-1/' "$M/a" >"$bad"
    all_refused "$bad: "
    sed 's/"sessions":[0-9]*/"sessions":NaN/' "$M/a" >"$bad"
    all_refused "$bad: "
    sed 's/"current":\[0,[0-9]*/"current":[0,-5/' "$M/a" >"$bad"
    run -1 cmp -s "$bad" "$M/a"
    all_refused "$bad: "
    python3 -c '
import json, sys
m = json.load(open(sys.argv[1]))
del m["chains"]
m["halflife_usec"] = 86400000000
json.dump(m, open(sys.argv[2], "w"), separators=(",", ":"))' "$M/a" "$bad"
    run -1 cmp -s "$bad" "$M/a"
    refused 1 "$bad: its half-life is 1d 0h, that of the others 7d 0h" --output="$M/out" "$M/a" "$bad"
    rm "$bad"
    mkfifo "$bad"
    all_refused "$bad: not a regular file"
    refused 1 "$M: " --output="$M/out" "$M/a" "$M"
    [ ! -e "$M/new" ]
}

@test "merge: a model cut off anywhere is refused" {
    fleet
    local size step
    size=$(stat -c %s "$M/b")
    for ((step = 1; step < size - 2; step += 131)); do
        head -c "$step" "$M/b" >"$HS_TMP/cut"
        refused 1 "$HS_TMP/cut: " --output="$M/out" "$M/a" "$HS_TMP/cut"
    done
}

@test "merge: if nothing can be written, the old file stays" {
    fleet
    refused 1 "$HS_TMP/none/out: No such file or directory" --output="$HS_TMP/none/out" "$M/a"
    refused 1 "$M: " --output="$M" "$M/a"
}

@test "merge: a model from a clock that ran ahead does not displace the others" {
    local day=86400 now clock t=$HS_TMP/t
    now=$(date +%s)
    mkdir -p "$t"
    "$BATS_TEST_DIRNAME/make-session" 1 $((now - 2 * day)) 12 1001 >"$t/1.json"
    "$BATS_TEST_DIRNAME/make-session" 2 $((now - day)) 12 1002 >"$t/2.json"
    learn a "$t/1.json"
    learn b "$t/2.json"
    cd "$M"
    # The model `future` comes from a machine whose clock was set to the year 2100.
    clock=$(jq .clock_usec a)
    sed "s/\"clock_usec\":$clock/\"clock_usec\":4102444800000000/" a >future
    run --separate-stderr -0 hs merge --quiet --output=out future b
    assert_one_error_line "$stderr"
    [[ $stderr == *"future: learned with a clock that ran ahead; its times are moved back to now"* ]]
    run -0 hs show --json=short out
    # Without the correction, the sums of user 1002 would have decayed to zero.
    jq -e '.stages | map(.uid) == [1001, 1002] and .[1].sessions > 0.5' <<<"$output"
}

# Makes the models of four machines, exported and raw. All four have /lib/u/common, two have
# /lib/u/two, and one has /lib/u/one.
exports() {
    local i t=$HS_TMP/t name
    mkdir -p "$t"
    for i in 1 2 3 4; do
        name=one
        ((i > 1)) && name=two
        ((i > 3)) && name=none
        "$BATS_TEST_DIRNAME/make-session" "$i" $((1763668800 + i * 86400)) 12 $((1000 + i)) |
            sed "s/\"u$((1000 + i))\"/\"u\"/; s/\"lib0.so\"/\"common\"/; s/\"lib1.so\"/\"$name\"/" >"$t/$i.json"
        "$HEADSTART" --state="$HS_TMP/$i" learn --quiet "$t/$i.json"
        "$HEADSTART" --state="$HS_TMP/$i" export --output="$M/$i"
        zcat "$HS_TMP/$i/model.json" >"$M/raw$i"
    done
}

has() {
    "$HEADSTART" show --json=short --limit=0 "$1" |
        jq -e --arg path "/lib/u/$2" '[.stages[].files[].path] | index($path)'
}

@test "merge: --min-machines drops what few machines have seen, in any grouping" {
    exports
    cd "$M"
    merge ../all --min-machines=2 1 2 3 4
    has ../all two
    ! has ../all one || false
    # A merge in two steps, of which only the second drops files, gives the same bytes.
    merge ../ab 4 1
    merge ../cd 3 2
    merge ../tree --min-machines=2 ../ab ../cd
    cmp ../all ../tree
    merge ../three --min-machines=3 1 2 3 4
    has ../three common
    ! has ../three two || false
    run -0 hs merge --json=short --output=../five --min-machines=5 1 2 3 4
    jq -e '.[0].n_machines == 1 and .[4].n_machines == 0 and .[4].n_files == 0' <<<"$output"
    # A machine that sends its model twice counts twice.
    run -0 hs merge --json=short --output=../twice --min-machines=2 1 1
    jq -e '.[2].n_machines == 2' <<<"$output"
    has ../twice one
}

@test "merge: --per-machine counts a model as one machine and takes its user's data away" {
    exports
    cd "$M"
    merge ../all --per-machine --min-machines=2 raw1 raw2 3 4
    merge ../exports --min-machines=2 1 2 3 4
    cmp ../all ../exports
    # Without --per-machine, models that were not exported count as no machine.
    merge ../raw --min-machines=1 raw1 raw2
    run -0 hs show --json=short ../raw
    jq -e '.n_files == 0 and (.stages | length) == 0' <<<"$output"
    # With --per-machine, even the sum of four models counts as one machine.
    merge ../forged 1 1 1 1
    run -0 hs merge --json=short --output=../forged2 --per-machine ../forged 2
    jq -e '.[0].n_machines == 1 and .[2].n_machines == 2' <<<"$output"
}

@test "merge: a number of machines is positive" {
    exports
    refused 2 "--min-machines=0: not a positive number" --output="$M/out" --min-machines=0 "$M/1"
    refused 2 "--min-machines=-1: not a positive number" --output="$M/out" --min-machines=-1 "$M/1"
}

@test "merge: standard output contains the model alone" {
    fleet
    merge "$M/file" "$M/a" "$M/b"
    hs merge --output=- "$M/a" "$M/b" >"$HS_TMP/printed"
    cmp "$HS_TMP/printed" "$M/file"
}
