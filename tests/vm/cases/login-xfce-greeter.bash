# Boot and login through LightDM's greeter are recorded, then replayed; XFCE.
# image: d13-xfce
# boots: 2
# timeout: 1500
boot_1() {
    check "systemd has finished the boot" booted
    check "the greeter has a session" await 180 greeter_session
    check "Enter logs the user in" login_at_greeter user
    check "the desktop runs" await 300 pgrep -u user xfce4-panel
    first_login_is_recorded user xfce4-panel
}

boot_2() {
    a_boot_is_replayed
    check "the greeter has a session" await 180 greeter_session
    a_login_is_replayed login
    check "Enter logs the user in" login_at_greeter user
    a_login_is_replayed "login@$(id -u user)"
    check "the desktop runs" await 300 pgrep -u user xfce4-panel
    next_login_is_recorded
}
