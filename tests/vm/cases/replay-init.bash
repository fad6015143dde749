# headstart-init is PID 1: recording and replay begin when the root filesystem is mounted; ext4.
# image: d13-ext4
# append: init=/usr/libexec/headstart/headstart-init
# boots: 2
# ci: yes
boot_1() {
    check "headstart-init has executed the real init" grep -qx systemd /proc/1/comm
    a_boot_is_recorded
    check "the trace has the program that PID 1 executes" pack_has "$state/boot.pack" lib/systemd/systemd
    check "the trace has systemd's first library" pack_has "$state/boot.pack" libsystemd-core
    check "nobody offers a recording any more" test ! -e /run/headstart/handover
}

boot_2() {
    a_boot_is_replayed
    check "headstart-init has started the replay" test -e /run/headstart/replay-boot.early
    check "its unit has not" unit_is_skipped headstart-replay-boot.service
    check "the replay began before systemd did" replay_precedes_systemd
}

unit_is_skipped() {
    [ "$(systemctl show -p ConditionResult --value "$1")" = no ]
}

replay_precedes_systemd() {
    local start userspace
    start=$(field /run/headstart/replay-boot.json start_boottime_usec)
    userspace=$(systemctl show -p UserspaceTimestampMonotonic --value)
    echo "replay $start us, systemd $userspace us"
    [ "$start" -lt "$userspace" ]
}
