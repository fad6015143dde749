# initramfs-tools, Debian 13: recording and replay begin in the initrd, and with a corrupt pack only the
# recording.
# image: d13-ext4
# initrd: installed
# boots: 3
# ci: yes
# append-2: init=/usr/local/lib/hsvm/probe-init
boot_1() {
    initrd_boot_is_recorded
}

boot_2() {
    initrd_boot_is_replayed
    check "this boot was recorded, too" await 120 trace_of boot 2
    # The damage is behind the header, so the file is still recognized as a pack.
    dd if=/dev/urandom of="$state/boot.pack" bs=1 seek=4096 count=256 conv=notrunc status=none
}

boot_3() {
    nobody_else_suffers
    complains_once "boot\\.pack"
    check "nothing was replayed" grep -q '"outcome":"failed"' /run/headstart/replay-boot.json
    check "the recording nevertheless began in the initrd" nothing_is_offered
}

nothing_is_offered() {
    ! journal_of | grep -F "Cannot take over" && test ! -e /run/headstart/handover
}
