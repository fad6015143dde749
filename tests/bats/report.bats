# SPDX-License-Identifier: LGPL-2.1-or-later
# Pictures of recorded stages, and the HTML report.

load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
    need_command python3
    mkdir -m 0700 -p "$HS_STATE/traces"
}

# hostile STAGE [FLAG…] >TRACE: prints a trace in which applications with hostile names start, one
# each second.
hostile() {
    python3 - "$@" <<'END'
import json, sys
paths = ["x</script><script>alert(1)", "\u202egpj.sh", "]]>&amp;'\"", "a%0Ab%1B[31m%FF", "日本", "/".join(["y" * 249] * 16)]
nodes, parent, name = {(): 0}, [0], [""]
for path in paths:
    parts = tuple(path.split("/"))
    for i in range(len(parts)):
        if parts[:i + 1] not in nodes:
            nodes[parts[:i + 1]] = len(parent)
            parent.append(nodes[parts[:i]])
            name.append(parts[i])
rows = [nodes[tuple(path.split("/"))] for path in paths]
n = len(paths)
json.dump({"format": "headstart-trace", "version": 1, "stage": sys.argv[1], "flags": sys.argv[2:], "boot_id": "0" * 32,
           "kernel": "", "distribution": "", "uid": -1, "start_realtime_usec": 1760000000000000,
           "start_boottime_usec": 0, "duration_usec": (n + 1) * 1000000, "policy": "off", "process_source": "proc",
           "n_unknown_application": 0, "n_unresolved": 0, "n_own": 0, "n_overflows": 0,
           "volumes": [{"uuid": "u", "fstype": "ext4", "subvolume": "", "mountpoint": "/", "device": "sda", "scheduler": "none",
                        "device_class": "hdd", "rotational": True, "size_bytes": 0, "metadata_source": "none", "metadata": []}],
           "paths": {"parent": parent, "name": name},
           "files": {"path_delta": [b - a for a, b in zip([0, *rows], rows)], "volume": [0] * n, "directory": [0] * n, "inode_delta": [1] * n,
                     "size_bytes": [4096] * n, "mtime_nsec_delta": [0] * n, "resident": [[0, 4096]] * n},
           "applications": list(range(n)),
           "lifetimes": {"application": list(range(n)), "pid": [1] * n, "uid": [0] * n,
                         "start_usec": [i * 1000000 for i in range(n)], "end_usec": [-1] * n},
           "accesses": {"at_usec_delta": [1000000] * n, "file_delta": [0] + [1] * (n - 1), "application": list(range(n)),
                        "kind": [1] * n}}, sys.stdout)
END
}

@test "plot: draws the newest trace, and an older one next to it, well-formed with hostile names" {
    need_command xmllint
    hostile boot control >"$HS_STATE/traces/20251009T085320-boot.json"
    hostile boot replayed >"$HS_STATE/traces/20251010T085320-boot.json"
    run --separate-stderr -0 hs plot boot
    [ -z "$stderr" ]
    xmllint --noout - <<<"$output"
    [[ $output == *"&gt;&lt;script&gt;alert(1)"* && $output == *'\u{202e}gpj.sh'* && $output == *"日本"* ]]
    [[ $output != *"<script"* && $output != *$'\u202e'* ]]
    [[ $output == *"The time of the replay was not recorded."* && $output != *"Replay was off"* ]]
    run -0 hs plot boot --compare=CONTROL
    [[ $output == *"Replay was off."* ]]
    run -0 hs plot boot --compare=control
    xmllint --noout - <<<"$output"
    [[ $output == *"Replay was off."* && $output == *'id="timeline-2-title"'* ]]
    # The newest boot is itself the control session. It is compared with one with replay, not with itself.
    mv "$HS_STATE/traces/20251009T085320-boot.json" "$HS_TMP/old.json"
    jq '.start_realtime_usec += 86400000000' "$HS_TMP/old.json" >"$HS_STATE/traces/20251011T085320-boot.json"
    run -0 hs plot boot --compare=control
    [[ $output == *"Boot of 2025-10-09"*", replayed"*"Boot of 2025-10-10"*", without replay"* ]]
    rm "$HS_STATE/traces/20251010T085320-boot.json"
    refused 1 "no other trace of a boot without replay" plot boot --compare=control
    mv "$HS_TMP/old.json" "$HS_STATE/traces/20251009T085320-boot.json"
    # Of logins, those of the same user are compared.
    login() {
        hostile login "$3" | jq --argjson day "$1" --argjson uid "$2" '.uid = $uid | .start_realtime_usec += ($day - 9) * 86400000000' \
            >"$HS_STATE/traces/202510${1/#9/09}T085320-login.json"
    }
    login 9 1000 control
    login 10 1001 control
    login 11 1000 replayed
    run -0 hs plot login --compare=control
    [[ $output == *"Login of 2025-10-11"*", replayed"*"Login of 2025-10-09"*", without replay"* ]]
    run -0 hs plot "$HS_STATE/traces/20251009T085320-boot.json" -o "$HS_TMP/plot.svg"
    [ -z "$output" ]
    xmllint --noout "$HS_TMP/plot.svg"
    # The picture names applications, so only its owner may read it.
    [ "$(stat -c %a "$HS_TMP/plot.svg")" = 600 ]
}

# Makes a journal in which the system manager starts a unit (from 1 s to 2.5 s after the start of
# the kernel) and reports another start after 90 s. Another process pretends to start a unit, and in
# another boot a unit starts.
make_journal() {
    local remote=/usr/lib/systemd/systemd-journal-remote d=$HS_TMP/var/log/journal/0123456789abcdef0123456789abcdef
    [ -x $remote ] || skip "needs systemd-journal-remote"
    mkdir -p "$d"
    python3 - "$1" <<'END' | $remote --output="$d/system.journal" - >"$HS_TMP/remote" 2>&1
import sys
starting, started = "7d4958e842da4a758f6c1cdc7b36dcc5", "39f53479d3a045ac8e11786248231fbf"
for boot, pid, unit, message, at in (
        (sys.argv[1], 1, "slow.service", starting, 1000000), (sys.argv[1], 77, "forged.service", started, 1500000),
        (sys.argv[1], 1, "slow.service", started, 2500000), (sys.argv[1], 1, "twenty-two-characters-.service", started, 2600000),
        (sys.argv[1], 1, "late.service", started, 90000000),
        ("f" * 32, 1, "other.service", started, 2000000)):
    print(f"__REALTIME_TIMESTAMP={1760000000000000 + at}\n__MONOTONIC_TIMESTAMP={at}\n_BOOT_ID={boot}\n_PID={pid}\n"
          f"_MACHINE_ID=0123456789abcdef0123456789abcdef\nMESSAGE_ID={message}\nUNIT={unit}\nMESSAGE=x\n")
END
}

@test "plot: the starts of units come from the journal of that boot, and only from the system manager" {
    make_journal 0123456789abcdef0123456789abcdef
    hostile boot | sed 's/"boot_id": "0*"/"boot_id": "0123456789abcdef0123456789abcdef"/' \
        >"$HS_STATE/traces/20251009T085320-boot.json"
    export HEADSTART_SYSTEM_ROOT=$HS_TMP
    run --separate-stderr -0 hs plot boot
    [ -z "$stderr" ]
    grep -o '<rect class="unit"[^>]*>' <<<"$output"
    # A long name of a unit loses its suffix before its beginning is cut off.
    [[ $output == *">twenty-two-characters-<"* ]]
    [[ $output == *">slow.service<"* && $output != *forged* && $output != *late.service* && $output != *other.service* ]]
    # The picture shows 7 s between the x coordinates 172 and 946. The unit starts after 1 s and
    # takes 1.5 s.
    [[ $output == *'<rect class="unit" x="282.6" y="'*'" width="165.9"'* ]]
    # Without the journal, a note says that no starts of units are known.
    rm -r "$HS_TMP/var"
    run -0 hs plot boot
    [[ $output == *"The journal has no starts of units of this boot."* && $output != *slow.service* ]]
}

@test "plot: what replay read is drawn over its time, before what was opened" {
    hs_filesystem ext4 64
    HS_ROOT=$HS_MNT
    mkdir -p "$HS_MNT/usr/bin" "$HS_TMP/new"
    local f
    for f in app used missed; do head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/$f"; done
    sync -f "$HS_MNT"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot 1793520000 /usr/bin/app /usr/bin/used \
        >"$HS_STATE/traces/20261101T080000-boot.json"
    hs learn --quiet
    hs plan --quiet --stage=boot --policy=gate
    rm "$HS_STATE/traces/"*
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot 4102444800 /usr/bin/app /usr/bin/used /usr/bin/missed |
        jq '.flags = ["replayed"] | .policy = "gate" | .duration_usec = 10000000 | .accesses.at_usec_delta[0] = 6000000
            | .replay = {start_usec: 1000000, end_usec: 5000000}' >"$HS_STATE/traces/21000101T000000-boot.json"
    run -0 hs plot boot
    echo "$output"
    [[ $output == *">read by replay<"* && $output == *">opened, in the pack<"* && $output == *">opened, not in the pack<"* ]]
    # The description has the sums: replay read the pack, and one file was missed. The pack also has the gap
    # between its two files if the disk is measured to need longer for two reads.
    local size number unit
    size=$("$HEADSTART" show --json=short "$HS_STATE/boot.pack" | jq '.metadata_bytes + .data_bytes')
    [ "$size" -ge 600000 ]
    read -r number unit < <(grep -oE 'read by replay: [0-9]+, [0-9.]+ [kM]B' <<<"$output" | head -n 1 | cut -d' ' -f5-)
    [[ $unit == [kM]B ]]
    jq -en --argjson n "$number" --arg u "$unit" --argjson size "$size" \
        '($n * (if $u == "kB" then 1e3 else 1e6 end) / $size) | . > 0.95 and . < 1.05'
    [[ $output == *"opened, in the pack: 2, 606 kB"* && $output == *"opened, not in the pack: 1, 303 kB"* ]]
    # All marks of replay are between its begin (10 % of the panel) and its end (50 %).
    "$HEADSTART" --state="$HS_STATE" --root="$HS_ROOT" plot boot | python3 -c '
import re, sys
d = re.search(r"<path class=\"replay\" d=\"(M[^\"h]*h[^\"]*M[^\"]*)\"", sys.stdin.read()).group(1)
x = [float(v) for v in re.findall(r"M([0-9.]+) ", d)]
left = 72
assert x and all(left + 84 <= v <= left + 439 for v in x), x'
}

@test "plot launch: the last start of an application, and the same one without replay" {
    session() {
        hostile session "${@:3}" | jq --argjson at "$2" '.start_realtime_usec = $at | .lifetimes.start_usec[0] = 500000' \
            >"$HS_STATE/traces/$1-session.json"
    }
    session 20251009T085320 1760000000000000
    session 20251010T085320 1760086400000000 replayed
    run --separate-stderr -0 hs plot launch 日本
    [ -z "$stderr" ]
    xmllint --noout - <<<"$output"
    # The picture begins at the start of the application, and also shows the applications that start
    # meanwhile.
    [[ $output == *"Start of 日本 of 2025-10-10"*", replayed"* && $output == *">日本<"* && $output != *"gpj.sh"* ]]
    run -0 hs plot launch 日本 --compare=control
    [[ $output == *", replayed"*"Start of 日本 of 2025-10-09"*", without replay"* ]]
    # Another user's start without replay is not compared.
    jq '.uid = 1000' "$HS_STATE/traces/20251009T085320-session.json" >"$HS_TMP/other"
    cp "$HS_TMP/other" "$HS_STATE/traces/20251009T085320-session.json"
    refused 1 "no other start of /日本 without replay" plot launch 日本 --compare=control
    # In both sessions something was replayed, but not at the first start of this application: a control start.
    session 20251009T085320 1760000000000000 replayed
    refused 1 "no other start of /日本 without replay" plot launch 日本 --compare=control
    start_line() {
        jq -cn --arg r "$2" --argjson at "$1" '{version: 1, application: "/日本", uid: 0, files: 30, start_realtime_usec: ($at + 4000000),
            took_usec: 5000, replayed: $r}'
    }
    start_line 1760000000000000 control >"$HS_STATE/launches.jsonl"
    start_line 1760086400000000 yes >>"$HS_STATE/launches.jsonl"
    run -0 hs plot launch 日本 --compare=control
    [[ $output == *", replayed"*"Start of 日本 of 2025-10-09"*", without replay"* ]]
    # The last start is the control start.
    start_line 1760000000000000 yes >"$HS_STATE/launches.jsonl"
    start_line 1760086400000000 control >>"$HS_STATE/launches.jsonl"
    run -0 hs plot launch 日本 --compare=control
    [[ $output == *"Start of 日本 of 2025-10-09"*", replayed"*"Start of 日本 of 2025-10-10"*", without replay"* ]]
    start_line 1760000000000000 yes >"$HS_STATE/launches.jsonl"
    refused 1 "no other start of /日本 without replay" plot launch 日本 --compare=control
    rm "$HS_STATE/launches.jsonl"
    # Without a name, the command draws an application that was started.
    run -0 hs plot launch
    [[ $output == *"Start of "* ]]
    refused 1 "no start of nothing was recorded" plot launch nothing
    refused 1 "gone: No such file" plot launch 日本 --compare="$HS_STATE/traces/20251010T085320-session.json.gone"
    refused 2 "only 'launch' takes the name" plot boot 日本
    run -0 hs plot launch --width=360
    [[ $output == *'viewBox="0 0 360 '* ]]
    refused 2 "--width=12: not a number from 300 to 4000" plot launch --width=12
}

# start NAME WHEN PATH…: makes the trace of a session in which /usr/bin/app starts and opens each PATH.
start() {
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" session "$2" /usr/bin/app "${@:3}" | jq '.duration_usec = 3000000 |
        .lifetimes = {application: [0], pid: [7], uid: [0], start_usec: [500], end_usec: [-1]}' >"$HS_STATE/traces/$1-session.json"
}

@test "launch sets: explain names them, and plot launch draws what the start used of its set" {
    local f set times
    hs_filesystem ext4 64
    HS_ROOT=$HS_MNT
    mkdir -p "$HS_MNT/usr/bin" "$HS_TMP/etc/headstart"
    for f in app used unused missed; do head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/$f"; done
    sync -f "$HS_MNT"
    export HEADSTART_SYSTEM_ROOT=$HS_TMP
    printf '[Session]\nLaunchReplay=yes\nMinSize=0\n' >"$HS_TMP/etc/headstart/headstart.conf"
    start 20261101T080000 1793520000 /usr/bin/used /usr/bin/unused
    hs learn --quiet
    run -0 hs plot launch app
    [[ $output == *"The application has no launch set."* && $output == *">opened<"* ]]
    hs plan --quiet
    set=$(basename "$HS_STATE"/launch-*.pack)
    run -0 hs explain --json=short /usr/bin/used
    echo "$output"
    jq -e '.launch_sets == [.launch_sets[0]] and (.launch_sets[0] | .application == "/usr/bin/app" and .uid == null and
        .policy == "concurrent" and .reason == "configured" and .in_set and .file_bytes >= 300000 and .bytes >= 900000 and
        (.benefit.known | not))' <<<"$output"
    # The set of an application is shown although the application itself is not in it.
    run -0 hs explain app
    [[ $output == *"Launch sets "*"/usr/bin/app "*"concurrent"*"configured"*"too few starts"* ]]
    # The effect is that of `status`.
    "$BATS_TEST_DIRNAME/check-benefit" make-launches 1 300 | sed 's:/usr/bin/gains:/usr/bin/app:' >"$HS_STATE/launches.jsonl"
    run -0 hs explain --json=short app
    jq -e --argjson s "$(hs status --json=short | jq '.launches.applications[] | select(.application == "/usr/bin/app")')" \
        '.launch_sets[0].benefit | .known and .saved == $s.saved and .n_control == $s.n_control' <<<"$output"
    run -0 hs explain app
    [[ $output =~ saves\ [0-9.]+m?s\ of\ [0-9.]+m?s,\ [45][0-9]\ %\ +[0-9]+\ to\ [0-9]+\ % ]]
    # plot compares a later start with the set.
    rm "$HS_STATE/traces/"*
    start 21000101T000000 4102444800 /usr/bin/used /usr/bin/missed
    record() {
        jq -cn --arg r "$1" '{version: 1, application: "/usr/bin/app", uid: 0, files: 3, start_realtime_usec: 4102444800000500,
            took_usec: 5000, replayed: $r} + $times' --argjson times "${2-"{}"}" >"$HS_STATE/launches.jsonl"
    }
    record yes
    run -0 hs plot launch app
    echo "$output"
    [[ $output == *"opened, in the launch set: 2, 606 kB"* && $output == *"opened, not in the set: 1, 303 kB"* ]]
    [[ $output == *"Start of app of "*", replayed"* && $output == *"The launch set was replayed at this start."* ]]
    [[ $output == *"The start used 606 kB of the set and did not use 303 kB; it read 303 kB that the set lacks."* ]]
    # Without its time, replay is not drawn.
    [[ $output == *"The time of the replay was not recorded, so its reads are not drawn."* ]]
    [[ $output != *">read by replay<"* && $output != *'class="replay"'* ]]
    times='{"replay_begin_usec": 1000, "replay_end_usec": 4000, "replay_bytes": 909312}'
    record yes "$times"
    run -0 hs plot launch app
    echo "$output"
    [[ $output == *">read by replay<"* && $output == *'class="replay"'* && $output != *"was not recorded, so"* ]]
    [[ $output == *"The reads of replay have the order of the launch set; their times are spread between"* ]]
    record control "$times"
    run -0 hs plot launch app
    [[ $output != *">read by replay<"* && $output != *"was not recorded, so"* ]]
    [[ $output == *", without replay"*"was not replayed at this start, because it was a control session."* ]]
    rm "$HS_STATE/launches.jsonl"
    run -0 hs plot launch app
    [[ $output == *"It was not recorded whether the launch set was replayed."* && $output == *"opened, in the launch set: 2"* ]]
    # A set that cannot be used is left out.
    echo bad >"$HS_STATE/$set"
    run -0 hs explain --json=short app
    jq -e '.launch_sets == []' <<<"$output"
    run -0 hs plot launch app
    [[ $output == *"The application has no launch set."* ]]
}

@test "plot: a trace that cannot be drawn costs one clear line" {
    refused 1 "no boot was recorded" plot boot
    refused 2 "no such stage: 'lunch'" plot lunch
    refused 1 "/nowhere/trace.json" plot /nowhere/trace.json
    echo '{' >"$HS_TMP/bad.json"
    refused 1 "bad.json: " plot "$HS_TMP/bad.json"
    hostile boot replayed >"$HS_STATE/traces/20251010T085320-boot.json"
    refused 1 "no other trace of a boot without replay" plot boot --compare=control
    refused 1 "nowhere" plot boot --output=/nowhere/x.svg
    rm -r "$HS_STATE"
    refused 1 "nothing was recorded yet" plot boot
}

# --- the report ------------------------------------------------------------------------------------------------

AXE=axe-core@4.14.1

# Sets axe to the file of axe-core, from npm.
need_axe() {
    need_command chromium npm
    grep -q __asan_init "$HEADSTART" && skip "the sanitizers are libraries, and do not change the page"
    (cd "$HS_TMP" && timeout 60 npm pack --silent $AXE && tar -xzf axe-core-*.tgz) >"$HS_TMP/npm" 2>&1 ||
        skip "npm cannot fetch $AXE"
    axe=$HS_TMP/package/axe.min.js
}

# Makes a state: a history, hostile traces, and the model that was learned from them.
make_state() {
    "$BATS_TEST_DIRNAME/check-benefit" make 1 300 >"$HS_STATE/history.jsonl"
    "$BATS_TEST_DIRNAME/check-benefit" make-launches 1 200 | sed '1,40s:/opt/rare:/opt/x</script><script>alert(1):' \
        >"$HS_STATE/launches.jsonl"
    hostile boot replayed >"$HS_STATE/traces/20251010T085320-boot.json"
    hostile login >"$HS_STATE/traces/20251010T085420-login.json"
    hs learn --quiet
}

# Makes the state of a machine with a desktop on a filesystem of its own: a model, packs, a boot and a login that were
# replayed, the starts of units of that boot, and a history.
make_desktop() {
    local boot_id=0123456789abcdef0123456789abcdef
    hs_filesystem ext4 128
    HS_ROOT=$HS_MNT
    "$BATS_TEST_DIRNAME/make-desktop" learned "$HS_MNT" "$HS_LOOP" "$HS_STATE" $boot_id
    hs learn --quiet
    hs plan --quiet
    "$BATS_TEST_DIRNAME/make-desktop" newest "$HS_MNT" "$HS_LOOP" "$HS_STATE" $boot_id
    "$BATS_TEST_DIRNAME/check-benefit" make-launches 1 400 >"$HS_STATE/launches.jsonl"
    make_journal $boot_id
    export HEADSTART_SYSTEM_ROOT=$HS_TMP
}

@test "report: an independent computation gives every figure" {
    local seed n
    for seed in 1 2; do
        for n in 0 1 20 150 1700; do
            "$BATS_TEST_DIRNAME/check-benefit" make $seed $n >"$HS_STATE/history.jsonl"
            "$BATS_TEST_DIRNAME/check-benefit" make-launches $seed $n >"$HS_STATE/launches.jsonl"
            hs report -o "$HS_TMP/report.html"
            "$BATS_TEST_DIRNAME/check-benefit" report "$HS_STATE/history.jsonl" "$HS_TMP/report.html" "$HS_STATE/launches.jsonl"
        done
    done
    # The check fails for a wrong figure of sessions or of starts.
    sed -E 's/value="[^"]*" data-figure="application.saved"/value="0.1234" data-figure="application.saved"/' \
        "$HS_TMP/report.html" >"$HS_TMP/wrong.html"
    run ! "$BATS_TEST_DIRNAME/check-benefit" report "$HS_STATE/history.jsonl" "$HS_TMP/wrong.html" "$HS_STATE/launches.jsonl"
    sed -E 's/value="[^"]*" data-figure="boot.saved_low"/value="0.5" data-figure="boot.saved_low"/' \
        "$HS_TMP/report.html" >"$HS_TMP/wrong.html"
    run ! "$BATS_TEST_DIRNAME/check-benefit" report "$HS_STATE/history.jsonl" "$HS_TMP/wrong.html" "$HS_STATE/launches.jsonl"
    # With automatic logins the page says so, and its figures are those of boots with their logins.
    "$BATS_TEST_DIRNAME/check-benefit" make 1 700 automatic >"$HS_STATE/history.jsonl"
    hs report -o "$HS_TMP/report.html"
    "$BATS_TEST_DIRNAME/check-benefit" report "$HS_STATE/history.jsonl" "$HS_TMP/report.html" "$HS_STATE/launches.jsonl"
    grep -q "Your boot with login takes" "$HS_TMP/report.html"
    grep -q "Each boot counts with its automatic login" "$HS_TMP/report.html"
}

@test "report: a boot that waited for its user does not set the scale of the chart" {
    "$BATS_TEST_DIRNAME/check-benefit" make 1 100 | jq -c 'select(.stage == "boot") | .flags |= map(select(. == "control"))' \
        >"$HS_STATE/history.jsonl"
    hs report -o "$HS_TMP/report.html"
    run -1 grep "than the scale shows" "$HS_TMP/report.html"
    # levels: prints the labels of the levels of the chart of boots, for example "10 s"
    levels() { grep -o 'id="sessions-boot-960-title".*' "$HS_TMP/report.html" | sed 's|</svg>.*||' | grep -oE '>[0-9.]+ s<'; }
    local before
    before=$(levels)
    [ -n "$before" ]
    jq -c 'if input_line_number == 30 then .ready_usec = 300000000 else . end' "$HS_STATE/history.jsonl" >"$HS_TMP/history"
    cp "$HS_TMP/history" "$HS_STATE/history.jsonl"
    hs report -o "$HS_TMP/report.html"
    grep "1 session took longer than the scale shows; the mark is at the upper edge." "$HS_TMP/report.html"
    levels
    [ "$(levels | tail -n 1 | tr -dc 0-9)" -le 40 ]
    # The table has the exact time.
    xmllint --noout "$HS_TMP/report.html"
}

@test "report: the page is well-formed and needs no other file, with hostile names of files" {
    need_command xmllint
    make_state
    run --separate-stderr -0 hs report
    [ -z "$stderr" ]
    printf '%s\n' "$output" >"$HS_TMP/report.html"
    xmllint --noout "$HS_TMP/report.html"
    [[ $output == *"/x&lt;/script&gt;&lt;script&gt;alert(1)"* && $output == *'\u{202e}gpj.sh'* ]]
    [[ $output != *"<script"* && $output != *$'\u202e'* && $output != *"http:"*"//"*".css"* ]]
    # The chart of the boots shows the dates of its first and its last session.
    [[ $output =~ 'class="tick">2025-10-'[0-9]+'</text>'.*'class="tick end">2026-02-'[0-9]+'</text>' ]]
    # No file of these traces has a place on the disk, so no legend explains marks that are not drawn.
    [[ $output == *"<figcaption>No place on the disk of the "*" files is known"* && $output != *"Each mark is"* && $output != *'class="label">opened'* ]]
    run -1 grep -oE '(src|href)="[^#"]+"|url\(|@import' "$HS_TMP/report.html"
    [ "$(stat -c %s "$HS_TMP/report.html")" -lt 500000 ]
    # Every id is unique, and every reference finds its id.
    run -0 python3 - "$HS_TMP/report.html" <<'END'
import re, sys
page = open(sys.argv[1]).read()
ids = re.findall(r' id="([^"]*)"', page)
assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
used = [i for v in re.findall(r' (?:aria-labelledby|aria-describedby)="([^"]*)"', page) for i in v.split()]
used += re.findall(r' href="#([^"]*)"', page)
assert used and set(used) <= set(ids), set(used) - set(ids)
END
    /usr/bin/python3 -c 'import html5lib' 2>/dev/null || skip "needs python3-html5lib"
    /usr/bin/python3 -c 'import html5lib, sys; html5lib.HTMLParser(strict=True).parse(open(sys.argv[1], encoding="utf-8"))' \
        "$HS_TMP/report.html"
}

@test "report: in Chromium, at three widths, in light and dark, axe-core finds nothing and the page does not scroll sideways" {
    need_axe
    make_state
    hs report -o "$HS_TMP/report.html"
    "$HS_SOURCE/tests/page/check" "$axe" "$HS_TMP/report.html"
    # The check fails for a picture without a name, for an element that is too wide, for a focus that nobody sees, and for a link
    # that the Tab key does not reach.
    sed 's/ role="img" aria-labelledby="[^"]*"/ role="img"/; s|<main |<div style="width:2000px">x</div><main |; s|<title [^>]*>[^<]*</title>||g
        s|</style>|a:focus-visible, summary:focus-visible { outline: none !important; }</style>|
        s|<a href="#sessions">|<a href="#sessions" tabindex="-1">|' "$HS_TMP/report.html" >"$HS_TMP/bad.html"
    run -1 "$HS_SOURCE/tests/page/check" "$axe" "$HS_TMP/bad.html"
    echo "$output"
    [[ $output == *"axe: "* && $output == *"pixels wide"* ]]
    [[ $output == *"keyboard: the focus of element 1 (A) is not visible"* && $output == *"keyboard: Tab number "*" leads to element "* ]]
}

@test "report and plot of a desktop: reads, stages, units, CPU and predictions, in Chromium without a finding" {
    make_desktop
    run --separate-stderr -0 hs report -o "$HS_TMP/report.html"
    [ -z "$stderr" ]
    local page
    page=$(<"$HS_TMP/report.html")
    "$BATS_TEST_DIRNAME/check-benefit" report "$HS_STATE/history.jsonl" "$HS_TMP/report.html" "$HS_STATE/launches.jsonl"
    # The page has what a state without these facts cannot show.
    local mark
    for mark in 'initrd' 'system' 'greeter ready' 'settled' 'ready' 'replay begins' 'replay ends'; do
        grep -qE "<text [^>]*class=\"mark-name( end)?\">$mark</text>" <<<"$page"
    done
    for mark in '>read by replay<' '>opened, in the pack<' '>opened, not in the pack<' 'CPU busy (line)' '>slow.service<' \
        '>NetworkManager<' 'id="chains-graph-title"' 'id="calibration-boot-title"' 'files with the most data' \
        'Each mark is the first opening of a file, at its place on the disk'; do
        [[ $page == *"$mark"* ]] || { echo "missing: $mark"; false; }
    done
    [[ $page != *"was not recorded"* && $page != *"were not recorded"* && $page != *"is not known"* ]]
    [ "$(stat -c %s "$HS_TMP/report.html")" -lt 500000 ]
    # A page around the picture of `plot`: the picture brings its colours for light and dark.
    {
        echo '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>plot</title>'
        echo '<meta name="viewport" content="width=device-width"><style>html { background: var(--paper); } body { margin: 0; }'
        echo 'figure { margin: 0; } figure > svg { max-width: 100%; height: auto; }</style></head>'
        echo '<body><main><h1 style="font-size: 0">The newest boot, and one without replay</h1><figure>'
        hs plot boot --compare=control
        echo '</figure></main></body></html>'
    } >"$HS_TMP/plot.html"
    need_axe
    "$HS_SOURCE/tests/page/check" ${HS_SCREENSHOTS:+--screenshots "$HS_SCREENSHOTS"} "$axe" "$HS_TMP/report.html"
    "$HS_SOURCE/tests/page/check" ${HS_SCREENSHOTS:+--screenshots "$HS_SCREENSHOTS"} "$axe" "$HS_TMP/plot.html"
}

@test "report: a state that is missing or cannot be used costs one clear line" {
    rm -r "$HS_STATE"
    refused 1 "nothing was recorded yet" report
    mkdir -m 0700 -p "$HS_STATE/traces"
    refused 1 "/nowhere/x.html" report -o /nowhere/x.html
    echo '{' >"$HS_STATE/model.json"
    run --separate-stderr -0 hs report
    assert_one_error_line "$stderr"
    [[ $output == *"It is too early to say"* ]]
}
