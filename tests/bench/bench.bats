#!/usr/bin/env bats
# Tests the simulated disk from end to end. Times are taken from its log, never from a clock.

load ../bats/helpers

DISKSIM=$HS_BUILD/tests/bench/disksim
DISKCOST=$HS_BUILD/tests/bench/diskcost

setup() {
    hs_setup
    need_root
    need_binary "$DISKSIM"
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    mkdir "$HS_TMP/fuse"
    IMAGE=$HS_TMP/image
    # Each MiB of the image contains its own number.
    for ((i = 0; i < 16; i++)); do
        printf "%16384s\n" "$i" | tr ' ' "$(printf '\\%03o' $((97 + i)))" | head -c 16384
        head -c $((1048576 - 16384)) /dev/zero
    done >"$IMAGE"
}

# start PROFILE [OPTION…]: starts the disk and returns when it is ready.
start() {
    local profile=$1
    shift
    mkfifo "$HS_TMP/ready"
    "$DISKSIM" --profile="$profile" --log="$HS_TMP/log" --ready-fd=9 "$@" "$IMAGE" "$HS_TMP/fuse" \
        9>"$HS_TMP/ready" 3>&- &
    PID=$!
    hs_defer stop_disk
    read -r -t 10 word <"$HS_TMP/ready"
    [ "$word" = ready ]
}

stop_disk() {
    kill "$PID" 2>/dev/null || return 0
    wait "$PID"
}

# Attaches a loop device to the simulated disk and sets LOOP to its path.
attach() {
    need_loop
    LOOP=$(losetup --find --show --direct-io=on "$HS_TMP/fuse/disk")
    hs_defer losetup --detach "$LOOP"
}

value() {
    sed -n "s/^$1=//p" "$HS_TMP/fuse/control"
}

@test "the loop device returns the contents of the image" {
    start ssd
    attach
    cmp "$IMAGE" "$LOOP"
    [ "$(value read_bytes)" -ge 16777216 ]
}

@test "writes are visible, stay out of the image, and are discarded on reset" {
    start hdd7200 --delays=off
    before=$(sha256sum <"$IMAGE")
    printf 'written' | dd of="$HS_TMP/fuse/disk" bs=4096 seek=10 conv=notrunc status=none
    [ "$(dd if="$HS_TMP/fuse/disk" bs=4096 skip=10 count=1 status=none | head -c 7)" = written ]
    [ "$(sha256sum <"$IMAGE")" = "$before" ]
    echo reset >"$HS_TMP/fuse/control"
    cmp "$IMAGE" "$HS_TMP/fuse/disk"
}

@test "a reset restores the saved contents, name by name; the image stays as it was" {
    start hdd7200 --delays=off
    before=$(sha256sum <"$IMAGE")
    write() {
        printf '%s' "$1" | dd of="$HS_TMP/fuse/disk" bs=1 seek="$2" conv=notrunc status=none
    }
    write 'across a block' 8185
    echo "save first" >"$HS_TMP/fuse/control"
    cp "$HS_TMP/fuse/disk" "$HS_TMP/first"
    write 'the last' 16777208
    write 'ACROSS' 8185
    echo "save second" >"$HS_TMP/fuse/control"
    cp "$HS_TMP/fuse/disk" "$HS_TMP/second"
    write 'forgotten' 409600
    for name in first second first; do
        echo "reset $name" >"$HS_TMP/fuse/control"
        cmp "$HS_TMP/$name" "$HS_TMP/fuse/disk"
    done
    # Contents are saved again under a name that is in use, and restored while the disk has other
    # contents.
    write 'anew' 409600
    echo "save second" >"$HS_TMP/fuse/control"
    cp "$HS_TMP/fuse/disk" "$HS_TMP/anew"
    echo reset >"$HS_TMP/fuse/control"
    cmp "$IMAGE" "$HS_TMP/fuse/disk"
    echo "reset second" >"$HS_TMP/fuse/control"
    cmp "$HS_TMP/anew" "$HS_TMP/fuse/disk"
    run bash -c "echo reset third >$HS_TMP/fuse/control"
    [ "$status" -ne 0 ]
    run bash -c "echo 'save ' >$HS_TMP/fuse/control"
    [ "$status" -ne 0 ]
    cmp "$HS_TMP/anew" "$HS_TMP/fuse/disk"
    [ "$(sha256sum <"$IMAGE")" = "$before" ]
}

delays_are() {
    [ "$(value delays)" = "$1" ]
}

@test "signals and the control file switch the delays" {
    start hdd7200
    delays_are on
    kill -USR2 "$PID"
    hs_wait 5 delays_are off
    kill -USR1 "$PID"
    hs_wait 5 delays_are on
    echo "delays off" >"$HS_TMP/fuse/control"
    delays_are off
    run bash -c "echo nonsense >$HS_TMP/fuse/control"
    [ "$status" -ne 0 ]
}

@test "the costs in the log show that a mechanical disk seeks and that a card does not" {
    need_command jq
    start hdd7200
    echo "mark forwards" >"$HS_TMP/fuse/control"
    for i in 0 1 2 3 4 5 6 7; do
        dd if="$HS_TMP/fuse/disk" of=/dev/null bs=65536 count=1 skip="$i" status=none
    done
    echo "mark scattered" >"$HS_TMP/fuse/control"
    for i in 200 3 150 40 220 10 170 60; do
        dd if="$HS_TMP/fuse/disk" of=/dev/null bs=65536 count=1 skip="$i" status=none
    done
    echo "mark end" >"$HS_TMP/fuse/control"
    "$DISKCOST" --json "$HS_TMP/log" >"$HS_TMP/costs"
    cost() {
        jq -r ".[] | select(.section == \"$1\") | .$2 * 1e4 | round" "$HS_TMP/costs"
    }
    # 8 x (100 us + 65536 bytes at 100 MB/s) = 6.04 ms
    [ "$(cost forwards served_s)" -eq 60 ]
    [ "$(cost scattered served_s)" -gt 500 ]
    # Sorting helps, and sweeping (reading over the gaps) never hurts.
    [ "$(cost scattered sorted_s)" -lt "$(cost scattered served_s)" ]
    [ "$(cost scattered sweep_s)" -le "$(cost scattered sorted_s)" ]
    # The same reads on a card cost the same in any order.
    "$DISKCOST" --profile=sd --json "$HS_TMP/log" >"$HS_TMP/costs"
    [ "$(cost scattered as_read_s)" -eq "$(cost scattered sorted_s)" ]
    [ "$(cost scattered as_read_s)" -eq "$(cost forwards as_read_s)" ]
}

# A request is logged a moment after it has left the queue. Reading the control file flushes the
# log.
six_are_logged() {
    value queued >/dev/null
    [ "$(awk '/^# mark paused/ { n = 0 } $2 == "R" { n++ } END { print n }' "$HS_TMP/log")" -eq 6 ]
}

six_are_queued() {
    [ "$(value queued)" -eq 6 ]
}

@test "queued requests are served nearest first, and a disk that hangs serves none" {
    need_command python3
    start hdd7200
    attach
    # Without a scheduler the kernel hands requests over as they come.
    echo none >"/sys/block/$(basename "$LOOP")/queue/scheduler"
    blockdev --flushbufs "$LOOP"
    # The process that closes a block device last waits for the pending reads. This shell keeps the
    # device open, so that python3 does not wait.
    exec 8<"$LOOP"
    echo "mark paused" >"$HS_TMP/fuse/control"
    echo pause >"$HS_TMP/fuse/control"
    python3 - "$LOOP" <<'EOF'
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for mib in (15, 3, 13, 5, 11, 7):
    os.posix_fadvise(fd, mib << 20, 4096, os.POSIX_FADV_WILLNEED)
EOF
    hs_wait 20 six_are_queued
    echo resume >"$HS_TMP/fuse/control"
    hs_wait 20 six_are_logged
    exec 8<&-
    # An idle disk serves the oldest request first, and then always the nearest one.
    order=$(awk '/^# mark paused/ { s = "" } $2 == "R" { s = s $3 / 1048576 " " }
                 END { print s }' "$HS_TMP/log")
    echo "# $order"
    [ "$order" = "15 13 11 7 5 3 " ]
}

recorder_is_ready() {
    grep -q READY=1 "$HS_TMP/notified"
}

@test "a trace has all that a user has opened, also if resolving paths waits for a slow disk" {
    need_binary "$HEADSTARTD"
    need_command jq
    need_command setpriv
    truncate --size=256M "$IMAGE"
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$IMAGE"
    start netdisk --delays=off
    attach
    mount "$LOOP" "$HS_MNT"
    hs_defer hs_umount "$HS_MNT"
    mkdir "$HS_MNT"/{1..800}
    hs_listen "$HS_TMP/notified"
    NOTIFY_SOCKET=$HS_TMP/notify "$HEADSTARTD" --root="$HS_MNT" --state="$HS_STATE" --stage=boot \
        2>"$HS_TMP/recorder.log" 3>&- &
    recorder=$!
    hs_defer hs_kill "$recorder"
    hs_wait 10 recorder_is_ready
    (cd "$HS_MNT" && setpriv --reuid=1000 --regid=1000 --clear-groups ls {1..800}) >/dev/null
    sync
    # The cache is dropped three times, because the kernel may keep pages that were used recently.
    for _ in 1 2 3; do
        hs_drop_caches
    done
    echo "delays on" >"$HS_TMP/fuse/control"
    kill -TERM "$recorder"
    wait "$recorder"
    echo "delays off" >"$HS_TMP/fuse/control"
    cat "$HS_TMP/recorder.log"
    "$HEADSTART" show --json=short --limit=0 "$HS_STATE"/traces/*-boot.json >"$HS_TMP/shown"
    # The trace contains each of the 800 directories.
    [ "$(jq '[.files[] | select(.path | test("^/[0-9]+$"))] | length' "$HS_TMP/shown")" -eq 800 ]
    # The disk was slow enough to limit the recorder.
    value busy_usec
    [ "$(value busy_usec)" -gt 2000000 ]
}

@test "wrong usage prints one line" {
    for arguments in "" "--profile=drum a b" "--delays=maybe a b" "--ready-fd=x a b" \
        "$HS_TMP/none $HS_TMP/fuse" "/dev/null $HS_TMP/fuse" "$HS_TMP $HS_TMP/fuse"; do
        # shellcheck disable=SC2086
        run "$DISKSIM" $arguments
        [ "$status" -ne 0 ]
        [ "${#lines[@]}" -eq 1 ]
    done
    run bash -c "echo not a read | $DISKCOST --profile=sd --stroke=1000000"
    [ "$status" -ne 0 ]
    [ "${#lines[@]}" -eq 1 ]
}
