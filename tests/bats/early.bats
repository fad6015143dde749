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
    hs_filesystem ext4 64
    make_root
}

make_root() {
    local d
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
    # headstart-init waits two seconds for the first message, so Python must be in memory.
    /usr/bin/python3 -c 'import os, socket, sys, time'
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

# Runs headstart-init, which must end within five seconds: the longest deadline of the tests that use this
# function is two seconds, and the machine may be busy.
init_in_time() {
    local from=${EPOCHREALTIME/./} took
    init "$@"
    took=$((${EPOCHREALTIME/./} - from))
    [ "$took" -lt 5000000 ] || {
        echo "headstart-init took $took us"
        false
    }
}

noted() {
    grep -qx -- "$1" "$HS_TMP/noted"
}

# Runs headstart-init with a replay that sweeps, and checks that headstart-init has waited for it.
waits_for_sweep() {
    with_pack
    stand_in 'tell("STATUS=Sweeping\nEXTEND_TIMEOUT_USEC=20000000")' \
        "while not os.path.exists('$HS_TMP/continue'): time.sleep(0.01)" \
        'note("swept")' 'tell("READY=1")' "while not os.path.exists('$HS_TMP/end'): time.sleep(0.01)"
    (hs_wait 20 test -s "$HS_TMP/noted" && touch "$HS_TMP/continue") 3>&- &
    init
    noted swept
}

@test "the boot waits for the sweep that requests time, and no longer" {
    waits_for_sweep
    # headstartd subtracts this delay from the time of a boot without replay.
    [[ $(<"$HS_RUN/early-usec") =~ ^[1-9][0-9]{3,}$ ]]
    # headstart-replay continues after headstart-init has ended.
    pgrep -f "$REPLAY"
    touch "$HS_TMP/end"
    noted "--marker=$HS_RUN/replay-boot.early --timeout=90s --status=$HS_RUN/replay-boot.json /var/lib/headstart/boot.pack /etc/headstart/boot.pack"
}

@test "without a console the boot waits for the sweep, too" {
    # PID 1 then starts without the descriptors 0 to 2.
    # shellcheck disable=SC2016 # the script expands it
    printf '#!/bin/sh\nexec "%s" "$@" 0<&- 1>&- 2>&-\n' "$HEADSTART_INIT" >"$HS_TMP/without-console"
    chmod +x "$HS_TMP/without-console"
    HEADSTART_INIT=$HS_TMP/without-console
    waits_for_sweep
    touch "$HS_TMP/end"
}

@test "the boot continues at the deadline of a sweep, and without a first message after two seconds" {
    with_pack
    # The later request is the shorter one, and counts.
    stand_in 'tell("EXTEND_TIMEOUT_USEC=25000000")' 'tell("EXTEND_TIMEOUT_USEC=300000")' 'time.sleep(25)' 'note("late")'
    init_in_time
    run ! noted late
    stand_in 'time.sleep(25)' 'note("late")'
    init_in_time
    run ! noted late
}

# waited: prints for how many microseconds headstart-init has waited.
waited() {
    cat "$HS_RUN/early-usec"
}

@test "a late first message leaves less time: the deadline counts from the start of headstart-init" {
    with_pack
    # The deadline has passed when the message arrives, so the message ends the wait.
    stand_in 'time.sleep(1.5)' 'tell("EXTEND_TIMEOUT_USEC=1400000")' 'note("asked")' 'time.sleep(25)' 'note("late")'
    # Counted from the message, it would be three seconds at least.
    from_the_start() {
        rm -f "$HS_TMP/noted"
        init_in_time
        hs_wait 10 noted asked
        [ "$(waited)" -lt 2800000 ] && run ! noted late
    }
    hs_attempts from_the_start
    # A later deadline holds the boot beyond the time for the first message, and counts from the start as well.
    stand_in 'tell("STATUS=" + os.environ["HEADSTART_HOLD_BEGIN_USEC"])' \
        'begin = int(os.environ["HEADSTART_HOLD_BEGIN_USEC"])' \
        'note("begin " + str(0 <= time.monotonic_ns() // 1000 - begin < 10000000))' \
        'tell("EXTEND_TIMEOUT_USEC=2500000")' 'time.sleep(25)' 'note("late")'
    init_in_time
    noted "begin True"
    run ! noted late
    [ "$(waited)" -ge 2500000 ]
}

@test "headstart.deadline= limits the wait, before and after the first message" {
    with_pack
    echo "quiet headstart.deadline=200ms" >"$HS_TMP/cmdline"
    # shellcheck disable=SC2016 # the inner shell expands it
    prefix=(sh -c 'mount --bind "$0" /proc/cmdline && exec "$@"' "$HS_TMP/cmdline")
    stand_in 'time.sleep(25)' 'note("late")'
    init
    [ "$(waited)" -ge 200000 ]
    # Without the limit it would be two seconds.
    [ "$(waited)" -lt 2000000 ]
    stand_in 'tell("EXTEND_TIMEOUT_USEC=20000000")' 'time.sleep(25)' 'note("late")'
    init_in_time
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

@test "the replay has three capabilities: one of them lets it ask btrfs for metadata" {
    need_root
    with_pack
    stand_in 'note(str(int(next(l for l in open("/proc/self/status") if l.startswith("CapEff:")).split()[1], 16)))' 'tell("READY=1")'
    init
    # CAP_DAC_READ_SEARCH (2), CAP_FOWNER (3) and CAP_SYS_ADMIN (21)
    noted $((1 << 2 | 1 << 3 | 1 << 21))
    # systemd-nspawn gives its first program inheritable capabilities.
    need_command setpriv
    rm "$HS_TMP/noted"
    prefix=(setpriv --inh-caps +chown,+kill)
    init
    noted $((1 << 2 | 1 << 3 | 1 << 21))
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
    [ ! -e "$HS_RUN/record-boot.early" ]
    init
    [ ! -e "$HS_TMP/noted" ]
    [ -S "$HS_RUN/handover" ]
    [ -e "$HS_RUN/record-boot.early" ]
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

# starts_on ROTATIONAL: runs headstart-init, which is off, on a disk of that kind
starts_on() {
    echo "$1" >"/sys/block/${HS_LOOP#/dev/}/queue/rotational"
    hs_cold
    init
    [ ! -e "$HS_TMP/noted" ]
}

# pack_resident: checks that the pack is in memory.
pack_resident() {
    [ "$(fincore --bytes --noheadings --output RES "$HS_MNT/var/lib/headstart/boot.pack" | tr -d ' ')" -gt 0 ]
}

@test "headstart-init requests the pack while it looks up the conditions, if the disk does not rotate" {
    need_command fincore
    stand_in 'tell("READY=1")'
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT"/{proc,sys,dev,run,var/lib/headstart,etc/headstart}
    echo pack >"$HS_MNT/var/lib/headstart/boot.pack"
    touch "$HS_MNT/etc/headstart/disabled"
    # A loop device of which a process still has a descriptor is reused by later tests.
    hs_defer sh -c "echo 0 >/sys/block/${HS_LOOP#/dev/}/queue/rotational"
    # A page that is reclaimed at once does not come back by itself.
    requested() {
        starts_on 0
        hs_wait 3 pack_resident
    }
    hs_attempts requested
    starts_on 1
    run ! pack_resident
    # An idle boot does not use the pack.
    touch "$HS_MNT/var/lib/headstart/boot-idle"
    starts_on 0
    run ! pack_resident
}

# unit_resident NAME: checks that a file of the directory of unit files is in memory.
unit_resident() {
    [ "$(fincore --bytes --noheadings --output RES "$HS_MNT$UNITS/$1" | tr -d ' ')" -gt 0 ]
}

@test "an idle boot reads headstart's unit files ahead, and no others" {
    local unit
    need_command fincore
    UNITS=$(sed -n 's/^#define HEADSTART_UNIT_DIR "\(.*\)"$/\1/p' "$HS_BUILD/src/config-paths.h")
    [ -n "$UNITS" ]
    stand_in 'tell("READY=1")'
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT"/{proc,sys,dev,run,var/lib/headstart,etc/headstart} "$HS_MNT$UNITS"
    cp "$HS_BUILD"/units/headstart-* "$HS_MNT$UNITS/"
    echo "[Unit]" >"$HS_MNT$UNITS/other.service"
    touch "$HS_MNT/etc/headstart/disabled" "$HS_MNT/var/lib/headstart/boot-idle"
    hs_cold
    init
    run ! unit_resident headstart-record.service
    rm "$HS_MNT/etc/headstart/disabled"
    all_resident() {
        hs_cold
        init
        for unit in "$HS_BUILD"/units/headstart-*; do
            hs_wait 3 unit_resident "${unit##*/}" || return 1
        done
    }
    hs_attempts all_resident
    run ! unit_resident other.service
}

# Covers every condition of the units but ConditionVirtualization=, because a container has no initrd.
@test "headstart-init starts nothing where the units start nothing" {
    local line value n=0
    with_pack
    stand_in 'tell("READY=1")'
    while IFS= read -r line; do
        value=${line#*=!}
        prefix=()
        case $line in
        '' | '#'* | ConditionVirtualization=*) continue ;;
        ConditionKernelCommandLine=!*)
            echo "root=/dev/sda1 $value quiet" >"$HS_TMP/cmdline"
            # shellcheck disable=SC2016 # the inner shell expands it
            prefix=(sh -c 'mount --bind "$0" /proc/cmdline && exec "$@"' "$HS_TMP/cmdline")
            ;;
        ConditionPathExists=!/run/*)
            # shellcheck disable=SC2016
            prefix=(sh -c 'mount -t tmpfs none /run && mkdir -p "$0" && exec "$@"' "$value")
            ;;
        ConditionPathExists=!/proc/*)
            # LeakSanitizer needs more of /proc.
            # shellcheck disable=SC2016
            prefix=(sh -c 'mount -t tmpfs none /proc && touch "$0" && mkdir /proc/self &&
                printf "ASAN_OPTIONS=detect_leaks=0\\0" >/proc/self/environ && exec "$@"' "$value")
            value=
            ;;
        ConditionPathExists=!/*)
            mkdir -p "$HS_MNT${value%/*}"
            touch "$HS_MNT$value"
            ;;
        *)
            echo "this test does not know $line"
            false
            ;;
        esac
        init
        if [ -e "$HS_TMP/noted" ] || [ -e "$HS_RUN/handover" ]; then
            echo "headstart-init starts something under $line"
            false
        fi
        [[ $value == /run/* || $value != /* ]] || rm "$HS_MNT$value"
        n=$((n + 1))
    done <"$HS_SOURCE/units/snippets/conditions"
    [ "$n" -ge 8 ]
    # Without any of them, but with a similar word, it starts.
    echo "root=/dev/sda1 headstart=01 quiet" >"$HS_TMP/cmdline"
    # shellcheck disable=SC2016
    prefix=(sh -c 'mount --bind "$0" /proc/cmdline && mount -t tmpfs none /run && exec "$@"' "$HS_TMP/cmdline")
    init
    [ -s "$HS_TMP/noted" ]
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

@test "on a root filesystem that headstartd does not record, headstart-init records nothing, and says nothing" {
    need_root
    mount -t tmpfs none "$HS_MNT"
    hs_defer hs_umount "$HS_MNT"
    make_root
    stand_in 'tell("READY=1")' 'note("replayed")'
    init
    logged 0
    hs_wait 20 noted replayed
    [ ! -e "$HS_RUN/handover" ]
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

@test "an initrd older than the package costs one line, and the recording begins" {
    local mkpack=$HS_BUILD/tests/tools/tool-mkpack
    need_binary "$mkpack"
    # The replay of the package does not know an option of the initrd's program.
    with_pack
    cp "$HEADSTART_REPLAY" "$HS_TMP/headstart-replay"
    REPLAY=$HS_TMP/newer
    printf '#!/bin/sh\nexec "%s" --gone=1 "$@"\n' "$HS_TMP/headstart-replay" >"$REPLAY"
    chmod +x "$REPLAY"
    init
    hs_wait 20 test -s "$HS_TMP/kmsg"
    logged 1
    grep -q "headstart-replay: .*--gone" "$HS_TMP/kmsg"
    [ ! -e "$HS_RUN/replay-boot.early" ]
    [ -S "$HS_RUN/handover" ]
    [ ! -e "$HS_RUN/replay-boot.json" ]
    # The pack has another version.
    : >"$HS_TMP/kmsg"
    REPLAY=$HS_TMP/headstart-replay
    head -c 1M /dev/urandom >"$HS_MNT/data"
    echo "$HS_MNT/data" | "$mkpack" --policy=gate "$HS_TMP/pack" "$HS_MNT"
    # The version follows the magic of eight bytes.
    printf '\377\377' | dd of="$HS_TMP/pack" bs=1 seek=8 conv=notrunc status=none
    cp "$HS_TMP/pack" "$HS_MNT/var/lib/headstart/boot.pack"
    init
    hs_wait 20 test -s "$HS_TMP/kmsg"
    logged 1
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
    for line in open(f"/proc/self/fdinfo/{fd}"):
        if line.startswith("fanotify flags:"):
            print("unlimited:", int(line.split(":")[1].split()[0], 16) & 0x10 != 0, flush=True)
' "$HS_TMP/notify" >"$HS_TMP/stored" 3>&- &
    hs_defer hs_kill $!
    hs_wait 10 test -S "$HS_TMP/notify"
    prefix=(env NOTIFY_SOCKET="$HS_TMP/notify")
    init
    hs_wait 20 noted started
    hs_wait 10 grep -q '^FDSTORE=1 FDPOLL=0 FDNAME=headstart-fanotify anon_inode:\[fanotify\]$' "$HS_TMP/stored"
    hs_wait 10 grep -q '^FDSTORE=1 FDPOLL=0 FDNAME=headstart-facts /memfd:' "$HS_TMP/stored"
    # If the unit of headstartd does not start, nobody reads the queue (FAN_UNLIMITED_QUEUE).
    hs_wait 10 grep -q '^unlimited: False$' "$HS_TMP/stored"
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
    hs_drop_caches
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
    rm "$HS_RUN/replay-boot.json" "$HS_RUN/early-usec"
    init
    hs_wait 20 jq -e '.outcome == "done"' "$HS_RUN/replay-boot.json"
    jq -e '.files == 1 and .skipped == {unmounted: 1}' "$HS_RUN/replay-boot.json"
    [ ! -e "$HS_RUN/replay-boot.early" ]
    [ -s "$HS_RUN/early-usec" ] # shows doctor that headstart-init has started the replay
    logged 0

    # A pack that is unusable now stays unusable, so the marker keeps the unit from a second try.
    head -c 100 /dev/urandom >"$HS_MNT/var/lib/headstart/boot.pack"
    init
    [ -e "$HS_RUN/replay-boot.early" ]
    logged 1
}

# as_pid_1 absent|present [PREFIX…]: runs headstart-init as PID 1 with two arguments, by the command
# PREFIX. /run is empty, or (`present`) contains the directory that an initrd leaves. A script that
# replaces the real init prints its arguments and the content of this directory.
as_pid_1() {
    [ -e /sbin/init ] || skip "needs the command init"
    printf '#!/bin/sh\necho "init $* as PID $$:" $(ls -A /run/headstart)\n' >"$HS_TMP/init"
    chmod +x "$HS_TMP/init"
    # shellcheck disable=SC2016 # the inner shell expands it
    timeout 60 unshare --mount sh -c '
        mount -t tmpfs none /run
        [ "$0" = absent ] || mkdir /run/headstart
        mount --bind "$1" "$(readlink -f /sbin/init)"
        init=$2
        shift 2
        exec "$@" unshare --pid --fork --mount-proc "$init" some word' "$1" "$HS_TMP/init" "$HEADSTART_INIT" "${@:2}" 3>&-
}

@test "headstart-init as PID 1 starts the recording and executes the real init; after an initrd it only executes the init" {
    need_root
    run -0 as_pid_1 absent
    [ "$output" = "init some word as PID 1: early-usec handover" ]
    run -0 as_pid_1 present
    [ "$output" = "init some word as PID 1:" ]
}

@test "headstart-init as PID 1 requests headstart-replay before it looks at the conditions" {
    need_root
    need_strace
    run -0 as_pid_1 absent env ASAN_OPTIONS=detect_leaks=0 strace -f -o "$HS_TMP/strace" -e trace=openat,openat2
    run -0 grep -oE '"[^"]*/(headstart-replay|disabled)"' "$HS_TMP/strace"
    [[ ${lines[0]} == */headstart-replay\" ]]
    [[ ${lines[1]} == */disabled\" ]]
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

# Prints the file of read-ahead of the filesystem's disk.
read_ahead_file() {
    realpath "/sys/dev/block/$(stat -c %Hd:%Ld "$HS_MNT")/bdi/read_ahead_kb"
}

@test "a boot that is to be recorded exactly begins with less read-ahead, until nobody needs it" {
    local file before
    with_pack
    stand_in 'tell("READY=1")'
    file=$(read_ahead_file)
    before=$(<"$file")
    [ "$before" -gt 16 ]
    # A recording with the usual read-ahead, and requests that cannot be used.
    for text in '{"exact":false}' '{"exact":true,"read_ahead_kb":0}' '{"exact":true,"read_ahead_kb":x}' \
        '{"exact":true,"read_ahead_kb":99999999999999999999}' "{\"exact\":true,\"read_ahead_kb\":$before}"; do
        echo "$text" >"$HS_MNT/var/lib/headstart/rerecord-boot"
        init
        [ "$(<"$file")" -eq "$before" ]
        [ ! -e "$HS_RUN/read-ahead" ]
    done
    echo '{"exact":true,"read_ahead_kb":16}' >"$HS_MNT/var/lib/headstart/rerecord-boot"
    init
    [ "$(<"$file")" -eq 16 ]
    [ "$(<"$HS_RUN/read-ahead")" = "$file $before 16" ]
    # headstartd restores the value from the record, as after a crash.
    "$HEADSTARTD" --restore --run="$HS_RUN"
    [ "$(<"$file")" -eq "$before" ]
    [ ! -e "$HS_RUN/read-ahead" ]
}

@test "a claim that nobody can answer leaves read-ahead as it was" {
    local file before
    with_pack
    stand_in 'tell("READY=1")'
    file=$(read_ahead_file)
    before=$(<"$file")
    echo '{"exact":true,"read_ahead_kb":16}' >"$HS_MNT/var/lib/headstart/rerecord-boot"
    # The socket cannot be made, so nobody offers the recording.
    mkdir -p "$HS_RUN/handover"
    init
    [ "$(<"$file")" -eq "$before" ]
    [ ! -e "$HS_RUN/read-ahead" ]
    grep -q "the recording begins later" "$HS_TMP/kmsg"
}

@test "if the state is on a later mount, headstart-init obeys the copies in /etc" {
    with_pack
    mv "$HS_MNT/var/lib/headstart/boot.pack" "$HS_MNT/etc/headstart/boot.pack"
    stand_in 'tell("READY=1")'
    touch "$HS_MNT/etc/headstart/boot-idle"
    init
    [ ! -e "$HS_TMP/noted" ]
    [ ! -e "$HS_RUN" ]
    rm "$HS_MNT/etc/headstart/boot-idle"
    init
    hs_wait 20 test -s "$HS_TMP/noted"
    [ -S "$HS_RUN/handover" ]
    [ -e "$HS_RUN/replay-boot.early" ]
    logged 0
}

@test "the unit replays the boot if the replay was killed or could not be loaded, but not after another error" {
    local line
    with_pack
    # headstart-init waits some milliseconds for the end of a process that has closed its socket.
    ended_without_marker() {
        rm -f "$HS_TMP/noted"
        init
        noted "marker True" && [ ! -e "$HS_RUN/replay-boot.early" ]
    }
    for line in 'os.kill(os.getpid(), 9)' 'os.kill(os.getpid(), 15)' 'sys.exit(127)' 'sys.exit(126)' 'sys.exit(2)'; do
        stand_in "note('marker ' + str(os.path.exists('$HS_RUN/replay-boot.early')))" "$line"
        hs_attempts ended_without_marker
    done
    for line in 'sys.exit(0)' 'sys.exit(1)'; do
        stand_in "$line"
        init
        [ -e "$HS_RUN/replay-boot.early" ]
    done
    # Nothing waits for a process that continues to run, and such a process keeps the marker.
    stand_in 'os.closerange(3, 64)' 'time.sleep(25)' 'os.kill(os.getpid(), 9)'
    init_in_time
    [ -e "$HS_RUN/replay-boot.early" ]
    [ "$(waited)" -lt 2000000 ]
}

@test "of a hidden state directory and the copies in /etc, headstart-init obeys the one with the newer pack" {
    local hidden=$HS_MNT/var/lib/headstart copies=$HS_MNT/etc/headstart order before
    with_pack
    echo pack >"$copies/boot.pack"
    touch -d '2026-01-01 00:00:00.000000001' "$hidden/boot.pack"
    touch -d '2026-01-01 00:00:00.000000002' "$copies/boot.pack"
    stand_in 'tell("READY=1")'
    order="--marker=.* /etc/headstart/boot.pack /var/lib/headstart/boot.pack"
    # What the hidden directory says does not count.
    touch "$hidden/boot-idle"
    init
    noted "$order"
    before=$(<"$(read_ahead_file)")
    echo '{"exact":true,"read_ahead_kb":16}' >"$hidden/rerecord-boot"
    rm "$HS_TMP/noted"
    init
    noted "$order"
    [ ! -e "$HS_RUN/record-boot.early" ]
    [ "$(<"$(read_ahead_file)")" -eq "$before" ]
    rm "$hidden"/{boot-idle,rerecord-boot} "$HS_TMP/noted"
    touch "$copies/boot-idle"
    init
    [ ! -e "$HS_TMP/noted" ]
    # When the state is on the root filesystem again, its next pack is newer than a copy that remains.
    touch -d '2026-01-01 00:00:00.000000003' "$hidden/boot.pack"
    init
    noted "--marker=.* /var/lib/headstart/boot.pack /etc/headstart/boot.pack"
    touch "$hidden/boot-idle"
    rm "$copies/boot-idle" "$HS_TMP/noted"
    init
    [ ! -e "$HS_TMP/noted" ]
    logged 0
}

@test "on a full root filesystem that can be written nothing is logged, and everything begins" {
    with_pack
    stand_in 'tell("READY=1")' 'note("replayed")'
    dd if=/dev/zero of="$HS_MNT/full" bs=1M status=none || true
    sync -f "$HS_MNT"
    dd if=/dev/zero of="$HS_MNT/rest" bs=4K status=none || true
    sync -f "$HS_MNT"
    [ "$(stat -f -c %a "$HS_MNT")" -lt 16 ]
    init
    logged 0
    hs_wait 20 noted replayed
    [ -S "$HS_RUN/handover" ]
    [ -e "$HS_RUN/replay-boot.early" ]
}
