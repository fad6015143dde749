# The first boot is recorded, the second replays; ext4 over LVM over LUKS.
# image: d13-luks
# initrd: installed
# boots: 2
# append-2: init=/usr/local/lib/hsvm/probe-init
boot_1() {
    initrd_boot_is_recorded
}

boot_2() {
    initrd_boot_is_replayed
}
