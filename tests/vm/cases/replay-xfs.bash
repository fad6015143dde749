# The first boot is recorded, the second replays; root on xfs.
# image: d13-xfs
# initrd: installed
# boots: 2
# append-2: init=/usr/local/lib/hsvm/probe-init
boot_1() {
    initrd_boot_is_recorded
}

boot_2() {
    initrd_boot_is_replayed
    items_were_asked_for
}
