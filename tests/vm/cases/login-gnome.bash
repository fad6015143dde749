# Boot and login through GDM's greeter are recorded, then replayed; GNOME.
# image: d13-gnome
# boots: 2
# timeout: 1500
boot_1() {
    check "systemd is through" booted
    check "the greeter has a session" await 180 greeter_session
    check "Enter logs the user in, and the desktop is drawn" login_until_drawn
    check "the desktop runs" pgrep -u user gnome-shell
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
    check "Enter logs the user in, and the desktop is drawn" login_until_drawn
    check "the desktop runs" pgrep -u user gnome-shell
    a_login_is_replayed "login@$(id -u user)"
    headstart status
    check "headstart status tells of the login" status_tells_of_login
    check "the login was recorded" await 300 trace_of login 2
    check "headstart is not on the critical chain" not_on_critical_chain
    quiet
    host screen desktop
}

# GDM gives up on a session that is slow to register, and shows the greeter again.
login_until_drawn() {
    local i
    for ((i = 0; i < 4; i++)); do
        login_at_greeter user
        await 300 drawn_or_given_up
        desktop_drawn && return
        note "GDM gave up on the session"
        await 180 greeter_session
    done
    return 1
}

drawn_or_given_up() {
    desktop_drawn || { greeter_session && ! session_of user; }
}

# Without a GPU, with software rendering, its first frame takes a while.
desktop_drawn() {
    journalctl -b --no-pager -o cat _UID="$(id -u user)" | grep -q '^Reached target gnome-session-initialized.target'
}

status_tells_of_login() {
    headstart status | tee /dev/stderr | grep -A5 -i 'replayed in this boot' | grep -q '^ *login'
}
