# The replay from the initrd: on a root filesystem that is read-only or full or that exists twice,
# with a clock that jumps, and with an initrd that is older than the package.
# image: d13-ext4
# initrd: installed
# boots: 7
# timeout: 900
# disk: twin 3072
# append-5: root=/dev/disk/by-id/virtio-hsvm-root
# clock-6: 2001-02-03T04:05:06
# initrd-7: plain
boot_1() {
    a_boot_is_recorded
    sed -i 's|\( / ext4 \)defaults|\1ro|' /etc/fstab
}

boot_2() {
    the_boot_goes_on
    check "the root filesystem is read-only" grep -qE '^[^ ]+ / ext4 ro[, ]' /proc/self/mounts
    mount -o remount,rw /
    sed -i 's|\( / ext4 \)ro|\1defaults|' /etc/fstab
    tune2fs -m 0 "$(findmnt -no SOURCE /)"
    fallocate -l "$(df --output=avail -B 1 / | tail -n 1)" /fill-1
    cat /dev/zero >/fill-2
    check "the root filesystem is full" test "$(df --output=avail / | tail -n 1)" -eq 0
}

boot_3() {
    the_boot_goes_on
    rm /fill-1 /fill-2
    check "learning and planning succeed" systemctl start headstart-learn.service
}

boot_4() {
    a_boot_is_replayed
    initrd_has_started
    # The copy of these blocks suffices for blkid to find the same filesystem on a second disk.
    dd if=/dev/disk/by-id/virtio-hsvm-root of=/dev/disk/by-id/virtio-hsvm-twin bs=1M count=64 status=none
    sync
}

boot_5() {
    check "two filesystems have one UUID" two_of_one_uuid
    nobody_is_worse_off
}

boot_6() {
    nobody_is_worse_off
    check "the clock has jumped" test "$(date +%Y)" -gt 2001
    check "the state can be read" headstart status
    dd if=/dev/zero of=/dev/disk/by-id/virtio-hsvm-twin bs=1M count=1 status=none
}

boot_7() {
    nobody_is_worse_off
    check "the replay was started by its unit" test ! -e /run/headstart/replay-boot.early
    check "the replay reports its result" await 120 is_over /run/headstart/replay-boot.json
}

# Does not check for failed units: on such a root filesystem other units fail as well.
the_boot_goes_on() {
    check "systemd has finished the boot" booted
    check "the default target is reached" systemctl is-active default.target
    check "headstart is not on the critical chain" not_on_critical_chain
    check "headstart logs at most one warning" at_most_one_complaint
}

# Checks that the boot goes as without headstart, and that headstart logs at most one warning.
nobody_is_worse_off() {
    nobody_else_suffers
    check "headstart logs at most one warning" at_most_one_complaint
}

at_most_one_complaint() {
    complaints
    [[ $(complaints | wc -l) -le 1 ]]
}

two_of_one_uuid() {
    blkid -s UUID -o value /dev/disk/by-id/virtio-hsvm-{root,twin}
    [[ $(blkid -s UUID -o value /dev/disk/by-id/virtio-hsvm-{root,twin} | sort -u | wc -l) -eq 1 ]]
}
