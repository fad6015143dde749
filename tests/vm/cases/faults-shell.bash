# The emergency shells stay reachable while headstart's replay hangs: in the initrd and in systemd.
# image: d13-ext4
# initrd: installed
# boots: 3
# timeout: 900
# append-2: break=init
# type-2: touch /run/hsvm-shell && exit
# append-3: systemd.unit=emergency.target
# type-3: touch /run/hsvm-shell && /usr/local/lib/hsvm/agent
boot_1() {
    a_boot_is_recorded
    check "a sweep is planned" boot_is_gated
    # This replay hangs before it reports READY=1.
    mv "$replay" "$replay.away"
    printf '#!/bin/sh\nexec sleep 1000\n' >"$replay"
    chmod 0755 "$replay"
}

# A shell that opens while a line is typed drops the beginning of the line. The first command of the
# rest then fails, and the command after && is not executed.
boot_2() {
    check "the shell of the initrd took a command" test -e /run/hsvm-shell
    nobody_else_suffers
    check "the replay hangs" pgrep -f "sleep 1000"
}

boot_3() {
    check "the emergency shell took a command" test -e /run/hsvm-shell
    check "the emergency shell runs" systemctl is-active emergency.service
    check "the default target is not reached" not_active multi-user.target
}

replay=/usr/libexec/headstart/headstart-replay

not_active() {
    ! systemctl is-active "$1"
}
