# The first boot is recorded, and the next two replay it; root on ext4.
# image: d13-ext4
# boots: 3
# leads: 2,3
# ci: yes
boot_1() {
    a_boot_is_recorded
    # Containers lack the proc connector: tests/bench covers the fallback on /proc.
    check "processes come from the proc connector" processes_from connector boot
}

boot_2() {
    a_boot_is_replayed
    leads_of_boot 2
    check "the next replay waits" replay_waits
}

boot_3() {
    a_boot_is_replayed
    check "all data of the pack was resident" grep -q '"resident":true' /run/headstart/replay-boot.json
    leads_of_boot 3
}
