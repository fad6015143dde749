# SPDX-License-Identifier: LGPL-2.1-or-later
# The units' sandboxes as the systemd of Debian 12 and of Debian 13 builds them: every unit runs through its
# functions, and the kernel logs each system call that a unit's filter refuses. The kernel offers the process
# connector only in the first network, PID and user namespace (drivers/connector/cn_proc.c), so no container
# has it; sandbox.bats and tests/vm test the calls that use it.

load helpers
load machine
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    # These tests take minutes and need the trees of tests/vm.
    [ -n "${HEADSTART_BOOTED-}" ] || skip "boots containers only in tests/full booted"
    need_root
    need_command jq
    need_binary "$HEADSTART" "$HEADSTARTD" "$HEADSTART_REPLAY"
    [ -w /dev/kmsg ] || skip "needs the kernel's log"
}

# refused_calls: prints the calls that filters refused to the programs of the units since the test began,
# except clone3(2). RestrictNamespaces= always refuses that call, because a filter cannot read its
# flags; libc then uses clone(2).
refused_calls() {
    local clone3=435
    dmesg | sed -n "/$HS_MARK/,\$p" | grep -E 'audit: type=1326 .*comm="(headstart|is-login"|true"|kill")' | grep -v "syscall=$clone3 " || true
}

# unit_state UNIT PROPERTY: prints the property of a unit of headstart.
unit_state() {
    in_machine systemctl show --value -p "$2" "headstart-$1"
}

# automount_rearm: unmounts the automount if it was set off, so that the next lookup sets it off
# again.
automount_rearm() {
    in_machine systemctl stop net-server.mount net-server.automount 2>/dev/null
    in_machine systemctl start net-server.automount
}

automount_waits() {
    [ "$(in_machine systemctl show --value -p ActiveState net-server.mount)" = inactive ]
    [ "$(in_machine systemctl show --value -p SubState net-server.automount)" = waiting ]
}

# run_unit UNIT: starts the unit and waits until it has ended. Fails if the unit failed, was skipped, or
# set off the automount.
run_unit() {
    automount_rearm
    in_machine systemctl reset-failed "headstart-$1" 2>/dev/null || true
    in_machine systemctl start "headstart-$1"
    hs_wait 90 unit_ended "$1"
    # systemd forgets the result of a unit that no other unit needs, so the journal is read.
    run -0 in_machine journalctl --no-pager -o cat -u "headstart-$1"
    echo "$output"
    tail -n 3 <<<"$output" | grep -q 'Deactivated successfully'
    automount_waits
}

unit_ended() {
    [[ $(unit_state "$1" ActiveState) == @(inactive|failed) ]]
}

# as_user UID COMMAND…: runs the command in a login session. The unit has Type=simple, because with
# PAMName= systemd does not notice that a unit of Type=exec was executed. The class of the session
# is given, because pam_systemd(8) considers a session without a terminal a background session.
as_user() {
    local uid=$1
    shift
    in_machine systemd-run --quiet --collect --unit="login-$uid" -p PAMName=login -p User="$uid" \
        --setenv=XDG_SESSION_CLASS=user --setenv=XDG_SESSION_TYPE=tty -p Type=simple "$@"
}

# bus_call USER VERB NAME: lets the user read the property, or call the method, of headstart-bus.
bus_call() {
    in_machine setpriv --reuid="$1" --clear-groups busctl "$2" org.headstart1 /org/headstart1 org.headstart1.Status "$3"
}

traces() {
    find "$HS_MNT/var/lib/headstart/traces" -name "*-$1.json" 2>/dev/null | wc -l
}

has_traces() {
    [ "$(traces "$1")" -ge "$2" ]
}

# check_read_only PID: checks that the process of a unit can write to its own directories, but to
# none of the listed ones. /dev is not checked: it is a tmpfs, and systemd 257 leaves it writable
# with ReadOnlyPaths= and with ProtectSystem=strict.
check_read_only() {
    local pid=$1 d
    for d in / /etc /usr /home-real /root /var /var/lib /tmp /run /srv; do
        run in_machine nsenter -t "$pid" -m -- touch "$d/touched"
        [[ $status -ne 0 && $output == *"Read-only file system"* ]] || {
            echo "$d: $output"
            return 1
        }
    done
    in_machine nsenter -t "$pid" -m -- touch /var/lib/headstart/touched /run/headstart/touched
}

# replayed NAME: checks that the replay was done and skipped no file because of a missing privilege
# or an error.
replayed() {
    jq -c . "/proc/$MACHINE/root/run/headstart/$1.json"
    jq -e '.outcome == "done" and .files > 0 and (.skipped | (.denied // 0) + (.error // 0)) == 0' \
        "/proc/$MACHINE/root/run/headstart/$1.json"
}

# dumped JQ-EXPRESSION: checks that the expression is true of a new dump of the session cycle. The signal comes from
# outside of the machine, because each systemctl in the machine would be an application that starts, and the chains
# would predict the next systemctl.
dumped() {
    local dump=/proc/$MACHINE/root/run/headstart/session.json
    rm -f "$dump"
    pkill -USR2 --ns "$MACHINE" --nslist pid -x headstartd
    hs_wait 2 test -s "$dump" && jq -e "$1" "$dump" >/dev/null
}

# app COMMAND…: runs an application of the user, which reads its standard input to the end. It lives for some seconds,
# because the machine has no proc connector, and headstartd does not see a process that ends at once.
app() {
    sleep 3 | in_machine setpriv --reuid=1000 --regid=1000 --clear-groups "$@" >/dev/null
}

# make_applications: makes two applications and the files that they read, all of root. The files are old, because a
# file that has just changed is one whose content changes.
make_applications() {
    local i
    cp "$HS_MNT/usr/bin/cat" "$HS_MNT/usr/bin/first"
    cp "$HS_MNT/usr/bin/grep" "$HS_MNT/usr/bin/second"
    mkdir -p "$HS_MNT/usr/share/second"
    head -c 1500000 /dev/urandom >"$HS_MNT/usr/share/first"
    for i in 1 2 3; do head -c 1500000 /dev/urandom >"$HS_MNT/usr/share/second/$i"; done
    find "$HS_MNT/usr/bin/first" "$HS_MNT/usr/bin/second" "$HS_MNT/usr/share/first" "$HS_MNT/usr/share/second" \
        -exec touch -d '10 days ago' {} +
}

# read_ahead_is KB: checks the read-ahead of the machine's disk.
read_ahead_is() {
    [ "$(cat "/sys/class/bdi/$(mountpoint -d "$HS_MNT")/read_ahead_kb")" = "$1" ]
}

# has_exact_login: checks that the trace of a login was recorded with exact ranges.
has_exact_login() {
    local t
    for t in "$HS_MNT"/var/lib/headstart/traces/*-login.json; do
        "$HEADSTART" show --json=short "$t" | jq -e '.flags | index("exact")' >/dev/null && return
    done
    return 1
}

# replay_login_sleeps: lets the unit of the replay at the greeter run until somebody stops it.
replay_login_sleeps() {
    local dir=/proc/$MACHINE/root/run/systemd/system/headstart-replay-login.service.d
    mkdir -p "$dir"
    printf '[Service]\nExecStart=\nExecStart=sleep 1000\nSystemCallFilter=\nRuntimeMaxSec=infinity\n' >"$dir/sleep.conf"
    in_machine systemctl daemon-reload
    in_machine systemctl start headstart-replay-login.service
    hs_wait 30 unit_runs replay-login.service
}

# has_chains: checks that the model has chains of at least two applications.
has_chains() {
    zcat -f "$HS_MNT/var/lib/headstart/model.json" | jq -e '.chains.names | length >= 2' >/dev/null
}

unit_runs() {
    [ "$(unit_state "$1" ActiveState)" = active ]
}

# session_functions: in the session of the user, one application starts. Its set is read, and then what the
# application reads that usually follows.
session_functions() {
    hs_wait 150 dumped '.n_decisions >= 1'
    hs_drop_caches
    app first -
    hs_wait 60 dumped '.launch.n_starts >= 1 and .launch.n_replayed >= 1 and .launch.read_bytes > 1000000'
    hs_wait 60 dumped '.prefetch.read_bytes > 4000000' || {
        cat "/proc/$MACHINE/root/run/headstart/session.json"
        return 1
    }
    in_machine systemctl stop login-1000.service
    hs_wait 30 has_traces session 2
}

# exact_functions: after a boot that is not recorded, the recorder starts late, and records a login with exact
# ranges. Read-ahead is restored after the recording, and after a crash.
exact_functions() {
    local bdi=/sys/devices/virtual/bdi usual
    # systemd-nspawn makes this sysfs and its mounts read-only. On a real machine only the sandbox does.
    in_machine mount --bind $bdi $bdi
    in_machine mount -o remount,rw $bdi
    in_machine systemctl stop headstart-record.service
    "$HEADSTART" --state="$HS_MNT/var/lib/headstart" rerecord --quiet --exact --stage=login
    usual=$(cat "/sys/class/bdi/$(mountpoint -d "$HS_MNT")/read_ahead_kb")
    : >"$HS_MNT/var/lib/headstart/boot-idle"
    run_unit record-late.service
    hs_wait 30 unit_runs record.service
    as_user 1000 sleep 1000
    hs_wait 60 read_ahead_is 4
    in_machine systemctl kill --kill-whom=main --signal=KILL headstart-record.service
    hs_wait 30 unit_ended record.service
    read_ahead_is "$usual"
    in_machine systemctl stop login-1000.service
    in_machine systemctl reset-failed headstart-record.service
    in_machine systemctl start headstart-record.service
    as_user 1000 sh -c 'cat /srv/user/file >/dev/null; exec sleep 1000'
    hs_wait 150 has_exact_login
    read_ahead_is "$usual"
}

# every_function TREE: boots the tree, and lets every unit do all that it does on a real machine.
every_function() {
    local unit state
    machine_tree "$1"
    state=$HS_MNT/var/lib/headstart
    # /home is a symlink to a directory below an automount, which no unit may set off.
    rmdir "$HS_MNT/home"
    mkdir -p "$HS_MNT/home-real" "$HS_MNT/net/server"
    ln -s /net/server/home "$HS_MNT/home"
    printf '[Automount]\nWhere=/net/server\n' >"$HS_MNT/etc/systemd/system/net-server.automount"
    printf '[Unit]\nJobTimeoutSec=20s\n[Mount]\nWhat=none\nWhere=/net/server\nType=tmpfs\n' \
        >"$HS_MNT/etc/systemd/system/net-server.mount"
    mkdir -p "$HS_MNT/etc/systemd/system/local-fs.target.wants"
    ln -s ../net-server.automount "$HS_MNT/etc/systemd/system/local-fs.target.wants/"
    useradd --root "$HS_MNT" --uid 1000 --no-create-home --home-dir /srv/user user
    install -d -o 1000 -m 700 "$HS_MNT/srv/user"
    head -c 200000 /dev/urandom >"$HS_MNT/srv/user/file"
    chown 1000 "$HS_MNT/srv/user/file"
    make_applications
    # dbus reads no policy below /usr/local.
    cp "$HS_SOURCE/data/dbus/org.headstart1.conf" "$HS_MNT/etc/dbus-1/system.d/"
    # With these settings everything is replayed, also on a fast disk, and there are no control
    # sessions.
    mkdir -p "$HS_MNT/etc/headstart"
    printf '[Replay]\nBootPolicy=gate\nLoginPolicy=concurrent\nControlInterval=0\n[Session]\nMinSize=0\nCycle=1s\nLaunchReplay=yes\n' \
        >"$HS_MNT/etc/headstart/headstart.conf"
    HS_MARK="headstart test $$ $BATS_TEST_NUMBER $RANDOM"
    echo "$HS_MARK" >/dev/kmsg
    HS_COLD_OPTIONS=relatime hs_cold
    machine_boot

    # A boot, a login and a session are recorded, and the sandbox of the recorder is in effect.
    hs_wait 60 has_traces boot 1
    [ "$(unit_state record.service ActiveState)" = active ]
    check_read_only "$(unit_state record.service MainPID)"
    # Nothing was learned yet, so the packs are planned from the model that is installed with headstart.
    hs_wait 60 unit_ended plan.service
    rm -f "$state"/*.pack
    run_unit plan.service
    [ -s "$state/boot.pack" ] && [ -s "$state/login.pack" ]
    as_user 1000 sh -c 'cat /srv/user/file /usr/bin/perl >/dev/null; exec sleep 1000'
    # On a busy machine a login counts as settled only after two minutes.
    hs_wait 150 has_traces login 1
    in_machine systemctl reload headstart-record.service
    app first /usr/share/first -
    hs_wait 30 dumped '.n_learned >= 2'
    app second -r nothing-that-is-there /usr/share/second - || true
    hs_wait 30 dumped '.n_learned >= 4'
    in_machine systemctl stop login-1000.service
    hs_wait 30 has_traces session 1
    # The session cycle saves its chains, perhaps after the learning that the login has started.
    hs_wait 30 has_chains

    # The model and the packs contain files of root and files of the user.
    run_unit learn.service
    [ -s "$state/boot.pack" ] && [ -s "$state/login@1000.pack" ]
    [ -n "$(find "$state" -name 'launch*.pack')" ]
    "$HEADSTART" show --json=short "$state/login@1000.pack" | grep -q '"/srv/user/file"'
    jq -e '.devices | length > 0' "$state/devices.json"
    : >"$state/refresh-wanted"
    run_unit refresh.service
    [ ! -e "$state/refresh-wanted" ]

    # A call on the system bus starts the bus service, which answers, and ends when no call comes.
    run bus_call root get-property State
    echo "$output"
    [ "$output" = 's "ready"' ]
    run bus_call root call GetHistory
    echo "$output"
    [[ $output == "as "[1-9]* ]]
    run bus_call 1000 call GetOwnLogins
    echo "$output"
    [[ $output == *LastUSec* ]]
    hs_wait 60 unit_ended bus.service
    run -0 in_machine journalctl --no-pager -o cat -u headstart-bus.service
    echo "$output"
    tail -n 3 <<<"$output" | grep -q 'Deactivated successfully'

    # Everything is replayed, and nothing is skipped because a privilege is missing.
    for unit in replay-boot replay-login; do
        hs_drop_caches
        run_unit "$unit.service"
        replayed "$unit"
    done
    # The next login starts the replay of its user's pack, and the session cycle has a model.
    in_machine systemctl stop headstart-record.service
    automount_rearm
    in_machine systemctl start headstart-record.service
    automount_waits
    # The condition of this replay ends the replay at the greeter.
    replay_login_sleeps
    as_user 1000 sh -c 'perl -e 1; exec sleep 1000'
    hs_wait 60 test -e "/proc/$MACHINE/root/run/headstart/replay-login@1000.json"
    hs_wait 60 unit_ended replay-user@1000.service
    replayed replay-login@1000
    hs_wait 30 unit_ended replay-login.service
    session_functions
    exact_functions

    run refused_calls
    echo "$output"
    [ -z "$output" ]
}

@test "Debian 12: every unit runs through its functions, its filter refuses none of its calls" {
    every_function d12-text
}

@test "Debian 13: every unit runs through its functions, its filter refuses none of its calls" {
    every_function d13-text
}
