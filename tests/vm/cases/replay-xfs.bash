# The first boot is recorded, the second replays; root on xfs.
# image: d13-xfs
# boots: 2
boot_1() {
    a_boot_is_recorded
}

boot_2() {
    a_boot_is_replayed
}
