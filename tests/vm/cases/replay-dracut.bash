# dracut with systemd in the initrd, Debian 13: recording and replay begin in the initrd, and systemd
# passes the descriptors on.
# image: d13-dracut
# initrd: installed
# boots: 3
# append-3: init=/usr/local/lib/hsvm/probe-init
boot_1() {
    check "headstartd got the descriptors from systemd" descriptors_passed
    initrd_boot_is_recorded
}

boot_2() {
    check "headstartd got the descriptors from systemd" descriptors_passed
    a_boot_is_replayed
    initrd_has_started
}

# The initrd's systemd passes its state on to another systemd only, not to probe-init.
boot_3() {
    initrd_boot_is_replayed
}

descriptors_passed() {
    local pid
    pid=$(systemctl show -p MainPID --value headstart-record.service)
    tr '\0' '\n' <"/proc/$pid/environ" | grep '^LISTEN'
    tr '\0' '\n' <"/proc/$pid/environ" | grep '^LISTEN_FDNAMES=.*headstart-fanotify'
}
