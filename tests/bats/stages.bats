# SPDX-License-Identifier: LGPL-2.1-or-later
# headstartd --stage=auto with a private bus, on which tool-fake-logind stands in for systemd and
# logind.

load helpers
load logind
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    logind_setup
    need_binary "$HEADSTARTD" "$HEADSTART"
    need_command jq python3
    hs_filesystem ext4 64
    HS_RUN=$HS_TMP/run
    NOTIFY=$HS_TMP/recorder.notify
}

# recorder_start [OPTION…]: starts headstartd --stage=auto and waits for its first status. Sets RECORDER.
recorder_start() {
    hs_listen "$NOTIFY"
    NOTIFY_SOCKET=$HS_TMP/notify "$HEADSTARTD" --root="$HS_MNT" --state="$HS_STATE" \
        --run="$HS_RUN" --stage=auto "$@" 2>"$HS_TMP/recorder.log" 3>&- &
    RECORDER=$!
    hs_defer hs_kill $RECORDER
    hs_wait 10 said 'READY=1'
    hs_wait 10 said '^STATUS=\(Recording\|Waiting\|Nothing\)'
}

# recorder_start_suspendable: starts headstartd, for which the machine was suspended for eight hours once
# $HS_TMP/suspended exists.
recorder_start_suspendable() {
    LD_PRELOAD=$HS_BUILD/tests/tools/libsuspended-clock.so HEADSTART_SUSPENDED=$HS_TMP/suspended \
        ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 recorder_start
}

said() {
    grep -q -- "$1" "$NOTIFY" && return 0
    # A recorder that has exited reports nothing any more, so the test does not wait.
    kill -0 "$RECORDER" 2>/dev/null || {
        echo "# headstartd has ended: $(cat "$HS_TMP/recorder.log")" >&2
        hs_wait() { return 1; }
    }
    return 1
}

# last_is TEXT: checks that TEXT is the latest status.
last_is() {
    [ "$(grep ^STATUS= "$NOTIFY" | tail -n 1)" = "STATUS=$1" ]
}

# now_says TEXT [SECONDS]: waits until TEXT is the latest status.
now_says() {
    hs_wait "${2:-10}" last_is "$1" || {
        echo "# says: $(grep ^STATUS= "$NOTIFY" | tail -n 3)" >&2
        cat "$HS_TMP/recorder.log" >&2
        return 1
    }
}

recorder_stop() {
    kill -TERM "$RECORDER"
    local status=0
    wait "$RECORDER" || status=$?
    cat "$HS_TMP/recorder.log"
    [ "$status" -eq 0 ]
}

# traces STAGE: prints how many traces there are of the stage.
traces() {
    find "$HS_STATE/traces" -name "*-$1*.json" 2>/dev/null | wc -l
}

open_file() {
    echo "$1" >"$HS_MNT/$1"
}

# is_in FILE STAGE: checks whether a trace of the stage contains the file.
is_in() {
    local t
    for t in "$HS_STATE"/traces/*-"$2"*.json; do
        "$HEADSTART" show --json=short "$t" | jq -e --arg f "/$1" 'any(.files[]; .path == $f)' \
            >/dev/null && return 0
    done
    return 1
}

uid_of() {
    local t=("$HS_STATE"/traces/*-"$1"*.json)
    "$HEADSTART" show --json=short "${t[0]}" | jq .uid
}

# make_app: makes an application that opens 25 files.
make_app() {
    mkdir "$HS_MNT/data"
    touch "$HS_MNT/data/"{1..25}
    printf '#!/bin/sh\nfor f in "${0%%/*}"/data/*; do : <"$f"; done\nsleep 2\n' >"$HS_MNT/app"
    chmod 0755 "$HS_MNT/app"
}

@test "boot, pause, login, session and logout follow systemd and logind" {
    make_app
    recorder_start
    # There is no bus yet.
    now_says "Recording boot, waiting for the system bus"
    bus_start
    fake_start
    fake manager queued
    fake appear
    now_says "Recording boot, waiting for the end of the boot"
    open_file in-boot
    fake manager active
    fake new c1 120 greeter x11 seat0
    fake state c1 active
    now_says "Recording boot, waiting for the greeter to be quiet"
    fake target active
    fake finished
    now_says "Waiting for a login" 20
    [ "$(traces boot)" -eq 1 ]
    # On a machine with a display manager, a console session is no login.
    fake new 1 0 user tty -
    open_file in-pause
    fake new 2 1000 user x11 seat0
    now_says "Recording login, waiting for the session to become active"
    # headstartd starts the replay of the user's login pack, but not for the console session.
    hs_wait 10 grep -qx "start fail headstart-replay-user@1000.service" "$HS_TMP/fake.log"
    [ "$(grep -c "^start " "$HS_TMP/fake.log")" -eq 1 ]
    open_file in-login
    fake state 2 active
    now_says "Recording login, waiting for the session to settle"
    [ ! -e "$HS_RUN/login-recorded" ]
    now_says "Recording session, waiting for the end of the session" 20
    [ "$(traces login)" -eq 1 ]
    # headstart-learn.path watches this file.
    [ -e "$HS_RUN/login-recorded" ]
    open_file in-session
    "$HS_MNT/app"
    fake state 2 closing
    now_says "Waiting for a login"
    fake gone 2
    recorder_stop
    [ "$(traces boot)/$(traces login)/$(traces session)" = 1/1/1 ]
    [ "$(uid_of boot)/$(uid_of login)/$(uid_of session)" = null/1000/1000 ]
    is_in in-boot boot
    run ! is_in in-login boot
    is_in in-login login
    is_in in-pause login # the interval between two stages belongs to the second one
    run ! is_in in-boot login
    is_in in-session session
    run ! is_in in-login session
    # The history of starts contains the start of the application in the session.
    run -0 "$HEADSTART" history --launches --json=short --state="$HS_STATE"
    echo "$output"
    jq -e 'length == 1 and (.[0] | .application == "/app" and .uid == 1000 and .files >= 20 and
        .took_usec > 0 and .replayed == "no")' <<<"$output"
    # The history contains the boot and the login, but not the session.
    run -0 "$HEADSTART" history --json=short --state="$HS_STATE"
    echo "$output"
    jq -e 'map(.stage) == ["boot", "login"]' <<<"$output"
    jq -e '.[0].uid == null and .[1].uid == 1000' <<<"$output"
    jq -e 'all(.[]; .flags == [] and .replayed == false)' <<<"$output"
    # The time of a boot counts from the start of the kernel, and the time of a login from the start
    # of its recording. The three quiet seconds at the end of a stage do not count.
    jq -e --argjson trace "$("$HEADSTART" show --json=short "$HS_STATE"/traces/*-login*.json)" \
        '.[1].ready_usec > 0 and .[1].ready_usec <= $trace.duration_usec - 3000000' <<<"$output"
    jq -e --argjson up "$(awk '{ print int($1 * 1000000) }' /proc/uptime)" \
        '.[0].ready_usec > $up - 300000000 and .[0].ready_usec < $up' <<<"$output"
}

# set_is_read: checks that the replay of a launch set is over. Otherwise the next call checks again.
set_is_read() {
    jq -e '.launch.read_bytes > 0' "$HS_RUN/session.json" && return 0
    kill -USR2 "$RECORDER"
    return 1
}

# planned_controls N: plans. The sets of a user say that the start is a control start in one of N boots; 0: in none.
planned_controls() {
    local pack n=0
    HEADSTART_SYSTEM_ROOT=$HS_MNT "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" plan --quiet
    for pack in "$HS_STATE"/launch@*.pack; do
        "$HEADSTART" show --json=short "$pack" | jq -e --argjson n "$1" '.control_interval == $n'
        n=$((n + 1))
    done
    [ "$n" -gt 0 ]
}

# The second recorded start of an application is a control start, unless control sessions are switched off.
@test "the history of starts says when a launch set was replayed, and plot draws what the replay read" {
    local id f files
    hs_programs cat
    for f in {1..25}; do head -c 100000 /dev/urandom >"$HS_MNT/data/$f"; done # hs_programs has made the directory
    find "$HS_MNT" -type f -exec touch -d '10 days ago' {} + # no file counts as volatile
    files=$(printf '/data/%s ' {1..25})
    mkdir -p "$HS_MNT/etc/headstart"
    printf '[Session]\nMinSize=0\nPredict=no\nLaunchReplay=yes\n' >"$HS_MNT/etc/headstart/headstart.conf"
    bus_start
    fake_start
    fake appear
    recorder_start
    fake finished
    fake target active
    now_says "Waiting for a login"
    for id in 2 3 4; do
        [ $id -ne 3 ] || rm "$HS_STATE"/launch*.pack
        fake new $id 1000 user x11 seat0
        fake state $id active
        now_says "Recording session, waiting for the end of the session" 20
        sync -f "$HS_MNT"
        hs_drop_caches
        # The set that is replayed is ahead of the program.
        # shellcheck disable=SC2086 # words
        { [ $id -ne 4 ] || sleep 1; } | chroot --userspec=1000:1000 "$HS_MNT" /bin/cat - $files >/dev/null
        [ $id -ne 3 ] || planned_controls 0 # this set is newer than the start
        [ $id -ne 4 ] || hs_wait 30 set_is_read
        fake state $id closing
        now_says "Waiting for a login"
        fake gone $id
        [ $id -ne 2 ] || HEADSTART_SYSTEM_ROOT=$HS_MNT "$HEADSTART" --state="$HS_STATE" learn --quiet
        [ $id -ne 2 ] || planned_controls 1
        printf '[Replay]\nControlInterval=0\n' >>"$HS_MNT/etc/headstart/headstart.conf"
        [ $id -ne 2 ] || planned_controls 0
    done
    recorder_stop
    cat "$HS_STATE/launches.jsonl"
    jq -se 'length == 3 and (.[:2] | all(.replayed == "no" and (has("replay_end_usec") | not))) and
        (.[2] | .replayed == "yes" and .replay_end_usec > .replay_begin_usec and .replay_end_usec < 60000000 and
        .replay_bytes > 100000)' "$HS_STATE/launches.jsonl"
    run -0 "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" plot launch cat
    [[ $output == *">read by replay<"* && $output == *"have the order of the launch set"* ]]
}

@test "a boot's line of the history has the counters and the times of the system manager" {
    mkdir -p "$HS_MNT"/proc/{pressure,self} "$HS_MNT"/sys/dev/block/8:1 "$HS_MNT"/var/lib/dpkg
    printf 'some avg10=0.00 avg60=0.00 avg300=0.00 total=700\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=300\n' \
        >"$HS_MNT/proc/pressure/io"
    echo '21 1 8:1 / / rw - ext4 /dev/sda1 rw' >"$HS_MNT/proc/self/mountinfo"
    echo '  1234  5  2000 7 0 0 0 0 0 0 0' >"$HS_MNT/sys/dev/block/8:1/stat"
    printf 'MemTotal:  1000 kB\nMemFree:  500 kB\n' >"$HS_MNT/proc/meminfo"
    touch -d @1700000000 "$HS_MNT/var/lib/dpkg/status"
    mkdir -p "$HS_RUN"
    echo '{"pack":"x","stage":"boot","policy":"gate","outcome":"done","duration_usec":5,"files":3,"data_bytes":4096}' \
        >"$HS_RUN/replay-boot.json"
    bus_start
    fake_start
    fake appear
    recorder_start
    now_says "Recording boot, waiting for the end of the boot"
    # The history ends within a line, as a killed writer leaves it.
    mkdir -p "$HS_STATE"
    printf '{"version":1,"sta' >"$HS_STATE/history.jsonl"
    fake finished
    fake target active
    now_says "Waiting for a login"
    recorder_stop >"$HS_TMP/said"
    grep -q "history.jsonl: dropped a last line that is not complete" "$HS_TMP/said"
    run -0 "$HEADSTART" history --json=short --state="$HS_STATE"
    echo "$output"
    jq -e 'length == 1 and (.[0] | .io_some_usec == 700 and .io_full_usec == 300 and .disk_reads == 1234 and
        .disk_read_bytes == 1024000 and .memory_bytes == 1024000 and .packages_usec == 1700000000000000 and
        .replayed and .policy == "gate" and .replay_files == 3 and .finished_usec > 0 and
        .kernel_usec == 2000000 and .initrd_usec == 1500000 and .loader_usec == 300000 and .firmware_usec == 400000)' \
        <<<"$output"
}

runs_for_a_second() {
    [ "$(ps -o etimes= -p "$RECORDER")" -ge 1 ]
}

@test "a boot ends when the default target is reached, also if headstartd learns of it after the end of the startup" {
    bus_start
    fake_start
    fake appear
    recorder_start
    now_says "Recording boot, waiting for the end of the boot"
    # A target that was reached before headstartd started would end a boot that headstartd has missed.
    hs_wait 10 runs_for_a_second
    fake reached 400
    fake finished
    now_says "Waiting for a login"
    recorder_stop
    run -0 "$HEADSTART" history --json=short --state="$HS_STATE"
    echo "$output"
    # ready_usec counts the time during which the machine was suspended, finished_usec does not.
    jq -e --argjson suspended "$(python3 -c 'import time
print(int(1e6 * (time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC))))')" \
        'length == 1 and (.[0] | .finished_usec - .ready_usec + $suspended >= 390000)' <<<"$output"
}

@test "the boot of a control session is noted, that of a session with replay is not" {
    local outcome
    bus_start
    mkdir -p "$HS_RUN"
    for outcome in done control; do
        [ ! -e "$HS_STATE/last-control" ]
        echo '{"pack":"x","stage":"boot","policy":"gate","outcome":"'$outcome'","duration_usec":5,"files":3,"data_bytes":4096}' \
            >"$HS_RUN/replay-boot.json"
        a_boot
    done
    [ "$(<"$HS_STATE/last-control")" = "$(tr -d - </proc/sys/kernel/random/boot_id)" ]
    [ "$(stat -c %a "$HS_STATE/last-control")" = 600 ]
}

@test "where early boot reads the copy of the pack, the boot of a control session is noted there, too" {
    local copies=$HS_MNT/etc/headstart
    bus_start
    mkdir -p "$HS_RUN" "$copies"
    echo '{"pack":"x","stage":"boot","policy":"gate","outcome":"control","duration_usec":5,"files":3,"data_bytes":4096}' \
        >"$HS_RUN/replay-boot.json"
    # Without a copy of the pack no other file is needed.
    a_boot
    [ -z "$(ls -A "$copies")" ]
    "$HS_BUILD/tests/tools/tool-mkpack" --control=1 "$copies/boot.pack" </dev/null
    a_boot
    [ "$(stat -c %a "$copies/last-control")" = 600 ]
    cmp "$copies/last-control" "$HS_STATE/last-control"
    # In the next boot, which has another id, only the copies can be seen.
    run -0 "$HEADSTART_REPLAY" "$HS_TMP/nowhere/boot.pack" "$copies/boot.pack"
    [[ $output == *"nothing replayed: a control session"* ]]
    tr 0-9a-f 1-9a-f0 <"$copies/last-control" >"$HS_TMP/other"
    cat "$HS_TMP/other" >"$copies/last-control"
    run -0 "$HEADSTART_REPLAY" "$HS_TMP/nowhere/boot.pack" "$copies/boot.pack"
    [[ $output == *"skipped 0"* ]]
}

@test "a boot that is not recorded has a line with the times of the system manager, once" {
    mkdir -p "$HS_MNT"/proc/{pressure,self} "$HS_MNT"/sys/dev/block/8:1 "$HS_RUN"
    printf 'some avg10=0.00 avg60=0.00 avg300=0.00 total=700\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=300\n' \
        >"$HS_MNT/proc/pressure/io"
    echo '21 1 8:1 / / rw - ext4 /dev/sda1 rw' >"$HS_MNT/proc/self/mountinfo"
    echo '  1234  5  2000 7 0 0 0 0 0 0 0' >"$HS_MNT/sys/dev/block/8:1/stat"
    bus_start
    fake_start
    fake appear
    fake finished
    fake target active
    # Without the directory of headstart-record-late.service the recorder was only restarted.
    recorder_start
    now_says "Waiting for a login"
    recorder_stop
    [ ! -e "$HS_STATE/history.jsonl" ]
    mkdir "$HS_RUN/boot-over"
    for _ in 1 2; do
        recorder_start
        now_says "Waiting for a login"
        recorder_stop
    done
    [ "$(traces boot)" -eq 0 ]
    run -0 "$HEADSTART" history --json=short --state="$HS_STATE"
    echo "$output"
    jq -e --arg kernel "$(uname -r)" 'length == 1 and (.[0] | .flags == ["light"] and .policy == "off" and
        .io_some_usec == 700 and .io_full_usec == 300 and .disk_reads == 1234 and .ready_usec == null and
        .finished_usec > 0 and .kernel_usec == 2000000 and .initrd_usec == 1500000 and .kernel == $kernel and
        .boot_id != null and .left_out == "not recorded: the policy is off")' <<<"$output"
    jq -e --argjson up "$(awk '{ print int($1) }' /proc/uptime)" --argjson now "$(date +%s)" \
        '.[0].start_realtime_usec / 1000000 - ($now - $up) | . < 60 and . > -60' <<<"$output"
}

@test "a server: the default target ends the boot, ssh is a login, and a login that ends early is dropped" {
    bus_start
    fake_start
    fake appear
    recorder_start
    now_says "Recording boot, waiting for the end of the boot"
    fake target active
    now_says "Waiting for a login"
    fake new 1 1000 user tty -
    now_says "Recording login, waiting for the session to become active"
    fake gone 1
    now_says "Waiting for a login"
    fake new 2 1000 background unspecified -
    fake new 3 1000 nobody-knows-this tty -
    fake new 4 1001 user-light tty -
    fake state 4 active
    now_says "Recording session, waiting for the end of the session" 20
    recorder_stop
    # The session had not ended when headstartd was stopped, so it has no trace.
    [ "$(traces boot)/$(traces login)/$(traces session)" = 1/1/0 ]
    [ "$(uid_of login)" = 1001 ]
    grep -q "login was cut short" "$HS_TMP/recorder.log"
    # A dropped login does not make the next one a second login.
    run -0 "$HEADSTART" show --json=short "$HS_STATE"/traces/*-login*.json
    jq -e '.flags | index("second-login") == null' <<<"$output"
}

@test "the PAM service tells automatic logins, and a network login is never automatic" {
    mkdir -p "$HS_RUN"
    echo '{"pack":"x","stage":"boot","policy":"gate","outcome":"done","duration_usec":5,"files":3,"data_bytes":4096}' \
        >"$HS_RUN/replay-boot.json"
    bus_start
    fake_start
    fake appear
    recorder_start
    now_says "Recording boot, waiting for the end of the boot"
    fake target active
    now_says "Waiting for a login"
    # This session begins within two seconds after the boot, in which no user can have typed a
    # password. However, its PAM service is that of a network login.
    fake new 1 1000 user tty - sshd
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    fake gone 1
    now_says "Waiting for a login"
    # The two seconds are over, but the PAM service is that of an automatic login.
    fake new 2 1001 user x11 seat0 lightdm-autologin
    fake state 2 active
    now_says "Recording session, waiting for the end of the session" 20
    recorder_stop
    local t flags=
    for t in "$HS_STATE"/traces/*-login*.json; do
        flags+=$("$HEADSTART" show --json=short "$t" | jq -r '"\(.uid) \(.flags | index("automatic login") != null) "')
    done
    echo "$flags"
    [ "$flags" = "1000 false 1001 true " ]
    # The time of the automatic login contains the boot, and what was replayed in the boot counts for it.
    cat "$HS_STATE/history.jsonl"
    jq -se 'map(select(.stage == "login")) | map(.uid) == [1000, 1001] and
        (.[0] | (has("began_usec") | not) and .policy == "off") and
        (.[1] | .began_usec > 0 and .ready_usec > .began_usec and .policy == "gate" and .outcome == "done" and
            .replay_files == 3)' "$HS_STATE/history.jsonl"
}

@test "a login storm of 50 users: every user's files are recorded, and the pack for everybody is planned" {
    local i t
    mkdir -p "$HS_MNT/usr"
    head -c 100000 /dev/zero >"$HS_MNT/usr/shared"
    for i in {1000..1049}; do
        install -d -m 700 -o "$i" "$HS_MNT/home/$i"
        install -m 600 -o "$i" /dev/null "$HS_MNT/home/$i/first"
        install -m 600 -o "$i" /dev/null "$HS_MNT/home/$i/last"
        echo x | tee "$HS_MNT/home/$i/first" >"$HS_MNT/home/$i/last"
    done
    # The paths are relative, because the users cannot search the directory of the tests.
    chmod 755 "$HS_MNT" "$HS_MNT/home"
    bus_start
    fake_start
    fake appear
    recorder_start
    now_says "Recording boot, waiting for the end of the boot"
    fake target active
    now_says "Waiting for a login"
    for i in {1000..1049}; do
        fake new "$i" "$i" user tty - sshd
        (cd "$HS_MNT/home/$i" && setpriv --reuid="$i" --clear-groups cat first ../../usr/shared >/dev/null)
    done
    for i in {1000..1049}; do
        (cd "$HS_MNT/home/$i" && setpriv --reuid="$i" --clear-groups cat last >/dev/null)
        fake state "$i" active
    done
    now_says "Recording session, waiting for the end of the session" 60
    # Replays for the users are requested, and all users share one trace.
    [ "$(grep -c "^start fail headstart-replay-user@" "$HS_TMP/fake.log")" -ge 1 ]
    [ "$(traces login)" -eq 1 ]
    run -0 "$HEADSTART" show --json=short "$HS_STATE"/traces/*-login*.json
    jq -e '.uid == null and .flags == []' <<<"$output"
    for i in {1000..1049}; do
        jq -e --arg d "/home/$i/" '[.files[].path | select(startswith($d))] | length >= 2' <<<"$output" >/dev/null
    done
    for i in {1000..1049}; do
        fake gone "$i"
    done
    now_says "Waiting for a login"
    recorder_stop
    run -0 "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" --quiet learn
    run -0 "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" --quiet plan
    run -0 "$HEADSTART" show --json=short "$HS_STATE/login.pack"
    [[ $output == *'"/usr/shared"'* && $output != *'"/home/'* ]]
}

@test "quiet is measured: I/O pressure delays the end of a login" {
    mkdir -p "$HS_MNT/proc/pressure"
    pressure() {
        echo "some avg10=0.00 avg60=0.00 avg300=0.00 total=$1
full avg10=0.00 avg60=0.00 avg300=0.00 total=0" >"$HS_MNT/proc/pressure/new"
        mv "$HS_MNT/proc/pressure/new" "$HS_MNT/proc/pressure/io"
    }
    pressure 0
    bus_start
    fake_start
    fake appear
    fake target active
    recorder_start --stage=auto,login
    # The default target was reached before headstartd began.
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    fake state 1 active
    now_says "Recording login, waiting for the session to settle"
    local i
    # The disk is busy for twice as long as a quiet login takes to settle.
    for ((i = 1; i <= 30; i++)); do
        pressure $((i * 200000))
        sleep 0.2
    done
    last_is "Recording login, waiting for the session to settle"
    [ "$(traces login)" -eq 0 ]
    now_says "Waiting for the end of the session" 20
    [ "$(traces boot)/$(traces login)/$(traces session)" = 0/1/0 ]
    recorder_stop
}

@test "the bus is killed in the middle of a login, and of the next one" {
    bus_start
    fake_start
    fake appear
    recorder_start
    now_says "Recording boot, waiting for the end of the boot"
    fake target active
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    kill -KILL "$BUS"
    now_says "Recording login, waiting for the system bus"
    # Meanwhile the session becomes active.
    bus_start
    fake_start
    fake target active
    fake new 1 1000 user tty seat0
    fake state 1 active
    fake appear
    now_says "Recording login, waiting for the session to settle"
    now_says "Recording session, waiting for the end of the session" 20
    [ "$(traces login)" -eq 1 ]
    kill -KILL "$BUS"
    now_says "Recording session, waiting for the system bus"
    # Meanwhile the session ends, and another begins.
    bus_start
    fake_start
    fake target active
    fake new 2 1001 user tty seat0
    fake state 2 active
    fake appear
    now_says "Recording login, waiting for the session to settle"
    now_says "Recording session, waiting for the end of the session" 20
    recorder_stop
    [ "$(traces login)" -eq 2 ]
}

# session_of UID: checks that the session cycle works for that user (-1: for all users who are
# logged in).
session_of() {
    rm -f "$HS_RUN/session.json"
    kill -USR2 "$RECORDER"
    hs_wait 5 test -s "$HS_RUN/session.json"
    [ "$(jq .uid "$HS_RUN/session.json")" -eq "$1" ]
}

@test "a second user's login does not end the session cycle of the first" {
    bus_start
    fake_start
    fake appear
    fake target active
    recorder_start
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    session_of 1000
    fake new 2 1001 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    fake state 2 active
    now_says "Recording session, waiting for the end of the session" 20
    session_of -1
    fake gone 2
    hs_wait 10 session_of 1000
    fake gone 1
    now_says "Waiting for a login"
    recorder_stop
    # Each trace belongs to one user. User 1000 has two traces, because the login of user 1001 ended
    # the first one.
    for t in "$HS_STATE"/traces/*-session*.json; do
        "$HEADSTART" show --json=short "$t" | jq .uid
    done | sort | uniq -c | sort -n >"$HS_TMP/uids"
    [ "$(awk '{ print $1 "x" $2 }' "$HS_TMP/uids" | tr '\n' ' ')" = "1x1001 2x1000 " ]
}

# learned_something UID: checks that the session cycle works for that user, and has learned.
learned_something() {
    session_of "$1" && jq -e '.n_learned >= 1' "$HS_RUN/session.json" >/dev/null
}

@test "the first user leaves: the session cycle goes on for the second one alone" {
    hs_programs cat
    echo x >"$HS_MNT/data/file"
    mkdir -p "$HS_MNT/etc/headstart"
    printf '[Session]\nMinSize=0\n' >"$HS_MNT/etc/headstart/headstart.conf"
    bus_start
    fake_start
    fake appear
    fake target active
    recorder_start
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    fake new 2 1001 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    fake state 2 active
    now_says "Recording session, waiting for the end of the session" 20
    chroot --userspec=1001:1001 "$HS_MNT" /bin/cat /data/file
    hs_wait 10 learned_something -1
    fake gone 1
    hs_wait 10 session_of 1001
    sleep 1 # the recorder reports the runs of the session after three batches
    # What the session has learned before was saved.
    [ -s "$HS_STATE/model.json" ]
    last_is "Recording session, waiting for the end of the session"
    [ "$(traces session)" -eq 1 ]
    fake gone 2
    now_says "Waiting for a login"
    recorder_stop
    # It does not learn from the ended start again, although the recorder still knows of it.
    grep "headstartd: session cycle:" "$HS_TMP/recorder.log" | tail -n 2 >"$HS_TMP/cycles"
    run ! grep -q "session cycle: 0 starts" <(head -n 1 "$HS_TMP/cycles")
    grep -q "session cycle: 0 starts" <(tail -n 1 "$HS_TMP/cycles")
    # The session of user 1001 has one trace, with the flags of both parts.
    [ "$(traces session)" -eq 2 ]
    for t in "$HS_STATE"/traces/*-session*.json; do
        "$HEADSTART" show --json=short "$t"
    done | jq -s -e 'map(select(.uid == 1001)) | length == 1 and (.[0].flags | index("followed"))'
}

@test "a state directory that hangs at the end of a session does not keep the next login from being recorded" {
    need_command fsfreeze
    truncate -s 32M "$HS_TMP/state.image"
    mkfs.ext4 -q "$HS_TMP/state.image"
    mkdir "$HS_STATE"
    hs_loop "$HS_TMP/state.image"
    hs_mount "$HS_LOOP" "$HS_STATE"
    hs_programs cat
    echo x >"$HS_MNT/data/file"
    mkdir -p "$HS_MNT/etc/headstart"
    printf '[Session]\nMinSize=0\n' >"$HS_MNT/etc/headstart/headstart.conf"
    bus_start
    fake_start
    fake appear
    fake target active
    recorder_start
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    chroot --userspec=1000:1000 "$HS_MNT" /bin/cat /data/file
    hs_wait 10 learned_something 1000
    fsfreeze --freeze "$HS_STATE"
    # shellcheck disable=SC2016 # evaluated later
    hs_defer eval '[ -n "$THAWED" ] || fsfreeze --unfreeze "$HS_STATE"'
    fake state 1 closing
    # headstartd waits 20 seconds for the trace, and does not wait again for what the session has learned.
    now_says "Waiting for a login" 30
    fake new 2 1001 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    fsfreeze --unfreeze "$HS_STATE"
    THAWED=1
    grep -q "cannot write the trace of this stage" "$HS_TMP/recorder.log"
    # The write was left behind, and ends now.
    hs_wait 10 eval '[ "$(traces session)" -eq 1 ]'
}

@test "logind restarts: headstartd learns what happened meanwhile, and does not wait for a silent logind" {
    bus_start
    fake_start
    fake appear
    recorder_start
    fake target active
    now_says "Waiting for a login"
    fake disappear
    fake new 1 1000 user tty seat0
    fake appear
    now_says "Recording login, waiting for the session to become active"
    fake disappear
    fake gone 1
    fake appear
    now_says "Waiting for a login"
    fake silent
    fake disappear
    fake appear
    # headstartd can be stopped at any moment.
    recorder_stop
}

# a_boot [COMMAND…]: records a boot until the default target is reached, and runs the command.
a_boot() {
    fake_start
    fake appear
    recorder_start
    now_says "Recording boot, waiting for the end of the boot"
    open_file in-boot
    fake target active
    fake finished
    now_says "Waiting for a login" 20
    "$@"
    recorder_stop
    hs_kill "$FAKE_PID"
}

# a_login: records a login.
a_login() {
    fake new 1 1000 user tty seat0
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    fake gone 1
    now_says "Waiting for a login"
}

# flags_are STAGE JQ-EXPRESSION: checks the flags of the only trace of the stage, and removes it.
flags_are() {
    "$HEADSTART" show --json=short "$HS_STATE"/traces/*-"$1".json | jq -c .flags
    "$HEADSTART" show --json=short "$HS_STATE"/traces/*-"$1".json | jq -e ".flags | $2" >/dev/null
    rm "$HS_STATE"/traces/*-"$1".json
}

@test "a userspace reboot: the boot is marked as one from warm caches, and its first login as a second one" {
    bus_start
    a_boot a_login
    flags_are boot '. == ["late"]'
    flags_are login 'index("second login") | not'
    a_boot a_login
    flags_are boot '. == ["soft reboot", "late"]'
    flags_are login 'index("second login")'
}

# boot_is_over: starts headstartd after the boot.
boot_is_over() {
    fake_start
    fake appear
    fake target active
    recorder_start
    now_says "Waiting for a login"
}

@test "after a restart of headstartd a login is a second one, unless the first was cut short" {
    bus_start
    boot_is_over
    fake new 1 1000 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    recorder_stop
    boot_is_over
    a_login
    recorder_stop
    flags_are login 'index("second login") | not'
    boot_is_over
    a_login
    recorder_stop
    flags_are login 'index("second login")'
}

@test "rerecord: only the requested stages are recorded, with exact ranges if requested, and once" {
    "$HEADSTART" --state="$HS_STATE" rerecord --quiet --stage=login,session --exact
    bus_start
    fake_start
    fake appear
    recorder_start
    now_says "Waiting for the end of the boot"
    fake target active
    now_says "Waiting for a login"
    local queue
    queue=/sys/block/$(basename "$HS_LOOP")/queue/read_ahead_kb
    local before
    before=$(<"$queue")
    [ "$before" -gt 0 ]
    fake new 1 1000 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    [ "$(<"$queue")" -lt "$before" ]
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    [ ! -e "$HS_STATE/rerecord-login" ]
    jq -e '. == {"exact": true}' "$HS_STATE/rerecord-session"
    fake gone 1
    now_says "Waiting for a login"
    [ ! -e "$HS_STATE/rerecord-session" ]
    [ "$(<"$queue")" -eq "$before" ]
    recorder_stop
    [ "$(traces boot)/$(traces login)/$(traces session)" = 0/1/1 ]
}

@test "a boot during which the machine was suspended is dropped, and is requested again in the next boot" {
    "$HEADSTART" --state="$HS_STATE" rerecord --quiet --stage=boot
    bus_start
    fake_start
    fake appear
    recorder_start_suspendable
    now_says "Recording boot, waiting for the end of the boot"
    : >"$HS_TMP/suspended"
    fake finished
    now_says "Waiting for a login"
    [ -e "$HS_STATE/rerecord-boot" ]
    [ -e "$HS_RUN/boot-recorded" ]
    # The request no longer keeps the other stages of this boot from being recorded. The time of an automatic login
    # contains the boot.
    fake new 1 1000 user tty seat0 lightdm-autologin
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    fake gone 1
    now_says "Waiting for a login"
    fake new 2 1001 user tty seat0
    fake state 2 active
    now_says "Recording session, waiting for the end of the session" 20
    fake gone 2
    now_says "Waiting for a login"
    recorder_stop
    [ "$(grep -c "was interrupted by a suspend: dropped" "$HS_TMP/recorder.log")" -eq 2 ]
    [ "$(traces boot)/$(traces login)/$(traces session)" = 0/1/2 ]
    "$HEADSTART" show --json=short "$HS_STATE"/traces/*-login.json | jq -e '.flags | index("second login")'
}

@test "a start of an application after a suspend is in the history" {
    make_app
    bus_start
    fake_start
    fake appear
    fake target active
    : >"$HS_TMP/suspended"
    recorder_start_suspendable
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    fake state 1 active
    now_says "Recording session, waiting for the end of the session" 20
    "$HS_MNT/app"
    fake gone 1
    now_says "Waiting for a login"
    recorder_stop
    run -0 "$HEADSTART" history --launches --json=short --state="$HS_STATE"
    jq -e 'any(.[]; .application == "/app")' <<<"$output"
}

@test "rerecord of one user: the login of another user leaves the request" {
    "$HEADSTART" --state="$HS_STATE" rerecord --quiet --stage=login --user=1001
    bus_start
    fake_start
    fake appear
    fake target active
    recorder_start
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    fake state 1 active
    # The session is not recorded, and has its session cycle.
    now_says "Waiting for the end of the session" 20
    kill -USR2 "$RECORDER"
    hs_wait 30 jq -e '.uid == 1000' "$HS_RUN/session.json"
    fake gone 1
    now_says "Waiting for a login"
    jq -e '. == {"exact": false, "uid": 1001}' "$HS_STATE/rerecord-login"
    fake new 2 1001 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    fake state 2 active
    hs_wait 20 test ! -e "$HS_STATE/rerecord-login"
    fake gone 2
    now_says "Waiting for a login"
    recorder_stop
    [ "$(traces boot)/$(traces login)/$(traces session)" = 0/1/1 ] # after the request is fulfilled, the other stages are recorded
    flags_are login 'index("second login")'
}

@test "rerecord: a bad request is set aside, an old one is removed" {
    mkdir -m 700 "$HS_STATE"
    echo '{"stages":["lunch"]}' >"$HS_STATE/rerecord-boot"
    echo '{"exact":false}' >"$HS_STATE/rerecord-login"
    touch -d "8 days ago" "$HS_STATE/rerecord-login"
    recorder_start
    now_says "Recording boot, waiting for the system bus"
    recorder_stop
    [ -e "$HS_STATE/rerecord-boot.bad" ]
    [ ! -e "$HS_STATE/rerecord-boot" ]
    [ "$(grep -c 'setting it aside' "$HS_TMP/recorder.log")" -eq 1 ]
    [ ! -e "$HS_STATE/rerecord-login" ]
    [ "$(grep -c 'has expired after a week' "$HS_TMP/recorder.log")" -eq 1 ]
}

@test "rerecord: a request expires while headstartd runs" {
    "$HEADSTART" --state="$HS_STATE" rerecord --quiet --stage=login --user=1001
    touch -d "-7 days 4 hours" "$HS_STATE/rerecord-login"
    bus_start
    fake_start
    fake appear
    fake target active
    recorder_start_suspendable
    now_says "Waiting for a login"
    fake new 1 1000 user tty seat0
    fake state 1 active
    now_says "Waiting for the end of the session" 20 # it is not recorded
    fake gone 1
    now_says "Waiting for a login"
    [ -e "$HS_STATE/rerecord-login" ]
    : >"$HS_TMP/suspended"
    fake new 2 1000 user tty seat0
    now_says "Recording login, waiting for the session to become active"
    [ ! -e "$HS_STATE/rerecord-login" ]
    fake state 2 active
    now_says "Recording session, waiting for the end of the session" 20
    fake gone 2
    now_says "Waiting for a login"
    recorder_stop
    [ "$(grep -c 'has expired after a week' "$HS_TMP/recorder.log")" -eq 1 ]
    [ "$(traces boot)/$(traces login)/$(traces session)" = 0/1/1 ]
}

@test "rerecord: read-ahead that was lowered for an expired request is restored at once" {
    mkdir -m 700 "$HS_STATE"
    mkdir -p -m 700 "$HS_RUN"
    echo '{"exact":true}' >"$HS_STATE/rerecord-boot"
    touch -d "8 days ago" "$HS_STATE/rerecord-boot"
    # Without the other request the recording of the boot would restore it.
    echo '{"exact":false}' >"$HS_STATE/rerecord-login"
    # The device does not exist, so nothing is written, and the record is removed.
    echo "/sys/dev/block/0:0/bdi/read_ahead_kb 128 16" >"$HS_RUN/read-ahead"
    recorder_start
    [ ! -e "$HS_RUN/read-ahead" ]
    [ ! -e "$HS_RUN/read-ahead.bad" ]
    recorder_stop
}

# Records a boot in which `before` is read before headstartd starts, and `after` later.
record_boot() {
    cat "$HS_MNT/before" >/dev/null
    bus_start
    fake_start
    fake appear
    recorder_start --stage=auto,boot
    cat "$HS_MNT/after" >/dev/null
    fake target active
    hs_wait 20 has_traces boot
    recorder_stop
}

has_traces() {
    [ "$(traces "$1")" -gt 0 ]
}

@test "files that are read between the mount of the root and the start of headstartd are in the trace" {
    need_binary "$HEADSTART_INIT"
    echo before >"$HS_MNT/before"
    echo after >"$HS_MNT/after"
    record_boot
    is_in after boot
    run ! is_in before boot
    gzip -t <"$(echo "$HS_STATE"/traces/*-boot*.json)"
    jq -e '.flags | index("late")' <(zcat -f "$HS_STATE"/traces/*-boot*.json)
    rm -r "$HS_STATE"

    timeout 30 "$HEADSTART_INIT" --initrd --root="$HS_MNT" --run="$HS_RUN" 3>&-
    [ -S "$HS_RUN/handover" ]
    record_boot
    is_in after boot
    is_in before boot
    jq -e '.flags | index("late") == null' <(zcat -f "$HS_STATE"/traces/*-boot*.json)
    [ ! -e "$HS_RUN/handover" ]
}

# from_store [NAME [ROOT [CODE]]]: writes a script that runs headstart-init, reads `before`, runs the Python code, and
# then executes headstartd with the descriptors that headstart-init has put into the store of systemd. With NAME, the
# descriptor of that name is missing. ROOT is the root filesystem of headstart-init, by default HS_MNT.
from_store() {
    cat >"$HS_TMP/from-store" <<END
#!/usr/bin/python3
import array, fcntl, os, socket, subprocess, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("$HS_TMP/store")
subprocess.run(["$HEADSTART_INIT", "--initrd", "--root=${2-$HS_MNT}", "--run=$HS_RUN"],
               env={**os.environ, "NOTIFY_SOCKET": "$HS_TMP/store"}, timeout=30, check=True)
s.settimeout(10)
names = []
fds = []
while "headstart-facts" not in names:
    text, ancillary, _, _ = s.recvmsg(4096, 1024)
    names.append(text.decode().split("FDNAME=")[1])
    fds.append(fcntl.fcntl(array.array("i", ancillary[0][2])[0], fcntl.F_DUPFD_CLOEXEC, 50))
passed = [(n, f) for n, f in zip(names, fds) if n != "${1-}"]
subprocess.run(["cat", "$HS_MNT/before"], check=True, stdout=subprocess.DEVNULL)
${3-}
for i, (_, fd) in enumerate(passed):
    os.dup2(fd, 3 + i)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(passed)),
                  LISTEN_FDNAMES=":".join(n for n, _ in passed))
os.execv("$HEADSTARTD", ["$HEADSTARTD"] + sys.argv[1:])
END
    chmod +x "$HS_TMP/from-store"
    rm -f "$HS_TMP/store"
}

@test "an initrd's recording that systemd kept is taken over, and removed from its store" {
    need_binary "$HEADSTART_INIT"
    echo before >"$HS_MNT/before"
    echo after >"$HS_MNT/after"
    from_store
    HEADSTARTD=$HS_TMP/from-store record_boot
    [ ! -e "$HS_RUN/handover" ]
    is_in after boot
    is_in before boot
    grep -q '^FDSTOREREMOVE=1$' "$NOTIFY"
    grep -q '^FDNAME=headstart-fanotify$' "$NOTIFY"
    rm -r "$HS_STATE"
    # An incomplete set of descriptors is useless, and one line reports it.
    from_store headstart-facts
    HEADSTARTD=$HS_TMP/from-store record_boot
    [ "$(grep -c "Cannot take over" "$HS_TMP/recorder.log")" -eq 1 ]
    is_in after boot
    run ! is_in before boot
}

# group_flags: prints the flags of the groups of the recorder, in hexadecimal.
group_flags() {
    sed -n 's/^fanotify flags:\([0-9a-f]*\) .*/\1/p' /proc/"$RECORDER"/fdinfo/*
}

@test "if more is opened than the queue of an initrd's recording holds, the trace is incomplete, and later queues have no bound" {
    local flags
    need_binary "$HEADSTART_INIT"
    echo before >"$HS_MNT/before"
    echo after >"$HS_MNT/after"
    [ "$(cat /proc/sys/fs/fanotify/max_queued_events)" -le 16384 ]
    mkdir "$HS_MNT/links"
    from_store "" "$HS_MNT" "
for i in range(17000):
    os.link('$HS_MNT/after', f'$HS_MNT/links/{i}')
    os.close(os.open(f'$HS_MNT/links/{i}', os.O_RDONLY))"
    bus_start
    fake_start
    fake appear
    HEADSTARTD=$HS_TMP/from-store recorder_start --stage=auto,boot
    # FAN_UNLIMITED_QUEUE is 0x10. The group of the initrd is closed when it has been read.
    hs_wait 10 eval '! group_flags | grep -v "[1357bdf].$"'
    [ "$(group_flags | wc -l)" -eq 1 ]
    cat "$HS_MNT/after" >/dev/null
    fake target active
    hs_wait 20 has_traces boot
    recorder_stop
    is_in before boot
    jq -e '(.flags | index("incomplete")) and .n_overflows >= 1' <(zcat -f "$HS_STATE"/traces/*-boot*.json)
}

@test "an open while headstartd takes an initrd's recording over is recorded once" {
    need_binary "$HEADSTART_INIT"
    echo before >"$HS_MNT/before"
    echo after >"$HS_MNT/after"
    mkdir "$HS_MNT/many"
    touch "$HS_MNT"/many/{0..3999}
    from_store "" "$HS_MNT" "
import time
if os.fork() == 0:
    for fd in (0, 1, 2, *[f for _, f in passed]):
        os.close(fd)
    for i in range(4000):
        os.close(os.open(f'$HS_MNT/many/{i}', os.O_RDONLY))
        time.sleep(0.0005)
    os._exit(0)"
    HEADSTARTD=$HS_TMP/from-store record_boot
    is_in before boot
    # Two groups report opens only for the time between two system calls.
    jq -e '[.files[] | select(.path | startswith("/many/"))] | length > 20 and
           (map(select(.n_accesses > 1)) | length <= 1)' <("$HEADSTART" show --json=short "$HS_STATE"/traces/*-boot*.json)
}

@test "the mark of an initrd on a filesystem that is not recorded ends with the start of headstartd" {
    local dev
    need_binary "$HEADSTART_INIT"
    echo before >"$HS_MNT/before"
    echo after >"$HS_MNT/after"
    mkdir "$HS_TMP/other"
    truncate -s 64M "$HS_TMP/other.image"
    mkfs.ext4 -q "$HS_TMP/other.image"
    hs_loop "$HS_TMP/other.image"
    hs_mount "$HS_LOOP" "$HS_TMP/other"
    from_store "" "$HS_TMP/other"
    bus_start
    fake_start
    fake appear
    HEADSTARTD=$HS_TMP/from-store recorder_start --stage=auto,boot
    run cat /proc/"$RECORDER"/fdinfo/*
    echo "$output" | grep fanotify
    for dev in "$HS_MNT" "$HS_TMP/other"; do
        printf 'fanotify sdev:%x \n' $(($(stat -c '%Hd << 20 | %Ld' "$dev")))
    done >"$HS_TMP/marks"
    grep -qF "$(head -n 1 "$HS_TMP/marks")" <<<"$output"
    run ! grep -qF "$(tail -n 1 "$HS_TMP/marks")" <<<"$output"
    cat "$HS_MNT/after" >/dev/null
    fake target active
    hs_wait 20 has_traces boot
    recorder_stop
    is_in after boot
    run ! is_in before boot
    jq -e '.flags | index("late")' <(zcat -f "$HS_STATE"/traces/*-boot*.json)
}

@test "the recording of an initrd that is older than the package is not taken over" {
    echo before >"$HS_MNT/before"
    echo after >"$HS_MNT/after"
    other_handover 0 'struct.pack("=IIQQ", 0x4853484f, 1, 0, 1)'
    record_boot
    [ "$(grep -c "initrd is of another version" "$HS_TMP/recorder.log")" -eq 1 ]
    is_in after boot
    run ! is_in before boot
}

# other_handover UID [BYTES]: starts a process of that user that offers a descriptor in place of
# headstart-init. With the descriptor it sends BYTES (an expression in Python; default: "something
# else").
other_handover() {
    mkdir -p "$HS_RUN"
    python3 -c '
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
s.listen(1)
c = s.accept()[0]
socket.send_fds(c, ['"${2-b\"something else\"}"'], [0])
c.recv(1)' "$HS_RUN/handover" "$1" 3>&- </dev/null &
    hs_defer hs_kill $!
    hs_wait 10 test -S "$HS_RUN/handover"
}

@test "a recording that another user offers, or in another form, is not taken over" {
    local uid
    echo before >"$HS_MNT/before"
    echo after >"$HS_MNT/after"
    for uid in 65534 0; do
        other_handover $uid
        record_boot
        grep -q "Cannot take over" "$HS_TMP/recorder.log"
        is_in after boot
        run ! is_in before boot
        rm -rf "$HS_STATE" "$HS_RUN/handover"
    done
}
