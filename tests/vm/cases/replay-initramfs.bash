# initramfs-tools, Debian 13: recording and replay begin in the initrd; then packs and programs that are
# of no use, and headstart=0.
# image: d13-ext4
# initrd: installed
# boots: 6
# append-2: init=/usr/local/lib/hsvm/probe-init
# append-3: init=/usr/local/lib/hsvm/probe-init headstart=0
boot_1() {
    a_boot_is_recorded
    trace_begins_with_mount
    check "a sweep is planned" boot_is_gated
    check "the next boot shows what is resident" probe_next_boot
}

boot_2() {
    a_boot_is_replayed
    initrd_has_started
    note "resident when PID 1 started: $(cat /run/hsvm-resident) bytes"
    check "nine tenths of the pack were resident when PID 1 started" resident_at_start 90
    check "the recording of this boot has what PID 1 read" await 120 trace_of boot 2
}

boot_3() {
    nobody_else_suffers
    check "nothing of headstart runs" nothing_runs
    check "the initrd has started nothing" test ! -e /run/headstart
    note "resident when PID 1 started: $(cat /run/hsvm-resident) bytes"
    check "not even half of the pack was resident when PID 1 started" eval '! resident_at_start 50'
    quiet
    # Behind the header: what it is, is beyond doubt.
    dd if=/dev/urandom of="$state/boot.pack" bs=1 seek=4096 count=256 conv=notrunc status=none
}

boot_4() {
    nobody_else_suffers
    complains_once "boot\\.pack"
    check "nothing was replayed" test ! -e /run/headstart/replay-boot.json
    check "the recording began in the initrd all the same" no_early_opens_missed
    mv "$state/boot.pack" "$state/boot.pack.away"
}

boot_5() {
    nobody_else_suffers
    quiet
    check "nothing was replayed" test ! -e /run/headstart/replay-boot.json
    # A replay that hangs before it says anything.
    mv "$state/boot.pack.away" "$state/boot.pack"
    mv "$replay" "$replay.away"
    printf '#!/bin/sh\nexec sleep 1000\n' >"$replay"
    chmod 0755 "$replay"
}

boot_6() {
    check "systemd is through" booted
    check "the default target is reached" systemctl is-active default.target
    check "the replay hangs" pgrep -f "sleep 1000"
    check "its unit is not started" unit_is_skipped headstart-replay-boot.service
    check "no unit failed" no_failed_units
    mv "$replay.away" "$replay"
}

replay=/usr/libexec/headstart/headstart-replay

# The recorder has taken the recording over: it says so otherwise.
no_early_opens_missed() {
    ! journal_of | grep -F "Cannot take over" && test ! -e /run/headstart/handover
}
