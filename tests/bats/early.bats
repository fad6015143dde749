# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart-init: recording and replay before the system manager runs.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART_INIT" "$HEADSTARTD" "$HEADSTART_REPLAY"
    need_command python3
    HS_RUN=$HS_TMP/run
    prefix=()
}

# Makes a root filesystem in which programs of this machine run. It contains a boot pack.
with_pack() {
    local d
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT"/{proc,sys,dev,run,usr,var/lib/headstart,etc/headstart} "$HS_MNT$HS_TMP"
    for d in bin sbin lib lib64; do
        [ ! -e /$d ] || ln -s usr/$d "$HS_MNT/$d"
    done
    mount --bind /usr "$HS_MNT/usr"
    hs_defer hs_umount "$HS_MNT/usr"
    mount --bind "$HS_TMP" "$HS_MNT$HS_TMP"
    hs_defer hs_umount "$HS_MNT$HS_TMP"
    echo pack >"$HS_MNT/var/lib/headstart/boot.pack"
}

# stand_in LINE…: writes a Python script with these lines, which replaces headstart-replay. The root
# filesystem contains it, too. tell(TEXT) sends a message to $NOTIFY_SOCKET, and note(TEXT) appends
# a line to HS_TMP/noted.
stand_in() {
    REPLAY=$HS_TMP/stand-in
    {
        echo '#!/usr/bin/python3'
        echo 'import os, socket, sys, time'
        echo 'def tell(text):'
        echo '    a = os.environ["NOTIFY_SOCKET"]'
        echo '    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(text.encode(), "\0" + a[1:])'
        echo "def note(text): open('$HS_TMP/noted', 'a').write(text + '\\n')"
        echo "note(' '.join(sys.argv[1:]))"
        printf '%s\n' "$@"
    } >"$REPLAY"
    chmod +x "$REPLAY"
}

# Runs headstart-init for the filesystem, with the words of `prefix` before the command. The log of
# headstart-init is in HS_TMP/kmsg. The end of the test ends the processes that headstart-init has
# started.
init() {
    local p
    : >>"$HS_TMP/kmsg"
    # Processes that continue must not inherit descriptor 3, because bats waits until it is closed.
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount sh -c 'mount --bind "$0" /dev/kmsg && "$@"' "$HS_TMP/kmsg" "${prefix[@]}" \
        timeout 30 "$HEADSTART_INIT" --initrd --root="$HS_MNT" --run="$HS_RUN" --replay="$REPLAY" "$@" 3>&-
    for p in $(pgrep -f "$HS_TMP" || true); do
        hs_defer end "$p"
    done
}

end() {
    kill -KILL "$1" 2>/dev/null || true
}

noted() {
    grep -qx -- "$1" "$HS_TMP/noted"
}

@test "the boot waits for the sweep that requests time, and no longer" {
    with_pack
    stand_in 'tell("STATUS=Sweeping\nEXTEND_TIMEOUT_USEC=20000000")' \
        "while not os.path.exists('$HS_TMP/continue'): time.sleep(0.01)" \
        'note("swept")' 'tell("READY=1")' "while not os.path.exists('$HS_TMP/end'): time.sleep(0.01)"
    (hs_wait 20 test -s "$HS_TMP/noted" && touch "$HS_TMP/continue") 3>&- &
    init
    noted swept
    # headstart-replay continues after headstart-init has ended.
    pgrep -f "$REPLAY"
    touch "$HS_TMP/end"
    noted "--marker=$HS_RUN/replay-boot.early --timeout=90s --status=$HS_RUN/replay-boot.json /var/lib/headstart/boot.pack /etc/headstart/boot.pack"
}

@test "the boot continues at the deadline of a sweep, and without a first message after two seconds" {
    with_pack
    stand_in 'tell("EXTEND_TIMEOUT_USEC=300000")' 'time.sleep(25)' 'note("late")'
    init
    run ! noted late
    stand_in 'time.sleep(25)' 'note("late")'
    init
    run ! noted late
}

@test "the boot continues if the replay does not hold it, ends, or cannot be executed" {
    with_pack
    stand_in 'tell("READY=1\nSTATUS=Replaying")' 'time.sleep(25)' 'note("late")'
    init
    run ! noted late
    stand_in 'sys.exit(1)'
    init
    REPLAY=$HS_TMP/absent
    init
}

@test "headstart-init does nothing if headstart is off, and replays nothing if the boot is recorded again" {
    with_pack
    stand_in 'tell("READY=1")'
    touch "$HS_MNT/etc/headstart/disabled"
    init
    [ ! -e "$HS_TMP/noted" ]
    [ ! -e "$HS_RUN/handover" ]
    rm "$HS_MNT/etc/headstart/disabled"
    touch "$HS_MNT/var/lib/headstart/rerecord-boot"
    init
    [ ! -e "$HS_TMP/noted" ]
    [ -S "$HS_RUN/handover" ]
    rm "$HS_MNT/var/lib/headstart/rerecord-boot"
    init
    [ -s "$HS_TMP/noted" ]
}

@test "headstart-init does nothing in a boot that is neither replayed nor recorded" {
    with_pack
    stand_in 'tell("READY=1")'
    touch "$HS_MNT/var/lib/headstart/boot-idle"
    init
    [ ! -e "$HS_TMP/noted" ]
    [ ! -e "$HS_RUN/handover" ]
    # A request to record the boot overrides boot-idle.
    touch "$HS_MNT/var/lib/headstart/rerecord-boot"
    init
    [ ! -e "$HS_TMP/noted" ]
    [ -S "$HS_RUN/handover" ]
}

# logged N: checks the number of logged lines
logged() {
    cat "$HS_TMP/kmsg"
    [ "$(wc -l <"$HS_TMP/kmsg")" -eq "$1" ]
}

@test "the replay keeps its filesystems when the initrd moves its own" {
    with_pack
    stand_in 'tell("READY=1")' "while not os.path.exists('$HS_TMP/continue'): time.sleep(0.01)" \
        'note(os.readlink("/proc/self/root") + " " + str(os.path.exists("/dev/null")))' \
        "open('$HS_RUN/replay-boot.json', 'w').write('{}')" 'note("over")'
    # shellcheck disable=SC2016
    prefix=(sh -c '"$@"; umount -l /proc /sys; touch "$0"' "$HS_TMP/continue")
    init
    hs_wait 20 noted over
    noted "/ True"
    [ -s "$HS_RUN/replay-boot.json" ]
    [ -e "$HS_RUN/replay-boot.early" ]
    logged 0
}

@test "each thing that the initrd lacks costs one line, and the boot continues" {
    with_pack
    stand_in 'tell("READY=1")'
    # There is no /run.
    HS_RUN=$HS_TMP/none/run init
    logged 1
    grep -q "headstart-init: $HS_TMP/none/run: No such file" "$HS_TMP/kmsg"
    [ ! -e "$HS_TMP/noted" ]
    # The root filesystem has no directory on which /proc can be mounted.
    : >"$HS_TMP/kmsg"
    rmdir "$HS_MNT/proc"
    init
    logged 1
    grep -q "headstart-init: cannot start headstart-replay: No such file" "$HS_TMP/kmsg"
    [ ! -e "$HS_TMP/noted" ]
    [ ! -e "$HS_RUN/replay-boot.early" ]
    # No pack was planned, so nothing is logged.
    : >"$HS_TMP/kmsg"
    mkdir "$HS_MNT/proc"
    rm "$HS_MNT/var/lib/headstart/boot.pack"
    init
    logged 0
    [ ! -e "$HS_RUN/replay-boot.early" ]
}

@test "on a full or read-only root filesystem everything begins as on any other" {
    with_pack
    stand_in 'tell("READY=1")' 'note("replayed")'
    dd if=/dev/zero of="$HS_MNT/full" bs=1M status=none || true
    mount -o remount,ro "$HS_MNT"
    init
    logged 0
    hs_wait 20 noted replayed
    [ -S "$HS_RUN/handover" ]
}

@test "systemd in an initrd gets the descriptors, and the replay leaves no marker before it has ended" {
    with_pack
    stand_in 'tell("READY=1")' 'note("started")' 'time.sleep(25)'
    python3 -c '
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(30)
for _ in range(3):
    text, ancillary, _, _ = s.recvmsg(4096, 1024)
    fd = array.array("i", ancillary[0][2])[0]
    print(text.decode().replace("\n", " "), os.readlink(f"/proc/self/fd/{fd}"), flush=True)
' "$HS_TMP/notify" >"$HS_TMP/stored" 3>&- &
    hs_defer hs_kill $!
    hs_wait 10 test -S "$HS_TMP/notify"
    prefix=(env NOTIFY_SOCKET="$HS_TMP/notify")
    init
    hs_wait 20 noted started
    cat "$HS_TMP/stored"
    grep -q '^FDSTORE=1 FDPOLL=0 FDNAME=headstart-fanotify anon_inode:\[fanotify\]$' "$HS_TMP/stored"
    grep -q '^FDSTORE=1 FDPOLL=0 FDNAME=headstart-facts /memfd:' "$HS_TMP/stored"
    [ ! -e "$HS_RUN/handover" ]
    [ ! -e "$HS_RUN/replay-boot.early" ]
}

@test "the replay reads the root filesystem and not a copy with its UUID, and reports whether anything is left" {
    local copy sectors mkpack=$HS_BUILD/tests/tools/tool-mkpack
    need_binary "$mkpack"
    need_command jq
    with_pack
    REPLAY=$HS_TMP/headstart-replay
    cp "$HEADSTART_REPLAY" "$REPLAY"
    head -c 8M /dev/urandom >"$HS_MNT/data"
    sync -f "$HS_MNT"
    echo "$HS_MNT/data" | "$mkpack" --policy=gate "$HS_TMP/pack" "$HS_MNT"
    cp "$HS_TMP/pack" "$HS_MNT/var/lib/headstart/boot.pack"
    sync -f "$HS_MNT"
    cp "$HS_IMAGE" "$HS_TMP/copy.image"
    mkdir "$HS_TMP/copy" "$HS_TMP/other"
    hs_loop "$HS_TMP/copy.image"
    copy=$HS_LOOP
    hs_mount "$copy" "$HS_TMP/copy"
    echo 3 >/proc/sys/vm/drop_caches
    sectors=$(hs_sectors "$copy")
    init
    hs_wait 20 jq -e '.outcome == "done"' "$HS_RUN/replay-boot.json"
    jq -e '.files == 1 and .data_bytes == 8388608 and .skipped == {}' "$HS_RUN/replay-boot.json"
    [ $(($(hs_sectors "$copy") - sectors)) -lt 1000 ]
    hs_wait 20 test -e "$HS_RUN/replay-boot.early"
    logged 0

    # If a filesystem is not mounted yet, the replay leaves no marker. The unit then replays this
    # filesystem when it is mounted.
    truncate -s 16M "$HS_TMP/other.image"
    mkfs.ext4 -q "$HS_TMP/other.image"
    hs_loop "$HS_TMP/other.image"
    hs_mount "$HS_LOOP" "$HS_TMP/other"
    echo x >"$HS_TMP/other/file"
    sync -f "$HS_TMP/other"
    printf '%s\n' "$HS_MNT/data" "$HS_TMP/other/file" |
        "$mkpack" --policy=gate "$HS_TMP/pack" "$HS_MNT" "$HS_TMP/other"
    cp "$HS_TMP/pack" "$HS_MNT/var/lib/headstart/boot.pack"
    rm "$HS_RUN/replay-boot.json"
    init
    hs_wait 20 jq -e '.outcome == "done"' "$HS_RUN/replay-boot.json"
    jq -e '.files == 1 and .skipped == {unmounted: 1}' "$HS_RUN/replay-boot.json"
    [ ! -e "$HS_RUN/replay-boot.early" ]
    logged 0

    # A pack that is unusable now stays unusable, so the marker keeps the unit from a second try.
    head -c 100 /dev/urandom >"$HS_MNT/var/lib/headstart/boot.pack"
    init
    [ -e "$HS_RUN/replay-boot.early" ]
    logged 1
}

# as_pid_1 absent|present: runs headstart-init as PID 1 with two arguments. /run is empty, or
# (`present`) contains the directory that an initrd leaves. A script that replaces the real init
# prints its arguments and the content of this directory.
as_pid_1() {
    [ -e /sbin/init ] || skip "needs the command init"
    printf '#!/bin/sh\necho "init $* as PID $$:" $(ls -A /run/headstart)\n' >"$HS_TMP/init"
    chmod +x "$HS_TMP/init"
    # shellcheck disable=SC2016 # the inner shell expands it
    timeout 60 unshare --mount sh -c '
        mount -t tmpfs none /run
        [ "$0" = absent ] || mkdir /run/headstart
        mount --bind "$1" "$(readlink -f /sbin/init)"
        exec unshare --pid --fork --mount-proc "$2" some word' "$1" "$HS_TMP/init" "$HEADSTART_INIT" 3>&-
}

@test "headstart-init as PID 1 starts the recording and executes the real init; after an initrd it only executes the init" {
    need_root
    run -0 as_pid_1 absent
    [ "$output" = "init some word as PID 1: handover" ]
    run -0 as_pid_1 present
    [ "$output" = "init some word as PID 1:" ]
}

@test "the first programs request their whole files before libc starts" {
    need_strace
    local program
    for program in "$HEADSTART_INIT" "$HEADSTART_REPLAY"; do
        # A dynamically linked program, such as one with sanitizers, begins with the system calls of
        # ld.so.
        if readelf -lW "$program" | grep -q INTERP; then
            continue
        fi
        run -0 strace -o "$HS_TMP/strace" "$program" --version
        sed -n 2,4p "$HS_TMP/strace"
        sed -n 2p "$HS_TMP/strace" | grep -F "openat(AT_FDCWD, \"$program\", O_RDONLY|O_CLOEXEC)"
        sed -n 3p "$HS_TMP/strace" | grep -E 'fadvise64\([0-9]+, 0, 0, POSIX_FADV_WILLNEED\)'
        sed -n 4p "$HS_TMP/strace" | grep -E 'close\('
    done
}
