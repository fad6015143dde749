# initramfs-tools, Debian 13: headstart=0 on the kernel command line, a boot pack that is absent, and a
# replay that hangs: the initrd continues.
# image: d13-ext4
# initrd: installed
# boots: 4
# append-2: init=/usr/local/lib/hsvm/probe-init headstart=0
boot_1() {
    a_boot_is_recorded
    next_boot_is_swept
}

boot_2() {
    nobody_else_suffers
    check "no unit or process of headstart runs" nothing_runs
    # systemd-tmpfiles makes the directory in every boot, so the directory must only be empty.
    check "the initrd has started nothing" test -z "$(ls -A /run/headstart)"
    note "resident when PID 1 started: $(cat /run/hsvm-resident) bytes"
    check "less than half of the pack was resident when PID 1 started" less_than_half_resident
    quiet
    mv "$state/boot.pack" "$state/boot.pack.away"
}

boot_3() {
    nobody_else_suffers
    quiet
    check "nothing was replayed" test ! -e /run/headstart/replay-boot.json
    # Installs a replay that hangs before it sends a message.
    mv "$state/boot.pack.away" "$state/boot.pack"
    mv "$replay" "$replay.away"
    printf '#!/bin/sh\nexec sleep 1000\n' >"$replay"
    chmod 0755 "$replay"
}

boot_4() {
    check "systemd has finished the boot" booted
    check "the default target is reached" systemctl is-active default.target
    check "the replay hangs" pgrep -f "sleep 1000"
    check "the replay's unit is not started" unit_is_skipped headstart-replay-boot.service
    check "no unit failed" no_failed_units
    mv "$replay.away" "$replay"
}

replay=/usr/libexec/headstart/headstart-replay

less_than_half_resident() {
    ! resident_at_start 50
}
