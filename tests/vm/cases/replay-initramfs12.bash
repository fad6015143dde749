# initramfs-tools, Debian 12 (systemd 252, kernel 6.1): recording and replay begin in the initrd.
# image: d12-text
# initrd: installed
# boots: 2
boot_1() {
    a_boot_is_recorded
    trace_begins_with_mount
}

boot_2() {
    a_boot_is_replayed
    initrd_has_started
}
