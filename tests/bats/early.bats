# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart-init: recording and replay before the system manager runs.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART_INIT" "$HEADSTARTD" "$HEADSTART_REPLAY"
    need_command python3
    HS_RUN=$HS_TMP/run
}

teardown() {
    hs_teardown
}

# A filesystem with a pack of its own: the file is executed by the stand-in of headstart-replay only.
with_pack() {
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/var/lib/headstart" "$HS_MNT/etc/headstart"
    echo pack >"$HS_MNT/var/lib/headstart/boot.pack"
}

# stand_in LINE…: a script that runs in place of headstart-replay. `tell TEXT` sends a message to
# $NOTIFY_SOCKET.
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

# Runs headstart-init for the filesystem; what it leaves behind ends with the test.
init() {
    local p
    # A descriptor that bats waits for must not live on in what runs on.
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

@test "the boot waits for the sweep that asks for time, and no longer" {
    with_pack
    stand_in 'tell("STATUS=Sweeping\nEXTEND_TIMEOUT_USEC=20000000")' \
        "while not os.path.exists('$HS_TMP/continue'): time.sleep(0.01)" \
        'note("swept")' 'tell("READY=1")' "while not os.path.exists('$HS_TMP/end'): time.sleep(0.01)"
    (hs_wait 20 test -s "$HS_TMP/noted" && touch "$HS_TMP/continue") 3>&- &
    init
    noted swept
    # It goes on by itself.
    pgrep -f "$REPLAY"
    touch "$HS_TMP/end"
    noted "--root=$HS_MNT --mount-wait=60s --timeout=90s --status=$HS_RUN/replay-boot.json $HS_MNT/var/lib/headstart/boot.pack $HS_MNT/etc/headstart/boot.pack"
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

@test "the boot continues if the replay holds nothing, ends, or cannot be executed" {
    with_pack
    stand_in 'tell("READY=1\nSTATUS=Replaying")' 'time.sleep(25)' 'note("late")'
    init
    run ! noted late
    stand_in 'sys.exit(1)'
    init
    REPLAY=$HS_TMP/absent
    init
}

@test "nothing happens where headstart is off, and nothing is replayed where it is recorded anew" {
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
