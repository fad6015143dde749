# SPDX-License-Identifier: LGPL-2.1-or-later
# What replay gains: status, history, measure, doctor, and control sessions.

load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes
bats_require_minimum_version 1.5.0

CHECK_BENEFIT=$BATS_TEST_DIRNAME/check-benefit

setup() {
    hs_setup
    need_binary "$HEADSTART"
    need_command jq python3
    mkdir -m 0700 "$HS_STATE"
}

# boots N CONTROL-SECONDS REPLAYED-SECONDS: prints one boot for each of the last N days; every fifth
# boot is a control session.
boots() {
    python3 - "$@" <<'END'
import json, sys, time
n, control, replayed = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
for i in range(n):
    c = i % 5 == 2
    print(json.dumps({"version": 1, "stage": "boot", "flags": ["control"] if c else [], "policy": "concurrent",
                      "outcome": "control" if c else "done", "usage": "none",
                      "start_realtime_usec": int((time.time() - 86400 * (n - i)) * 1e6),
                      "ready_usec": round((control if c else replayed) * (1 + i % 7 / 1000) * 1e6)}))
END
}

@test "every number of status and history equals that of an independent computation" {
    local seed n
    for seed in 1 2; do
        for n in 0 1 20 150 1700; do
            "$CHECK_BENEFIT" make $seed $n >"$HS_STATE/history.jsonl"
            hs status --json=short >"$HS_TMP/status.json"
            hs history --limit=0 --json=short >"$HS_TMP/history.json"
            "$CHECK_BENEFIT" check "$HS_STATE/history.jsonl" "$HS_TMP/status.json" "$HS_TMP/history.json"
        done
    done
    # The check must notice a number with a small error.
    jq -c '.[7].disk_reads += 1' "$HS_TMP/history.json" >"$HS_TMP/wrong.json"
    run ! "$CHECK_BENEFIT" check "$HS_STATE/history.jsonl" "$HS_TMP/status.json" "$HS_TMP/wrong.json"
    jq -c '.benefit[0].saved_low *= 1.01' "$HS_TMP/status.json" >"$HS_TMP/wrong.json"
    run ! "$CHECK_BENEFIT" check "$HS_STATE/history.jsonl" "$HS_TMP/wrong.json" "$HS_TMP/history.json"
}

@test "whether replay is switched off, and how often control sessions are drawn, equals an independent computation" {
    local kind n
    for kind in harm slight one-user reformed long automatic; do
        for n in 4 60 250 700; do
            "$CHECK_BENEFIT" make 1 $n $kind >"$HS_STATE/history.jsonl"
            "$CHECK_BENEFIT" make-launches 1 $n $kind >"$HS_STATE/launches.jsonl"
            hs status --json=short >"$HS_TMP/$kind-$n.json"
            hs history --limit=0 --json=short >"$HS_TMP/history.json"
            hs history --launches --limit=0 --json=short >"$HS_TMP/launches.json"
            "$CHECK_BENEFIT" check "$HS_STATE/history.jsonl" "$HS_TMP/$kind-$n.json" "$HS_TMP/history.json"
            "$CHECK_BENEFIT" check-launches "$HS_STATE/launches.jsonl" "$HS_TMP/$kind-$n.json" "$HS_TMP/launches.json" "$HS_STATE/history.jsonl"
        done
    done
    # The histories contain what they are made for: a policy that is off, one that an interval with an error of 5 % would
    # switch off, a user who does not decide for another, sessions that are too old to decide, and an application whose
    # launch set is off.
    jq -e '[.benefit[].harmful] | all' "$HS_TMP/harm-700.json"
    jq -e '.benefit[0] | .harmful == false and .saved_high < 0' "$HS_TMP/slight-250.json"
    jq -e '.benefit[1] | .harmful == false and .saved < 0' "$HS_TMP/one-user-700.json"
    jq -e '[.benefit[].harmful] | any | not' "$HS_TMP/reformed-700.json"
    jq -e '(.benefit[0].n_replayed == 0) and (.benefit[1] | .known and .policy == "idle")' "$HS_TMP/automatic-700.json"
    jq -e '.launches.applications | map(select(.harmful).application) == ["/usr/bin/loses"]' "$HS_TMP/harm-700.json"
    jq -c '.benefit[0].harmful |= not' "$HS_TMP/long-700.json" >"$HS_TMP/wrong.json"
    run ! "$CHECK_BENEFIT" check "$HS_STATE/history.jsonl" "$HS_TMP/wrong.json" "$HS_TMP/history.json"
}

@test "every number in the text of status equals that of an independent computation" {
    local kind n
    # Without launch replay the text would say only that it is off.
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    mkdir -p "$HEADSTART_SYSTEM_ROOT/etc/headstart"
    printf '[Session]\nLaunchReplay=yes\n' >"$HEADSTART_SYSTEM_ROOT/etc/headstart/headstart.conf"
    for kind in old harm automatic one-user; do
        for n in 0 1 20 150 600; do
            "$CHECK_BENEFIT" make 1 $n $kind >"$HS_STATE/history.jsonl"
            "$CHECK_BENEFIT" make-launches 1 $n $kind >"$HS_STATE/launches.jsonl"
            hs status >"$HS_TMP/status"
            "$CHECK_BENEFIT" text "$HS_STATE/history.jsonl" "$HS_STATE/launches.jsonl" "$HS_TMP/status"
        done
    done
    # The check notices a wrong number in each part of the text.
    local wrong
    for wrong in 's/^\(Boot: .* of \)[0-9.]*s/\19.99s/' 's/^\(Login: .*between \)[0-9]* %/\199 %/' \
        's/^\(Boot: .*; \)[0-9]* sessions/\17 sessions/' 's/^\(Launches: .*and \)[0-9]* %/\199 %/' \
        's:^\(/usr/bin/gains .* [0-9]* to \)[0-9]*:\199:' 's:^\(/usr/bin/even .*\) [0-9]* *$:\1 7:'; do
        sed "$wrong" "$HS_TMP/status" >"$HS_TMP/wrong"
        ! cmp -s "$HS_TMP/status" "$HS_TMP/wrong" || false
        run ! "$CHECK_BENEFIT" text "$HS_STATE/history.jsonl" "$HS_STATE/launches.jsonl" "$HS_TMP/wrong"
    done
}

@test "status prints in order: on, saved, replayed, packs, problems, facts; with colours on a terminal only" {
    local root=$HS_TMP/root order
    mkdir -p "$root/run/headstart" "$root/proc/self"
    export HEADSTART_SYSTEM_ROOT=$root
    echo '29 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw' >"$root/proc/self/mountinfo"
    boots 30 10 6 >"$HS_STATE/history.jsonl"
    printf HEADSTRT >"$HS_STATE/boot.pack"
    echo '{"policy":"gate","outcome":"done","files":12}' >"$root/run/headstart/replay-boot.json"
    run --separate-stderr -0 hs status
    echo "$output"
    [ -z "$stderr" ]
    [[ $output == *"Boot: saves 4."*"s of 10."*"s, 40 % (between "*" % and "*" %; 23 sessions with replay, 6 without)"* ]]
    [[ $output == *"Login: not enough sessions yet (0 with replay, 0 without; 8 and 2 are enough)"* ]]
    [[ $output != *"Left out"* ]]
    order=$(grep -nE "^(Status|Boot|Login|Launches|Replayed in this boot|Stages|What is wrong| *Traces learned|Root filesystem| *State)" <<<"$output" |
        cut -d: -f2 | sed "s/^ *//" | cut -c1-8)
    [ "$(tr '\n' ' ' <<<"$order")" = "Status Boot Login Launches Replayed Stages What is  Traces l Root fil State " ]
    [[ $output =~ boot\.pack\ cannot\ be\ used:.*headstart\ plan ]]
    ! grep -q $'\033' <<<"$output" || false
    # The history shows that sessions were recorded.
    [[ $output == *"Status: on (nothing to replay: the recordings are gone, but something is wrong"* ||
        $output == *"Status: on (nothing to replay: the recordings are gone)"* ]]
    # A model that cannot be used is named together with the command that replaces it.
    echo '{' >"$HS_STATE/model.json"
    run -0 hs status
    [[ $output =~ model\.json\ cannot\ be\ used:\ not\ a\ headstart\ model\ *headstart\ learn ]]
    rm "$HS_STATE/model.json"
    need_command script
    run -0 env TERM=xterm script -qec "'$HEADSTART' --state='$HS_STATE' status" /dev/null
    [[ $output == *$'\033[33mStatus:'* ]]
    run -0 env TERM=xterm NO_COLOR=1 script -qec "'$HEADSTART' --state='$HS_STATE' status" /dev/null
    [[ $output != *$'\033'* ]]
    # While the effect is unknown, it says how many sessions do not count.
    boots 4 10 6 >"$HS_STATE/history.jsonl"
    run -0 hs status
    echo "$output"
    [[ $output == *"Boot: not enough sessions yet (2 with replay, 1 without; 8 and 2 are enough)"$'\n'"    Left out: 1; 'headstart history' shows why"* ]]
}

@test "status: replay that costs time is called a cost, and uncertain effects are not called a gain" {
    boots 40 10 11 >"$HS_STATE/history.jsonl"
    run -0 hs status
    [[ $output == *"Boot: costs 1."*", 10 % (between "*", switched off"* ]]
    [[ $output == *"replay made each boot at least "*" longer and is switched off"* ]]
    # The page does not say that of a stage of which nothing is known yet.
    run -0 hs report
    [[ $output == *"<h1>headstart saves nothing at boot and has switched its replay off.</h1>"* ]]
    boots 40 10 11 | jq -c '.stage = "login" | .uid = 1000' >>"$HS_STATE/history.jsonl"
    run -0 hs report
    [[ $output == *"<h1>headstart saves nothing here and has switched replay off.</h1>"* ]]
    sed -i '/"boot"/d' "$HS_STATE/history.jsonl"
    run -0 hs report
    [[ $output == *"<h1>headstart saves nothing at login and has switched its replay off.</h1>"* ]]
    boots 40 10 10 >"$HS_STATE/history.jsonl"
    run -0 hs status
    [[ $output =~ "Boot: no certain effect on 10."[0-9]*"s (between "[0-9]+" % longer and "[0-9]+" % shorter; " ]]
    run -0 hs report
    [[ $output == *" %</data> saved, not certain</p>"* || $output == *" %</data> longer, not certain</p>"* ]]
    # Only the lines that cannot be used are lost. A last line without its end is not reported.
    printf 'nonsense\n{"version":1,"stage":"boot"' >>"$HS_STATE/history.jsonl"
    run --separate-stderr -0 hs status
    [[ $output == *"Boot: no certain effect on 10."* ]]
    run --separate-stderr -0 hs history
    [[ $stderr == *"history.jsonl: 1 line cannot be used, ignoring"* ]]
}

# no_replay NAME POLICY [REASON]: writes a pack without files into the state directory.
no_replay() {
    "$HS_BUILD/tests/tools/tool-mkpack" --policy="$2" ${3:+--reason="$3"} "$HS_STATE/$1" </dev/null
}

@test "status and report: a stage that is not replayed has a reason, and does not wait for sessions" {
    need_binary "$HS_BUILD/tests/tools/tool-mkpack"
    # off: prints the reasons that status and doctor have as JSON.
    off() { hs status --json=short | jq -c '[.benefit[].off_reason, .launches.off_reason]'; }
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    mkdir -p "$HS_TMP/root/etc/headstart" "$HS_TMP/root/proc"
    # An interval that contains zero is no lack of sessions.
    boots 40 10 10 >"$HS_STATE/history.jsonl"
    run -0 hs report
    [[ $output == *"<h1>headstart was not shown to save time here.</h1>"*"does not lie above zero"* && $output != *"too early"* ]]
    boots 3 10 6 >"$HS_STATE/history.jsonl"
    run -0 hs report
    [[ $output == *"<h1>It is too early to say what headstart saves here.</h1>"*"are enough for an interval"* ]]
    no_replay boot.pack gate fastest
    printf '[Session]\nLaunchReplay=no\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    run -0 hs status
    [[ $output == *"Boot: not enough sessions yet (1 with replay, 1 without; 8 and 2 are enough)"* ]]
    [[ $output == *"Launches: off (LaunchReplay=no)"* ]]
    [ "$(off)" = '[null,null,"configured"]' ]
    no_replay boot.pack off "no gain"
    run -0 hs status
    echo "$output"
    [[ $output == *"Boot: not replayed: no policy is predicted to gain more than it may cost"$'\n'* ]]
    [[ $output == *"Login: not enough sessions yet"* && $output != *"Left out"* ]]
    [ "$(off)" = '["no gain",null,"configured"]' ]
    run hs doctor
    [[ $output == *"boot: not replayed: no policy is predicted to gain more"* ]]
    run -0 hs report
    [[ $output == *"<h1>headstart replays nothing here.</h1>"* ]]
    [[ $output == *"The boot is not replayed: no policy is predicted to gain more than it may cost. </p>"* ]]
    # Without a pack for everyone, the login is off only if that of each user is.
    no_replay login@1000.pack off configured
    no_replay login@1001.pack idle fastest
    [ "$(off)" = '["no gain",null,"configured"]' ]
    boots 3 10 6 | jq -c '.stage = "login" | .uid = 1000' >>"$HS_STATE/history.jsonl"
    run -0 hs report
    [[ $output == *"<h1>It is too early to say what headstart saves at login.</h1>"* && $output == *"headstart measure"* ]]
    no_replay login@1001.pack off configured
    [ "$(off)" = '["no gain","configured","configured"]' ]
    run -0 hs status
    [[ $output == *"Login: off (LoginPolicy=off)"* ]]
    run -0 hs report
    [[ $output == *"<h1>headstart replays nothing here.</h1>"* && $output == *"The login is off (LoginPolicy=off). "* ]]
    [[ $output == *"Now off (LoginPolicy=off). Compared sessions: "* && $output != *"headstart measure"* ]]
    # What was measured before stays.
    boots 30 10 6 >"$HS_STATE/history.jsonl"
    run -0 hs status
    [[ $output == *"Boot: saves 4."*" without), now not replayed: no policy is predicted to gain more than it may cost"* ]]
    run -0 hs report
    [[ $output == *"<h1>headstart replays nothing here.</h1>"*" Now not replayed: no policy is "* ]]
    # With LaunchReplay=yes, starts are compared. A pack that cannot be used gives no reason.
    printf '[Session]\nLaunchReplay=yes\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    printf HEADSTRT >"$HS_STATE/boot.pack"
    run -0 hs status
    [[ $output == *"Launches: none was recorded yet"* ]]
    [ "$(off)" = '[null,"configured",null]' ]
    # By default, starts are replayed if the set of any application is.
    rm "$HS_TMP/root/etc/headstart/headstart.conf"
    [ "$(off)" = '[null,"configured",null]' ]
    no_replay launch-0000000000000001.pack off "no gain"
    [ "$(off)" = '[null,"configured","no gain"]' ]
    run -0 hs status
    [[ $output == *"Launches: not replayed: no policy is predicted to gain more than it may cost"* ]]
    no_replay launch@1000-0000000000000002.pack concurrent fastest
    [ "$(off)" = '[null,"configured",null]' ]
}

@test "history: limits, stages, and why a session is left out" {
    boots 25 10 6 | sed '4s/"flags": \[\]/"flags": ["fsck"]/' >"$HS_STATE/history.jsonl"
    run -0 hs history
    [ "${#lines[@]}" -eq 21 ]
    run -0 hs history --limit=0
    [ "${#lines[@]}" -eq 26 ]
    [[ ${lines[1]} == *"first session"* && ${lines[4]} == *"filesystem check"* && ${lines[3]} == *control* ]]
    run -0 hs history -n 3 --stage=login
    [ "$output" = "No boot or login was recorded yet." ]
    # A control session that nothing can be compared with, here one that was measured at once, has a label, too.
    boots 3 10 6 | sed 2d >"$HS_STATE/history.jsonl"
    run -0 hs history
    [[ ${lines[2]} == *control*"no session with replay near it" ]]
    run -0 hs status
    [[ $output == *"Boot: not enough sessions yet (0 with replay, 0 without; 8 and 2 are enough)"$'\n'"    Left out: 2; "* ]]
    run -0 hs explain --last-boot
    [[ $output == *"Not compared because: no session with replay near it"* ]]
    refused 2 "the history has boots and logins" history --stage=session
    refused 2 "not a number" history --limit=x
}

# on_terminal COLUMNS ARGUMENT…: runs headstart on a terminal of that width, and prints what it prints.
on_terminal() {
    LC_ALL=C.UTF-8 TERM=xterm NO_COLOR=1 script -qec \
        "stty cols $1; $(printf '%q ' "$HEADSTART" --state="$HS_STATE" "${@:2}")" /dev/null </dev/null | tr -d '\r'
}

# fits COLUMNS: checks that no line of the input is longer.
fits() {
    local width
    width=$(LC_ALL=C.UTF-8 wc -L)
    echo "# $1 columns: $width"
    ((width <= $1))
}

@test "tables: a terminal that is too narrow shows fewer columns and shortened texts, a pipe shows all" {
    local columns header
    need_command script
    "$CHECK_BENEFIT" make 1 150 >"$HS_STATE/history.jsonl"
    "$CHECK_BENEFIT" make-launches 1 150 >"$HS_STATE/launches.jsonl"
    for columns in 70 80 100; do
        on_terminal $columns history --limit=0 >"$HS_TMP/$columns"
        fits $columns <"$HS_TMP/$columns"
        on_terminal $columns history --launches --limit=0 >"$HS_TMP/launches-$columns"
        fits $columns <"$HS_TMP/launches-$columns"
        [ "$(wc -l <"$HS_TMP/$columns")" -eq 151 ]
    done
    header() { head -n 1 "$HS_TMP/$1" | tr -s ' ' | sed 's/^ //; s/ $//'; }
    [ "$(header 80)" = "WHEN STAGE UID TOOK REPLAY NOT COMPARED" ]
    [[ $(header 100) == *" HITS PER NOT COMPARED" && $(header 100) != *MISSES* ]]
    [ "$(header launches-80)" = "WHEN TOOK REPLAYED NOT COMPARED APPLICATION" ]
    grep -q "first session after.*…" "$HS_TMP/100"
    # The end of a path says more than its beginning.
    grep -qE " …?/?[a-z/]*gains *$" "$HS_TMP/launches-80"
    # A wide terminal and a pipe show all.
    diff <(on_terminal 250 history --limit=0) <(LC_ALL=C.UTF-8 hs history --limit=0)
    [[ $(hs history | head -n 1) == *"REPLAY"*"FROM DISK"*"HITS"*"WASTE"*"MISSES"*"PER"*"NOT COMPARED"* ]]
    # Of starts, too, the table says how hits and waste were observed.
    jq -c '.usage = "per-file" | .hit_bytes = 4096' "$HS_STATE/launches.jsonl" >"$HS_TMP/launches"
    cp "$HS_TMP/launches" "$HS_STATE/launches.jsonl"
    [[ $(hs history --launches | head -n 1) == *"HITS"*"WASTE"*"MISSES"*"PER"*"NOT COMPARED"* ]]
    [ "$(hs history --launches | grep -c " 4.0K .* file ")" -eq 20 ]
    # The tables of status fit as well.
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    mkdir -p "$HS_TMP/root/run/headstart"
    echo '{"policy":"concurrent","outcome":"done","files":1234,"held_usec":1234567,"hold_end":"deadline","start_boottime_usec":1234567,
        "duration_usec":1234567,"data_bytes":123456789,"metadata_bytes":1234567,"skipped":{"gone":12}}' >"$HS_TMP/root/run/headstart/replay-boot.json"
    "$HS_BUILD/tests/tools/tool-mkpack" --stage=boot --policy=off --reason=configured "$HS_STATE/boot.pack" </dev/null
    on_terminal 80 status | sed -n '/^Replayed in this boot/,/^What is wrong/p' | tee /dev/stderr | fits 80
    # Its lines are broken at blanks, those of doctor also below their column; a pipe has whole lines.
    on_terminal 80 status | sed '/^$/q' | tee "$HS_TMP/head" | fits 80
    [ "$(grep -c '^    ' "$HS_TMP/head")" -ge 3 ]
    diff <(sed ':a; N; $!ba; s/\n    / /g' "$HS_TMP/head") <(hs status | sed '/^$/q')
    on_terminal 80 doctor | grep -A 1 '^ok *benefit' | tee "$HS_TMP/head" | fits 80
    grep -q '^                    sessions with replay' "$HS_TMP/head"
    [[ $(on_terminal 80 status) == *"TOOK"*"FILES"*"DATA"$'\n'* && $(on_terminal 120 status) == *"SKIPPED"* ]]
}

@test "every number of status and history on starts equals that of an independent computation" {
    local n
    for n in 0 1 30 600; do
        "$CHECK_BENEFIT" make-launches 1 $n >"$HS_STATE/launches.jsonl"
        hs status --json=short >"$HS_TMP/status.json"
        hs history --launches --limit=0 --json=short >"$HS_TMP/history.json"
        "$CHECK_BENEFIT" check-launches "$HS_STATE/launches.jsonl" "$HS_TMP/status.json" "$HS_TMP/history.json"
    done
    jq -c '.launches.applications[1].saved_high *= 1.01' "$HS_TMP/status.json" >"$HS_TMP/wrong.json"
    run ! "$CHECK_BENEFIT" check-launches "$HS_STATE/launches.jsonl" "$HS_TMP/wrong.json" "$HS_TMP/history.json"
    # The text names the applications that start most often, also one whose replay costs time.
    run -0 hs status
    [[ $output == *"/usr/bin/gains "*" saves "* ]]
    grep -qE '^/usr/bin/loses +costs [0-9.]+m?s of [0-9.]+m?s, [0-9]+ %(, switched off)? +[0-9]+ to [0-9]+ % ' <<<"$output"
}

@test "starts of applications: status compares them, history lists them, forget deletes a user's" {
    python3 - >"$HS_STATE/launches.jsonl" <<'END'
import json
for i in range(40):
    control = i % 4 == 1
    print(json.dumps({"version": 1, "application": "/usr/bin/editor", "uid": 1000 + i % 2, "start_realtime_usec": 1760000000000000 + i,
                      "took_usec": (2000000 if control else 1000000) + i, "files": 300, "replayed": "control" if control else "yes"}))
print("nonsense")
END
    run -0 hs status
    [[ $output == *"Launches: saves 1."*", 50 % (between 50 % and 50 %; 29 starts with replay, 10 without)"* ]]
    run -0 --separate-stderr hs history --launches --limit=0 --json=short
    jq -e 'length == 40 and .[1].replayed == "control" and .[1].application == "/usr/bin/editor"' <<<"$output"
    run --separate-stderr -0 hs history --launches
    [ "${#lines[@]}" -eq 21 ]
    [ "$stderr" = "headstart: $HS_STATE/launches.jsonl: 1 line cannot be used, ignoring" ]
    refused 2 "not starts of applications" history --launches --stage=boot
    hs forget --user=1001 --quiet
    run -0 hs history --launches --limit=0 --json=short
    jq -e 'length == 20 and all(.[]; .uid == 1000)' <<<"$output"
    hs forget --quiet
    [ ! -e "$HS_STATE/launches.jsonl" ]
    run -0 hs history --launches
    [ "$output" = "No start of an application was recorded yet." ]
}

@test "measure requests a recording without replay" {
    run -0 hs measure
    [ "$output" = "The next boot and login will run without replay, to measure what replay saves." ]
    jq -e '. == {"exact": false}' "$HS_STATE/rerecord-boot"
    jq -e '. == {"exact": false}' "$HS_STATE/rerecord-login"
    rm "$HS_STATE"/rerecord-*
    run -0 hs measure --stage=login --json=short
    jq -e '. == {"stages": "login"}' <<<"$output"
    [ ! -e "$HS_STATE/rerecord-boot" ]
    [ -e "$HS_STATE/rerecord-login" ]
    refused 2 "only boots and logins are measured" measure --stage=session
}

# planned PROPERTY: plans again and prints the property of the boot pack.
planned() {
    hs plan --quiet --root="$HS_MNT"
    "$HEADSTART" show --json=short "$HS_STATE/boot.pack" | jq -r ".$1"
}

@test "plan: control sessions as often as the history requires, and no harmful replay" {
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/usr/bin" "$HS_STATE/traces"
    head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/app"
    sync -f "$HS_MNT"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot 1793520000 /usr/bin/app \
        >"$HS_STATE/traces/20261101T080000-boot.json"
    hs learn --quiet
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    mkdir -p "$HEADSTART_SYSTEM_ROOT/etc/headstart"
    [ "$(planned control_interval)" -eq 0 ]
    boots 5 10 6 >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 10 ]
    # The new packs know the last control session, so another boot may be the next one.
    echo 0123456789abcdef0123456789abcdef >"$HS_STATE/last-control"
    hs plan --quiet --dry-run --root="$HS_MNT" >/dev/null
    [ -e "$HS_STATE/last-control" ]
    [ "$(planned control_interval)" -eq 10 ]
    [ ! -e "$HS_STATE/last-control" ]
    # Of the first block of ten, two sessions are over. The third is its control session.
    boots 7 10 6 >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 8 ]
    boots 8 10 6 >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 0 ]
    boots 30 10 6 >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 101 ]
    # Where a login without replay takes over 10 s, a login that was a control session keeps the boot from being one for
    # two days, and the other way round. The newest control boot is three days old; the logins end N days earlier.
    control_logins() { boots 30 16 8 | jq -c --argjson days "$1" '.stage = "login" | .uid = 1000 | .start_realtime_usec -= ($days * 86400e6 | floor)'; }
    { boots 30 10 6; control_logins -1.5; } >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 0 ]
    hs status --json=short | jq -e '.benefit | map(.control_interval) == [0, 0]'
    { boots 30 10 6; control_logins 5; } >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 101 ]
    { boots 30 10 6; control_logins 5 | jq -c '.ready_usec = (.ready_usec / 2 | floor)'; } >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 101 ]
    # The clock was wrong when the newest control session was dated. It does not end all control sessions.
    { boots 30 10 6; control_logins 5 | jq -c 'if .flags == ["control"] then .start_realtime_usec += 1e15 else . end'; } >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 101 ]
    boots 8 10 11 >"$HS_STATE/history.jsonl"
    [ "$(planned control_interval)" -eq 2 ]
    [ "$(planned policy)" != off ]
    boots 40 10 11 >"$HS_STATE/history.jsonl"
    [ "$(planned policy)" = off ]
    [ "$(planned reason)" = harmful ]
    # The administrator's settings take precedence over the history.
    printf '[Replay]\nBootPolicy=idle\nControlInterval=7\n' >"$HEADSTART_SYSTEM_ROOT/etc/headstart/headstart.conf"
    [ "$(planned policy)" = idle ]
    # No output then says that replay is off.
    run hs doctor
    [[ $output != *"switched off"* ]]
    [[ $output == *"remove BootPolicy= from the file that 'headstart config' names"* ]]
    run -0 hs status
    [[ $output == *", but is replayed"* ]]
    run -0 hs report
    [[ $output != *"switched its replay off"* && $output == *"Replay does harm, and is still on."* ]]
    [ "$(planned control_interval)" -eq 7 ]
    hs status --json=short | jq -e '.benefit | map(.control_interval) == [7, 7]'
}

@test "plan: a policy that was measured to gain time stays, and a mere prediction does not replace it" {
    local best other
    record_app
    hs learn --quiet
    # On battery the disk is not measured. Each measurement could change the predicted times.
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    mkdir -p "$HEADSTART_SYSTEM_ROOT"/{etc/headstart,sys/class/power_supply/BAT0}
    echo Battery >"$HEADSTART_SYSTEM_ROOT/sys/class/power_supply/BAT0/type"
    echo Discharging >"$HEADSTART_SYSTEM_ROOT/sys/class/power_supply/BAT0/status"
    best=$(planned policy)
    other=gate
    [[ $best != gate ]] || other=concurrent
    # The pack has the other policy, as if it had been the best one before.
    printf '[Replay]\nBootPolicy=%s\n' "$other" >"$HEADSTART_SYSTEM_ROOT/etc/headstart/headstart.conf"
    [ "$(planned policy)" = "$other" ]
    rm "$HEADSTART_SYSTEM_ROOT/etc/headstart/headstart.conf"
    cp "$HS_STATE/boot.pack" "$HS_TMP/other.pack"
    # Fewer than three sessions with that policy can be compared.
    boots 4 10 6 | jq -c --arg p "$other" '.policy = $p' >"$HS_STATE/history.jsonl"
    [ "$(planned policy)" = "$best" ]
    # There are three, but there is no interval yet, or it contains zero.
    cp "$HS_TMP/other.pack" "$HS_STATE/boot.pack"
    boots 5 10 6 | jq -c --arg p "$other" '.policy = $p' >"$HS_STATE/history.jsonl"
    [ "$(planned policy)" = "$other" ]
    [ "$(planned reason)" = undecided ]
    boots 30 10 10 | jq -c --arg p "$other" '.policy = $p' >"$HS_STATE/history.jsonl"
    [ "$(planned policy)" = "$other" ]
    [ "$(planned reason)" = undecided ]
    # It becomes `off` only when the interval lies below zero.
    boots 40 10 11 | jq -c --arg p "$other" '.policy = $p' >"$HS_STATE/history.jsonl"
    [ "$(planned policy)" = off ]
    cp "$HS_TMP/other.pack" "$HS_STATE/boot.pack"
    boots 30 10 6 | jq -c --arg p "$other" '.policy = $p' >"$HS_STATE/history.jsonl"
    [ "$(planned policy)" = "$other" ]
    [ "$("$HEADSTART" show --json=short "$HS_STATE/boot.pack" | jq -r .reason)" = measured ]
}

@test "doctor: a healthy machine, and each thing that is missing" {
    local root=$HS_TMP/root
    export HEADSTART_SYSTEM_ROOT=$root
    mkdir -p "$root/proc/sys/kernel" "$root/proc/sys/fs/fanotify" "$root/proc/pressure" "$root/proc/self" \
        "$root/sys/dev/block/8:2/queue" "$root"/etc/systemd/system/{sysinit,paths}.target.wants "$root/etc/headstart"
    echo 6.12.3-amd64 >"$root/proc/sys/kernel/osrelease"
    : >"$root/proc/pressure/io"
    printf 'MemTotal: 8000000 kB\nMemFree: 1000000 kB\nMemAvailable: 4000000 kB\n' >"$root/proc/meminfo"
    echo '29 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw' >"$root/proc/self/mountinfo"
    echo 'none [mq-deadline] bfq' >"$root/sys/dev/block/8:2/queue/scheduler"
    for unit in headstart-{record,record-late,plan,replay-boot,replay-login}.service headstart-learn.timer; do
        ln -s /nowhere "$root/etc/systemd/system/sysinit.target.wants/$unit"
    done
    ln -s /nowhere "$root/etc/systemd/system/paths.target.wants/headstart-learn.path"
    run -0 hs doctor
    echo "$output"
    ! grep -q ^problem <<<"$output" || false
    run -0 hs doctor --json=short
    jq -e 'all(.[]; .result != "problem") and any(.[]; .check == "scheduler" and .result == "ok")' <<<"$output"

    # result CHECK RESULT: checks that doctor has this result for the check, that everything that is not well has a cost and
    # a remedy, and that a problem sets the exit status.
    result() {
        run "-$([ "$2" = problem ] && echo 1 || echo 0)" hs doctor --json=short
        jq -e --arg c "$1" --arg r "$2" 'any(.[]; .check == $c and .result == $r) and
            all(.[]; .result == "ok" or (.cost != null and .remedy != null))' <<<"$output"
    }
    echo '[none] mq-deadline' >"$root/sys/dev/block/8:2/queue/scheduler"
    result scheduler note
    jq -e 'any(.[]; .check == "scheduler" and (.found | contains("none of /dev/sda2 (/)")) and
        (.remedy | startswith("echo mq-deadline >/sys/dev/block/8:2/queue/scheduler, ")))' <<<"$output"
    # The scheduler of a second disk is checked, too.
    echo 'none [mq-deadline] bfq' >"$root/sys/dev/block/8:2/queue/scheduler"
    echo '30 29 8:17 / /home rw shared:1 - ext4 /dev/sdb1 rw' >>"$root/proc/self/mountinfo"
    mkdir -p "$root/sys/dev/block/8:17/queue"
    echo '[kyber] none' >"$root/sys/dev/block/8:17/queue/scheduler"
    result scheduler note
    # An encrypted volume has no scheduler of its own: that of the disk below counts.
    mkdir -p "$root/sys/class/block/dm-0/slaves/sdb" "$root/sys/class/block/sdb/queue"
    echo DEVNAME=dm-0 >"$root/sys/dev/block/8:17/uevent"
    echo 'none [mq-deadline]' >"$root/sys/class/block/sdb/queue/scheduler"
    result scheduler ok
    echo '[none] mq-deadline' >"$root/sys/class/block/sdb/queue/scheduler"
    result scheduler note
    rm "$root/sys/dev/block/8:17/uevent"
    jq -e 'any(.[]; .check == "mounts" and .result == "ok" and (.found | contains("2 filesystems")))' <<<"$output"
    echo '31 30 0:50 / /home/me rw shared:1 - nfs4 server:/me rw' >>"$root/proc/self/mountinfo"
    result mounts note
    echo '29 1 0:30 / / rw shared:1 - tmpfs tmpfs rw' >"$root/proc/self/mountinfo"
    result root note
    echo '29 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw' >"$root/proc/self/mountinfo"
    result processes note
    echo 5.10.0 >"$root/proc/sys/kernel/osrelease"
    result kernel note
    echo 5.4.0 >"$root/proc/sys/kernel/osrelease"
    result kernel problem
    echo 6.12.3-amd64 >"$root/proc/sys/kernel/osrelease"
    rm "$root/proc/pressure/io"
    result pressure note
    mkdir -p "$root/sys/class/rtc/rtc0"
    echo 1000 >"$root/sys/class/rtc/rtc0/since_epoch"
    result hardware-clock note
    echo 1795000000 >"$root/sys/class/rtc/rtc0/since_epoch"
    # manager UNIT RESULT: sets the display manager, and checks what doctor says about its hook.
    manager() {
        ln -sf "/lib/systemd/system/$1" "$root/etc/systemd/system/display-manager.service"
        run hs doctor --json=short
        jq -e --arg r "$2" 'any(.[]; .check == "display-manager" and .result == $r)' <<<"$output"
    }
    manager other.service ok
    manager sddm.service note
    mkdir -p "$root/usr/lib/sddm/sddm.conf.d"
    : >"$root/usr/lib/sddm/sddm.conf.d/00-headstart.conf" # not a link to the hook
    manager sddm.service note
    ln -sf "$(meson introspect --buildoptions "$HS_BUILD" | jq -r 'map({(.name): .value}) | add | "\(.prefix)/\(.datadir)"')/headstart/hooks/sddm/headstart.conf" \
        "$root/usr/lib/sddm/sddm.conf.d/00-headstart.conf"
    manager sddm.service ok
    printf 'MemTotal: 8000000 kB\nMemFree: 1000 kB\nMemAvailable: 4000 kB\n' >"$root/proc/meminfo"
    result memory note
    rm "$root/etc/systemd/system/paths.target.wants/headstart-learn.path"
    result units problem
    ln -s /nowhere "$root/etc/systemd/system/paths.target.wants/headstart-learn.path"
    : >"$root/etc/headstart/disabled"
    result switch problem
    rm "$root/etc/headstart/disabled"
    # mended CHECK: runs the remedy of the problem, which must end it.
    mended() {
        result "$1" problem
        sh -c "$(jq -r --arg c "$1" '.[] | select(.check == $c) | .remedy' <<<"$output")"
        run hs doctor --json=short
        jq -e --arg c "$1" 'all(.[]; .check != $c or .result != "problem")' <<<"$output"
    }
    chmod 0755 "$HS_STATE"
    mended state
    echo '{' >"$HS_STATE/model.json"
    result model problem
    run -1 hs doctor
    [[ $output == *"model.json cannot be used: "*"Cost: nothing can be planned"*"To do: headstart learn"* ]]
    rm "$HS_STATE/model.json"
    printf HEADSTRT >"$HS_STATE/login.pack"
    result packs problem
    rm "$HS_STATE/login.pack"
    : >"$HS_STATE/boot.pack.bad"
    result set-aside note
    jq -e --arg s "$HS_STATE" 'any(.[]; .remedy == "journalctl -t headstartd -t headstart, then rm \($s)/*.bad")' <<<"$output"
    mkdir "$HS_STATE/traces"
    : >"$HS_STATE/traces/x.bad"
    result set-aside note
    jq -e --arg s "$HS_STATE" 'any(.[]; .remedy == "journalctl -t headstartd -t headstart, then rm \($s)/*.bad \($s)/traces/*.bad")' <<<"$output"
    rm -r "$HS_STATE/traces"
    : >"$HS_STATE/rerecord-login"
    result request note
    jq -e --arg s "$HS_STATE" 'any(.[]; .check == "request" and (.found | contains("the next login will be recorded without")) and
        .remedy == "log in once, or rm \($s)/rerecord-login")' <<<"$output"
    rm "$HS_STATE/rerecord-login"
    # Replay that was switched off because it did harm is no good news.
    boots 40 10 11 >"$HS_STATE/history.jsonl"
    run hs doctor --json=short
    jq -e '[.[] | select(.check == "benefit" and (.found | contains("switched off")))] |
        length == 1 and .[0].result == "note"' <<<"$output"
    result benefit note
    echo '{' >>"$HS_STATE/history.jsonl"
    result history note
    echo '{' >"$HS_STATE/devices.json"
    result devices note
    run -0 hs status
    [[ $output == *"devices.json cannot be used: "*"headstart plan"* ]]
    rm "$HS_STATE/devices.json"
    rm "$HS_STATE/history.jsonl"
    # early TEXT RESULT: checks what doctor finds out about the initrd. The calls below go from a
    # missing boot pack to a boot in which the initrd started headstart.
    early() {
        run hs doctor --json=short
        jq -e --arg f "$1" --arg r "$2" 'any(.[]; .check == "early" and .result == $r and (.found | contains($f)))' <<<"$output"
    }
    local program
    program=$root$(meson introspect --buildoptions "$HS_BUILD" |
        jq -r 'map({(.name): .value}) | add | "\(.prefix)/\(.libexecdir)/headstart/headstart-init"')
    early "no boot pack" ok
    : >"$HS_STATE/boot.pack"
    early "no initrd was found" note
    # A boot loader passes an initrd whose place is not known.
    echo 'root=/dev/sda2 initrd=\\x\\initrd' >"$root/proc/cmdline"
    early "its image was not found" note
    rm "$root/proc/cmdline"
    mkdir -p "$root/boot" "${program%/*}"
    touch -d '2 hours ago' "$root/boot/initrd.img-6.12.3-amd64"
    : >"$program"
    early "the initrd is older than headstart" note
    # Although nothing has to start early, the initrd cannot do it once there is something to replay.
    : >"$HS_STATE/boot-idle"
    early "gains nothing here; the initrd is older than headstart" note
    rm "$HS_STATE/boot-idle" "$HS_STATE/boot.pack"
    early "no boot pack; the initrd is older than headstart" note
    : >"$HS_STATE/boot.pack"
    touch -d '1 minute' "$root/boot/initrd.img-6.12.3-amd64"
    printf 'cpu 1\nbtime %s\n' "$(date -d '1 hour ago' +%s)" >"$root/proc/stat"
    early "the initrd was built after this boot began" note
    printf 'cpu 1\nbtime %s\n' "$(date -d '1 hour' +%s)" >"$root/proc/stat"
    early "this boot's initrd did not start headstart" note
    mkdir -p "$root/etc/headstart"
    : >"$root/etc/headstart/disabled"
    early "headstart is off" ok
    rm "$root/etc/headstart/disabled"
    echo 'root=/dev/sda2 headstart=0' >"$root/proc/cmdline"
    early "headstart is off" ok
    rm "$root/proc/cmdline"
    : >"$HS_STATE/boot-idle"
    early "gains nothing here" ok
    rm "$HS_STATE/boot-idle"
    # On Arch the name of the kernel's package is part of the name, and not the release.
    rm "$root/boot/initrd.img-6.12.3-amd64"
    touch -d '1 hour ago' "$root/boot/initramfs-linux.img"
    mkdir -p "$root/usr/lib/modules/6.12.3-amd64"
    echo linux-lts >"$root/usr/lib/modules/6.12.3-amd64/pkgbase"
    early "no initrd was found" note
    touch -d '1 minute' "$root/boot/initramfs-linux-lts.img"
    early "this boot's initrd did not start headstart" note
    mkdir -p "$root/run/headstart"
    : >"$root/run/headstart/record-boot.early"
    early "this boot was not replayed, because it is recorded again" ok
    rm "$root/run/headstart/record-boot.early"
    : >"$root/run/headstart/replay-boot.early"
    early "begin before the system manager" ok
    rm "$HS_STATE/boot.pack"
    : >"$HS_STATE/refresh-wanted"
    result packages note
}

@test "status and doctor: a history that cannot be read, and the command that mends it" {
    local file cost
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    mkdir -p "$HS_TMP/root/proc"
    # What else is wrong in this fixture does not matter here.
    history_problems() { jq -c 'map(select(.check == "history" and .remedy != null) | [.found, .remedy])' <<<"$1"; }
    for file in history.jsonl history.1.jsonl launches.jsonl launches.1.jsonl; do
        boots 30 10 6 >"$HS_STATE/history.jsonl"
        rm -f "$HS_STATE/$file"
        mkdir "$HS_STATE/$file"
        run -0 hs status --json=short
        jq -e --arg f "$HS_STATE/$file" '.problems | map(select(.check == "history")) | length == 1 and
            (.[0].found | startswith($f + " cannot be read: "))' <<<"$output"
        run -0 hs status
        [[ $output == *"$HS_STATE/$file cannot be read: Is a directory"*"mv $HS_STATE/$file $HS_STATE/$file.bad"* ]]
        run -1 hs doctor --json=short
        [ "$(history_problems "$output")" = "[[\"$HS_STATE/$file cannot be read: Is a directory\",\"mv $HS_STATE/$file $HS_STATE/$file.bad\"]]" ]
        sh -c "$(jq -r '.[] | select(.check == "history") | .remedy' <<<"$output")"
        run hs doctor --json=short
        [ "$(history_problems "$output")" = "[]" ]
        rmdir "$HS_STATE/$file.bad"
    done
    # A damaged file that has grown too large is one, too.
    truncate -s 100M "$HS_STATE/history.jsonl"
    run -0 hs status
    [[ $output == *"history.jsonl cannot be read: "* ]]
    # Nothing is planned from a history that is not known: a policy that does harm would come back.
    run -1 hs plan
    run -1 hs history
    assert_one_error_line "$output"
}

@test "doctor: a read-only state directory, and the command that mends it" {
    need_root
    export HEADSTART HS_STATE
    run -0 unshare --mount sh -ec '
        read_only() {
            "$HEADSTART" --state="$HS_STATE" doctor --json=short |
                jq -re ".[] | select(.check == \"state\" and (.found | contains(\"read-only\"))) | .remedy"
        }
        mount --bind "$HS_STATE" "$HS_STATE"
        mount -o remount,ro,bind "$HS_STATE"
        sh -c "$(read_only)"
        if read_only; then exit 9; fi'
}

@test "doctor: each unit that has failed" {
    need_root
    mkdir "$HS_TMP/bin"
    printf '%s\n' '#!/bin/sh' '[ "$2" != is-failed ] || [ "$3" = "$FAILED" ]' >"$HS_TMP/bin/systemctl"
    chmod +x "$HS_TMP/bin/systemctl"
    # failed UNIT: prints what doctor finds while this unit has failed.
    failed() {
        FAILED=$1 run -1 unshare --mount sh -c 'mount -t tmpfs none /run && mkdir -p /run/systemd/system &&
            PATH=$1:$PATH exec "$2" --state="$3" doctor --json=short' sh "$HS_TMP/bin" "$HEADSTART" "$HS_STATE"
        jq -r '.[] | select(.result == "problem" and (.found | contains("has failed"))) | "\(.found): \(.remedy)"' <<<"$output"
    }
    local unit
    for unit in "$HS_SOURCE"/units/*.in; do
        unit=$(basename "$unit" .in)
        unit=${unit/@/@*}
        [ "$(failed "$unit")" = "$unit has failed: systemctl status '$unit'" ]
    done
    [ -z "$(failed other.service)" ]
}

# Makes a filesystem with an application and a private file, and the traces of a boot and a login that
# have read both.
record_app() {
    local stage
    hs_filesystem ext4 64
    HS_ROOT=$HS_MNT
    mkdir -p "$HS_MNT/usr/bin" "$HS_MNT/home" "$HS_STATE/traces"
    head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/app"
    head -c 200000 /dev/urandom >"$HS_MNT/home/private"
    chown 1000 "$HS_MNT/home/private"
    sync -f "$HS_MNT"
    for stage in boot login; do
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" $stage 1793520000 /usr/bin/app /home/private \
            >"$HS_STATE/traces/20261101T080000-$stage.json"
    done
}

@test "explain: a file, an application, and a name that is in no pack" {
    local name
    record_app
    refused 1 "nothing was learned yet" explain /usr/bin/app
    hs learn --quiet
    run -0 hs explain /usr/bin/app
    [[ $output == *"no pack was planned"* ]]
    hs plan --quiet
    run -0 hs explain --json=short /usr/bin/app
    echo "$output"
    jq -e '.path == "/usr/bin/app" and (.stages | map(.stage) | unique) == ["boot", "login"]' <<<"$output"
    jq -e 'all(.stages[] | select(.uid == null); .in_pack and .pack_bytes >= 300000 and .probability > 0.99)' <<<"$output"
    jq -e '.stages[0].sessions > 0 and .stages[0].sessions_used == .stages[0].sessions' <<<"$output"
    # An application may be given by its name, and its files are shown.
    run -0 hs explain app
    [[ $output == *"File: /usr/bin/app"* && $output == *"in the pack"* && $output == *"/home/private"* ]]
    # A link leads to the file: /bin is one on most systems.
    ln -s usr/bin "$HS_MNT/bin"
    ln -s /bin/app "$HS_MNT/link"
    for name in /bin/app /link //usr/bin/../bin/app; do
        run -0 hs explain --json=short "$name"
        jq -e '.path == "/usr/bin/app"' <<<"$output"
    done
    refused 1 "no recorded boot, login or session has used it" explain /bin/nothing
    # The pack of a boot contains no files of users.
    run -0 hs explain --json=short /home/private
    jq -e '.stages[] | select(.stage == "boot") | .in_pack == false and (.why | test("owner"))' <<<"$output"
    rm "$HS_MNT/home/private"
    run -0 hs explain /home/private
    [[ $output == *"the file does not exist"* ]]
    refused 1 "no recorded boot, login or session has used it" explain /nowhere
    refused 1 "no recorded boot, login or session has used it" explain nobody-runs-this
    refused 2 "either a path or an application" explain
    refused 2 "either a path or an application" explain --last-boot /x
    refused 1 "no boot was recorded yet" explain --last-boot
}

@test "explain: a session has the reason of its own policy, not that of a later pack" {
    record_app
    hs learn --quiet
    hs plan --quiet
    # why: prints the reason in the explanation of the newest boot.
    why() {
        hs explain --json=short --last-boot | jq -r .why
    }
    boots 1 10 6 | jq -c '.policy = "gate"' >"$HS_STATE/history.jsonl"
    [[ $(why) == "not known"* ]]
    jq -c '.reason = "fastest"' "$HS_STATE/history.jsonl" >"$HS_TMP/history"
    cp "$HS_TMP/history" "$HS_STATE/history.jsonl"
    [[ $(why) == *"the least predicted time" ]]
    run -0 hs history --json=short
    jq -e '.[0].reason == "fastest"' <<<"$output"
    # The parts of a boot are shown, and userspace is the rest after them.
    jq -c '. + {firmware_usec: 4000000, loader_usec: 300000, kernel_usec: 2000000, initrd_usec: 1500000, finished_usec: 9000000}' \
        "$HS_TMP/history" >"$HS_STATE/history.jsonl"
    run -0 hs explain --last-boot
    [[ $output =~ Firmware:\ 4.00s.*Loader:\ 300.0ms.*Kernel:\ 2.00s.*Initrd:\ 1.50s.*Userspace:\ 5.50s ]]
    jq -c 'del(.initrd_usec)' "$HS_STATE/history.jsonl" >"$HS_TMP/history"
    cp "$HS_TMP/history" "$HS_STATE/history.jsonl"
    run -0 hs history --json=short
    jq -e '.[0].userspace_usec == 7000000' <<<"$output"
}

# price EXPLANATION STATUS PACK: computes again what the data of a file saves, from the measured device in
# STATUS or the typical values of two classes, and from the number of the file's ranges in PACK.
price() {
    python3 - "$@" <<'END'
import json, sys
explained, status, pack = (json.load(open(name)) for name in sys.argv[1:])
stage, device, volume = explained["stages"][0], status["devices"], pack["volumes"][0]
file = [f["path"] for f in volume["files"]].index(explained["path"])
own = [d for d in volume["data"] if d["file"] == file]
assert stage["pack_bytes"] == stage["data_bytes"] == sum(d["length"] for d in own)
assert stage["device_measured"] == bool(device)
assert stage["pack_total_bytes"] == pack["data_bytes"] + pack["metadata_bytes"]
if device:
    d = device[0]
    typical = [(d["rate_bytes_per_sec"], d["latency_usec"] + (d["seek_mean_usec"] or 0))]
else:
    # A disk of 100 MB/s that seeks for 1 to 12 ms and turns in 8.33 ms, or an SSD of 500 MB/s.
    typical = [(1e8, 100 + 1000 + 11000 * 8 / 15 + 4170), (5e8, 100)]
saved = [stage["data_bytes"] / rate * 1e6 + len(own) * latency for rate, latency in typical]
print(stage, saved)
# status shows whole microseconds.
assert any(abs(stage["saved_usec"] - s) < 3 + 0.01 * s for s in saved)
assert abs(stage["expected_saved_usec"] - stage["probability"] * stage["saved_usec"]) <= 1
# The sweep may seek farther than on average.
assert 0 < stage["cost_usec"] < 2 * stage["saved_usec"]
END
}

@test "explain: the price of a file on the measured device and on a typical one, and the budget" {
    local root=$HS_TMP/root
    hs_filesystem ext4 64
    HS_ROOT=$HS_MNT
    mkdir -p "$HS_MNT/usr/bin" "$HS_STATE/traces" "$root/etc/headstart"
    head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/app"
    head -c 3000000 /dev/urandom >"$HS_MNT/usr/bin/large"
    sync -f "$HS_MNT"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot 1793520000 /usr/bin/app /usr/bin/large \
        >"$HS_STATE/traces/20261101T080000-boot.json"
    export HEADSTART_SYSTEM_ROOT=$root
    printf '[Memory]\nBudget=1M\n' >"$root/etc/headstart/headstart.conf"
    hs learn --quiet
    hs plan --quiet
    "$HEADSTART" show --json=short "$HS_STATE/boot.pack" >"$HS_TMP/pack.json"
    explain() { "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" explain --json=short "$1" >"$HS_TMP/explained.json"; }
    explain /usr/bin/app
    hs status --json=short >"$HS_TMP/status.json"
    jq -e '.devices | length == 1' "$HS_TMP/status.json"
    price "$HS_TMP/explained.json" "$HS_TMP/status.json" "$HS_TMP/pack.json"
    rm "$HS_STATE/devices.json"
    explain /usr/bin/app
    hs status --json=short >"$HS_TMP/status.json"
    price "$HS_TMP/explained.json" "$HS_TMP/status.json" "$HS_TMP/pack.json"
    run -0 hs explain /usr/bin/app
    [[ $output == *"typical of its class"* && $output == *"1.0M"* ]]
    # Data that the pack does not contain has a price, too. The large file does not fit into the budget.
    explain /usr/bin/large
    cat "$HS_TMP/explained.json"
    jq -e '.stages[0] | .pack_bytes == 0 and .data_bytes == 3000000 and .budget_bytes == 1048576 and
        .saved_usec > 0 and .cost_usec > 0 and (.why | test("it does not fit into the budget"))' "$HS_TMP/explained.json"
    # With more memory the reason is another one, until the pack is planned again.
    rm "$root/etc/headstart/headstart.conf"
    explain /usr/bin/large
    jq -e '.stages[0].why | test("it did not fit into the budget when")' "$HS_TMP/explained.json"
    hs plan --quiet
    explain /usr/bin/large
    jq -e '.stages[0] | .pack_bytes >= 3000000 and .data_bytes == .pack_bytes' "$HS_TMP/explained.json"
}

@test "explain --last-login: why the policy was used, and which data was missed or wasted" {
    hs_filesystem ext4 64
    HS_ROOT=$HS_MNT
    mkdir -p "$HS_MNT/usr/bin" "$HS_STATE/traces"
    local f
    for f in app used wasted missed; do head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/$f"; done
    sync -f "$HS_MNT"
    trace() {
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" login "$@" >"$HS_STATE/traces/$(date -u -d "@$1" +%Y%m%dT%H%M%S)-login.json"
    }
    trace 1793520000 /usr/bin/app /usr/bin/used /usr/bin/wasted
    hs learn --quiet
    hs plan --quiet
    trace 1793606400 /usr/bin/app /usr/bin/used /usr/bin/missed
    f=$(ls "$HS_STATE/traces" | tail -n 1)
    python3 - "$("$HEADSTART" show --json=short "$HS_STATE/traces/$f" | jq .start_realtime_usec)" >"$HS_STATE/history.jsonl" <<'END'
import json, sys
print(json.dumps({"version": 1, "stage": "login", "flags": ["control"], "policy": "idle", "outcome": "control",
                  "usage": "per-page", "start_realtime_usec": int(sys.argv[1]), "ready_usec": 9000000}))
END
    run -0 hs explain --last-login
    echo "$output"
    [[ $output == *"Because: a control session: replay was off to measure what it saves"* ]]
    [[ $output != *Userspace* ]]
    [[ $output == *"Use observed: per-page"* && $output == *"Not compared because: first session"* ]]
    run -0 hs explain --last-login --json=short
    jq -e '.compared and .missed[0].path == "/usr/bin/missed" and .missed[0].bytes >= 300000' <<<"$output"
    jq -e '(.wasted | map(.path)) == ["/usr/bin/wasted"]' <<<"$output"
}

# metrics FILE: prints "NAME LABELS VALUE" for each value in FILE, as Prometheus's parser reads it.
metrics() {
    /usr/bin/python3 - "$1" <<'END'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(open(sys.argv[1]).read()):
    for s in family.samples:
        print(s.name, ",".join(f"{k}={v}" for k, v in sorted(s.labels.items())), s.value)
END
}

# all_metrics SAMPLES STATUS HISTORY: compares every sample with status, and those of the newest sessions with the history.
# Each sample that they give must be there, and no other.
all_metrics() {
    python3 - "$@" <<'END'
import json, sys
got = dict(line.rsplit(" ", 1) for line in open(sys.argv[1]))
status, sessions, wanted = json.load(open(sys.argv[2])), [json.loads(line) for line in open(sys.argv[3])], {}

def effect(e, name, stage, seconds):
    with_, without = (f"replay=yes{stage}", f"replay=no{stage}")
    if not e["known"]:
        return
    for bound, key in (("estimate", "saved"), ("low", "saved_low"), ("high", "saved_high")):
        wanted[f"headstart_{name} bound={bound}{stage}"] = e[key]
    if seconds:
        wanted[f"headstart_{seconds} {with_}"] = e["replayed_usec"] / 1e6
        wanted[f"headstart_{seconds} {without}"] = e["control_usec"] / 1e6

for b in status["benefit"]:
    stage = f",stage={b['stage']}"
    wanted[f"headstart_sessions replay=yes{stage}"] = b["n_replayed"]
    wanted[f"headstart_sessions replay=no{stage}"] = b["n_control"]
    wanted[f"headstart_harmful stage={b['stage']}"] = b["harmful"]
    effect(b, "saved_ratio", stage, "stage_seconds")
    last = [s for s in sessions if s["stage"] == b["stage"]][-1]
    unit = f"observed_per={last['usage'].removeprefix('per-')},"
    for name, key, scale, label in (
            ("ready_seconds", "ready_usec", 1e6, ""), ("stalled_seconds", "io_some_usec", 1e6, ""),
            ("read_bytes", "disk_read_bytes", 1, ""), ("replayed_bytes", "replay_data_bytes", 1, ""),
            ("hit_bytes", "hit_bytes", 1, unit), ("waste_bytes", "waste_bytes", 1, unit),
            ("miss_bytes", "miss_bytes", 1, "observed_per=page,")):
        if key in last:
            wanted[f"headstart_last_{name} {label}stage={b['stage']}"] = last[key] / scale
wanted["headstart_launches replay=yes"] = status["launches"]["n_replayed"]
wanted["headstart_launches replay=no"] = status["launches"]["n_control"]
effect(status["launches"], "launch_saved_ratio", "", None)
del got["headstart_problems "]
assert got.keys() == wanted.keys(), got.keys() ^ wanted.keys()
for name, value in wanted.items():
    # Bytes are whole numbers. status shows whole microseconds.
    tolerance = 0 if name.split()[0].endswith("_bytes") else 1e-6
    assert abs(float(got[name]) - value) <= tolerance, (name, got[name], value)
END
}

@test "metrics: OpenMetrics that its parser accepts, with the figures of status" {
    /usr/bin/python3 -c 'import prometheus_client.openmetrics.parser' || skip "needs python3-prometheus-client"
    local f=$HS_TMP/headstart.prom
    run -0 hs metrics --output="$f"
    [ "$(tail -n 1 "$f")" = "# EOF" ]
    [ "$(stat -c %a "$f")" = 644 ]
    metrics "$f" >"$HS_TMP/samples"
    grep -qx "headstart_sessions replay=yes,stage=boot 0" "$HS_TMP/samples"
    ! grep -q saved_ratio "$HS_TMP/samples" || false
    "$CHECK_BENEFIT" make 3 400 >"$HS_STATE/history.jsonl"
    hs metrics >"$f"
    metrics "$f" >"$HS_TMP/samples"
    cat "$HS_TMP/samples"
    # Hits and waste are whole files or pages, and misses are always pages.
    local unit
    unit=$(jq -r 'select(.stage == "boot") | .usage' "$HS_STATE/history.jsonl" | tail -n 1)
    grep -q "^headstart_last_hit_bytes observed_per=${unit#per-},stage=boot " "$HS_TMP/samples"
    grep -q "^headstart_last_miss_bytes observed_per=page," "$HS_TMP/samples"
    ! grep "^headstart_last_miss_bytes" "$HS_TMP/samples" | grep -v observed_per=page || false
    run -0 hs status --json=short
    while read -r name labels value; do
        case $name,$labels in
        headstart_saved_ratio,bound=low,stage=boot)
            jq -e --argjson v "$value" '.benefit[0].saved_low - $v | fabs < 1e-6' <<<"$output" ;;
        headstart_sessions,replay=no,stage=login)
            jq -e --argjson v "$value" '.benefit[1].n_control == $v' <<<"$output" ;;
        esac
    done <"$HS_TMP/samples"
    [ "$(grep -c ^headstart_saved_ratio "$HS_TMP/samples")" -eq 6 ]
    # The metrics of starts are those of all applications together.
    ! grep -q headstart_launch_saved "$HS_TMP/samples" || false
    "$CHECK_BENEFIT" make-launches 1 300 >"$HS_STATE/launches.jsonl"
    hs metrics >"$f"
    metrics "$f" >"$HS_TMP/samples"
    "$HEADSTART" --state="$HS_STATE" status --json=short >"$HS_TMP/status.json"
    jq -e --argjson v "$(sed -n 's/headstart_launch_saved_ratio bound=high //p' "$HS_TMP/samples")" \
        '.launches.saved_high - $v | fabs < 1e-6' "$HS_TMP/status.json"
    grep -qx "headstart_launches replay=no $(jq .launches.n_control "$HS_TMP/status.json")" "$HS_TMP/samples"
    ! grep -q '1000\|/' <(cut -d' ' -f1,2 "$HS_TMP/samples") || false
    # Every sample, also of a session that read many bytes.
    jq -c 'if .stage == "login" then .disk_read_bytes = 98765432109 else . end' "$HS_STATE/history.jsonl" >"$HS_TMP/history"
    cp "$HS_TMP/history" "$HS_STATE/history.jsonl"
    hs metrics >"$f"
    metrics "$f" >"$HS_TMP/samples"
    hs status --json=short >"$HS_TMP/status.json"
    all_metrics "$HS_TMP/samples" "$HS_TMP/status.json" "$HS_STATE/history.jsonl"
    # A problem that status shows counts, also with the model or with the pack of a user.
    [ "$(hs metrics | sed -n 's/^headstart_problems //p')" -eq 0 ]
    echo garbage | tee "$HS_STATE/model.json" >"$HS_STATE/login@1000.pack"
    [ "$(hs metrics | sed -n 's/^headstart_problems //p')" -eq 2 ]
    hs status --json=short | jq -e '.problems | map(.check) == ["model", "packs"]'
}
