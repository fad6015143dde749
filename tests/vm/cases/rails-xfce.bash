# Without headstart: LightDM logs a user in by itself, XFCE comes up.
# image: d13-xfce-autologin
# headstart: no
boot_1() {
    check "systemd has finished the boot" booted
    check "no unit failed" no_failed_units
    check "the user has a session" await 120 session_of user
    check "the panel runs" await 240 pgrep -u user xfce4-panel
    check "the desktop runs" await 120 pgrep -u user xfdesktop
    host screen desktop
}
