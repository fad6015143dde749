#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart learn, when the traces of one user are large or get the process killed.

load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
    need_command jq
    need_command prlimit
    mkdir -p "$HS_STATE/traces"
}

# flood NUMBER STAGE UID FILES LENGTH [TAG [APPLICATIONS]]: adds a trace that tests/bats/make-flood
# makes.
flood() {
    local number=$1 stage=$2
    shift 2
    "$BATS_TEST_DIRNAME/make-flood" "$stage" $((1767322800 + number)) "$@" \
        >"$HS_STATE/traces/20260102T03$(printf %04d "$number")-$stage.json"
}

# model JQ-EXPRESSION: checks that the expression is true of the raw model
model() {
    jq -e "$1" <(zcat -f "$HS_STATE/model.json") >/dev/null || {
        echo "# not so: $1" >&2
        jq -c '[.stages[] | {stage, uid, files: (.files.used | length)}]' <(zcat -f "$HS_STATE/model.json") >&2
        return 1
    }
}

# knows_all [COMMAND…]: checks that learning again finds nothing new.
knows_all() {
    run --separate-stderr -0 "${@:-hs}" learn --json=short
    [ -z "$stderr" ]
    jq -e '.n_learned == 0' <<<"$output"
}

# limited ARGUMENT…: runs headstart with at most 256 MiB of address space. The units may use as much
# memory (MemoryMax=256M).
limited() {
    prlimit --as=$((256 << 20)) "$HEADSTART" --state="$HS_STATE" "$@"
}

@test "learn: 30,000 paths of 4,000 bytes do not stop a later trace, nor do 60,000" {
    need_memory_limits
    local uid
    flood 1 login 1001 30000 4000
    flood 2 login 1002 60000 4000
    flood 3 login 1000 500 60
    run --separate-stderr limited learn
    echo "$output $stderr"
    model '.stages | map(select(.uid == 1000)) | .[0].files.used | length == 500'
    # One user's share is 2 MiB of paths, which has room for about 500 files of the flood.
    for uid in 1001 1002; do
        model ".stages | map(select(.uid == $uid)) | .[0].files.used | length | . > 100 and . < 1000"
    done
    # All traces are known, so learning again reads none of them.
    knows_all limited
}

@test "learn: the likeliest files of a trace over the limits are learned" {
    need_memory_limits
    # User 1001 uses forty files, and then floods a session with long names that come first in its
    # trace.
    flood 1 session 1001 40 60 daily
    flood 2 session 1001 40 60 daily
    limited learn
    flood 3 session 1001 7500 4000 hog
    python3 - "$HS_STATE"/traces/*0003-session.json <<'END'
import json, sys
t = json.load(open(sys.argv[1]))
top = len(t["paths"]["name"])
n = 40
t["paths"]["parent"] += [0] + [top] * n
t["paths"]["name"] += ["flooddaily"] + [str(i).zfill(48) for i in range(n)]
f = t["files"]
last = sum(f["path_delta"])
f["path_delta"] += [top + 1 - last] + [1] * (n - 1)
for k, v in (("volume", -1), ("directory", 0), ("inode_delta", 1), ("size_bytes", 8192),
             ("mtime_nsec_delta", 0), ("resident", [0, 8192])):
    f[k] += [v] * n
a = t["accesses"]
a["file_delta"] += [1] * n
a["at_usec_delta"] += [10] * n
a["application"] += [0] * n
a["kind"] += [0] * n
json.dump(t, open(sys.argv[1], "w"))
END
    run -0 limited learn
    [[ $output =~ learned\ without\ [0-9]+\ files ]]
    model '[.stages[] | select(.stage == "session")][0].files.used | length | . > 300 and . < 1000'
    # Of all files, only the forty were used in all three sessions.
    model '[.stages[] | select(.stage == "session")][0].files.used | max as $all |
        map(select(. == $all)) | length == 40'
}

@test "learn: the files of one user do not displace those of another" {
    need_memory_limits
    flood 1 login 1000 400 80 quiet
    local i
    for i in $(seq 10 29); do
        flood "$i" session 1001 15000 100 "hog$i" 3000
    done
    run -0 limited learn
    model '[.stages[] | select(.uid == 1000)][0].files.used | length == 400'
    [ "$(zcat "$HS_STATE/model.json" | wc -c)" -lt $((16 << 20)) ]
    # The same user's logins stay, whatever the sessions contain.
    flood 40 login 1001 400 80 login
    flood 41 session 1001 15000 100 hog41 3000
    run -0 limited learn
    model '[.stages[] | select(.uid == 1001 and .stage == "login")][0].files.used | length == 400'
    model '[.stages[] | select(.uid == 1000)][0].files.used | length == 400'
}

@test "learn: the model is saved after each trace; a file that got learning killed is set aside, with one line" {
    flood 1 login 1000 10 60 first
    flood 2 login 1001 15000 100 killer
    flood 3 login 1000 10 60 last
    # The model with the second trace is larger than a file may be, so SIGXFSZ ends the process.
    run prlimit --fsize=2000 "$HEADSTART" --state="$HS_STATE" learn
    [ "$status" -eq 153 ]
    model '.learned | length == 1'
    run --separate-stderr -0 hs learn
    [[ $stderr == *"20260102T030002-login.json: learning was killed while it read this file; set aside" ]]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    [ -e "$HS_STATE/traces/20260102T030002-login.json.bad" ]
    model '.learned | length == 2'
    model '[.stages[] | select(.uid == 1000)][0].files.used | length == 20'
    knows_all
    run -1 compgen -G "$HS_STATE/*.try" "$HS_STATE/traces/*.try"
}

@test "learn: a trace is kept after one kill in another boot, and set aside after two" {
    flood 1 login 1000 10 60
    local trace=$HS_STATE/traces/20260102T030001-login.json
    echo "00000000-0000-0000-0000-000000000000 0" >"$trace.try"
    run --separate-stderr -0 hs learn
    [ -z "$stderr" ]
    model '.learned | length == 1'
    [ ! -e "$trace.try" ]

    rm "$HS_STATE/model.json"
    echo "00000000-0000-0000-0000-000000000000 1" >"$trace.try"
    run --separate-stderr -0 hs learn
    [[ $stderr == *"set aside" ]]
    [ -e "$trace.bad" ]
}

@test "learn: a model that killed its reader four times is set aside, and all remaining traces are learned again" {
    flood 1 login 1000 10 60
    hs learn
    local boot
    boot=$(tr -d - </proc/sys/kernel/random/boot_id)
    # After three kills the model is kept, because it is worth more than a trace.
    echo "$boot 4" >"$HS_STATE/model.json.try"
    knows_all
    [ ! -e "$HS_STATE/model.json.bad" ]
    echo "$boot 6" >"$HS_STATE/model.json.try"
    run --separate-stderr -0 hs learn
    [[ $stderr == *"model.json: learning was killed while it read this file; set aside, learning again" ]]
    [ -e "$HS_STATE/model.json.bad" ]
    model '.learned | length == 1'
}

@test "learn: a trace that exceeds the available memory is set aside, and learning continues" {
    need_memory_limits
    # The loop finds the memory limit that just suffices for the small trace.
    local megabytes=7
    flood 2 login 1000 10 60
    until prlimit --as=$((++megabytes << 20)) "$HEADSTART" --state="$HS_STATE" learn --quiet; do
        [ "$megabytes" -lt 100 ]
        find "$HS_STATE" -name "*.try" -delete
        for f in "$HS_STATE"/traces/*.bad; do
            [ ! -e "$f" ] || mv "$f" "${f%.bad}"
        done
    done
    rm "$HS_STATE/model.json"
    # The limit gets one more megabyte, because the least limit at which the libraries fit differs
    # from run to run.
    megabytes=$((megabytes + 1))
    flood 1 login 1001 15000 100 large
    run --separate-stderr -0 prlimit --as=$((megabytes << 20)) "$HEADSTART" --state="$HS_STATE" learn
    # The allocation that fails decides which text the message has.
    [[ $stderr == *"20260102T030001-login.json: "@("Cannot allocate memory"|"out of memory")"; set aside" ]]
    model '.learned | length == 1'
}

@test "learn: a request to end waits for the current trace" {
    flood 1 login 1001 30000 100 long
    flood 2 login 1000 10 60
    # The signal arrives while the first trace is read. Learning ends after this trace, which is
    # learned.
    run python3 - "$HEADSTART" --state="$HS_STATE" learn <<'END'
import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
marker = sys.argv[2].split("=")[1] + "/traces/20260102T030001-login.json.try"
while not os.path.exists(marker) and p.poll() is None:
    pass
p.send_signal(signal.SIGTERM)
sys.exit(0 if p.wait() == -signal.SIGTERM else 1)
END
    [ "$status" -eq 0 ]
    run -1 compgen -G "$HS_STATE/traces/*.try"
    model '.learned | length == 1'
    run --separate-stderr -0 hs learn
    [ -z "$stderr" ]
    model '.learned | length == 2'
}

@test "learn: thousands of applications that run together stay within the memory of the unit" {
    need_memory_limits
    local i
    for i in 1 2 3; do
        # The applications have 4 MiB each, so that the session cycle follows them.
        flood "${i}0" session 1001 3000 100 app 3000
        sed -i 's/8192/4194304/g' "$HS_STATE/traces/"*"00${i}0-session.json"
    done
    run -0 prlimit --as=$((128 << 20)) "$HEADSTART" --state="$HS_STATE" learn
    [ "$(grep -c ' learned' <<<"$output")" -eq 3 ]
    [ "$(zcat "$HS_STATE/model.json" | wc -c)" -lt $((8 << 20)) ]
}

@test "state: files that were set aside, and short logins, do not pile up; other users keep their traces" {
    local i
    flood 1 login 1000 5 60
    hs learn --quiet
    # The traces have the form that the recorder writes, with the user near the beginning.
    for i in $(seq 10 99); do
        "$BATS_TEST_DIRNAME/make-flood" login $((1767322800 + i)) 1001 3 60 | python3 -c '
import json, sys
t = json.load(sys.stdin)
print("{" + ",\n".join(json.dumps(k) + ":" + json.dumps(v, separators=(",", ":")) for k, v in t.items()) + "}")
' >"$HS_STATE/traces/20260102T0300$i-login.json"
        echo "{}" >"$HS_STATE/traces/20260102T0200$i-login.json.bad"
        echo "{}" >"$HS_STATE/traces/20260102T0100$i-login.json.skipped"
    done
    : >"$HS_STATE/traces/20250102T010000-login.json.try"
    hs learn --quiet
    ls "$HS_STATE/traces"
    [ "$(find "$HS_STATE/traces" -name '*.json' | wc -l)" -eq 32 ]
    [ -e "$HS_STATE/traces/20260102T030001-login.json" ]
    [ -e "$HS_STATE/traces/20260102T030099-login.json" ]
    [ "$(find "$HS_STATE/traces" -name '*.bad' -o -name '*.skipped' | wc -l)" -eq 8 ]
    run -1 compgen -G "$HS_STATE/traces/*.try"
}

@test "learn: MinSize= decides which applications of a session are followed" {
    local n
    # The trace has six applications, all smaller than the default of MinSize=.
    "$BATS_TEST_DIRNAME/make-session" 1 1767322800 12 >"$HS_STATE/traces/20260102T030000-session.json"
    mkdir -p "$HS_TMP/root/etc/headstart"
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    for n in 0 2000000; do
        printf '[Session]\nMinSize=%s\n' "$n" >"$HS_TMP/root/etc/headstart/headstart.conf"
        run -0 hs learn --rebuild
        jq '.chains.names // [] | length' <(zcat -f "$HS_STATE/model.json") >>"$HS_TMP/followed"
    done
    [ "$(xargs <"$HS_TMP/followed")" = "6 0" ]
}

# Writes traces of two sessions that the session cycle has followed.
followed_sessions() {
    local n
    for n in 1 2; do
        "$BATS_TEST_DIRNAME/make-session" "$n" $((1767322800 + n * 86400)) 12 |
            jq -c '.flags += ["followed"]' >"$HS_STATE/traces/2026010$((n + 2))T030000-session.json"
    done
}

@test "learn: without a model, the chains learn the followed sessions again" {
    mkdir -p "$HS_TMP/root/etc/headstart"
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    printf '[Session]\nMinSize=0\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    followed_sessions
    run -0 hs learn
    jq -e '.chains.names | length == 6' <(zcat -f "$HS_STATE/model.json")
    zcat -f "$HS_STATE/model.json" >"$HS_TMP/whole"
    run -0 hs learn --rebuild
    cmp <(zcat -f "$HS_STATE/model.json") "$HS_TMP/whole"
    # A kill after the first trace of the rebuild leaves the mark of the rebuild.
    mv "$HS_STATE/traces/20260104T030000-session.json" "$HS_TMP/"
    hs learn --rebuild --quiet
    [ ! -e "$HS_STATE/model.json.rebuild" ]
    : >"$HS_STATE/model.json.rebuild"
    mv "$HS_TMP/20260104T030000-session.json" "$HS_STATE/traces/"
    run -0 hs learn
    cmp <(zcat -f "$HS_STATE/model.json") "$HS_TMP/whole"
    [ ! -e "$HS_STATE/model.json.rebuild" ]
}

@test "learn: a new model without traces replaces the old one" {
    followed_sessions
    hs learn --quiet
    rm "$HS_STATE"/traces/*
    mkdir -p "$HS_TMP/root/etc/headstart"
    printf '[Model]\nHalfLife=24h\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run --separate-stderr -0 hs learn
    [[ $stderr == *"HalfLife= was changed"* ]]
    [ "$output" = "There is no trace to learn: removed the model." ]
    [ ! -e "$HS_STATE/model.json" ]
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run --separate-stderr -0 hs learn
    [ -z "$stderr" ]
    [ "$output" = "Nothing new to learn." ]
}
