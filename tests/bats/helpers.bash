# SPDX-License-Identifier: LGPL-2.1-or-later
# All bats files share these functions. A file runs `load helpers`, and calls hs_setup in setup().
#
# Everything that a test mounts, attaches or starts is registered with hs_defer, and teardown()
# undoes it in reverse order, also if the test fails. This works with Bats 1.8 on Debian 12 and 1.11
# on Debian 13.

HS_SOURCE=$(cd "${BATS_TEST_DIRNAME:?}/../.." && pwd)

# The build directory under test: tests/run sets HEADSTART_BUILD; without it, build/ is used.
HS_BUILD=${HEADSTART_BUILD:-$HS_SOURCE/build}
HS_BUILD=$(cd "$HS_BUILD" && pwd)
HEADSTART=$HS_BUILD/src/cli/headstart
HEADSTARTD=$HS_BUILD/src/daemon/headstartd
HEADSTART_REPLAY=$HS_BUILD/src/replay/headstart-replay
HEADSTART_INIT=$HS_BUILD/src/early/headstart-init
# Habits follow the local time.
export TZ=UTC
export HEADSTART HEADSTARTD HEADSTART_REPLAY HEADSTART_INIT
# The caller's log settings must not change the results.
unset SYSTEMD_LOG_LEVEL JOURNAL_STREAM

# With -e, jq 1.6 also succeeds if it finds no input at all, for example because a file is missing.
# Later versions of jq fail in that case, and so does this function.
jq() {
    local status=0 output
    [[ " $* " == *" -"*([a-zA-Z])e*([a-zA-Z])" "* ]] || {
        command jq "$@"
        return
    }
    output=$(command jq "$@") || status=$?
    [ -z "$output" ] || printf '%s\n' "$output"
    [ -n "$output" ] || [ "$status" -ne 0 ] || return 4
    return "$status"
}

hs_setup() {
    HS_TMP=$BATS_TEST_TMPDIR
    HS_DEFERRED=()
    # shellcheck disable=SC2034 # used by the tests
    HS_STATE=$HS_TMP/state
    HS_MNT=$HS_TMP/mnt
    mkdir -p "$HS_MNT"
}

# hs_defer COMMAND…: runs the command at the end of the test. The last command runs first.
hs_defer() {
    local quoted
    printf -v quoted '%q ' "$@"
    HS_DEFERRED+=("$quoted")
}

teardown() {
    local i
    for ((i = ${#HS_DEFERRED[@]} - 1; i >= 0; i--)); do
        eval "${HS_DEFERRED[i]}" || echo "# clean-up failed: ${HS_DEFERRED[i]}" >&2
    done
    HS_DEFERRED=()
    [ -z "${HS_CACHE_FD:-}" ] || flock --unlock "$HS_CACHE_FD"
}

# --- requirements; a test that cannot run says why ----------------------------------------------

need_root() {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
}

need_command() {
    local c
    for c; do
        type -P "$c" >/dev/null || skip "needs the command $c"
    done
}

need_loop() {
    need_root
    [ -e /dev/loop-control ] || skip "needs loop devices (/dev/loop-control)"
    losetup --find >/dev/null 2>&1 || skip "needs a free loop device"
}

# need_binary NAME…: skips the test if this build lacks a program of headstart.
need_binary() {
    local b
    for b; do
        [ -x "$b" ] || skip "not built: $(basename "$b")"
    done
}

# LeakSanitizer is off, because it ends a program that another process traces.
need_strace() {
    need_command strace
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
}

# A limit on memory or address space is meaningless for a program that maps terabytes, as programs
# with a sanitizer do.
need_memory_limits() {
    need_command prlimit
    if grep -qE "__(asan|tsan)_init" "$HEADSTART"; then
        skip "the sanitizers are libraries that need more memory"
    fi
}

need_filesystem() {
    need_command "mkfs.$1"
    grep -qw "$1" /proc/filesystems || modprobe "$1" 2>/dev/null || skip "the kernel has no $1"
}

# --- block devices -----------------------------------------------------------------------------

# hs_own_cache: waits until no other test uses the page cache, and then owns it until the end of the
# test. tests/run runs several files at a time, and sets HS_CACHE_LOCK to the file that they lock.
hs_own_cache() {
    [ -n "${HS_CACHE_LOCK:-}" ] && [ -z "${HS_CACHE_FD:-}" ] || return 0
    exec {HS_CACHE_FD}>>"$HS_CACHE_LOCK"
    flock "$HS_CACHE_FD"
}

# hs_drop_caches: drops what the kernel caches of every filesystem.
hs_drop_caches() {
    hs_own_cache
    echo 3 >/proc/sys/vm/drop_caches
}

# hs_share_cache: gives the page cache back. A test calls it before a long wait for something else.
hs_share_cache() {
    [ -n "${HS_CACHE_FD:-}" ] || return 0
    flock --unlock "$HS_CACHE_FD"
    exec {HS_CACHE_FD}>&-
    unset HS_CACHE_FD
}

# hs_loop IMAGE: attaches the image to a loop device, and detaches the image at the end. The loop
# device uses direct I/O if the filesystem of the image allows direct I/O, so that dropping caches
# makes the device cold. Sets HS_LOOP. Call it without a subshell. A file sets HS_SHARES_CACHE if its tests do not
# depend on what is in memory.
hs_loop() {
    [ -n "${HS_SHARES_CACHE:-}" ] || hs_own_cache
    HS_LOOP=$(losetup --find --show --direct-io=on "$1" 2>/dev/null || losetup --find --show "$1")
    hs_defer hs_detach "$HS_LOOP" "$1"
}

# hs_detach DEVICE IMAGE: detaches the image from the loop device, unless this was done before. Then the device
# may belong to another test, whose image must not be detached.
hs_detach() {
    [ "$(losetup --list --noheadings --output NAME --associated "$2")" != "$1" ] || losetup --detach "$1"
}

# hs_filesystem FSTYPE MIB [MKFS-OPTION…]: makes the filesystem in an image file on a loop device
# and mounts it on HS_MNT. Sets HS_IMAGE, HS_LOOP. Call it without a subshell.
hs_filesystem() {
    local fstype=$1 mib=$2
    shift 2
    need_loop
    need_filesystem "$fstype"
    HS_IMAGE=$HS_TMP/image.$fstype
    truncate -s "${mib}M" "$HS_IMAGE"
    "mkfs.$fstype" "$@" "$HS_IMAGE" >/dev/null 2>&1
    hs_loop "$HS_IMAGE"
    hs_mount "$HS_LOOP"
}

# hs_serve_image IMAGE UID DIRECTORY [own]: mounts the ext4 of the image on the directory, from a loop device whose
# file is on a FUSE filesystem of that user, HS_TMP/net. udisks(8) permits this to the user at the screen. With
# `own` root has no access to the file, which is the default of FUSE. HS_SERVER is the pid of the server, which hangs
# after SIGUSR1.
hs_serve_image() {
    local loop
    need_loop
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    mkdir "$HS_TMP/net"
    "$HS_SOURCE/tests/bats/hung-filesystem" "$1" "$HS_TMP/net" "$2" ${4:+"$4"} >"$HS_TMP/served.log" 3>&- &
    HS_SERVER=$!
    # When the server is gone, reads fail, and everything can be unmounted.
    hs_defer umount -lq "$HS_TMP/net"
    hs_defer hs_kill "$HS_SERVER"
    hs_wait 10 grep -q mounted "$HS_TMP/served.log"
    if [ -n "${4:-}" ]; then
        loop=$("$HS_SOURCE/tests/bats/attach-as-user" "$HS_TMP/net" program "$2")
    else
        loop=$(losetup --find --show --read-only "$HS_TMP/net/program")
    fi
    hs_defer losetup --detach "$loop"
    mount -o ro,noload "$loop" "$3"
    hs_defer umount "$3"
}

# hs_serve_no_longer: lets the server of hs_serve_image hang until the end of the test.
hs_serve_no_longer() {
    kill -USR1 "$HS_SERVER"
    hs_wait 10 grep -q hung "$HS_TMP/served.log"
    hs_defer hs_kill "$HS_SERVER" # before the unmounts
}

# hs_simulated_disk PROFILE on|off MIB [TYPE]: makes a filesystem (ext4) on a simulated disk of that profile, with
# delays on or off, and mounts it on HS_MNT. DISKSIM is the pid of its server. Call it without a
# subshell.
hs_simulated_disk() {
    local program=$HS_BUILD/tests/bench/disksim fuse=$HS_TMP/fuse
    need_loop
    need_binary "$program"
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    hs_own_cache
    # The image is in memory, so that no other disk adds to the times.
    mkdir "$fuse" "$HS_TMP/image"
    mount -t tmpfs none "$HS_TMP/image"
    hs_defer hs_umount "$HS_TMP/image"
    HS_IMAGE=$HS_TMP/image/ext4
    truncate -s "$3M" "$HS_IMAGE"
    "mkfs.${4:-ext4}" -q "$HS_IMAGE"
    "$program" --profile="$1" --delays="$2" "$HS_IMAGE" "$fuse" 3>&- &
    DISKSIM=$!
    hs_defer hs_wait 10 eval "! kill $DISKSIM 2>/dev/null"
    hs_wait 10 test -e "$fuse/disk"
    hs_loop "$fuse/disk"
    hs_mount "$HS_LOOP"
}

# hs_mount DEVICE [TARGET [OPTIONS]]: mounts the device, and unmounts it at the end if it is still
# mounted.
hs_mount() {
    local device=$1 target=${2:-$HS_MNT} options=${3:-relatime}
    mount -o "$options" "$device" "$target"
    hs_defer hs_umount "$target"
}

hs_umount() {
    local i
    for ((i = 0; i < 50; i++)); do
        mountpoint -q "$1" || return 0
        umount "$1" 2>/dev/null && continue
        sleep 0.1
    done
    umount "$1"
}

# hs_cold [TARGET [DEVICE]]: unmounts, mounts again with HS_COLD_OPTIONS, and drops caches.
hs_cold() {
    local target=${1:-$HS_MNT} device=${2:-$HS_LOOP}
    sync -f "$target"
    hs_umount "$target"
    hs_drop_caches
    mount -o "${HS_COLD_OPTIONS:-relatime}" "$device" "$target"
}

# hs_reads [DEVICE]: prints how many read requests the device has served. hs_sectors [DEVICE]: prints
# how many sectors it has read.
hs_reads() {
    awk '{ print $1 }' "/sys/block/$(basename "${1:-$HS_LOOP}")/stat"
}

hs_sectors() {
    awk '{ print $3 }' "/sys/block/$(basename "${1:-$HS_LOOP}")/stat"
}

# --- programs ----------------------------------------------------------------------------------

# hs_without CAPABILITY[,…] COMMAND…: runs the command as root, but without these capabilities (e.g.
# sys_admin,fowner).
hs_without() {
    local caps=$1 minus
    shift
    minus=-${caps//,/,-}
    setpriv --bounding-set "$minus" --inh-caps "$minus" "$@"
}

# hs_wait SECONDS COMMAND…: waits until the command succeeds, and fails after three times SECONDS. A
# quiet machine of today needs less than SECONDS, and a busy one gets the rest. Use it for conditions
# that no event reports.
hs_wait() {
    local end=$((SECONDS + 3 * $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || {
            echo "# waited in vain for: $*" >&2
            return 1
        }
        sleep 0.05
    done
}

# hs_programs NAME…: copies programs, their libraries and their loader into HS_MNT.
hs_programs() {
    local p f
    for p; do
        f=$(type -P "$p")
        mkdir -p "$HS_MNT/bin" "$HS_MNT/data" "$HS_MNT/dev"
        cp -L "$f" "$HS_MNT/bin/"
        for f in $(ldd "$f" | grep -o '/[^ )]*'); do
            mkdir -p "$HS_MNT$(dirname "$f")"
            cp -L "$f" "$HS_MNT$f"
        done
    done
}

# hs_kill PID [FILE]: ends a child process and removes a file of it, such as its socket.
hs_kill() {
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    [ -z "${2:-}" ] || rm -f "$2"
}

# hs_listen FILE: makes the notification socket HS_TMP/notify (sd_notify(3)). Messages to this socket
# are appended to the file, each with a newline at its end.
hs_listen() {
    : >"$1"
    rm -f "$HS_TMP/notify"
    python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
with open(sys.argv[2], "ab", 0) as out:
    while True:
        out.write(s.recv(4096) + b"\n")
' "$HS_TMP/notify" "$1" 3>&- &
    hs_defer hs_kill $! "$HS_TMP/notify"
    hs_wait 10 test -S "$HS_TMP/notify"
}

# assert_one_error_line STDERR: checks that the text is one line, which begins with the program's
# name.
assert_one_error_line() {
    [ "$(printf '%s\n' "$1" | wc -l)" -eq 1 ] || {
        echo "not one line: $1" >&2
        return 1
    }
    [[ $1 == headstart*:* ]] || {
        echo "no program name: $1" >&2
        return 1
    }
}

# --- the command -------------------------------------------------------------------------------

# hs ARGUMENT…: runs headstart with the state directory of the test, and with --root=$HS_ROOT if
# HS_ROOT is set.
hs() {
    "$HEADSTART" --state="$HS_STATE" ${HS_ROOT:+--root="$HS_ROOT"} "$@"
}

# refused STATUS TEXT ARGUMENT…: checks the exit status, one line on standard error that contains
# the text, and an empty standard output.
refused() {
    local status_wanted=$1 text=$2
    shift 2
    run "-$status_wanted" --separate-stderr hs "$@"
    # shellcheck disable=SC2154 # set by run
    echo "headstart $*: status $status, said: $stderr, printed: $output"
    [ "$status" -eq "$status_wanted" ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"$text"* ]]
    [ -z "$output" ]
}

# hs_data_dir: prints the directory below the root in which this build looks for its data.
hs_data_dir() {
    strings -a "$HEADSTART" | sed -n 's,/default\.model$,,p' | sed 's/^%s//' | head -n 1
}

# hs_attempts COMMAND…: tries the command up to six times, because other processes drop caches on
# this machine, and the kernel may reclaim cold pages within seconds. A condition that holds right
# after replay must hold in at least one attempt.
hs_attempts() {
    # The variable is not named i, because `run` of bats has a loop of its own that changes i.
    local attempts_left
    for ((attempts_left = 6; attempts_left > 0; attempts_left--)); do
        "$@" && return 0
        echo "again: $*"
    done
    return 1
}

# hs_bus_start SOCKET <POLICIES: starts a bus of type system with these policies, in XML. Sets HS_BUS.
hs_bus_start() {
    {
        echo "<busconfig><type>system</type><listen>unix:path=$1</listen><auth>EXTERNAL</auth>"
        cat
        echo "</busconfig>"
    } >"$HS_TMP/bus.conf"
    rm -f "$1"
    dbus-daemon --config-file="$HS_TMP/bus.conf" --nofork --nopidfile --nosyslog 2>"$HS_TMP/bus.log" 3>&- &
    HS_BUS=$!
    hs_defer hs_kill $HS_BUS
    hs_wait 10 test -S "$1"
}

# unittests NAME…: runs Python tests of the current directory.
unittests() {
    # bats shows this output only if the test fails.
    run python3 -B -m unittest -v "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -E '^Ran [1-9][0-9]* tests? in' <<<"$output"
}
