# SPDX-License-Identifier: LGPL-2.1-or-later
# The command: usage, messages, exit statuses, JSON, bad input.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
}

# --- usage -----------------------------------------------------------------------------------------------

@test "wrong usage: exit status 2 and one line with the reason and where to find help" {
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
    refused 2 "show needs an argument: TRACE|MODEL|PACK" show
    refused 2 "show takes one argument" show a b
    refused 2 "replay takes one argument" replay a b
    refused 2 "no such stage: 'lunch'" rerecord --stage=boot,lunch
    refused 2 "no such stage: ''" rerecord --stage=
    refused 2 "either --now or --next-boot" rerecord --now --next-boot
    refused 2 "no such policy" plan --policy=fast
    refused 2 "--budget=" plan --budget=lots
    refused 2 "--stage=" plan --stage=session
    refused 2 "no such user" plan --user=nobody-of-that-name
    refused 2 "--user=" plan --user=4294967295
    refused 2 "no such user" rerecord --user=
    refused 2 "no such user" forget --user=4294967295
    refused 2 "a boot has no user" forget --stage=boot --user=0
    refused 2 "forget takes no arguments" forget everything
    refused 2 "refresh takes no arguments" refresh all
    refused 2 "enable takes no arguments" enable now
    refused 2 "either --now or --root=" disable --now --root=/nowhere
    refused 2 "for logins only" plan --stage=boot --user=0
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
        # No line is longer than 90 columns.
        [ "$(LC_ALL=C.UTF-8 awk '{ if (length > m) m = length } END { print m }' <<<"$output")" -le 90 ]
        run -0 "$HEADSTART" "$verb" -h
        run -0 "$HEADSTART" "$verb" --version
    done
    run -0 "$HEADSTART" --version
    [[ $output == "headstart "[0-9]* ]]
}

@test "global options are accepted before and after the verb" {
    run -0 "$HEADSTART" --state="$HS_STATE" --json=short status
    local before=$output
    run -0 "$HEADSTART" status --json=short --state="$HS_STATE"
    [ "$output" = "$before" ]
    # The last option wins, and -- ends the options.
    run -0 "$HEADSTART" --json=pretty status --json=short --state="$HS_STATE"
    [ "$output" = "$before" ]
    refused 2 "takes no arguments" status -- --json=short
}

@test "a bad configuration line costs one warning, not the command" {
    mkdir -p "$HS_TMP/root/etc/headstart"
    printf '[Replay]\nFrob=1\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run --separate-stderr hs status
    [ "$status" -eq 0 ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"/etc/headstart/headstart.conf:2: unknown key Frob in section [Replay], ignoring" ]]
}

@test "the commented defaults parse without a message" {
    mkdir -p "$HS_TMP/root/usr/lib/headstart"
    sed 's/^#\([A-Z][A-Za-z]*=\)/\1/' "$HS_SOURCE/data/headstart.conf" \
        >"$HS_TMP/root/usr/lib/headstart/headstart.conf"
    grep -q '^HalfLife=' "$HS_TMP/root/usr/lib/headstart/headstart.conf"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run --separate-stderr hs status
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

@test "config: every value in effect, and the file and line that set it" {
    local root=$HS_TMP/root
    mkdir -p "$root/etc/headstart/headstart.conf.d" "$root/usr/lib/headstart"
    export HEADSTART_SYSTEM_ROOT=$root
    # The defaults are those that the configuration file shows as comments.
    run --separate-stderr -0 hs config --json=short
    [ -z "$stderr" ]
    jq -e 'length > 10 and all(.file == null and .line == null)' <<<"$output"
    diff <(jq -r '.[] | "\(.section) \(.key)=\(.value)"' <<<"$output") \
        <(awk '/^\[/ { s = substr($0, 2, length($0) - 2) } /^#[A-Z][A-Za-z]*=/ { print s, substr($0, 2) }' \
            "$HS_SOURCE/data/headstart.conf")
    printf '[Replay]\nDeadline=90s\n\nDeadline=7s\nFrob=1\n' >"$root/etc/headstart/headstart.conf"
    printf '[Session]\nBudget=64M\n' >"$root/etc/headstart/headstart.conf.d/10-x.conf"
    run --separate-stderr -0 hs config
    [ "$(wc -l <<<"$stderr")" -eq 2 ]
    [[ $stderr == *"/etc/headstart/headstart.conf:2: Deadline=90s: not a time span of at most 60s, ignoring"* ]]
    [[ $stderr == *"/etc/headstart/headstart.conf:5: unknown key Frob in section [Replay], ignoring"* ]]
    [[ $output =~ Replay\ +Deadline\ +7s\ +/etc/headstart/headstart.conf:4 ]]
    [[ $output =~ Session\ +Budget\ +64M\ +/etc/headstart/headstart.conf.d/10-x.conf:2 ]]
    [[ $output =~ Memory\ +Budget\ +auto\ +default ]]
    run --separate-stderr -0 hs config --json=short
    jq -e 'map(select(.file)) | length == 2 and .[0].line == 4' <<<"$output"
}

# --- status and rerecord -----------------------------------------------------------------------------------

@test "status: nothing was recorded yet, as text and as JSON" {
    run --separate-stderr hs status
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == *"nothing was recorded yet"* ]]
    [ ! -e "$HS_STATE" ] # status creates nothing
    run -0 hs status --json=short
    [ "${#lines[@]}" -eq 1 ]
    jq -e '.stages | length == 3 and all(.n_traces == 0)' <<<"$output"
    run -0 hs status --json=pretty
    jq -e . <<<"$output"
}

@test "status: switched off by headstart=0, and what this boot replayed" {
    mkdir -p "$HS_TMP/root/proc" "$HS_TMP/root/run/headstart"
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    echo "root=/dev/sda1 headstart=01 ro" >"$HS_TMP/root/proc/cmdline"
    run -0 hs status --json=short
    jq -e '.switched_off == false and .replayed == []' <<<"$output"
    echo "root=/dev/sda1 ro headstart=0" >"$HS_TMP/root/proc/cmdline"
    cat >"$HS_TMP/root/run/headstart/replay-boot.json" <<JSON
{"stage":"boot","policy":"gate","outcome":"running","start_boottime_usec":1500000,"duration_usec":2500000,"resident":false,
"held_usec":2000000,"hold_end":"deadline",
"metadata_ranges":10,"metadata_bytes":40960,"files":12,"data_ranges":14,"data_bytes":1048576,"skipped":{"error":3,"gone":4}}
JSON
    # Status files with wrong content or names are ignored.
    echo "[1" >"$HS_TMP/root/run/headstart/replay-login.json"
    for x in login@x login@-1 login@ login@4294967295 login@1.2 boot2 "login@$(printf '9%.0s' {1..24})"; do
        echo '{}' >"$HS_TMP/root/run/headstart/replay-$x.json"
    done
    run --separate-stderr -0 hs status
    [ -z "$stderr" ]
    [[ $output == *"Status: off (headstart=0 on the kernel command line)"* ]]
    [[ $output =~ boot\ +-\ +gate\ +running\ +2\.00s\ +deadline\ +1\.50s\ +2\.50s\ +12\ +1\.0M\ +40\.0K\ +7 ]]
    run -0 hs status --json=short
    jq -e '.switched_off == true and (.replayed | length) == 1 and .replayed[0].files == 12' <<<"$output"
    jq -e '.replayed[0] | .held_usec == 2000000 and .hold_end == "deadline" and .skipped == {"error": 3, "gone": 4}' <<<"$output"
    # The pack is still being read, so its policy is not known.
    echo '{"outcome":"loading","start_boottime_usec":1500000,"held_usec":2000000,"hold_end":"pack-late","skipped":[]}' \
        >"$HS_TMP/root/run/headstart/replay-boot.json"
    run -0 hs status --json=short
    jq -e '.replayed[0] | .outcome == "loading" and .policy == null and .hold_end == "pack-late"' <<<"$output"
    run -0 hs status
    echo '{"policy":"gate","outcome":"running"}' >"$HS_TMP/root/run/headstart/replay-boot.json"
    # The status also shows the replays for users.
    echo '{"policy":"idle","outcome":"done","files":5}' >"$HS_TMP/root/run/headstart/replay-login@1000.json"
    echo '{"policy":"idle","outcome":"stopped"}' >"$HS_TMP/root/run/headstart/replay-login@0.json"
    run -0 hs status --json=short
    jq -e '[.replayed[] | [.stage, .uid, .outcome]] ==
        [["boot", null, "running"], ["login", 0, "stopped"], ["login", 1000, "done"]]' <<<"$output"
}

@test "status: the kind of the system" {
    local root=$HS_TMP/root
    mkdir -p "$root/proc/self" "$root/run" "$root/sys/fs/selinux" "$root/etc/headstart"
    export HEADSTART_SYSTEM_ROOT=$root
    echo "29 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw" >"$root/proc/self/mountinfo"
    run -0 hs status --json=short
    jq -e '.root == "plain" and .ostree == false and .selinux == null' <<<"$output"
    # Text leaves out what is as on most machines.
    run -0 hs status
    [[ $output == *"Root filesystem: plain"* && $output != *OSTree* && $output != *SELinux* && $output != *"without replay:"* ]]
    echo "29 1 0:26 /@/.snapshots/7/snapshot / rw shared:1 - btrfs /dev/sda2 rw,subvolid=270,subvol=/@/.snapshots/7/snapshot" \
        >"$root/proc/self/mountinfo"
    : >"$root/run/ostree-booted"
    printf 1 >"$root/sys/fs/selinux/enforce"
    run -0 hs status
    [[ $output == *"Root filesystem: snapshot /@/.snapshots/7/snapshot"* ]]
    [[ $output =~ OSTree:\ +yes ]]
    [[ $output == *"SELinux: enforcing"* ]]
    echo "29 1 0:26 /@ / rw shared:1 - btrfs /dev/sda2 rw,subvolid=256,subvol=/@" >"$root/proc/self/mountinfo"
    printf 0 >"$root/sys/fs/selinux/enforce"
    run -0 hs status --json=short
    jq -e '.root == "plain" and .selinux == "permissive"' <<<"$output"
    # A later mount on "/" covers an earlier one.
    echo "41 29 0:31 / / rw shared:2 - overlay overlayroot rw,lowerdir=/a,upperdir=/b,workdir=/c" >>"$root/proc/self/mountinfo"
    run -0 hs status --json=short
    jq -e '.root == "overlay"' <<<"$output"
    rm "$root/proc/self/mountinfo"
    : >"$root/etc/headstart/disabled"
    run -0 hs status
    [[ $output == *"Status: off (headstart disable)"* ]]
}

@test "rerecord leaves a flag for headstartd, which only root can see" {
    run -0 hs rerecord --stage=login
    [ "$output" = "The next login will be recorded without replay." ]
    run -0 hs rerecord --stage=login,boot,session
    [ "$output" = "The next boot, login and session will be recorded without replay." ]
    rm "$HS_STATE"/rerecord-*
    run -0 hs rerecord
    [ "$output" = "The next boot and login will be recorded without replay." ]
    jq -e '. == {"exact": false}' "$HS_STATE/rerecord-boot"
    jq -e '. == {"exact": false}' "$HS_STATE/rerecord-login"
    [ "$(stat -c %a "$HS_STATE")" = 700 ]
    [ "$(stat -c %a "$HS_STATE/rerecord-boot")" = 600 ]
    run -0 hs status
    [[ $output =~ "Recorded without replay: boot, login" ]]
    rm "$HS_STATE/rerecord-boot"
    run -0 hs rerecord --next-boot --stage=login --exact --quiet
    [ -z "$output" ]
    jq -e '. == {"exact": true}' "$HS_STATE/rerecord-login"
    [ ! -e "$HS_STATE/rerecord-boot" ]
    run -0 hs status --json=short
    jq -e '.rerecord == "login"' <<<"$output"
    run -0 hs rerecord --stage=login --user=1234 --json=short
    jq -e '. == {"exact": false, "uid": 1234}' "$HS_STATE/rerecord-login"
    run -0 hs rerecord --user=root --quiet
    jq -e '.uid == 0' "$HS_STATE/rerecord-boot"
}

@test "rerecord --now without systemd says so and leaves no flag" {
    [ ! -d /run/systemd/system ] || skip "this machine was booted with systemd"
    refused 1 "not booted with systemd" rerecord --now
    ! ls "$HS_STATE"/rerecord* || false
}

@test "rerecord --now says that it records only if systemd has restarted the recording" {
    need_root
    mkdir "$HS_TMP/bin"
    chmod 0755 "$HS_TMP"
    printf '#!/bin/sh\necho "$@" >"%s/called"\nexit 5\n' "$HS_TMP" >"$HS_TMP/bin/systemctl"
    chmod +x "$HS_TMP/bin/systemctl"
    now() {
        PATH=$HS_TMP/bin:$PATH run --separate-stderr unshare --mount sh -c 'mount -t tmpfs none /run &&
            mkdir -p /run/systemd/system && exec "$1" --state="$2" rerecord --now' sh "$HEADSTART" "$HS_STATE"
    }
    now
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"systemctl restart headstart-record.service failed"* ]]
    [ "$(<"$HS_TMP/called")" = "restart headstart-record.service" ]
    sed -i 's/exit 5/exit 0/' "$HS_TMP/bin/systemctl"
    now
    [ "$status" -eq 0 ]
    [ "$output" = "Recording now: headstart-record.service was restarted." ]
}

# --- show: bad input --------------------------------------------------------------------------------------------

@test "show: a foreign file is refused in one line" {
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

@test "status counts files that are named like traces, and no others" {
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

@test "show: a trace as text, without anything that a terminal would interpret" {
    run --separate-stderr hs show "$HS_SOURCE/tests/fixtures/trace-small.json"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == *"Stage: login"* ]]
    [[ $output == *"Metadata: 68.0K"* ]]
    [[ $output =~ /usr/bin/foo\ +1\.0ms\ +2\ +2\ +16\.0K ]]
    # The fixture has a file name with an escape sequence and a byte that is not UTF-8.
    [[ $output == *'/etc/b\xff\x1b[31mar'* ]]
    [[ $output != *$'\e'* ]]
    run -0 hs show --limit=1 "$HS_SOURCE/tests/fixtures/trace-small.json"
    [[ $output == *"(1 more: --limit=0 shows all)"* ]]
    [[ $output != */etc/b* ]]
}

@test "show: what a trace left out of a user's opens" {
    jq '.left_out = {uid: [1000, -1], n_events: [4, 0], n_files: [3, 0], n_cut: [0, 2]}' \
        "$HS_SOURCE/tests/fixtures/trace-small.json" >"$HS_TMP/cut.json"
    run -0 hs show "$HS_TMP/cut.json"
    [[ $output =~ "Left out: more than one user's share" ]]
    [[ $output =~ 1000\ +4\ +3\ +0 ]]
    run -0 hs show --json=short "$HS_TMP/cut.json"
    jq -e '.left_out == [{uid: 1000, n_events: 4, n_files: 3, n_cut: 0},
        {uid: null, n_events: 0, n_files: 0, n_cut: 2}]' <<<"$output"
    run -0 hs show "$HS_SOURCE/tests/fixtures/trace-small.json"
    [[ $output != *"Left out"* ]]
    run -0 hs show --json=short "$HS_SOURCE/tests/fixtures/trace-small.json"
    jq -e '.left_out == []' <<<"$output"
}

@test "show: a narrow terminal shows the ends of paths" {
    need_command script
    local name=aVeryLongNameThatDoesNotFitInOneLine-aVeryLongNameOfAFile
    sed "s|b%FF%1B\[31mar|$name|" "$HS_SOURCE/tests/fixtures/trace-small.json" >"$HS_TMP/long.json"
    run -0 hs show "$HS_TMP/long.json"
    [[ $output == *"/etc/$name "* ]]
    TERM=xterm run -0 script -qec "stty cols 60; '$HEADSTART' show '$HS_TMP/long.json'" /dev/null
    [[ $output != *"/etc/$name"* ]]
    [[ $output == *"…"*"-aVeryLongNameOfAFile "* ]]
    # The table is not wider than the terminal.
    sed -n 's/…/./p' <<<"$output" | tr -d '\r' | awk '{ if (length > 60) exit 1 }'
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

# --- learn -------------------------------------------------------------------------------------------------------

# put_trace STAMP STAGE [SED-SCRIPT]: adds a trace of that second to the state directory
put_trace() {
    local realtime
    mkdir -p "$HS_STATE/traces"
    realtime=$(date -u -d "$(sed -E 's/(....)(..)(..)T(..)(..)(..)/\1-\2-\3 \4:\5:\6/' <<<"$1")" +%s)
    sed -e "s/\"start_realtime_usec\":[0-9]*/\"start_realtime_usec\":${realtime}000000/" \
        -e "s/\"stage\":\"[a-z]*\"/\"stage\":\"$2\"/" -e "${3:-}" \
        "$HS_SOURCE/tests/fixtures/trace-small.json" >"$HS_STATE/traces/$1-$2.json"
}

@test "learn: new traces once, as text and as JSON" {
    put_trace 20261101T080000 boot
    put_trace 20261101T080100 login
    run --separate-stderr -0 hs learn
    [ -z "$stderr" ]
    [ "$(grep -c ' learned$' <<<"$output")" -eq 2 ]
    [ "$(stat -c %a "$HS_STATE/model.json")" = 600 ]
    run -0 hs learn
    [ "$output" = "Nothing new to learn." ]
    put_trace 20261102T080000 boot
    run -0 hs learn --json=short
    jq -e '.n_learned == 1 and (.traces | length) == 1 and .traces[0].result == "learned"' <<<"$output"
    run -0 hs learn --quiet
    [ -z "$output" ]
    run -0 hs status --json=short
    jq -e '.n_learned == 3' <<<"$output"
    run -0 hs show --json=short "$HS_STATE/model.json"
    jq -e '.kind == "model" and .n_learned == 3 and [.stages[].stage] == ["boot", "login"]' <<<"$output"
    run -0 hs show "$HS_STATE/model.json"
    [[ $output == *"Traces learned: 3"* ]]
}

@test "learn: traces given by name stay where they are, also when they are bad" {
    put_trace 20261101T080000 boot
    mv "$HS_STATE/traces/20261101T080000-boot.json" "$HS_TMP/t.json"
    run -0 hs learn "$HS_TMP/t.json"
    run -0 hs learn "$HS_TMP/t.json"
    [[ $output == *"known already"* ]]
    echo bad >"$HS_TMP/bad.json"
    run --separate-stderr hs learn "$HS_TMP/bad.json"
    [ "$status" -eq 1 ]
    assert_one_error_line "$stderr"
    [ -e "$HS_TMP/bad.json" ]
}

@test "learn: a bad trace is set aside with one line, and learning continues" {
    put_trace 20261101T080000 boot
    put_trace 20261102T080000 boot
    put_trace 20261103T080000 boot
    truncate -s 500 "$HS_STATE/traces/20261102T080000-boot.json"
    run --separate-stderr -0 hs learn
    assert_one_error_line "$stderr"
    [[ $stderr == *"20261102T080000-boot.json: "*"; set aside" ]]
    [ -e "$HS_STATE/traces/20261102T080000-boot.json.bad" ]
    [ ! -e "$HS_STATE/traces/20261102T080000-boot.json" ]
    [ "$(grep -c ' learned$' <<<"$output")" -eq 2 ]
    # A FIFO with a trace's name does not stop learning either.
    mkfifo "$HS_STATE/traces/20261104T080000-boot.json"
    run --separate-stderr -0 hs learn
    [[ $stderr == *"not a regular file; set aside" ]]
}

@test "learn: a trace that is not of an ordinary session is set aside and not read again" {
    put_trace 20261101T080000 login 's/"flags":\[\]/"flags":["second-login"]/'
    run --separate-stderr -0 hs learn
    [ -z "$stderr" ]
    [[ $output == *"skipped: not the first login"* ]]
    [ -e "$HS_STATE/traces/20261101T080000-login.json.skipped" ]
    [ ! -e "$HS_STATE/model.json" ]
    run -0 hs learn
    [ "$output" = "Nothing new to learn." ]
}

# bomb FILE: writes a compressed file that expands to more bytes than a model may have.
bomb() {
    head -c 600M /dev/zero | gzip -1 >"$1"
}

# newer_version FILE: changes the version of a model. The model becomes plain text, as older
# versions stored it.
newer_version() {
    zcat "$1" | sed 's/"version":4/"version":9/' >"$HS_TMP/newer"
    cp "$HS_TMP/newer" "$1"
}

@test "learn: compressed and plain files are read alike, and a trace that expands to too much is set aside" {
    put_trace 20261101T080000 boot
    run -0 hs learn
    gzip -t <"$HS_STATE/model.json"
    zcat "$HS_STATE/model.json" >"$HS_TMP/plain"
    cp "$HS_TMP/plain" "$HS_STATE/model.json"
    put_trace 20261102T080000 boot
    gzip -n "$HS_STATE/traces/20261102T080000-boot.json"
    mv "$HS_STATE/traces/20261102T080000-boot.json"{.gz,}
    head -c 70M /dev/zero | gzip >"$HS_STATE/traces/20261103T080000-boot.json"
    put_trace 20261104T080000 boot
    run --separate-stderr -0 hs learn
    assert_one_error_line "$stderr"
    # The message names the size and no error of the parser: the trace was refused before it was
    # parsed.
    [[ $stderr == *"20261103T080000-boot.json: too large: it expands to more than the limit of 64.0M; set aside" ]]
    [ "$(grep -c ' learned$' <<<"$output")" -eq 2 ]
    [ "$(zcat "$HS_STATE/model.json" | jq '.learned | length')" -eq 3 ]
}

@test "a file over a limit: the message names the file, its size and the limit" {
    put_trace 20261101T080000 boot
    truncate -s 65M "$HS_STATE/traces/20261102T080000-boot.json"
    run --separate-stderr -0 hs learn
    [ "$stderr" = "headstart: $HS_STATE/traces/20261102T080000-boot.json: too large: 65.0M, the limit is 64.0M; set aside" ]
    run --separate-stderr -1 hs show "$HS_STATE/traces/20261102T080000-boot.json.bad"
    truncate -s 513M "$HS_TMP/model"
    run --separate-stderr -1 hs show "$HS_TMP/model"
    [ "$stderr" = "headstart: $HS_TMP/model: too large: 513.0M, the limit is 512.0M" ]
    # The message is that of headstart and not the text that libc has for the error.
    truncate -s 2M "$HS_STATE/devices.json"
    run -0 hs status
    [[ $output == *"$HS_STATE/devices.json cannot be used: too large"* ]]
}

@test "learn: a bad model is set aside, and all remaining traces are learned again" {
    put_trace 20261101T080000 boot
    put_trace 20261102T080000 boot
    run -0 hs learn
    cp "$HS_STATE/model.json" "$HS_TMP/good"
    put_trace 20261103T080000 boot
    local damage
    for damage in 'truncate -s 100' 'truncate -s 0' newer_version bomb; do
        cp "$HS_TMP/good" "$HS_STATE/model.json"
        rm -f "$HS_STATE/model.json.bad"
        $damage "$HS_STATE/model.json"
        run --separate-stderr -0 hs learn
        assert_one_error_line "$stderr"
        [[ $stderr == *"model.json: "*"set aside, learning again" ]]
        [ -e "$HS_STATE/model.json.bad" ]
        [ "$(grep -c ' learned$' <<<"$output")" -eq 3 ]
    done
}

@test "learn --rebuild, and another half-life, give the same model as one pass" {
    put_trace 20261101T080000 boot
    run -0 hs learn
    put_trace 20261102T080000 boot
    run -0 hs learn
    cp "$HS_STATE/model.json" "$HS_TMP/step-by-step"
    run -0 hs learn --rebuild
    cmp "$HS_STATE/model.json" "$HS_TMP/step-by-step"
    mkdir -p "$HS_TMP/root/etc/headstart"
    printf '[Model]\nHalfLife=24h\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run --separate-stderr -0 hs learn
    [[ $stderr == *"HalfLife= was changed"* ]]
    run -0 hs show --json=short "$HS_STATE/model.json"
    jq -e '.halflife_usec == 86400000000 and .n_learned == 2' <<<"$output"
}

@test "learn: a repeated name is another trace if each boot begins at the same time" {
    # The variable is not named i, because `run` of bats changes i.
    local boot
    for ((boot = 0; boot < 34; boot++)); do
        put_trace 20261101T080000 boot "s/\"boot_id\":\"[^\"]*\"/\"boot_id\":\"$boot\"/"
        run -0 hs learn --json=short
        jq -e '.n_learned == 1' <<<"$output"
    done
    run -0 hs learn
    [ "$output" = "Nothing new to learn." ]
    run -0 hs status --json=short
    jq -e '.n_learned == 34' <<<"$output"
}

@test "learn keeps the last 32 traces of each stage" {
    local i
    for ((i = 0; i < 34; i++)); do
        put_trace "$(printf '20261101T08%02d00' "$i")" boot
    done
    put_trace 20261101T070000 login
    run -0 hs learn
    [ "$(ls "$HS_STATE/traces" | wc -l)" -eq 33 ]
    [ ! -e "$HS_STATE/traces/20261101T080100-boot.json" ]
    [ -e "$HS_STATE/traces/20261101T080200-boot.json" ]
    [ -e "$HS_STATE/traces/20261101T070000-login.json" ]
    run -0 hs learn
    [ "$output" = "Nothing new to learn." ]
}

@test "the newest trace without replay is kept, so that plot can compare with it" {
    local i
    put_trace 20261101T070000 boot 's/"flags":\[[^]]*\]/"flags":["control"]/'
    put_trace 20261101T070100 boot 's/"flags":\[[^]]*\]/"flags":["control","exact"]/'
    for ((i = 0; i < 34; i++)); do
        put_trace "$(printf '20261101T08%02d00' "$i")" boot 's/"flags":\[[^]]*\]/"flags":["replayed"]/'
    done
    run -0 hs learn
    [ "$(ls "$HS_STATE/traces" | wc -l)" -eq 32 ]
    [ -e "$HS_STATE/traces/20261101T070000-boot.json" ]
    [ ! -e "$HS_STATE/traces/20261101T070100-boot.json" ]
    run -0 hs plot boot --compare=control
    [[ $output == *", replayed<"*", without replay<"* ]]
    # The times of an exact recording are not those without headstart.
    rm "$HS_STATE/traces/20261101T070000-boot.json"
    put_trace 20261101T090000 boot 's/"flags":\[[^]]*\]/"flags":["control","exact"]/'
    refused 1 "no other trace of a boot without replay" plot boot --compare=control
}

@test "learn: a full disk leaves the old model and all traces in place" {
    need_loop
    mkdir -p "$HS_STATE"
    mount -t tmpfs -o size=256k,mode=700 tmpfs "$HS_STATE"
    hs_defer hs_umount "$HS_STATE"
    put_trace 20261101T080000 boot
    run -0 hs learn
    cp "$HS_STATE/model.json" "$HS_TMP/before"
    put_trace 20261102T080000 boot
    dd if=/dev/zero of="$HS_STATE/fill" bs=4k 2>/dev/null || true
    # One page is left for the file that marks a try, so that only saving the model fails.
    truncate -s -4096 "$HS_STATE/fill"
    refused 1 "model.json: No space left on device" learn
    cmp "$HS_STATE/model.json" "$HS_TMP/before"
    [ "$(ls "$HS_STATE/traces" | wc -l)" -eq 2 ]
    [ "$(ls "$HS_STATE" | wc -l)" -eq 3 ] # the model, the traces and `fill`: no temporary file
}

@test "learn: two processes wait for one another" {
    need_command flock
    put_trace 20261101T080000 boot
    exec 9<"$HS_STATE"
    flock 9
    (sleep 0.3; flock -u 9) 3>&- &
    local pid=$!
    run -0 hs learn
    wait "$pid"
    exec 9<&-
    [[ $output == *" learned"* ]]
}

# --- record ------------------------------------------------------------------------------------------------------

recordable() {
    need_root
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/d"
    head -c 300000 /dev/urandom >"$HS_MNT/d/large"
    echo x >"$HS_MNT/d/small"
    cp "$(command -v cat)" "$HS_MNT/cat"
    hs_cold
}

record() {
    hs record --root="$HS_MNT" "$@"
}

@test "record: the files that a command reads, its output and its exit status" {
    recordable
    run --separate-stderr record --stage=login -- sh -c "'$HS_MNT/cat' '$HS_MNT/d/large' >/dev/null; echo out; exit 7"
    echo "$stderr"
    [ "$status" -eq 7 ]
    [ "$output" = out ]
    [ "$(grep -c recorded <<<"$stderr")" -eq 1 ]
    local trace
    trace=$(ls "$HS_STATE"/traces/*-login.json)
    [ "$(stat -c %a "$trace")" = 600 ]
    [ "$(stat -c %a "$HS_STATE/traces")" = 700 ]
    run -0 hs show --json=short "$trace"
    jq -e '.stage == "login"' <<<"$output"
    jq -e '[.files[] | select(.path == "/d/large" or .path == "/cat")] | length == 2' <<<"$output"
    jq -e '.files[] | select(.path == "/d/large") | .application == "/cat" and .resident == [[0, 300000]]' <<<"$output" ||
        jq -e '.files[] | select(.path == "/d/large") | .application == "/cat" and .resident[0][0] == 0' <<<"$output"
    jq -e 'all(.files[]; .path != "/d/small")' <<<"$output"
    # Two recordings in one second do not overwrite each other.
    run record --stage=login --quiet -- true
    run record --stage=login --quiet -- true
    [ "$(ls "$HS_STATE/traces" | wc -l)" -eq 3 ]
    run -0 hs status --json=short
    jq -e '.stages[1].n_traces == 3' <<<"$output"
}

@test "record: --output, --json, --quiet; options after the command belong to the command" {
    recordable
    run --separate-stderr -0 record --output="$HS_TMP/t.json" --json=short cat --show-all "$HS_MNT/d/small"
    [ "${lines[0]}" = 'x$' ]
    jq -e '.stage == "session" and .n_files >= 1' <<<"${lines[1]}"
    [ ! -e "$HS_STATE/traces" ]
    run --separate-stderr -0 record --quiet -o "$HS_TMP/u.json" -- cat "$HS_MNT/d/small"
    [ "$output" = x ]
    [ -z "$stderr" ]
    run -0 hs show "$HS_TMP/u.json"
}

@test "record: without a command until a signal; with a command the signal goes to the command" {
    recordable
    "$HEADSTART" record --root="$HS_MNT" --output="$HS_TMP/t.json" --quiet 3>&- &
    local pid=$!
    hs_defer eval "kill -KILL $pid 2>/dev/null || true"
    # As soon as fdinfo shows its fanotify group, the recorder gets events.
    recording() { grep -q fanotify "/proc/$pid/fdinfo/"* 2>/dev/null; }
    hs_wait 10 recording
    # Events count only after the stage has begun, which is some moments later. Therefore the file
    # is opened sixty times, and at least one open is in the trace.
    for _ in {1..60}; do
        cat "$HS_MNT/d/small" >/dev/null
        read -rt 0.05 <> <(:) || true
    done
    kill -INT "$pid"
    wait "$pid"
    run -0 hs show --json=short "$HS_TMP/t.json"
    jq -e 'any(.files[]; .path == "/d/small")' <<<"$output"

    # The command waits until it gets the signal, and then exits with status 9.
    "$HEADSTART" record --root="$HS_MNT" --output="$HS_TMP/u.json" --quiet -- \
        bash -c 'trap "exit 9" TERM; : >"$0"; for ((i = 0; i < 300; i++)); do sleep 0.1; done' \
        "$HS_TMP/ready" 3>&- &
    pid=$!
    hs_defer eval "kill -KILL $pid 2>/dev/null || true"
    hs_wait 10 test -e "$HS_TMP/ready"
    kill -TERM "$pid"
    local code=0
    wait "$pid" || code=$?
    [ "$code" -eq 9 ]
    [ -e "$HS_TMP/u.json" ]
}

@test "record: a missing command, no root, an output that cannot be written: nothing is recorded" {
    recordable
    refused 127 "$HS_TMP/nothing: No such file or directory" record --root="$HS_MNT" -- "$HS_TMP/nothing"
    touch "$HS_TMP/plain"
    refused 126 "$HS_TMP/plain: Permission denied" record --root="$HS_MNT" -- "$HS_TMP/plain"
    refused 1 "$HS_TMP/no: " record --root="$HS_TMP/no" -- touch "$HS_TMP/ran"
    refused 1 "$HS_TMP/no/t.json: No such file or directory" record --output="$HS_TMP/no/t.json" -- touch "$HS_TMP/ran"
    mkdir "$HS_TMP/empty"
    refused 1 "no local block-backed filesystem" record --root="$HS_TMP/empty" -- touch "$HS_TMP/ran"
    [ ! -e "$HS_TMP/ran" ]
    [ -z "$(ls -A "$HS_STATE/traces" 2>/dev/null)" ]
}

@test "record: a missing capability is named" {
    recordable
    need_command setpriv
    mkdir -p "$HS_STATE"
    for cap in sys_admin dac_read_search; do
        run --separate-stderr hs_without "$cap" "$HEADSTART" record --state="$HS_STATE" --root="$HS_MNT" -- touch "$HS_TMP/ran"
        echo "$stderr"
        [ "$status" -eq 1 ]
        assert_one_error_line "$stderr"
        [[ $stderr == *"needs CAP_${cap^^}"* ]]
    done
    run --separate-stderr hs_without sys_admin,dac_read_search "$HEADSTART" record --state="$HS_STATE" -- true
    [[ $stderr == *"needs CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH" ]]
    [ ! -e "$HS_TMP/ran" ]
    # Without CAP_FOWNER headstart record works, and reports what it cannot observe.
    run --separate-stderr -0 hs_without fowner "$HEADSTART" record --output="$HS_TMP/t.json" --root="$HS_MNT" -- cat "$HS_MNT/d/small"
    [[ $stderr == *"no CAP_FOWNER"* ]]
    run -0 hs show --json=short "$HS_TMP/t.json"
    jq -e '.flags | index("residency off") != null' <<<"$output"
}

@test "record: a full disk costs the trace, but no existing file" {
    recordable
    mkdir -p "$HS_STATE"
    mount -t tmpfs -o size=64k,mode=700 tmpfs "$HS_STATE"
    hs_defer hs_umount "$HS_STATE"
    mkdir "$HS_STATE/traces"
    dd if=/dev/zero of="$HS_STATE/fill" bs=4k 2>/dev/null || true
    run --separate-stderr record --quiet -- cat "$HS_MNT/d/small"
    [ "$status" -eq 1 ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"No space left on device"* ]]
    [ -z "$(ls -A "$HS_STATE/traces")" ]
}

@test "end to end: record, learn, plan, replay; then the command reads nothing from the disk" {
    recordable
    need_binary "$HEADSTART_REPLAY"
    run -0 record --stage=login --quiet -- cat "$HS_MNT/d/large" "$HS_MNT/d/small"
    run -0 hs learn
    run -0 hs plan --root="$HS_MNT"
    # The kernel must not read block bitmaps by itself at some moment after the mount.
    # shellcheck disable=SC2034 # hs_cold uses it
    HS_COLD_OPTIONS=relatime,no_prefetch_block_bitmaps
    replayed_then_read() {
        local before after
        hs_cold
        run -0 hs replay --root="$HS_MNT" --stage=login --wait
        echo "$output"
        before=$(hs_reads)
        cat "$HS_MNT/d/large" "$HS_MNT/d/small" >/dev/null
        after=$(hs_reads)
        echo "reads: $((after - before))"
        [ $((after - before)) -le 1 ]
    }
    hs_attempts replayed_then_read
}

@test "a wait for another process shows its progress on a terminal, and none elsewhere" {
    need_command script flock
    mkdir -m 0700 "$HS_STATE"
    TERM=xterm run flock "$HS_STATE" script -qec "'$HEADSTART' --state='$HS_STATE' learn" /dev/null
    echo "$output"
    [[ $output == *"Waiting for another headstart process, 1s"*$'\r\e[K'*"has locked it"* ]]
    run --separate-stderr flock "$HS_STATE" "$HEADSTART" --state="$HS_STATE" learn
    [ "$status" -eq 1 ]
    assert_one_error_line "$stderr"
    [ -z "$output" ]
}

@test "a wait for systemd or for the bus shows its progress on a terminal" {
    need_root
    need_command script python3 setpriv
    mkdir "$HS_TMP/bin"
    printf '#!/bin/sh\nsleep 0.2\n' >"$HS_TMP/bin/systemctl"
    chmod +x "$HS_TMP/bin/systemctl"
    # doctor asks for each unit.
    TERM=xterm run unshare --mount sh -c 'mount -t tmpfs none /run && mkdir -p /run/systemd/system &&
        PATH=$1:$PATH exec script -qec "\"$2\" --state=\"$3\" doctor" /dev/null' sh "$HS_TMP/bin" "$HEADSTART" "$HS_STATE"
    [[ $output == *$'\e[K'"Checking this machine, 1s"*$'\r\e[K'* ]]
    # A bus that does not answer. Other users cannot reach HS_TMP.
    local bus
    bus=$(mktemp -d /tmp/headstart-cli.XXXXXX)
    hs_defer rm -rf "$bus"
    chmod 0755 "$bus"
    python3 -c 'import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + ".new")
os.chmod(sys.argv[1] + ".new", 0o666)
s.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
c, _ = s.accept()
time.sleep(2.5)' "$bus/socket" 3>&- &
    hs_defer hs_kill $!
    hs_wait 10 test -e "$bus/socket"
    mkdir -p -m 0700 "$HS_STATE"
    cp "$HEADSTART" "$bus/headstart"
    TERM=xterm HEADSTART_SYSTEM_ROOT=/ DBUS_SYSTEM_BUS_ADDRESS=unix:path=$bus/socket run \
        setpriv --reuid=65534 --regid=65534 --clear-groups script -qec "'$bus/headstart' --state='$HS_STATE' status" /dev/null
    echo "$output"
    [[ $output == *$'\e[K'"Waiting for headstart-bus, 1s"*$'\r\e[K'*"headstart-bus does not answer"* ]]
}

@test "tests/demo shows its progress on a terminal, and none in a pipe" {
    need_root
    need_command script
    mkdir -p "$HS_TMP/tree/tests/bench" "$HS_TMP/bin"
    cp "$HS_SOURCE/tests/demo" "$HS_TMP/tree/tests"
    # All packages are installed. The build takes 3.5 s, and the bench prints its arguments.
    printf '#!/bin/sh\necho install ok installed\n' >"$HS_TMP/bin/dpkg-query"
    printf '#!/bin/sh\nexit 0\n' >"$HS_TMP/bin/meson"
    printf '#!/bin/sh\nsleep 1.2\necho "[1/2] x"\nsleep 2.3\n' >"$HS_TMP/bin/ninja"
    printf '#!/bin/sh\necho "bench $*"\n' >"$HS_TMP/tree/tests/bench/run"
    chmod +x "$HS_TMP"/bin/* "$HS_TMP/tree/tests/bench/run"
    PATH=$HS_TMP/bin:$PATH run -0 script -qec "$HS_TMP/tree/tests/demo" /dev/null
    echo "$output"
    # tests/demo counts full seconds of the clock, so a line may say one second more than has passed.
    [[ $output == *$'\r\e[K'"ninja, "[12]"s"*"ninja, "[23]"s, 50 %, "[23]"s left"*$'\r\e[K'* ]]
    [[ $output == *"bench --profile hdd7200 "*"Done."* ]]
    PATH=$HS_TMP/bin:$PATH run -0 "$HS_TMP/tree/tests/demo"
    echo "$output"
    [[ $output != *$'\e'* && $output != *"ninja, "* && $output == *"bench --quiet --profile hdd7200 "*"Done."* ]]
}

# on_terminal COMMAND…: runs the command on a terminal of $COLUMNS_OF_TERMINAL columns (none: the size is not known), and
# ends it after a minute.
on_terminal() {
    local size=${COLUMNS_OF_TERMINAL:+"stty cols $COLUMNS_OF_TERMINAL;"}
    TERM=xterm run timeout --kill-after=5 60 script -qec "$size $(printf '%q ' "$@")" /dev/null
}

# slowly MILLISECONDS COMMAND…: runs the command on a terminal. Each of its calls that names a file takes that much longer.
slowly() {
    on_terminal strace -f --seccomp-bpf -o /dev/null -e trace=%file -e inject="%file:delay_enter=${1}000" "${@:2}"
}

@test "every verb that takes longer than a second shows its progress on a terminal, and none in a pipe" {
    need_command script
    need_strace
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/usr/bin" "$HS_MNT/etc/systemd/system" "$HS_STATE/traces" "$HS_TMP/bin"
    local i row delay line verb headstart=("$HEADSTART" "--state=$HS_STATE")
    for i in {1..24}; do head -c 20000 /dev/urandom >"$HS_MNT/usr/bin/$i"; done
    sync -f "$HS_MNT"
    for i in boot login; do
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" $i 1793520000 /usr/bin/{1..24} >"$HS_STATE/traces/20261101T080000-$i.json"
    done
    printf '#!/bin/sh\nsleep 1\n' >"$HS_TMP/bin/systemctl"
    chmod +x "$HS_TMP/bin/systemctl"
    # Milliseconds, the line that is shown, and the verb.
    local rows=(
        "30:Learning [:learn --rebuild"
        "8:Planning [:plan --root=$HS_MNT"
        "30:Examining files [:refresh --dry-run --root=$HS_MNT"
        "15:Examining files [:relocate --dry-run --force --root=$HS_MNT"
        "20:Reading the pack, :replay --root=$HS_MNT --wait --stage=boot"
        "30:Drawing, :plot boot --output=$HS_TMP/boot.svg"
        "30:Drawing, :report --output=$HS_TMP/report.html"
        "0:Waiting for systemd, :disable --root=$HS_MNT"
        "0:Waiting for systemd, :enable --root=$HS_MNT"
    )
    for row in "${rows[@]}"; do
        IFS=: read -r delay line verb <<<"$row"
        echo "# $verb"
        # shellcheck disable=SC2086 # several words
        PATH=$HS_TMP/bin:$PATH slowly "$delay" "${headstart[@]}" $verb
        printf '%s\n' "$status" "$output" | tr '\r' '\n' | tail -n 20
        [ "$status" -eq 0 ]
        [[ $output == *$'\e[K'"$line"*$'\r\e[K'* ]]
        # Without a terminal, and with --quiet, the verb shows none.
        # shellcheck disable=SC2086
        PATH=$HS_TMP/bin:$PATH run --separate-stderr -0 "${headstart[@]}" $verb
        [[ $output$stderr != *$'\e['* && $stderr != *"$line"* ]]
    done
    # doctor finds problems in this tree, so its exit status is not 0.
    slowly 30 "${headstart[@]}" --root="$HS_MNT" doctor
    [[ $output == *$'\e[K'"Checking the files of the packs ["*"% "* || $output == *"%, "*"left"* ]]
    # The time that is left is never 0.
    [[ $output != *"0us left"* ]]
    # A line that is longer than the terminal's would not be overwritten, but fill the screen.
    local columns width
    for columns in 80 40 20; do
        COLUMNS_OF_TERMINAL=$columns slowly 30 "${headstart[@]}" --root="$HS_MNT" doctor
        # The last character of a line, which "\r" precedes, is at most in the last but one column.
        width=$(tr '\r' '\n' <<<"$output" | sed -n 's/^\x1b\[K\(Checking the files.*\)$/\1/p' | wc -L)
        echo "# $columns columns: $width"
        ((width > columns / 2 && width < columns))
    done
    # These verbs read one large file. Only the open(2) of this file takes long here.
    "${headstart[@]}" export --output="$HS_TMP/model"
    rows=(
        "$HS_STATE/model.json:Reading, :show $HS_STATE/model.json"
        "$HS_STATE/model.json:Reading the model, :explain /usr/bin/1"
        "$HS_STATE/model.json:Reading the model, :export --output=$HS_TMP/model"
        "$HS_TMP/model:Importing [:import $HS_TMP/model"
    )
    for row in "${rows[@]}"; do
        IFS=: read -r i line verb <<<"$row"
        echo "# $verb"
        # shellcheck disable=SC2086 # several words
        on_terminal strace -f -o /dev/null -P "$i" -P "${i##*/}" -e inject=openat:delay_enter=1200000 "${headstart[@]}" $verb
        printf '%s\n' "$status" "$output" | tr '\r' '\n' | tail -n 20
        [ "$status" -eq 0 ]
        [[ $output == *$'\e[K'"$line"*$'\r\e[K'* ]]
    done
    # record also examines the files that other tests open at this time, so only its calls for these files take longer.
    on_terminal strace -f -o /dev/null -P "$HS_MNT/usr/bin" -e inject=%file:delay_enter=60000 \
        "${headstart[@]}" record --output="$HS_TMP/trace.json" -- cat "$HS_MNT"/usr/bin/*
    [[ $output == *$'\e[K'"Making the trace, "* && $output != *"Recording, "* ]]
    # Without a command, record waits for Ctrl+C.
    on_terminal timeout --foreground -s INT 6 "$HEADSTART" record --root="$HS_MNT" --output="$HS_TMP/trace.json"
    echo "$output"
    [[ $output == *"Recording session; Ctrl+C ends it."*$'\e[K'"Recording, 1s"*$'\r\e[K'*"headstart: recorded session"* ]]
}
