# Boot and automatic login by LightDM are recorded, then replayed; XFCE.
# image: d13-xfce-autologin
# boots: 2
# timeout: 1500
boot_1() {
    check "systemd has finished the boot" booted
    check "the user has a session" await 120 session_of user
    check "the desktop runs" await 300 pgrep -u user xfce4-panel
    first_login_is_recorded user xfce4-panel
}

boot_2() {
    a_boot_is_replayed
    check "the user has a session" await 120 session_of user
    a_login_is_replayed "login@$(id -u user)"
    check "the desktop runs" await 300 pgrep -u user xfce4-panel
    next_login_is_recorded
}
