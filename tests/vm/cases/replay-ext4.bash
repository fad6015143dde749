# The first boot is recorded, the second replays; ext4.
# image: d13-ext4
# boots: 2
# ci: yes
boot_1() {
    a_boot_is_recorded
}

boot_2() {
    a_boot_is_replayed
}
