# Without headstart: the real GDM shows its greeter; Enter logs a user in.
# image: d13-gnome
# headstart: no
# timeout: 1200
boot_1() {
    check "systemd has finished the boot" booted
    check "no unit failed" no_failed_units
    check "the greeter has a session" await 180 greeter_session
    check "Enter logs the user in" login_at_greeter user
    check "GNOME Shell runs for the user" await 300 pgrep -u user gnome-shell
    host screen desktop
}
