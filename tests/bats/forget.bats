#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What headstart forget deletes, and what it keeps; enable and disable.

bats_require_minimum_version 1.5.0
load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes

setup() {
    hs_setup
    HS_ROOT=$HS_MNT
    need_command jq
    need_command xz
}

# recorded N: learns the first N traces of the recorded days. On each day each of two people has one
# login and one session. Adds packs, files that were set aside, and a file that does not belong to
# headstart.
recorded() {
    need_loop
    hs_filesystem ext4 64
    mkdir -p -m 700 "$HS_STATE/traces"
    local f
    while read -r f; do
        xz -dc "$f" >"$HS_STATE/traces/$(basename "$f" .xz)"
    done < <(find "$HS_SOURCE/tests/fixtures/sessions" -name '*.json.xz' | sort | head -n "$1")
    hs learn --quiet
    echo pack >"$HS_STATE/boot.pack"
    echo pack >"$HS_STATE/login.pack"
    echo pack >"$HS_STATE/login@1000.pack"
    echo pack >"$HS_STATE/login@1001.pack"
    echo bad >"$HS_STATE/model.json.bad"
    echo bad >"$HS_STATE/launches.jsonl.bad"
    echo bad >"$HS_STATE/history.1.jsonl.bad"
    echo bad >"$HS_STATE/traces/20200101T000000-login.json.bad"
    echo mine >"$HS_STATE/notes"
}

traces_of() { # uid
    local f
    for f in "$HS_STATE"/traces/*.json; do
        jq -r .uid "$f"
    done | grep -c "^$1\$"
}

@test "forget deletes everything of headstart, and nothing else" {
    recorded 4
    hs rerecord --quiet
    # These are files that killed writers leave, and requests.
    touch "$HS_STATE/model.json.4711.tmp" "$HS_STATE/login@1000.pack.12.tmp" "$HS_STATE/rerecord-boot.bad" "$HS_STATE/refresh-wanted" "$HS_STATE/last-control"
    run -0 hs forget
    [[ $output == "Deleted: 5 traces, 4 packs, and the model." ]]
    [ "$(cd "$HS_STATE" && find . -type f)" = ./notes ]
    run -0 hs forget --json=short
    jq -e '. == {"n_traces": 0, "n_packs": 0, "n_traces_left": 0}' <<<"$output"
    run -0 hs status
    [[ $output == *"nothing was recorded yet"* ]]
}

@test "a missing state directory contains nothing to forget" {
    run --separate-stderr -0 hs forget
    [ -z "$stderr" ]
    [ ! -e "$HS_STATE" ]
}

@test "forget --user: the traces, the knowledge and the packs of other users stay" {
    recorded 32
    local theirs all
    theirs=$(traces_of 1001)
    all=$(find "$HS_STATE/traces" -name '*.json' | wc -l)
    [ "$theirs" -gt 0 ]
    [ "$theirs" -lt "$all" ]
    jq -e '[.stages[].uid] | index(1001)' <(zcat -f "$HS_STATE/model.json")
    run -0 hs forget --user=1001 --json=short
    jq -e --argjson n "$theirs" --argjson all "$all" \
        '.n_traces == $n + 1 and .n_traces_left == $all - $n' <<<"$output"
    [ "$(traces_of 1001)" -eq 0 ]
    [ "$(traces_of 1000)" -eq $((all - theirs)) ]
    [ ! -e "$HS_STATE/traces/20200101T000000-login.json.bad" ] # its user is unknown
    [ ! -e "$HS_STATE/launches.jsonl.bad" ] && [ ! -e "$HS_STATE/history.1.jsonl.bad" ]
    jq -e '[.stages[].uid] | index(1001) == null and index(1000) != null' <(zcat -f "$HS_STATE/model.json")
    jq -e '[.chains.histories[].user] | index(1001) == null and index(1000) != null' <(zcat -f "$HS_STATE/model.json")
    ! zgrep -q pcmanfm-qt "$HS_STATE/model.json" || false # only this user has used this program
    [ ! -e "$HS_STATE/login@1001.pack" ]
    [ "$(<"$HS_STATE/notes")" = mine ]
}

@test "forget --stage: the other stages stay" {
    recorded 8
    line() {
        echo "{\"version\":1,\"stage\":\"$1\",$2\"flags\":[],\"policy\":\"off\",\"usage\":\"none\",\"start_realtime_usec\":$3}"
    }
    { line boot "" 1; line login '"uid":1000,' 2; line login '"uid":1001,' 3; } >"$HS_STATE/history.jsonl"
    run -0 hs forget --stage=session
    [[ $output == *"The remaining traces were learned again, and the packs were planned again."* ]]
    [ "$(find "$HS_STATE/traces" -name '*-session.json' | wc -l)" -eq 0 ]
    [ "$(find "$HS_STATE/traces" -name '*-login.json' | wc -l)" -eq 4 ]
    [ -e "$HS_STATE/traces/20200101T000000-login.json.bad" ]
    jq -e '[.stages[].stage] | unique == ["login"]' <(zcat -f "$HS_STATE/model.json")
    # The history has no lines of the stage session, so all its lines are kept. Then one user's
    # logins are deleted, and at last everything.
    [ "$(hs history --json=short | jq -c 'map(.uid)')" = '[null,1000,1001]' ]
    run -0 hs forget --user=1001
    [ "$(hs history --json=short | jq -c 'map(.uid)')" = '[null,1000]' ]
    run -0 hs forget
    [ "$(hs history --json=short)" = '[]' ]
    [ ! -e "$HS_STATE/history.jsonl" ]
}

@test "forget --stage: the rest stays learned, although nothing of it can be planned" {
    need_loop
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/usr/bin" "$HS_STATE/traces"
    echo app >"$HS_MNT/usr/bin/app"
    chmod 755 "$HS_MNT/usr/bin/app"
    local stage
    for stage in login session; do
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" $stage 1793520000 /usr/bin/app \
            >"$HS_STATE/traces/20261101T080000-$stage.json"
    done
    hs learn --quiet
    run -0 --separate-stderr hs forget --stage=login
    [[ $output == "Deleted: 1 trace, "* ]]
    [ "$stderr" = "headstart: nothing was learned of boot or login yet" ]
    jq -e '[.stages[].stage] == ["session"]' <(zcat -f "$HS_STATE/model.json")
}

@test "forget --user deletes recordings that cannot be read, too" {
    recorded 4
    echo '{' >"$HS_STATE/traces/20200101T000000-session.json"
    run -0 hs forget --user=4242
    [[ $output == "Deleted: 2 traces,"* ]]
    [ "$(find "$HS_STATE/traces" -name '*.json' | wc -l)" -eq 4 ]
}

@test "forget --user keeps a trace that cannot be read for the moment" {
    recorded 4
    need_strace
    local file error
    file=$(grep -l '"uid":1000' "$HS_STATE"/traces/*.json | head -n 1)
    for error in EIO ENOMEM EMFILE; do
        run -1 --separate-stderr strace -qq -o /dev/null -P "$file" -P "${file##*/}" -e trace=openat -e inject=openat:error=$error \
            "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" forget --user=1001
        [ "$stderr" = "headstart: $file: $(python3 -c "import errno, os; print(os.strerror(errno.$error))")" ]
        [ -e "$file" ]
    done
    run -0 hs forget --user=1001
    [ -e "$file" ]
}

@test "forget --user: a kill at any step loses no line of others, and the next forget completes" {
    need_strace
    local call n kills=0
    python3 - "$HS_TMP/before" <<'END'
import json, os, sys
os.umask(0o77)
os.makedirs(sys.argv[1] + "/traces")
for name, rest in (("history", {"stage": "login", "flags": [], "policy": "off", "usage": "none"}),
                   ("launches", {"application": "/bin/a", "took_usec": 9, "files": 30, "replayed": "no"})):
    lines = [json.dumps({"version": 1, "uid": 1000 + i % 3, "start_realtime_usec": 1793520000000000 + i, **rest}) + "\n"
             for i in range(30)]
    for file, part in ((name + ".1.jsonl", lines[:20]), (name + ".jsonl", lines[20:])):
        open(f"{sys.argv[1]}/{file}", "w").writelines(part)
for file in ("model.json", "boot.pack", "traces/20200101T000000-login.json"):
    open(f"{sys.argv[1]}/{file}", "w").write("x")
END
    lines_of_others() {
        cat "$HS_STATE/history.1.jsonl" "$HS_STATE/history.jsonl" "$HS_STATE/launches.1.jsonl" "$HS_STATE/launches.jsonl" |
            jq -c 'select(.uid != 1001) | [.uid, .application, .start_realtime_usec]'
    }
    again() {
        rm -rf "$HS_STATE"
        cp -a "$HS_TMP/before" "$HS_STATE"
    }
    again
    lines_of_others >"$HS_TMP/others"
    [ "$(wc -l <"$HS_TMP/others")" -eq 40 ]
    for call in unlinkat renameat write fchmod fsync; do
        for ((n = 1; n < 100; n++)); do
            again
            run strace -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$n \
                "$HEADSTART" --state="$HS_STATE" forget --user=1001 --quiet
            [ "$status" -ne 0 ] || break
            [ "$status" -eq 137 ]
            kills=$((kills + 1))
            diff <(lines_of_others) "$HS_TMP/others"
            hs forget --user=1001 --quiet
            diff <(lines_of_others) "$HS_TMP/others"
            [ -z "$(find "$HS_STATE" -type f ! -name '*.jsonl')" ]
            [ "$(jq -s 'map(select(.uid == 1001)) | length' "$HS_STATE"/*.jsonl | sort -u)" = 0 ]
        done
        [ "$n" -gt 1 ]
    done
    [ "$kills" -ge 15 ]
}

# --- enable and disable, on a tree that is not running -------------------------------------------------------

@test "enable and disable a tree that is not running: units and the mark" {
    need_command systemctl
    local root=$HS_TMP/tree units
    mkdir -p "$root/usr/lib/systemd/system" "$root/etc"
    cp "$HS_BUILD"/units/headstart-*.* "$root/usr/lib/systemd/system"
    run -0 "$HEADSTART" --root="$root" enable
    [ "$output" = "Enabled, from the next boot on." ]
    units=$(cd "$root/etc/systemd/system" && find . -type l -printf '%f\n' | sort -u | tr '\n' ' ')
    [ "$units" = "$(sed -n 's/^enable //p' "$HS_SOURCE/data/90-headstart.preset" | sort | tr '\n' ' ')" ]
    run -0 "$HEADSTART" --root="$root" disable --json=short
    jq -e '. == {"enabled": false, "now": false}' <<<"$output"
    [ -z "$(find "$root/etc/systemd/system" -type l)" ]
    [ -s "$root/etc/headstart/disabled" ]
    run -0 "$HEADSTART" --root="$root" enable --quiet
    [ -z "$output" ]
    [ ! -e "$root/etc/headstart/disabled" ]
}

@test "enable: what is impossible is refused in one line" {
    run --separate-stderr -1 "$HEADSTART" --root="$HS_TMP/nowhere" disable
    assert_one_error_line "$stderr"
    [[ $stderr == *"/nowhere: No such file or directory" ]]
    [ ! -e "$HS_TMP/nowhere" ]
    [ -d /run/systemd/system ] || {
        run --separate-stderr -1 "$HEADSTART" enable --now
        assert_one_error_line "$stderr"
        [[ $stderr == *"not booted with systemd"* ]]
    }
}

@test "forget --stage: recordings of the stage that were set aside are deleted, too" {
    mkdir -p -m 700 "$HS_STATE/traces"
    local f
    for f in 20260101T000000-boot.json 20260102T000000-boot-2.json.skipped 20260103T000000-boot.json.bad; do
        echo '{}' >"$HS_STATE/traces/$f"
    done
    echo '{}' >"$HS_STATE/traces/20260102T000000-login.json.skipped"
    run -0 hs forget --stage=boot
    [ "$output" = "Deleted: 3 traces, 0 packs, and the model." ]
    [ "$(ls "$HS_STATE/traces")" = 20260102T000000-login.json.skipped ]
}
