# The first boot is recorded, the second replays; /, /var and /home apart, on partitions.
# image: d13-split
# boots: 2
boot_1() {
    a_boot_is_recorded
}

boot_2() {
    a_boot_is_replayed
}
