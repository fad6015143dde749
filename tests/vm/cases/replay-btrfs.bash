# The first boot is recorded, the second replays; root on btrfs, in a subvolume, and /home in another
# one. The initrd mounts only the root, so the unit replays what the pack has of /home.
# image: d13-btrfs
# initrd: installed
# boots: 2
# append-2: init=/usr/local/lib/hsvm/probe-init
boot_1() {
    initrd_boot_is_recorded
}

boot_2() {
    a_boot_is_replayed
    pack_was_resident
    check "the unit has replayed the rest" unit_has_run headstart-replay-boot.service
}
