# SPDX-License-Identifier: LGPL-2.1-or-later
# The command: usage, messages, exit statuses, JSON, bad input.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
}

teardown() {
    hs_teardown
}

hs() {
    "$HEADSTART" --state="$HS_STATE" "$@"
}

# refused STATUS TEXT ARGUMENT…: exit status, one line on standard error that has the text, nothing
# on standard output.
refused() {
    local status_wanted=$1 text=$2
    shift 2
    run --separate-stderr hs "$@"
    echo "headstart $*: status $status, said: $stderr, printed: $output"
    [ "$status" -eq "$status_wanted" ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"$text"* ]]
    [ -z "$output" ]
}

# --- usage -----------------------------------------------------------------------------------------------

@test "wrong usage: exit status 2 and one line that says what and where help is" {
    refused 2 "no verb given"
    refused 2 "unknown verb 'frob'" frob
    refused 2 "unknown option '--frob'" --frob
    refused 2 "unknown option '--frob'" status --frob=1
    refused 2 "unknown option '-x'" status -x
    refused 2 "option '--limit' needs an argument" show --limit
    refused 2 "option '-n' needs an argument" show -n
    refused 2 "option '--quiet' takes no argument" status --quiet=1
    refused 2 "no such JSON mode: 'xml'" --json=xml status
    refused 2 "takes no arguments" status x
    refused 2 "no file given" show
    refused 2 "no such stage: 'lunch'" rerecord --stage=boot,lunch
    refused 2 "no such stage: ''" rerecord --stage=
    refused 2 "either --now or --next-boot" rerecord --now --next-boot
    refused 2 "no such policy" plan --policy=fast
    refused 2 "--budget=" plan --budget=lots
    refused 2 "--stage=" plan --stage=session
    refused 2 "there is no pack for this stage" replay --stage=session
    [[ $stderr == *"try 'headstart replay --help'"* ]]
}

@test "--help and --version, everywhere" {
    local verb verbs
    run --separate-stderr "$HEADSTART" --help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    verbs=$(sed -n '/^Verbs:/,/^$/s/^  \([a-z-]*\).*/\1/p' <<<"$output")
    for verb in $verbs; do
        run --separate-stderr "$HEADSTART" "$verb" --help
        [ "$status" -eq 0 ]
        [ -z "$stderr" ]
        [[ ${lines[0]} == "headstart $verb"* ]]
        # For 80 columns.
        [ "$(LC_ALL=C.UTF-8 awk '{ if (length > m) m = length } END { print m }' <<<"$output")" -le 90 ]
        run -0 "$HEADSTART" "$verb" -h
        run -0 "$HEADSTART" "$verb" --version
    done
    run -0 "$HEADSTART" --version
    [[ $output == "headstart "[0-9]* ]]
}

@test "global options are taken before and after the verb" {
    run -0 "$HEADSTART" --state="$HS_STATE" --json=short status
    local before=$output
    run -0 "$HEADSTART" status --json=short --state="$HS_STATE"
    [ "$output" = "$before" ]
    # The last one wins, and -- ends the options.
    run -0 "$HEADSTART" --json=pretty status --json=short --state="$HS_STATE"
    [ "$output" = "$before" ]
    refused 2 "takes no arguments" status -- --json=short
}

@test "a bad configuration line costs one warning, not the command" {
    mkdir -p "$HS_TMP/root/etc/headstart"
    printf '[Replay]\nFrob=1\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    HEADSTART_CONFIG_ROOT=$HS_TMP/root run --separate-stderr hs status
    [ "$status" -eq 0 ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"/etc/headstart/headstart.conf:2: unknown key Frob in section [Replay], ignoring" ]]
}

@test "the commented defaults parse without a word" {
    mkdir -p "$HS_TMP/root/usr/lib/headstart"
    sed 's/^#\([A-Z][A-Za-z]*=\)/\1/' "$HS_SOURCE/data/headstart.conf" \
        >"$HS_TMP/root/usr/lib/headstart/headstart.conf"
    grep -q '^HalfLife=' "$HS_TMP/root/usr/lib/headstart/headstart.conf"
    HEADSTART_CONFIG_ROOT=$HS_TMP/root run --separate-stderr hs status
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

# --- status and rerecord -----------------------------------------------------------------------------------

@test "status: nothing was recorded yet, as text and as JSON" {
    run --separate-stderr hs status
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == *"nothing was recorded yet"* ]]
    [ ! -e "$HS_STATE" ] # looking makes nothing
    run -0 hs status --json=short
    [ "${#lines[@]}" -eq 1 ]
    jq -e '.stages | length == 3 and all(.n_traces == 0)' <<<"$output"
    run -0 hs status --json=pretty
    jq -e . <<<"$output"
}

@test "rerecord leaves a flag for headstartd; only root can look at it" {
    run -0 hs rerecord
    [[ $output == *"next boot"* ]]
    jq -e '. == {"stages": ["boot", "login"], "exact": false}' "$HS_STATE/rerecord"
    [ "$(stat -c %a "$HS_STATE")" = 700 ]
    [ "$(stat -c %a "$HS_STATE/rerecord")" = 600 ]
    run -0 hs rerecord --next-boot --stage=login --exact --quiet
    [ -z "$output" ]
    jq -e '. == {"stages": ["login"], "exact": true}' "$HS_STATE/rerecord"
    run -0 hs status --json=short
    jq -e '.rerecord == true' <<<"$output"
}

@test "rerecord --now without systemd says so and leaves no flag" {
    [ ! -d /run/systemd/system ] || skip "this machine was booted with systemd"
    refused 1 "not booted with systemd" rerecord --now
    [ ! -e "$HS_STATE/rerecord" ]
}

# --- show: bad input --------------------------------------------------------------------------------------------

@test "show: what is not ours is told in one line" {
    local f=$HS_TMP/f
    refused 1 "$f: No such file or directory" show "$f"
    : >"$f"
    refused 1 "$f: empty file" show "$f"
    echo "hello" >"$f"
    refused 1 "$f: neither a headstart trace, model nor pack" show "$f"
    head -c 4096 /dev/urandom | tr -d '{ ' >"$f"
    refused 1 "neither a headstart trace, model nor pack" show "$f"
    echo '{"some": "thing"}' >"$f"
    refused 1 "neither a headstart trace, model nor pack" show "$f"
    echo '{"some": ' >"$f"
    refused 1 "$f: " show "$f"
    rm "$f"
    mkfifo "$f"
    refused 1 "$f: not a regular file" show "$f"
    refused 1 "$HS_TMP: " show "$HS_TMP"
    refused 1 "/dev/null: not a regular file" show /dev/null
    refused 1 "/dev/zero: not a regular file" show /dev/zero
    printf HEADSTRT >"$f.pack"
    refused 1 "$f.pack: bad pack" show "$f.pack"
    ln -s "$f.loop" "$f.loop"
    refused 1 "$f.loop: Too many levels of symbolic links" show "$f.loop"
}

@test "status counts what is named as a trace and nothing else" {
    mkdir -p "$HS_STATE/traces"
    local name
    for name in 20261120T101500-boot.json 20261120T101500-boot-2.json 20261120T101500-login.json \
        20261120T101500-login-17.json 20261120T101500-session.json; do
        touch "$HS_STATE/traces/$name"
    done
    for name in 20261120T101500-boot.json.bad 20261120T101500-boot.json.99.tmp 20261120-boot.json x.json \
        20261120T101500-lunch.json 20261120T101500-boot-1.json 20261120T101500-boot-x.json \
        20261120T101500-boot- 20261120T101500 20261120T101500boot.json .json; do
        touch "$HS_STATE/traces/$name"
    done
    run -0 hs status --json=short
    jq -e '[.stages[] | {(.stage): .n_traces}] | add == {"boot": 2, "login": 2, "session": 1}' <<<"$output"
}

# --- show: a trace -------------------------------------------------------------------------------------------

@test "show: a trace in words, with nothing in it that a terminal obeys" {
    run --separate-stderr hs show "$HS_SOURCE/tests/fixtures/trace-small.json"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == *"Stage: login"* ]]
    [[ $output == *"Metadata: 68.0K"* ]]
    [[ $output =~ /usr/bin/foo\ +1\.0ms\ +2\ +2\ +16\.0K ]]
    # The fixture has a file with an escape sequence and a byte that is not UTF-8 in its name.
    [[ $output == *'/etc/b\xff\x1b[31mar'* ]]
    [[ $output != *$'\e'* ]]
    run -0 hs show --limit=1 "$HS_SOURCE/tests/fixtures/trace-small.json"
    [[ $output == *"(1 more: --limit=0 shows all)"* ]]
    [[ $output != */etc/b* ]]
}

@test "show --json: a trace's files in the order of their first use, with resident ranges" {
    run -0 hs show --json=short "$HS_SOURCE/tests/fixtures/trace-small.json"
    jq -e '[.files[].path] == ["/etc/b%FF%1B[31mar", "/usr/bin/foo"]' <<<"$output"
    jq -e '.files[1].resident == [[0, 8192], [16384, 20480]]' <<<"$output"
    jq -e '.files[0].first_use_usec == 10 and .files[1].application == "/usr/bin/foo"' <<<"$output"
    jq -e '.kind == "trace" and .flags == [] and .uid == null' <<<"$output"
    jq -e '.volumes[0].metadata == [[4096, 8192], [65536, 131072]]' <<<"$output"
}

@test "show: a trace cut off anywhere is refused in one line" {
    local f=$HS_TMP/cut.json size step
    size=$(stat -c %s "$HS_SOURCE/tests/fixtures/trace-small.json")
    for ((step = 1; step < size - 2; step += 83)); do
        head -c "$step" "$HS_SOURCE/tests/fixtures/trace-small.json" >"$f"
        refused 1 "$f: " show "$f"
    done
    sed 's/"version":1/"version":99/' "$HS_SOURCE/tests/fixtures/trace-small.json" >"$f"
    refused 1 "version" show "$f"
}

@test "a full disk below standard output is a failure" {
    [ -c /dev/full ] || skip "needs /dev/full"
    run --separate-stderr sh -c '"$0" status --state="$1" >/dev/full' "$HEADSTART" "$HS_STATE"
    [ "$status" -eq 1 ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"No space left on device"* ]]
}
