# Boot and login through GDM's greeter are recorded, then replayed; GNOME.
# image: d13-gnome
# boots: 2
# timeout: 1500
boot_1() {
    check "systemd has finished the boot" booted
    check "the greeter has a session" await 180 greeter_session
    check "Enter logs the user in, and the desktop is drawn" login_until_drawn
    check "the desktop runs" pgrep -u user gnome-shell
    first_login_is_recorded user gnome-shell
}

boot_2() {
    a_boot_is_replayed
    check "the greeter has a session" await 180 greeter_session
    a_login_is_replayed login
    check "Enter logs the user in, and the desktop is drawn" login_until_drawn
    check "the desktop runs" pgrep -u user gnome-shell
    a_login_is_replayed "login@$(id -u user)"
    next_login_is_recorded
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

# Checks that the desktop has drawn its first frame. Without a GPU this takes a while.
desktop_drawn() {
    journalctl -b --no-pager -o cat _UID="$(id -u user)" | grep -q '^Reached target gnome-session-initialized.target'
}
