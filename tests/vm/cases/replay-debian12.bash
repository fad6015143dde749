# The first boot is recorded, the second replays; Debian 12, whose kernel has no cachestat.
# image: d12-text
# boots: 2
boot_1() {
    a_boot_is_recorded
}

boot_2() {
    a_boot_is_replayed
}
