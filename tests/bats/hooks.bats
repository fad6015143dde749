#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The hooks that display managers and package managers run: each starts a unit, waits for nothing,
# and succeeds.

bats_require_minimum_version 1.5.0
load helpers
load logind

# Makes copies of the hooks as they are installed, but below HS_TMP. PATH has a systemctl that
# prints its arguments and then hangs until the test is over.
setup() {
    hs_setup
    need_root
    need_command unshare mkfifo
    local f libexec
    mkdir "$HS_TMP/libexec" "$HS_TMP/bin"
    libexec=$(sed -n 's,^@\?\(/.*\)/hook greeter$,\1,p' "$HS_BUILD/hooks/hook-sddm-display")
    for f in hook hook-lightdm-session hook-sddm-display PostLogin lightdm-headstart.conf; do
        sed -e "s,$libexec,$HS_TMP/libexec,g" -e "s,/var/lib/headstart,$HS_STATE,g" \
            -e "s,/\(etc\|usr/share\)/sddm,$HS_TMP/\1/sddm,g" "$HS_BUILD/hooks/$f" >"$HS_TMP/libexec/$f"
        chmod +x "$HS_TMP/libexec/$f"
    done
    mkfifo "$HS_TMP/forever"
    cat >"$HS_TMP/bin/systemctl" <<EOF
#!/bin/sh
echo "\$*" >>"$HS_TMP/told"
exec cat "$HS_TMP/forever"
EOF
    chmod +x "$HS_TMP/bin/systemctl"
    # At the end of the test, this ends the processes that hang.
    hs_defer sh -c ": 1<>'$HS_TMP/forever'"
}

# on_systemd COMMAND…: runs the command as on a machine that was booted with systemd, with the
# systemctl of setup(). The command must return within ten seconds, even on a busy machine, although
# systemctl hangs.
on_systemd() {
    # shellcheck disable=SC2016
    timeout 10 unshare --mount sh -c '
        mount -t tmpfs none /run && mkdir -p /run/systemd/system && PATH=$1:$PATH && shift && exec "$@"' \
        - "$HS_TMP/bin" "$@" 3>&-
}

# as_lightdm KEY: runs the command that headstart's configuration of LightDM has for the key.
as_lightdm() {
    local command argv
    command=$(sed -n "s/^$1=//p" "$HS_TMP/libexec/lightdm-headstart.conf")
    eval "argv=($command)" # LightDM parses the words like a shell
    on_systemd "${argv[@]}"
}

told() {
    grep -qx -- "$1" "$HS_TMP/told"
}

@test "hooks start a unit, wait for nothing and succeed, even if systemctl hangs" {
    run -0 on_systemd "$HS_TMP/libexec/hook" greeter
    [ -z "$output" ]
    hs_wait 10 told "start --no-block headstart-replay-login.service"
    run -0 on_systemd "$HS_TMP/libexec/hook" user root
    hs_wait 10 told "start --no-block headstart-replay-user@0.service"
    rm "$HS_TMP/told"
    run -0 on_systemd "$HS_TMP/libexec/hook" user 0
    hs_wait 10 told "start --no-block headstart-replay-user@0.service"
    run -0 on_systemd "$HS_TMP/libexec/hook" packages
    hs_wait 10 told "restart --no-block headstart-refresh.timer"
    [ ! -e "$HS_STATE" ]
    # If the state directory exists, the hook also leaves a request there, with or without systemd.
    # If no unit can be started, the refresh at the next boot finds this request.
    mkdir "$HS_STATE"
    run -0 on_systemd "$HS_TMP/libexec/hook" packages
    [ -e "$HS_STATE/refresh-wanted" ]
    rm "$HS_STATE/refresh-wanted"
    run -0 "$HS_TMP/libexec/hook" packages
    [ -e "$HS_STATE/refresh-wanted" ]
    # If the request cannot be written, the hook still restarts the timer.
    rm "$HS_STATE/refresh-wanted" "$HS_TMP/told"
    mkdir "$HS_STATE/refresh-wanted"
    run -0 on_systemd "$HS_TMP/libexec/hook" packages
    hs_wait 10 told "restart --no-block headstart-refresh.timer"
}

@test "the scripts of the display managers start the replay" {
    USERNAME=root run -0 on_systemd "$HS_TMP/libexec/PostLogin"
    hs_wait 10 told "start --no-block headstart-replay-user@0.service"
    rm "$HS_TMP/told"
    USER=root run -0 as_lightdm session-setup-script
    hs_wait 10 told "start --no-block headstart-replay-user@0.service"
    rm "$HS_TMP/told"
    run -0 as_lightdm greeter-setup-script
    hs_wait 10 told "start --no-block headstart-replay-login.service"
    rm "$HS_TMP/told"
    run -0 on_systemd "$HS_TMP/libexec/hook-sddm-display"
    hs_wait 10 told "start --no-block headstart-replay-login.service"
}

@test "SDDM's hook runs the Xsetup in /etc if there are two, with its arguments" {
    local dir
    for dir in etc/sddm usr/share/sddm/scripts; do
        mkdir -p "$HS_TMP/$dir"
        printf '#!/bin/sh\necho "%s $*"\n' "$dir" >"$HS_TMP/$dir/Xsetup"
        chmod +x "$HS_TMP/$dir/Xsetup"
    done
    run -0 on_systemd "$HS_TMP/libexec/hook-sddm-display" some words
    [ "$output" = "etc/sddm some words" ]
    # A file that cannot be run is not used.
    chmod -x "$HS_TMP/etc/sddm/Xsetup"
    run -0 on_systemd "$HS_TMP/libexec/hook-sddm-display"
    [ "$output" = "usr/share/sddm/scripts " ]
    rm "$HS_TMP/etc/sddm/Xsetup"
    run -0 on_systemd "$HS_TMP/libexec/hook-sddm-display"
    [ "$output" = "usr/share/sddm/scripts " ]
}

@test "an unknown user, or an invalid name, starts nothing" {
    local name
    for name in "" no-such-user --help '-1' 'root;reboot' '../0' 'root root' $'root\nroot'; do
        run -0 on_systemd "$HS_TMP/libexec/hook" user "$name"
        [ -z "$output" ]
    done
    run -0 on_systemd "$HS_TMP/libexec/hook"
    run -0 on_systemd "$HS_TMP/libexec/hook" dance
    # If the calls above had started units, these would be noted before the unit of this call.
    run -0 on_systemd "$HS_TMP/libexec/hook" greeter
    hs_wait 10 told "start --no-block headstart-replay-login.service"
    [ "$(wc -l <"$HS_TMP/told")" -eq 1 ]
}

@test "without systemd, systemctl or headstart: the hooks do nothing, successfully" {
    # shellcheck disable=SC2016
    run -0 unshare --mount sh -c 'mount -t tmpfs none /run && PATH=$1:$PATH exec "$2" greeter' \
        - "$HS_TMP/bin" "$HS_TMP/libexec/hook"
    [ -z "$output" ]
    [ ! -e "$HS_TMP/told" ]
    rm "$HS_TMP/bin/systemctl"
    printf '#!/bin/sh\nexit 1\n' >"$HS_TMP/bin/systemctl"
    chmod +x "$HS_TMP/bin/systemctl"
    run -0 on_systemd "$HS_TMP/libexec/hook" greeter
    # The package was removed, but its configuration stays. LightDM keeps its own in memory.
    rm "$HS_TMP/libexec/hook" "$HS_TMP/libexec/hook-lightdm-session"
    USERNAME=root run -0 on_systemd "$HS_TMP/libexec/PostLogin"
    [ -z "$output" ]
    USER=root run -0 as_lightdm greeter-setup-script
    [ -z "$output" ]
    USER=root run -0 as_lightdm session-setup-script
    [ -z "$output" ]
}

# --- is-login ----------------------------------------------------------------------------------

# sessions_are LINE…: starts systemd and logind with these sessions. Each LINE is "ID UID CLASS TYPE SEAT"
# (SEAT "-": no seat).
sessions_are() {
    local line
    logind_setup
    bus_start
    fake_start
    fake appear
    for line; do
        # shellcheck disable=SC2086 # the words of the line
        fake new $line
    done
}

is_login() {
    timeout 60 "$HS_BUILD/src/daemon/is-login" "$@"
}

@test "is-login: the user at the greeter counts; lingering users, cron jobs and ssh do not" {
    sessions_are "c1 120 greeter wayland seat0" "1 1000 manager unspecified -" "2 1001 user tty -" \
        "3 1002 background unspecified -" "4 1003 user wayland seat0" "5 1004 user-early tty seat0" \
        "6 1005 user x11 -"
    fake manager active
    run -1 is_login 1000 headstart-replay-login.service
    run -1 is_login 1001 headstart-replay-login.service
    run -1 is_login 1002 headstart-replay-login.service
    run -1 is_login 100 headstart-replay-login.service
    run -1 is_login 120 headstart-replay-login.service
    run -0 is_login 1003
    run -0 is_login 1004
    run ! grep -q stop "$HS_TMP/fake.log"
    run -0 is_login 1005 headstart-replay-login.service
    hs_wait 10 grep -qx 'stop replace headstart-replay-login.service' "$HS_TMP/fake.log"
    # Without a greeter every login counts, also on a console or over the network.
    fake manager inactive
    run -0 is_login 1001
    run -1 is_login 1002
    fake manager not-found
    run -0 is_login 1001
    # A remote user is served once in each boot, and a user at the machine at each login.
    touch "$HS_TMP/status"
    run -0 is_login 1001 headstart-replay-login.service "$HS_TMP/no-status"
    run -1 is_login 1001 headstart-replay-login.service "$HS_TMP/status"
    run -0 is_login 1003 headstart-replay-login.service "$HS_TMP/status"
    run -0 is_login 1005 headstart-replay-login.service "$HS_TMP/status"
    run -2 is_login
    run -2 is_login x
    run -2 is_login 1003 a b c
}

@test "is-login: headstart-replay-user@.service tests the status that its replay writes" {
    local unit=$HS_BUILD/units/headstart-replay-user@.service status
    status=$(sed -n 's/^ExecStart=.* --status=\([^ ]*\) .*/\1/p' "$unit")
    [ -n "$status" ]
    grep -q "^ExecCondition=/[^ ]*/is-login %i headstart-replay-login.service $status$" "$unit"
}

@test "is-login: without logind every user counts, and a logind that does not answer is not awaited for long" {
    sessions_are "1 1000 user x11 seat0"
    fake silent
    run -1 is_login 1000
    fake disappear
    run -0 is_login 1000
    hs_kill "$HS_BUS"
    run -0 is_login 1000
}

# --- install-hooks -----------------------------------------------------------------------------

# machine PROGRAM…: makes a root directory in which these programs are installed
machine() {
    local p
    rm -rf "$HS_TMP/root"
    mkdir -p "$HS_TMP/root/usr/share/lightdm/lightdm.conf.d" "$HS_TMP/root/etc/gdm3/PostLogin"
    for p; do
        mkdir -p "$HS_TMP/root${p%/*}"
        : >"$HS_TMP/root$p"
        chmod +x "$HS_TMP/root$p"
    done
}

links() {
    (cd "$HS_TMP/root" && find . -type l -printf '%P\n' | sort | tr '\n' ' ')
}

@test "install-hooks: only for installed display managers, and remove restores the old state" {
    local gdm=etc/gdm3/PostLogin/Default lightdm=usr/share/lightdm/lightdm.conf.d/00-headstart.conf \
        sddm=usr/lib/sddm/sddm.conf.d/00-headstart.conf before
    place() { "$HS_BUILD/hooks/install-hooks" "$1" "$HS_TMP/root"; }
    machine
    place install
    [ -z "$(links)" ]
    machine /usr/sbin/gdm3
    place install
    [ "$(links)" = "$gdm " ]
    machine /usr/sbin/lightdm /usr/bin/sddm /usr/sbin/gdm3
    before=$(find "$HS_TMP/root" | sort)
    place install
    place install
    [ "$(links)" = "$gdm $sddm $lightdm " ]
    # One display manager is removed.
    rm "$HS_TMP/root/usr/sbin/lightdm"
    place install
    [ "$(links)" = "$gdm $sddm " ]
    : >"$HS_TMP/root/usr/sbin/lightdm"
    place remove
    [ "$(find "$HS_TMP/root" | sort)" = "$before" ]
}

@test "install-hooks: files that belong to others stay" {
    local default=$HS_TMP/root/etc/gdm3/PostLogin/Default
    machine /usr/sbin/gdm3
    echo mine >"$default"
    "$HS_BUILD/hooks/install-hooks" install "$HS_TMP/root"
    "$HS_BUILD/hooks/install-hooks" remove "$HS_TMP/root"
    [ "$(cat "$default")" = mine ]
    ln -sf elsewhere "$default"
    "$HS_BUILD/hooks/install-hooks" install "$HS_TMP/root"
    "$HS_BUILD/hooks/install-hooks" remove "$HS_TMP/root"
    [ "$(readlink "$default")" = elsewhere ]
    run -2 --separate-stderr "$HS_BUILD/hooks/install-hooks" dance
    # shellcheck disable=SC2154 # run sets it
    [[ $stderr == usage:* ]]
}
