# The first boot is recorded, the second replays; root on btrfs, in a subvolume.
# image: d13-btrfs
# initrd: installed
# boots: 2
# append-2: init=/usr/local/lib/hsvm/probe-init
boot_1() {
    a_boot_is_recorded
    trace_begins_with_mount
    next_boot_is_swept
}

boot_2() {
    a_boot_is_replayed
    initrd_has_started
    pack_was_resident
}
