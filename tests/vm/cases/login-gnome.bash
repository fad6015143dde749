# Boot and login through GDM's greeter are recorded, then replayed; GNOME.
# image: d13-gnome
# boots: 2
# timeout: 1500
boot_1() {
    check "systemd is through" booted
    check "the greeter has a session" await 180 greeter_session
    check "Enter logs the user in" login_at_greeter user
    check "the desktop runs" await 300 pgrep -u user gnome-shell
    check "the desktop is drawn" await 300 desktop_drawn
    check "the boot was recorded" trace_of boot
    a_login_is_recorded user gnome-shell
    check "there is a pack for the boot" test -s "$state/boot.pack"
    check "headstart is not on the critical chain" not_on_critical_chain
    quiet
    host screen desktop
}

boot_2() {
    a_boot_is_replayed
    check "the greeter has a session" await 180 greeter_session
    a_login_is_replayed login
    check "Enter logs the user in" login_at_greeter user
    a_login_is_replayed "login@$(id -u user)"
    check "the desktop runs" await 300 pgrep -u user gnome-shell
    check "the desktop is drawn" await 300 desktop_drawn
    headstart status
    check "headstart status tells of the login" status_tells_of_login
    check "the login was recorded" await 300 trace_of login 2
    check "headstart is not on the critical chain" not_on_critical_chain
    quiet
    host screen desktop
}

# Without a GPU, and in software, its first frame takes a while.
desktop_drawn() {
    journalctl -b --no-pager -o cat _UID="$(id -u user)" | grep -q '^Reached target gnome-session-initialized.target'
}

status_tells_of_login() {
    headstart status | tee /dev/stderr | grep -A5 -i 'replayed in this boot' | grep -q '^ *login'
}
