# Without headstart: Debian 12 boots to a login prompt, where a user logs in.
# image: d12-text
# headstart: no
boot_1() {
    check "systemd has finished the boot" booted
    check "no unit failed" no_failed_units
    check "kernel 6.1: no cachestat" grep -q '^6\.1\.' /proc/sys/kernel/osrelease
    await 60 systemctl is-active getty@tty1.service
    # getty has asked for a name once it reads from the terminal.
    await 60 pgrep -t tty1 agetty
    check "the host types a name" host type user
    check "the user has a session" await 60 session_of user
    host screen login
}
