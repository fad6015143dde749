# The first boot is recorded from the initrd on, the second replays; /, /var and /home apart, on partitions.
# image: d13-split
# initrd-1: installed
# boots: 2
boot_1() {
    a_boot_is_recorded
    trace_begins_with_mount
    check "early boot has a copy of the pack" cmp "$state/boot.pack" /etc/headstart/boot.pack
}

boot_2() {
    a_boot_is_replayed
}
