# Without headstart: LightDM's greeter logs a user in.
# image: d13-xfce
# headstart: no
boot_1() {
    check "systemd has finished the boot" booted
    check "the greeter has a session" await 180 greeter_session
    check "Enter logs the user in" login_at_greeter user
    check "the panel runs" await 240 pgrep -u user xfce4-panel
    host screen desktop
}
