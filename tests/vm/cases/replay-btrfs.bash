# The first boot is recorded, the second replays; root on btrfs, in a subvolume.
# image: d13-btrfs
# boots: 2
boot_1() {
    a_boot_is_recorded
}

boot_2() {
    a_boot_is_replayed
}
