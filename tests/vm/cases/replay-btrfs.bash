# The first boot is recorded, the second replays; root on btrfs, in a subvolume.
# image: d13-btrfs
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
