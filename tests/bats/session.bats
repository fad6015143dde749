# SPDX-License-Identifier: LGPL-2.1-or-later
# The session cycle: when an application starts, the data that the next applications usually read is
# prefetched.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTARTD" "$HEADSTART"
    need_command jq fincore
    HS_RUN=$HS_TMP/run
    hs_filesystem ext4 64 -b 4096 # a small file is one page, which is in memory or not
    populate
}

populate() {
    mkdir -p "$HS_MNT/etc/headstart" "$HS_MNT/data/b/sub"
    session_config MinSize=0 Cycle=1s
    hs_programs cat grep
    mv "$HS_MNT/bin/cat" "$HS_MNT/bin/first"
    mv "$HS_MNT/bin/grep" "$HS_MNT/bin/second"
    head -c 100000 /dev/urandom >"$HS_MNT/data/a"
    for i in 1 2 3; do head -c 1500000 /dev/urandom >"$HS_MNT/data/b/$i"; done
    head -c 200000 /dev/urandom >"$HS_MNT/data/b/sub/4"
}

session_config() {
    {
        echo "[Session]"
        printf '%s\n' "$@"
    } >"$HS_MNT/etc/headstart/headstart.conf"
}

# session_start: starts headstartd, sets DAEMON to its process ID, and returns when it records. If
# SESSION_UID is set, the session is that of this user. From here on no other test drops caches,
# because a file whose pages are dropped before they are recorded would be missing from the trace.
session_start() {
    hs_own_cache
    rm -f "$HS_RUN/session.json"
    # shellcheck disable=SC2086 # words
    ${HS_LIMIT:-} "$HEADSTARTD" --root="$HS_MNT" --state="$HS_STATE" --run="$HS_RUN" --stage=session \
        ${SESSION_UID:+--uid="$SESSION_UID"} 2>>"$HS_TMP/daemon.log" 3>&- &
    DAEMON=$!
    hs_defer hs_kill $DAEMON
    hs_defer session_show
    hs_wait 30 dump
}

# If the test has failed, prints the state of the session that still runs.
session_show() {
    [ -z "${BATS_TEST_COMPLETED:-}" ] && [ -d "/proc/$DAEMON" ] && dump && cat "$DUMP" "$HS_TMP/daemon.log"
    true
}

session_stop() {
    local status=0
    kill -TERM "$DAEMON"
    wait "$DAEMON" || status=$?
    cat "$HS_TMP/daemon.log"
    [ "$status" -eq 0 ]
}

# Makes the daemon write its state, and sets DUMP to that file. Before the daemon has blocked
# SIGUSR2, the signal would kill it; until then, dump sends no signal and fails. The shell of HS_LIMIT
# also blocks signals while it starts a program, so the process must be headstartd already.
dump() {
    local blocked
    [ "$(cat "/proc/$DAEMON/comm")" = headstartd ] || return 1
    blocked=$(sed -n 's/^SigBlk:\s*//p' "/proc/$DAEMON/status")
    (((0x${blocked:-0} & 0x800) != 0)) || return 1 # SIGUSR2: 12
    DUMP=$HS_RUN/session.json
    rm -f "$DUMP"
    kill -USR2 "$DAEMON"
    hs_wait 30 test -s "$DUMP"
}

# dumped JQ-EXPRESSION: checks that the expression is true of a new dump.
dumped() {
    dump && jq -e "$1" "$DUMP" >/dev/null
}

# as_user COMMAND...: runs a program of HS_MNT as SESSION_UID, or as root if SESSION_UID is not set.
as_user() {
    chroot --userspec="${SESSION_UID:-0}:${SESSION_UID:-0}" "$HS_MNT" "$@"
}

# Runs the habit, which is /bin/first and then /bin/second. Returns when the daemon has seen both
# start and exit.
habit() {
    as_user /bin/first /data/a >/dev/null
    hs_wait 30 dumped '.n_learned >= 2'
    as_user /bin/second -r nothing-that-is-there /data/b || true
    hs_wait 30 dumped '.n_learned >= 4'
}

# learned [SESSIONS]: runs this many sessions (default: 3) with the habit and learns their traces.
learned() {
    local i
    for ((i = 0; i < ${1:-3}; i++)); do
        session_start
        habit
        session_stop
    done
    "$HEADSTART" --state="$HS_STATE" learn --quiet
}

# resident FILE…: checks that all pages of each file are in memory.
resident() {
    local f
    for f; do
        [ "$(fincore --bytes --noheadings --output RES "$HS_MNT/$f" | tr -d ' ')" -ge \
            "$(stat -c %s "$HS_MNT/$f")" ] || return 1
    done
}

# was_resident FILE…: checks that each of the files was in memory in a call of this function, because a
# memory reclaimer may drop the first file before the last one is read. Begin with SEEN=().
was_resident() {
    local f
    for f; do
        [[ " ${SEEN[*]} " == *" $f "* ]] && continue
        resident "$f" && SEEN+=("$f")
    done
    [ ${#SEEN[@]} -eq $# ]
}

idle() {
    dumped ".prefetch.working == 0 and .prefetch.n_passes > ${1:-0} and .prefetch.pass_missing_bytes == 0"
}

not_resident() {
    [ "$(fincore --bytes --noheadings --output RES "$HS_MNT/$1" | tr -d ' ')" -eq 0 ]
}

# prefetched FILE…: runs the first application, and waits until each of these files was in memory. If
# that did not happen in time, the session is ended, so that another attempt can start. What the kernel reclaimed
# while the habit was recorded is not read ahead, so the habit is learned once more.
prefetched() {
    SEEN=()
    as_user /bin/first /data/a >/dev/null
    hs_wait 10 was_resident "$@" && return
    echo "were in memory: ${SEEN[*]}"
    (cd "$HS_MNT" && fincore --bytes "$@")
    session_stop
    learned 1
    return 1
}

prefetched_at_start() {
    session_start
    hs_wait 30 dumped '.n_decisions >= 1 and .prefetch.working == 0' || return
    sync -f "$HS_MNT"
    hs_drop_caches
    not_resident data/b/1 || return
    prefetched "$@"
}

prefetched_in_new_session() {
    hs_cold
    session_start
    prefetched "$@"
}

@test "the following application is read ahead at once when an application starts" {
    learned
    # A cycle takes an hour, so after the first cycle only the start of an application causes a
    # decision.
    session_config MinSize=0 Cycle=1h
    hs_attempts prefetched_at_start bin/second data/b/1 data/b/2 data/b/3 data/b/sub/4
    [ "$(jq .prefetch.n_directories "$DUMP")" -ge 2 ]
    session_stop
    # The flag `replayed` of the trace says that its residency does not show what was needed.
    # shellcheck disable=SC2012 # the names are ours
    "$HEADSTART" --state="$HS_STATE" show --json=short "$(ls -t "$HS_STATE"/traces/*-session*.json | head -n 1)" |
        jq -e '.flags | index("replayed")'
}

@test "a user's session reads only files that this user or root owns, whoever used them" {
    SESSION_UID=1000
    learned
    chown 1001 "$HS_MNT/data/b/1"
    chmod 666 "$HS_MNT/data/b/2"
    chown 1000 "$HS_MNT/data/b/3"
    chmod 1777 "$HS_MNT/data/b/sub"
    hs_attempts prefetched_in_new_session bin/second data/b/3 data/b/sub/4
    # Later decisions leave the refused files out, so these files take no share of the budget.
    hs_wait 30 dumped '.n_refused == 3 and (.requests | any(.path == "/data/b/3"))'
    jq -e '.requests | all(.path | IN("/data/b/1", "/data/b/2", "/data/b/sub") | not)' "$DUMP"
    hs_wait 30 idle
    [ "$(jq .prefetch.n_refused "$DUMP")" -ge 3 ]
    not_resident data/b/1
    not_resident data/b/2
    session_stop
}

@test "a directory in which lookups fail is read ahead, too" {
    local i size at
    need_binary "$HS_BUILD/tests/tools/tool-residency"
    mkdir "$HS_MNT/data/c"
    touch "$HS_MNT/data/c/something-else"
    size=$(stat -f -c %S "$HS_MNT")
    sync -f "$HS_MNT"
    at=$(debugfs -R "blocks /data/c" "$HS_LOOP" 2>/dev/null)
    at=$((at * size))
    for i in 1 2 3; do
        hs_cold
        session_start
        grep -q "no cachestat" "$HS_TMP/daemon.log" && skip "the kernel has no cachestat"
        chroot "$HS_MNT" /bin/first /data/a >/dev/null
        hs_wait 30 dumped '.n_learned >= 2'
        chroot "$HS_MNT" /bin/second nothing /data/c/nothing || true
        hs_wait 30 dumped '.n_learned >= 4'
        session_stop
    done
    "$HEADSTART" --state="$HS_STATE" learn --quiet
    hs_cold
    run -0 "$HS_BUILD/tests/tools/tool-residency" "$HS_LOOP" "$at" "$size"
    [ "$output" = "0 bytes" ]
    session_start
    chroot "$HS_MNT" /bin/first /data/a >/dev/null
    hs_wait 30 dumped ".requests | any(.kind == \"metadata\" and .offset <= $at and .offset + .length >= $((at + size)))"
    hs_wait 30 block_resident "$at" "$size"
    # No application has opened the directory, so no other request reads it.
    jq -e '.requests | all(.path | startswith("/data/c") | not)' "$DUMP"
    session_stop
}

# block_resident OFFSET LENGTH: checks that this range of the device is in memory.
block_resident() {
    [ "$("$HS_BUILD/tests/tools/tool-residency" "$HS_LOOP" "$1" "$2")" = "$2 bytes" ]
}

@test "requests that a new cycle interrupts are read in that cycle" {
    hs_umount "$HS_MNT"
    hs_simulated_disk sd on 256
    populate
    # Reading takes two seconds, and a cycle begins every second.
    for i in 1 2 3; do head -c 26000000 /dev/urandom >"$HS_MNT/data/b/$i"; done
    learned 2
    hs_cold
    session_start
    chroot "$HS_MNT" /bin/first /data/a >/dev/null
    # headstartd reads about half of the data before the next cycle begins.
    hs_wait 30 dumped '.prefetch.read_bytes > 60000000'
    session_stop
}

# reads_ahead: checks that the prefetch thread has a file open, whose data it reads.
reads_ahead() {
    [ -n "$(find "/proc/$DAEMON/fd" -ignore_readdir_race -lname "$HS_MNT/data/b/*")" ]
}

@test "while data is read ahead, another filesystem can be unmounted" {
    hs_umount "$HS_MNT"
    hs_simulated_disk sd on 256
    populate
    for i in 1 2 3; do head -c 26000000 /dev/urandom >"$HS_MNT/data/b/$i"; done
    mkdir "$HS_MNT/stick"
    learned 2
    hs_cold
    truncate -s 16M "$HS_TMP/stick"
    mkfs.ext4 -q "$HS_TMP/stick"
    hs_loop "$HS_TMP/stick"
    hs_mount "$HS_LOOP" "$HS_MNT/stick"
    session_start
    chroot "$HS_MNT" /bin/first /data/a >/dev/null
    hs_wait 30 reads_ahead
    umount "$HS_MNT/stick"
    session_stop
}

# Locks the files in memory, because some kernels reclaim cold pages within seconds.
pin() {
    local -a files
    mapfile -d '' files < <(find "$HS_MNT" -type f -print0)
    mkfifo "$HS_TMP/pin"
    "$HS_BUILD/tests/tools/tool-lock-files" "${files[@]}" <"$HS_TMP/pin" >"$HS_TMP/pinned" 3>&- &
    PIN=$!
    hs_defer unpin
    exec 9>"$HS_TMP/pin"
    hs_wait 10 grep -q locked "$HS_TMP/pinned"
}

unpin() {
    exec 9>&-
    wait "$PIN"
}

# Prints how often this machine's caches were dropped.
drops() {
    awk '/^drop_/ { n += $2 } END { print n + 0 }' /proc/vmstat
}

# Checks whether the disk stays idle for several cycles. If another process drops caches meanwhile
# (tests run in parallel), it measures again.
steady() {
    local passes reads drops i
    for ((i = 0; i < 10; i++)); do
        drops=$(drops)
        hs_wait 30 idle
        passes=$(jq .prefetch.n_passes "$DUMP")
        reads=$(hs_reads)
        hs_wait 30 idle $((passes + 3))
        reads=$(($(hs_reads) - reads))
        echo "reads while steady: $reads; caches dropped: $(($(drops) - drops)) times"
        ((reads > 0)) || return 0
        ((drops != $(drops))) || return 1
    done
    return 1
}

@test "a steady state reads nothing, and a predicted application needs no disk" {
    local reads
    need_binary "$HS_BUILD/tests/tools/tool-lock-files"
    # The directory gets many blocks, of which the lookup of a file reads only some.
    # shellcheck disable=SC2046 # words
    ln -s -t "$HS_MNT/data/b/sub" $(seq -f /the-rather-long-name-of-an-entry-%g 1500)
    learned
    # The kernel must not read by itself either. Without the option no_prefetch_block_bitmaps it
    # would read block bitmaps a second after the mount.
    sync -f "$HS_MNT"
    hs_umount "$HS_MNT"
    hs_drop_caches
    mount -o relatime,no_prefetch_block_bitmaps "$HS_LOOP" "$HS_MNT"
    session_start
    chroot "$HS_MNT" /bin/first /data/a >/dev/null
    SEEN=()
    hs_wait 30 was_resident bin/second data/b/1 data/b/2 data/b/3 data/b/sub/4
    hs_wait 30 dumped '.prefetch.working == 0 and .prefetch.read_bytes > 4700000'
    pin
    reads=$(hs_reads)
    chroot "$HS_MNT" /bin/second -r nothing-that-is-there /data/b || true
    echo "reads of the second: $(($(hs_reads) - reads))"
    # Blocks of directories and inodes cannot be locked, so a few reads are accepted. If the
    # prefetcher did not list the directory, there would be more than 30 reads.
    (($(hs_reads) - reads <= 8))
    # The application has exited and may start again, so everything is still requested.
    hs_wait 30 idle "$(jq .prefetch.n_passes "$DUMP")"
    [ "$(jq '.requests | length' "$DUMP")" -gt 5 ]
    steady
    session_stop
}

# Begins the pressure file that busy_disk changes. HS_LIMIT then starts headstartd with this file in
# place of /proc/pressure/io.
pressure_file() {
    printf 'some avg10=99.00 avg60=99.00 avg300=99.00 total=%012d\n' 0 >"$HS_TMP/pressure"
    cat >"$HS_TMP/with-pressure" <<END
#!/bin/sh
mount --bind $HS_TMP/pressure /proc/pressure/io && exec "\$@"
END
    chmod +x "$HS_TMP/with-pressure"
    HS_LIMIT="unshare --mount $HS_TMP/with-pressure"
}

# Lets tasks wait for I/O all the time. Each write replaces the whole file in one call.
busy_disk() {
    local i
    for ((i = 1; ; i++)); do
        printf 'some avg10=99.00 avg60=99.00 avg300=99.00 total=%012d\n' $((i * 1000000)) 1<>"$HS_TMP/pressure"
        sleep 0.02
    done
}

@test "a busy disk delays reading ahead, but new decisions do not delay it further" {
    [ -e /proc/pressure/io ] || skip "the kernel has no pressure stall information"
    learned
    pressure_file
    busy_disk 3>&- &
    hs_defer hs_kill $!
    hs_cold
    session_start
    chroot "$HS_MNT" /bin/first /data/a >/dev/null
    # Each of these decisions is a new job. Reading waits for ten seconds at most.
    hs_wait 30 dumped '.prefetch.n_reads > 0 and .n_decisions > 5'
    session_stop
}

@test "predict off, a bound on waste, prefixes: nothing is read" {
    learned
    session_config MinSize=0 Cycle=1s Predict=no
    hs_cold
    session_start
    chroot "$HS_MNT" /bin/first /data/a >/dev/null
    hs_wait 30 dumped '.n_decisions >= 3'
    [ "$(jq .prefetch.read_bytes "$DUMP")" -eq 0 ]
    [ "$(jq -r .verdict "$DUMP")" = off ]
    # After SIGHUP headstartd reads the configuration again. Running applications and learned chains
    # stay. No object is certain to be used, so the bound lets none be read.
    session_config MinSize=0 Cycle=1s MaximumWaste=0%
    kill -HUP "$DAEMON"
    hs_wait 30 dumped '.n_wasteful > 0'
    [ "$(jq -r .verdict "$DUMP")" = prefetch ]
    not_resident data/b/1
    session_config MinSize=0 Cycle=1s Exclude=/data/b 'Exclude=!/data/b/2'
    kill -HUP "$DAEMON"
    SEEN=()
    hs_wait 30 was_resident bin/second data/b/2
    hs_wait 30 idle
    not_resident data/b/1
    [ "$(jq .n_learned "$DUMP")" -ge 2 ]
    session_stop
}

@test "learned chains are saved completely and restored exactly, and a bad model is set aside" {
    local sum
    learned 2
    [ "$(jq '.chains.names | length' <(zcat -f "$HS_STATE/model.json"))" -eq 2 ]
    [ -z "$(find "$HS_STATE" -maxdepth 1 -name 'model.json?*')" ]
    # A session in which no application starts does not change the model.
    sum=$(sha256sum <"$HS_STATE/model.json")
    session_start
    hs_wait 30 dumped '.n_decisions >= 2'
    session_stop
    [ "$(sha256sum <"$HS_STATE/model.json")" = "$sum" ]
    # Learning keeps the chains.
    "$HEADSTART" --state="$HS_STATE" learn --quiet
    [ "$(jq '.chains.names | length' <(zcat -f "$HS_STATE/model.json"))" -eq 2 ]
    # A model of a newer version stays, because the newer version can read it.
    sum=$(zcat -f "$HS_STATE/model.json" | sed 's/"version":4/"version":9/' | tee "$HS_TMP/newer" | sha256sum)
    cp "$HS_TMP/newer" "$HS_STATE/model.json"
    session_start
    habit
    session_stop
    [ "$(sha256sum <"$HS_STATE/model.json")" = "$sum" ]
    [ ! -e "$HS_STATE/model.json.bad" ]
    grep -q 'was written by a newer version' "$HS_TMP/daemon.log"
    echo '{"format":"headstart-model"' >"$HS_STATE/model.json"
    session_start
    habit
    session_stop
    [ -e "$HS_STATE/model.json.bad" ]
    [ "$(grep -c 'set aside' "$HS_TMP/daemon.log")" -eq 1 ]
    [ "$(jq '.chains.names | length' <(zcat -f "$HS_STATE/model.json"))" -eq 2 ]
}

@test "a program on a FUSE filesystem, which may encrypt names, is not named in the model" {
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    mkdir "$HS_MNT/vault"
    "$BATS_TEST_DIRNAME/hung-filesystem" "$(type -P sleep)" "$HS_MNT/vault" >"$HS_TMP/hung" 3>&- &
    # When the server of the mount is gone, the mount can be unmounted.
    hs_defer umount -l "$HS_MNT/vault"
    hs_defer hs_kill $!
    hs_wait 10 grep -q mounted "$HS_TMP/hung"
    session_start
    "$HS_MNT/vault/program" 2
    habit
    session_stop
    jq -e '.chains.names | any(endswith("/second")) and (any(contains("vault")) | not)' <(zcat -f "$HS_STATE/model.json")
}

# limit_memory BYTES: limits headstartd to this much memory (LimitDATA= of its service). Sets
# HS_LIMIT.
limit_memory() {
    need_memory_limits
    HS_LIMIT="prlimit --data=$1"
}

# many_files N BYTES: adds N files to the model, each with a path of BYTES bytes, as files that user
# 1001 uses in every session.
many_files() {
    python3 - "$HS_STATE/model.json" "$1" "$2" <<'END'
import gzip, json, sys

name, n, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with gzip.open(name) as f:
    model = json.load(f)
files, stage = model["files"], model["stages"][-1]
first = len(files["rest"])
prefix = "/~" + "/directory" * (size // 10)
prefix = prefix[: size - 8].rstrip("/") + "/"
for i in range(n):
    path = "%s%06d" % (prefix, i)
    files["directory"].append(0)
    files["shared"].append(0 if i == 0 else len(prefix))
    files["rest"].append(path[files["shared"][-1]:])
one = stage["sessions"]
model["stages"].append({
    "stage": "session", "uid": 1001, "sessions": one, "duration_msec": stage["duration_msec"],
    "applications": {"file": [first], "active": [one], "uses_delta": [[first] + [1] * (n - 1)],
                     "used": [[one] * n]},
    "launches": {"launched": [0], "use_delta": [], "used": [], "delay_msec": [],
                 "delay_msec_previous": []},
    "files": {"file_delta": [first] + [1] * (n - 1), "used": [one] * n, "observed": [one] * n,
              "first_use_msec": [0] * n, "first_use_msec_previous": [0] * n,
              "resident": [[0, 4096, one]] * n},
    "assumed": [], "metadata": []})
with open(name, "w") as f:
    json.dump(model, f)
END
}

@test "a model that is too large for the service is loaded as far as it fits" {
    SESSION_UID=1000
    learned
    many_files 40000 4000
    limit_memory 268435456
    hs_cold
    session_start
    as_user /bin/first /data/a >/dev/null
    SEEN=()
    hs_wait 30 was_resident bin/second data/b/1 data/b/2 data/b/3
    session_stop
    [ "$(grep -c 'too large for a session' "$HS_TMP/daemon.log")" -eq 1 ]
    # The chains of this session are saved nevertheless.
    [ "$(jq '.chains.names | length' <(zcat -f "$HS_STATE/model.json"))" -eq 2 ]
}

@test "a model that does not fit into memory delays no session, and is loaded when it fits" {
    SESSION_UID=1000
    learned
    cp "$HS_STATE/model.json" "$HS_TMP/small.json"
    many_files 40000 4000
    limit_memory 100000000
    session_start
    [ "$(grep -c 'this session begins without it' "$HS_TMP/daemon.log")" -eq 1 ]
    jq -e '.n_objects == 0' "$DUMP"
    mv "$HS_TMP/small.json" "$HS_STATE/model.json"
    kill -HUP "$DAEMON"
    hs_wait 30 dumped '.n_objects > 0'
    session_stop
    [ ! -e "$HS_STATE/model.json.bad" ]
}

@test "forgotten chains do not come back out of memory" {
    learned 2
    session_start
    habit
    "$HEADSTART" --state="$HS_STATE" forget --quiet
    [ ! -e "$HS_STATE/model.json" ]
    # headstart forget makes systemd send SIGHUP.
    kill -HUP "$DAEMON"
    hs_wait 30 dumped '.n_learned == 0'
    session_stop
    [ "$(grep -c 'there is no model any more' "$HS_TMP/daemon.log")" -eq 1 ]
    [ ! -e "$HS_STATE/model.json" ] || jq -e '.chains.names == []' <(zcat -f "$HS_STATE/model.json")
}

@test "forgotten chains do not come back by a save at that moment" {
    learned 2
    session_start
    habit
    # The state is as headstart forget leaves it, but headstartd has not received SIGHUP yet.
    # headstartd saves when it ends.
    rm "$HS_STATE/model.json"
    session_stop
    [ ! -e "$HS_STATE/model.json" ]
    [ "$(grep -c 'there is no model any more' "$HS_TMP/daemon.log")" -eq 1 ]
}

@test "chains that another program has written are not overwritten: the session continues with them" {
    learned 2
    session_start
    habit
    # The sum with the model of another machine that has the same habit.
    cp "$HS_STATE/model.json" "$HS_TMP/other.json"
    "$HEADSTART" --state="$HS_STATE" import --quiet "$HS_TMP/other.json"
    local chains
    chains=$(jq -c .chains <(zcat -f "$HS_STATE/model.json"))
    [ "$chains" != "$(jq -c .chains <(zcat -f "$HS_TMP/other.json"))" ]
    session_stop
    [ "$(jq -c .chains <(zcat -f "$HS_STATE/model.json"))" = "$chains" ]
    [ "$(grep -c 'model.json holds other chains than were saved' "$HS_TMP/daemon.log")" -eq 1 ]
    # The next session adds what it learns.
    session_start
    habit
    session_stop
    [ "$(jq -c .chains <(zcat -f "$HS_STATE/model.json"))" != "$chains" ]
}

@test "a session that finds other chains at a save follows the applications that run" {
    session_config MinSize=0 SaveInterval=1min
    learned 2
    session_start
    cp "$HS_STATE/model.json" "$HS_TMP/other.json"
    as_user /bin/first /data/a >/dev/null
    hs_wait 30 dumped '.n_learned >= 2'
    mkfifo "$HS_TMP/input"
    as_user /bin/second nothing <"$HS_TMP/input" &
    exec {input}>"$HS_TMP/input"
    hs_wait 30 dumped '.running | length > 0'
    "$HEADSTART" --state="$HS_STATE" import --quiet "$HS_TMP/other.json"
    hs_share_cache
    hs_wait 90 grep -q 'the session cycle continues with them' "$HS_TMP/daemon.log"
    hs_wait 30 dumped '.running | length > 0'
    exec {input}>&-
    wait "$!" || true
    session_stop
}

# user_serves_directory [own]: data/b/sub of the learned habit is on a disk whose content a user serves, and is not
# read.
user_serves_directory() {
    learned
    mkdir "$HS_TMP/content"
    head -c 200000 /dev/zero >"$HS_TMP/content/4"
    truncate -s 16M "$HS_TMP/served"
    mkfs.ext4 -q -d "$HS_TMP/content" "$HS_TMP/served"
    hs_serve_image "$HS_TMP/served" 1000 "$HS_MNT/data/b/sub" ${1:+"$1"}
    hs_drop_caches
    session_start
    chroot "$HS_MNT" /bin/first /dev/null 2>/dev/null || true
    SEEN=()
    hs_wait 30 was_resident bin/second data/b/3
    hs_wait 30 idle
    [ "$(fincore --noheadings --bytes --output RES "$HS_MNT/data/b/sub/4")" -eq 0 ]
    session_stop
}

@test "a path on a disk whose content a user serves is not followed, because it could hang" {
    user_serves_directory
}

@test "a path on a disk whose content a user serves is not followed, if root may not read its file either" {
    user_serves_directory own
}

@test "a path that names something else now is not followed" {
    learned
    rm "$HS_MNT/data/b/1" "$HS_MNT/data/b/2"
    mkfifo "$HS_MNT/data/b/1"
    ln -s ../a "$HS_MNT/data/b/2"
    mount -t tmpfs none "$HS_MNT/data/b/sub"
    hs_defer hs_umount "$HS_MNT/data/b/sub"
    head -c 200000 /dev/zero >"$HS_MNT/data/b/sub/4"
    hs_drop_caches
    session_start
    chroot "$HS_MNT" /bin/first /dev/null 2>/dev/null || true
    SEEN=()
    hs_wait 30 was_resident bin/second data/b/3
    hs_wait 30 idle
    [ "$(jq .prefetch.n_skipped "$DUMP")" -ge 3 ]
    session_stop
}

# plan: makes the packs of applications.
plan() {
    HEADSTART_SYSTEM_ROOT=$HS_MNT "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" plan --quiet "$@"
}

@test "the trace tells which pages of its files an application has touched when it started" {
    local fifo=$HS_TMP/fifo reader
    mkfifo "$fifo"
    session_config Predict=no
    session_start
    # All pages of the libraries are in memory, and the start touches some of them.
    find "$HS_MNT"/lib* -type f -exec cat {} + >/dev/null
    as_user /bin/first <"$fifo" &
    reader=$!
    exec 7>"$fifo"
    sleep 6 # TOUCHED_FIRST_USEC
    exec 7>&-
    wait "$reader"
    session_stop
    zcat -f "$HS_STATE"/traces/*-session*.json | jq -e '
        def sums: [foreach .[] as $d (0; . + $d)];
        (.files.path_delta | sums) as $path | (.touched.application_delta | sums) as $application |
        (.touched.file_delta | sums) as $file | .paths.name as $names |
        [range($file | length) | {
            application: $names[$path[$SELF.applications[$application[.]]]],
            file: $names[$path[$file[.]]],
            size: $SELF.files.size_bytes[$file[.]],
            bytes: ([$SELF.touched.ranges[.] | .[range(1; length; 2)]] | add)
        }] | any(.application == "first" and (.file | startswith("libc.so")) and
                 .bytes > 4096 and .bytes < .size)' --argjson SELF "$(zcat -f "$HS_STATE"/traces/*-session*.json)"
}

# learned_starts: records two sessions with the habit, learns them, and plans. A reclaimer may drop
# pages of a session before the recorder has seen them. The traces are therefore edited: each file
# counts as resident from its beginning to its end, and one of 4 MiB in pieces of 16 KiB, 48 KiB apart.
learned_starts() {
    local i trace
    find "$HS_MNT" -type f -exec touch -d '10 days ago' {} + # no file counts as volatile
    for i in 1 2; do
        session_start
        habit
        session_stop
    done
    for trace in "$HS_STATE"/traces/*-session*.json; do
        zcat -f "$trace" | jq -c '.files as $f | .files.resident = [range($f.size_bytes | length) |
            if $f.directory[.] == 1 or $f.size_bytes[.] == 0 then []
            elif $f.size_bytes[.] == 4194304 then [0, 16384, (range(63) | 49152, 16384)]
            else [0, (($f.size_bytes[.] + 4095) / 4096 | floor) * 4096] end]' >"$HS_TMP/trace"
        cp "$HS_TMP/trace" "$trace"
    done
    "$HEADSTART" --state="$HS_STATE" learn --quiet
    session_config MinSize=0 Predict=no LaunchReplay=yes
    sync -f "$HS_MNT" # files without blocks on the disk are not planned
    plan
}

# Drops what is cached of the filesystem.
drop_caches() {
    sync -f "$HS_MNT"
    hs_drop_caches
}

# launched JQ-EXPRESSION: waits until the expression is true of the counters of launches.
launched() {
    hs_wait 45 dumped ".launch | $1"
}

# dumped_while JQ-EXPRESSION COMMAND…: runs the command, which reads its input, until the expression is true of the
# daemon's state. The user of a process that has ended before its start is handled is not known.
dumped_while() {
    local expression=$1 fifo=$HS_TMP/input input pid in_vain=
    shift
    [ -p "$fifo" ] || mkfifo "$fifo"
    "$@" <"$fifo" &
    pid=$!
    exec {input}>"$fifo"
    # The command must end also when the wait is in vain: it keeps the filesystem busy.
    hs_wait 45 dumped "$expression" || in_vain=1
    exec {input}>&-
    wait "$pid" || true
    [ -z "$in_vain" ]
}

# launched_while JQ-EXPRESSION COMMAND…: does the same with an expression of the counters of launches.
launched_while() {
    dumped_while ".launch | $1" "${@:2}"
}

# opened_mounts: prints how many descriptors of the filesystem's root headstartd has. Each one keeps the filesystem busy.
opened_mounts() {
    find "/proc/$DAEMON/fd" -lname "$HS_MNT" | wc -l
}

@test "launch: the set of an application is read when it starts, without a prediction" {
    local opened
    learned_starts
    session_start
    drop_caches
    opened=$(opened_mounts)
    # This start reads none of the files in data/b, which earlier starts have read.
    launched_while '.n_starts == 1 and .n_replayed == 1 and .read_bytes > 4500000' as_user /bin/second nothing
    # The recorder may have a mount open for a moment.
    hs_wait 10 eval '[ "$(opened_mounts)" -eq "$opened" ]'
    session_stop
    # shellcheck disable=SC2012 # the names are ours
    "$HEADSTART" --state="$HS_STATE" show --json=short "$(ls -t "$HS_STATE"/traces/*-session*.json | head -n 1)" |
        jq -e '.flags | index("replayed")'
}

# seeking_disk MIB [TYPE]: puts the files on a disk that seeks.
seeking_disk() {
    hs_umount "$HS_MNT"
    hs_simulated_disk hdd7200 on "$@"
    hs_defer sh -c "echo 0 >/sys/block/${HS_LOOP##*/}/queue/rotational"
    echo 1 >"/sys/block/${HS_LOOP##*/}/queue/rotational"
    populate
}

# planned_in_bins: plans, and checks that each set is for a disk that seeks, and has bins of first use
planned_in_bins() {
    local pack
    plan
    for pack in "$HS_STATE"/launch*.pack; do
        "$HEADSTART" show --json=short "$pack" |
            jq -e '[.volumes[].device_class] == ["hdd"] and .bin_usec >= 250000 and .bin_usec < 10000000' || return
    done
}

@test "launch: on a disk that seeks the set is read in bins of first use, and what is in memory is left out" {
    seeking_disk 64
    learned_starts
    hs_wait 60 planned_in_bins # on a busy machine the measurement of the disk may be unclear
    session_start
    drop_caches
    launched_while '.n_starts == 1 and .n_replayed == 1 and .read_bytes > 4500000' as_user /bin/second nothing
    session_stop
    session_start
    drop_caches
    find "$HS_MNT/data" "$HS_MNT/bin" "$HS_MNT"/lib* -type f ! -path '*/b/3' -exec cat {} + >/dev/null
    launched_while '.n_starts == 1 and .n_replayed == 1 and .read_bytes > 1400000 and .read_bytes < 3000000' \
        as_user /bin/second nothing
    session_stop
}

@test "launch: on a disk that seeks the data of a set is read by a thread that has read nothing else" {
    need_strace
    seeking_disk 64
    learned_starts
    hs_wait 60 planned_in_bins
    hs_cold # the journal keeps metadata in memory that it has not written to its place
    HS_LIMIT="strace -D -f --seccomp-bpf -e trace=fadvise64,openat,openat2 -o $HS_TMP/strace" session_start
    drop_caches
    read_program
    launched_while '.n_replayed == 1 and .read_bytes > 4000000' as_user /bin/second nothing
    session_stop
    # bfq gives a thread that has read much a lower weight. The last request is for data. To open a file, other threads
    # have read metadata.
    run -0 sed -n 's/^\([0-9]*\) .*WILLNEED.*/\1/p' "$HS_TMP/strace"
    grep -qE '^[0-9]+ +openat2?\(.*data/b/1' "$HS_TMP/strace"
    run ! grep -E "^${lines[-1]} +open" "$HS_TMP/strace"
}

# read_program: reads the program and its libraries, so that no start competes with the replay for them.
read_program() {
    find "$HS_MNT/bin" "$HS_MNT"/lib* -type f -exec cat {} + >/dev/null
}

# neighbours_read: adds 200 small files that lie together, and checks that they are read with fewer requests when the
# application starts.
neighbours_read() {
    local i before
    for ((i = 100; i < 300; i++)); do head -c 16384 /dev/urandom >"$HS_MNT/data/b/f$i"; done
    sync -f "$HS_MNT"
    learned_starts
    session_start
    drop_caches
    read_program
    before=$(hs_reads)
    launched_while '.n_replayed == 1 and .read_bytes > 3000000' as_user /bin/second nothing
    [ $(($(hs_reads) - before)) -le 200 ]
}

@test "launch: neighbouring files are read with one request, also from xfs, where opens read the metadata" {
    seeking_disk 320 xfs
    neighbours_read
    session_stop
}

@test "launch: on a disk that seeks, near parts of a file are read with one request" {
    local before
    seeking_disk 64
    head -c 4194304 /dev/urandom >"$HS_MNT/data/b/parts"
    sync -f "$HS_MNT"
    learned_starts
    hs_wait 60 planned_in_bins
    session_start
    drop_caches
    read_program
    before=$(hs_reads)
    launched_while '.n_replayed == 1 and .read_bytes > 4100000' as_user /bin/second nothing
    [ $(($(hs_reads) - before)) -le 48 ] # there are 64 parts
    session_stop
}

@test "launch: neighbouring files are read with one request, without those in memory" {
    local all
    neighbours_read
    all=$(jq .launch.read_bytes "$DUMP")
    session_stop
    session_start
    drop_caches
    read_program
    cat "$HS_MNT"/data/b/f?*[02468] >/dev/null # 1.6 MB
    launched_while ".n_replayed == 1 and .read_bytes > $((all - 2400000)) and .read_bytes < $((all - 900000))" \
        as_user /bin/second nothing
    session_stop
}

# starts_in_memory N: starts the application for the N-th time, with its set in memory. The check
# fails if a reclaimer has dropped a part of the set before this start.
starts_in_memory() {
    find "$HS_MNT/data" "$HS_MNT/bin" "$HS_MNT"/lib* -type f -exec cat {} + >/dev/null
    launched_while ".n_starts == $1" as_user /bin/second nothing
    dumped '.launch.n_resident >= 1'
}

@test "what the daemon and the planner write is readable by root alone, whatever the umask" {
    umask 000
    mkdir -p "$HS_RUN"
    chmod 755 "$HS_RUN"
    learned_starts
    session_start
    run -0 find "$HS_STATE" "$HS_RUN" -mindepth 1 -type f -printf '%f\n'
    [[ $output == *-session.json* && $output == *model.json* && $output == *launch-*.pack* && $output == *devices.json* &&
        $output == *$'\n'session.json* ]]
    run -0 find "$HS_STATE" "$HS_RUN" -mindepth 1 -type f -perm /077
    [ -z "$output" ]
    [ "$(stat -c %a "$HS_STATE")" = 700 ]
    session_stop
}

@test "launch: at the first start samples do not show that all of the set is in memory" {
    learned_starts
    session_start
    find "$HS_MNT/data" "$HS_MNT/bin" "$HS_MNT"/lib* -type f -exec cat {} + >/dev/null
    launched_while '.n_starts == 1 and .n_replayed == 1 and .n_resident == 0' as_user /bin/second nothing
    session_stop
}

# touched_after SECONDS COMMAND…: runs the command with the input of this function, which ends so many seconds later for the
# command. Meanwhile the recorder reads the pages that the command has touched (TOUCHED_FIRST_USEC).
touched_after() {
    { cat; sleep "$1"; } | "${@:2}"
}

# control_session: plans, and starts a session in which the second application is not replayed.
control_session() {
    local pack control=()
    echo $'[Replay]\nControlInterval=1' >>"$HS_MNT/etc/headstart/headstart.conf"
    plan
    for pack in "$HS_STATE"/launch*.pack; do
        # What the second application opens within three seconds also belongs to the start of the first.
        if ! grep -q /data/a < <("$HEADSTART" show --limit=0 "$pack"); then
            control+=("$pack")
            cp "$pack" "$HS_TMP"
        fi
    done
    sed -i 's/^ControlInterval=.*/ControlInterval=0/' "$HS_MNT/etc/headstart/headstart.conf"
    plan
    for pack in "${control[@]}"; do cp "$HS_TMP/${pack##*/}" "$pack"; done
    session_start
    drop_caches
}

# newest_session: prints the name of the newest trace of a session.
newest_session() {
    # shellcheck disable=SC2012 # the names are ours
    ls -t "$HS_STATE"/traces/*-session*.json | head -n 1
}

@test "launch: a control start is recorded in a session that replays other starts" {
    learned_starts
    control_session
    launched_while '.n_starts == 1 and .n_replayed == 1 and .read_bytes > 0' as_user /bin/first
    launched_while '.n_starts == 2 and .n_replayed == 1 and .n_control == 1' touched_after 4 as_user /bin/second nothing
    session_stop
    "$HEADSTART" --state="$HS_STATE" show --json=short "$(newest_session)" |
        jq -e '.flags | index("replayed") and index("control")'
    # It has the pages that the control start has touched.
    zcat -f "$(newest_session)" | jq -e '. as $t | def sums: [foreach .[] as $d (0; . + $d)];
        ($t.files.path_delta | sums) as $path |
        [$t.touched.application_delta | sums[] | $t.paths.name[$path[$t.applications[.]]]] | index("second")'
}

# planned_bytes FILE: prints how many bytes of the file the set of the second application has.
planned_bytes() {
    local pack
    for pack in "$HS_STATE"/launch-*.pack; do
        "$HEADSTART" show --limit=0 --json=short "$pack"
    done | jq -s --arg file "$1" 'map(.volumes[]) | map(select(any(.files[]; .path == "/data/a") | not) |
        (.files | map(.path) | index($file)) as $i | .data[] | select(.file == $i) | .length) | add'
}

@test "launch: a control start shows which metadata and which pages of files it needs, and the next set has them" {
    learned_starts
    [ "$(planned_bytes /data/b/1)" -ge 1500000 ]
    control_session
    # It reads the first line of a file that the set has as a whole, and waits for its input.
    launched_while '.n_starts == 1 and .n_control == 1 and .n_observed == 1' \
        as_user /bin/second -a -m 1 '' /data/b/1 -
    session_stop
    zcat -f "$(newest_session)" >"$HS_TMP/trace"
    jq -e '. as $t | def sums: [foreach .[] as $d (0; . + $d)]; def bytes: [.[range(1; length; 2)]] | add;
        ($t.files.path_delta | sums) as $path | def name: $t.paths.name[$path[.]];
        ([$t.needed_metadata.application_delta | sums[] | $t.applications[.] | name] == ["second"]) and
        ($t.needed_metadata.ranges[0] | bytes >= 4096) and
        ([$t.touched.application_delta, $t.touched.file_delta | sums] | transpose | to_entries | map(
            select(($t.applications[.value[0]] | name) == "second" and (.value[1] | name) == "1") |
            $t.touched.ranges[.key] | bytes) | length == 1 and .[0] >= 4096 and .[0] < 1000000)' "$HS_TMP/trace"
    "$HEADSTART" --state="$HS_STATE" learn --quiet
    plan
    [ "$(planned_bytes /data/b/1)" -lt 1000000 ]
}

@test "launch: what is in memory is not read" {
    local i resident=
    learned_starts
    session_start
    for ((i = 1; i <= 5 && !${resident:-0}; i++)); do
        starts_in_memory $i && resident=1
        sleep 2.1 # further executions within two seconds belong to the same start
    done
    [ -n "$resident" ]
    session_stop
}

@test "launch: LaunchReplay=no reads nothing and has no packs" {
    learned_starts
    ls "$HS_STATE"/launch-*.pack
    session_config MinSize=0 Predict=no LaunchReplay=no
    session_start
    drop_caches
    as_user /bin/second --version >/dev/null
    hs_wait 30 dumped '.n_learned >= 1'
    dumped '.launch.n_starts == 0'
    not_resident data/b/1
    session_stop
    plan || true # nothing is left to plan
    run ! ls "$HS_STATE"/launch-*.pack
}

@test "launch: an application of a user takes no place of everybody's sets" {
    SESSION_UID=1000
    chown 1000 "$HS_MNT/bin/second"
    learned_starts
    [ "$(ls "$HS_STATE"/launch@1000-*.pack | wc -l)" = 2 ]
    [ "$(ls "$HS_STATE"/launch-*.pack | wc -l)" = 1 ]
}

@test "launch: a set holds no file below Exclude=" {
    cat_packs() { for pack; do "$HEADSTART" show --limit=0 "$pack"; done; }
    learned_starts
    cat_packs "$HS_STATE"/launch-*.pack | grep -q "/data/b/2"
    session_config MinSize=0 Predict=no LaunchReplay=yes Exclude=/data/b 'Exclude=!/data/b/1'
    plan
    cat_packs "$HS_STATE"/launch-*.pack | grep -q "/data/b/1"
    run ! grep -q "/data/b/2" < <(cat_packs "$HS_STATE"/launch-*.pack)
}

@test "launch: everybody's set holds only files of root, a user's set also those of the user" {
    SESSION_UID=1000
    chown 1000 "$HS_MNT/data/b/2"
    chown 1001 "$HS_MNT/data/b/3"
    learned_starts
    cat_packs() { for pack; do "$HEADSTART" show --limit=0 "$pack"; done; }
    cat_packs "$HS_STATE"/launch@1000-*.pack | grep -q "/data/b/2"
    run ! grep -q "/data/b/3" < <(cat_packs "$HS_STATE"/launch@1000-*.pack)
    cat_packs "$HS_STATE"/launch-*.pack | grep -q "/data/b/1"
    run ! grep -q "/data/b/[23]" < <(cat_packs "$HS_STATE"/launch-*.pack)
    session_start
    drop_caches
    launched_while '.n_replayed == 1 and .read_bytes > 3000000' as_user /bin/second nothing
    # User 1002 has no set, so the set for everybody is read.
    drop_caches
    launched_while '.n_replayed == 2 and .read_bytes > 4500000' \
        chroot --userspec=1002:1002 "$HS_MNT" /bin/second nothing
    session_stop
}

@test "launch: the starts of a user's subordinate UIDs are the user's" {
    SESSION_UID=1000
    learned_starts
    mkdir -p "$HS_MNT/etc"
    echo '1002:200000:65536' >"$HS_MNT/etc/subuid"
    session_start
    # Two executions in two seconds are one start. The first process may have ended before its start is handled; then
    # its user is not known.
    both() {
        chroot --userspec=200002:200002 "$HS_MNT" /bin/second --version >/dev/null
        chroot --userspec=200001:200001 "$HS_MNT" /bin/second nothing
    }
    launched_while '.n_starts == 1' both
    launched_while '.n_starts == 2' as_user /bin/second nothing
    sleep 0.5 # a third start would have been counted
    dump
    dumped '.launch.n_starts == 2'
    session_stop
}

# starts FACTOR: writes 40 starts of /bin/second, one on each of the last 40 days. With replay a
# start takes FACTOR seconds, and without replay 1 s.
starts() {
    jq -cn --argjson factor "$1" 'range(40) | {version: 1, application: "/bin/second", uid: 0, files: 50,
        start_realtime_usec: ((now - (40 - .) * 86400) * 1e6 | floor),
        took_usec: ((if . % 3 == 1 then 1 else $factor end) * 1e6 + .), replayed: (if . % 3 == 1 then "control" else "yes" end)}' \
        >"$HS_STATE/launches.jsonl"
}

# launch_packs: plans, and prints policy, reason and control interval of the sets for everybody: the
# set of /bin/second, and the set of /bin/first, whose starts were not measured.
launch_packs() {
    local pack
    plan
    for pack in "$HS_STATE"/launch-*.pack; do
        "$HEADSTART" show --json=short --limit=0 "$pack"
    done | jq -rs 'map("\(.policy) \(.reason) \(.control_interval)") | unique | join(", ")'
}

@test "launch: the measured starts decide how often a start is a control, and whether replay is on" {
    learned_starts
    [ "$(launch_packs)" = "concurrent configured 0" ]
    starts 0.5
    [ "$(launch_packs)" = "concurrent configured 0, concurrent configured 101" ]
    starts 1.5
    [ "$(launch_packs)" = "concurrent configured 0, off harmful 2" ]
}

# own_policies SECONDS: writes starts by user 1000 of /bin/first and /bin/second that took so long without replay,
# plans, and prints the policies and reasons of the user's sets.
own_policies() {
    local pack
    starts 1
    jq -c --argjson seconds "$1" '.took_usec = ($seconds * 1e6 | floor) | .uid = 1000 | ., .application = "/bin/first"' \
        "$HS_STATE/launches.jsonl" >"$HS_TMP/launches"
    cp "$HS_TMP/launches" "$HS_STATE/launches.jsonl"
    plan
    for pack in "$HS_STATE"/launch@1000-*.pack; do
        "$HEADSTART" show --json=short --limit=0 "$pack"
    done | jq -rs 'map("\(.policy) \(.reason)") | unique | join(", ")'
}

# prints PATTERN COMMAND…: checks the output of a command that plans. On a busy machine the measurement of the disk may
# be unclear, so a test waits until it is not.
prints() {
    # shellcheck disable=SC2053 # the argument is a pattern
    [[ $("${@:2}") == $1 ]]
}

@test "launch: LaunchReplay=auto replays only what is predicted to gain" {
    hs_umount "$HS_MNT"
    hs_simulated_disk sd on 64
    populate
    SESSION_UID=1000
    learned_starts
    session_config MinSize=0 Predict=no
    # Reading some megabytes is a small part of a start of 29 s.
    hs_wait 60 prints "off no gain" own_policies 29
    session_start
    drop_caches
    dumped_while '.n_learned >= 1' as_user /bin/second nothing
    dumped '.launch.n_starts == 0'
    not_resident data/b/1
    # It is much of a start of 600 ms. The session learns of the new sets. /bin/first is a cat(1) without arguments,
    # which waits for its input.
    hs_wait 60 prints "*concurrent fastest*" own_policies 0.6
    drop_caches
    launched_while '.n_starts == 1 and .n_replayed == 1' as_user /bin/first
    session_stop
    # Starts of a user do not count for everybody. /bin/second starts right after /bin/first, like a helper, and the time
    # of a helper is not estimated.
    hs_wait 60 prints "concurrent fastest*off no gain*" launch_packs
}

@test "launch: 1,000 executions are one start, and a file that changed is left alone" {
    local i
    learned_starts
    head -c 1600000 /dev/urandom >"$HS_MNT/data/b/2"
    session_start
    drop_caches
    for ((i = 0; i < 1000; i++)); do "$HS_MNT/bin/second" --version >/dev/null; done
    # Without data/b/2 the set has 6.2 MB, with it 7.7 MB.
    launched '.n_starts == 1 and .n_dropped == 0 and .read_bytes > 3000000 and .read_bytes < 6500000'
    session_stop
}
