# headstart-init is PID 1 on a machine whose initrd has no headstart: recording and replay begin when the
# root filesystem is mounted; ext4.
# image: d13-ext4
# initrd: plain
# append: init=/usr/libexec/headstart/headstart-init
# boots: 2
# ci: yes
boot_1() {
    check "headstart-init has executed the real init" grep -qx systemd /proc/1/comm
    a_boot_is_recorded
    trace_begins_with_mount
}

boot_2() {
    a_boot_is_replayed
    check "headstart-init has started the replay" test -e /run/headstart/replay-boot.early
    check "the replay's unit has not started it" unit_is_skipped headstart-replay-boot.service
    check "the replay began before systemd did" replay_precedes_systemd
}
