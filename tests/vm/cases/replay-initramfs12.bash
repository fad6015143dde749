# initramfs-tools, Debian 12 (systemd 252, kernel 6.1): recording and replay begin in the initrd.
# image: d12-text
# initrd: installed
# boots: 2
# append-2: init=/usr/local/lib/hsvm/probe-init
boot_1() {
    initrd_boot_is_recorded
}

boot_2() {
    initrd_boot_is_replayed
}
