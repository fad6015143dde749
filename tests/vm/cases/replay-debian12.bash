# The first boot is recorded, the second replays; Debian 12, whose kernel has no cachestat.
# image: d12-text
# initrd: installed
# boots: 2
# ci: yes
boot_1() {
    a_boot_is_recorded
    trace_begins_with_mount
}

boot_2() {
    a_boot_is_replayed
    initrd_has_started
}
