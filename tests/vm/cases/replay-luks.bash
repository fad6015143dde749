# The first boot is recorded, the second replays; ext4 over LVM over LUKS.
# image: d13-luks
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
