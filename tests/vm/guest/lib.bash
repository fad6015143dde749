# Functions for cases, used inside the machine. Descriptor 3 is the serial port to the host.
# shellcheck shell=bash disable=SC2001 # sed also puts the prefix before further lines

out=/run/hsvm/out
# shellcheck disable=SC2034 # install.bash and cases use it
files=/run/hsvm/files
state=/var/lib/headstart
mkdir -p "$out"

serial_open() {
    stty -F /dev/ttyS1 raw -echo
    exec 3<>/dev/ttyS1
}

say() {
    printf '%s\n' "$*" >&3
}

# --- requests to the host ----------------------------------------------------------------------

# host COMMAND…: lets the host carry out the command. Fails if the command fails on the host, or if
# the host does not answer within two minutes.
#   host key KEY…          presses keys, one after the other (qemu's names: ret, ctrl-alt-f2)
#   host type TEXT         types the text
#   host screen NAME       stores a picture of the screen
#   host cut               cuts the power at once
#   host cut-within N      cuts the power at a random moment of the next N seconds
host() {
    local answer
    say "host $*"
    read -r -t 120 answer <&3 && [[ $answer == "done" ]]
}

# --- results -----------------------------------------------------------------------------------

ok() {
    say "ok $1"
}

# not_ok WHAT [WHY]
not_ok() {
    say "not ok $1"
    [[ -z ${2-} ]] || sed 's/^/#   /' <<<"$2" | head -n 20 >&3
    return 0
}

# skip WHAT WHY
skip() {
    say "ok $1 # SKIP $2"
}

note() {
    sed 's/^/# /' <<<"$*" >&3
}

# check WHAT COMMAND…: passes if the command succeeds. If the command fails, its output is reported.
check() {
    local what=$1 said
    shift
    if said=$("$@" 2>&1); then
        ok "$what"
    else
        not_ok "$what" "$said"
        return 1
    fi
}

# await SECONDS COMMAND…: repeats the command until it succeeds, for conditions without an event to
# wait for.
await() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.5
    done
}

# --- the system --------------------------------------------------------------------------------

# Waits until systemd has finished the boot, whether or not units have failed ("degraded").
booted() {
    local s
    s=$(timeout 600 systemctl is-system-running --wait)
    [[ $s == running || $s == degraded ]]
}

no_failed_units() {
    local failed
    failed=$(systemctl list-units --failed --no-legend --plain)
    [[ -z $failed ]] || {
        echo "$failed"
        awk '{ print $1 }' <<<"$failed" | while read -r unit; do
            journalctl -b --no-pager -n 5 -u "$unit"
        done
        return 1
    }
}

# journal_of [OPTION…]: prints the messages of headstart's units and programs, and the messages of
# systemd about them
journal_of() {
    {
        journalctl -b --no-pager -o short-monotonic "$@" -u 'headstart*'
        journalctl -b --no-pager -o short-monotonic "$@" -t headstart -t headstartd -t headstart-replay
        journalctl -b --no-pager -o short-monotonic "$@" _PID=1 --grep=headstart
    } | grep -v '^-- ' | sort -u
}

no_warnings() {
    local said
    said=$(journal_of -p warning)
    [[ -z $said ]] || {
        echo "$said"
        return 1
    }
}

# Fails if the default target waited for a unit of headstart, and prints such units.
not_on_critical_chain() {
    local chain
    chain=$(systemd-analyze --no-pager critical-chain) || return
    # A mount that a test has made does not count.
    ! grep -E 'headstart-[^ ]*\.(service|timer|path)' <<<"$chain"
}

# has_run SERVICE: checks that the service has run to its end in this boot
has_run() {
    [[ $(systemctl show -p ExecMainExitTimestampMonotonic --value "$1") != 0 ]] &&
        ! systemctl is-active "$1" | grep activating
}

# Checks that neither units nor processes of headstart run.
nothing_runs() {
    ! systemctl list-units --no-legend --plain 'headstart*' | grep -E ' running | exited ' || return
    ! pgrep -a headstart
}

# Prints the path of the running kernel's initrd.
initrd_file() {
    echo "/boot/initrd.img-$(uname -r)"
}

# in_initrd NAME: checks that the initrd contains the file
in_initrd() {
    if command -v lsinitramfs >/dev/null; then
        lsinitramfs "$(initrd_file)"
    else
        lsinitrd "$(initrd_file)"
    fi | grep -F "$1"
}

# session_of USER: prints an active session of class user or a similar class
session_of() {
    loginctl list-sessions --no-legend | awk '{ print $1 }' | while read -r s; do
        loginctl show-session "$s" -p Name -p Class -p State -p Type | tr '\n' ' '
        echo
    done | grep -E "Name=$1 " | grep -E 'Class=user(-early|-light)? ' | grep 'State=active'
}

greeter_session() {
    loginctl list-sessions --no-legend | awk '{ print $1 }' | while read -r s; do
        loginctl show-session "$s" -p Class -p State | tr '\n' ' '
        echo
    done | grep 'Class=greeter ' | grep 'State=active'
}

# log_in USER SECONDS COMMAND: runs the command, which gets the number of the try, until the user has
# logged in, because nothing outside shows when a greeter or a console accepts input.
log_in() {
    local i
    for ((i = 0; i < 10; i++)); do
        session_of "$1" && return
        "$3" "$i" "$1"
        await "$2" session_of "$1" && return
    done
    return 1
}

# press_enter TRY, type_name TRY USER: what log_in runs
press_enter() {
    host screen "greeter-$1"
    host key ret
}

type_name() {
    host type "$2"
    host key ret
}

# login_at_greeter USER: presses Enter; takes a picture of the screen before each press.
login_at_greeter() {
    log_in "$1" 15 press_enter
}

# login_at_console USER: types the name; there are no passwords.
login_at_console() {
    log_in "$1" 20 type_name
}

# --- checks of headstart -----------------------------------------------------------------------

# field FILE NAME: prints a field of a flat JSON object, which may be compressed. Uses only tools that the image has.
field() {
    zcat -f "$1" | grep -oE "\"$2\" *: *(\"[^\"]*\"|[0-9.]+|true|false|null)" | head -n 1 |
        sed -E 's/^[^:]*: *"?//; s/"$//'
}

# trace_of STAGE [N]: checks that there are at least N traces of the stage (default: 1)
trace_of() {
    local found
    mapfile -t found < <(compgen -G "$state/traces/*-$1*.json")
    ((${#found[@]} >= ${2-1}))
}

quiet() {
    check "no unit failed" no_failed_units
    check "headstart logs no warning" no_warnings
}

# processes_from SOURCE STAGE: checks that each trace of the stage names this source of its processes
processes_from() {
    local found trace=
    for trace in "$state"/traces/*-"$2"*.json; do
        found=$(field "$trace" process_source)
        echo "$trace: $found, unknown: $(field "$trace" n_unknown_application)"
        [[ $found == "$1" ]] || return 1
    done
}

# pack_has PACK WORDS: checks that the printed pack has a line with these words
pack_has() {
    headstart show "$1" --limit=0 | grep -F -- "$2" || {
        headstart show "$1"
        return 1
    }
}

# Waits until the boot is over and its trace is written. Then learns and plans, and checks the results.
a_boot_is_recorded() {
    check "systemd has finished the boot" booted
    check "headstart is not on the critical chain" not_on_critical_chain
    check "the boot was recorded" await 120 trace_of boot
    boot_policy concurrent
    check "learning and planning succeed" systemctl start headstart-learn.service
    check "there is a model" test -s "$state/model.json"
    check "there is a pack for the boot" test -s "$state/boot.pack"
    check "the pack contains systemd" pack_has "$state/boot.pack" systemd/libsystemd-shared
    check "the pack contains a file below /home" pack_has "$state/boot.pack" user/hsvm-read
    check "the pack contains a file of the kernel's modules" pack_has "$state/boot.pack" /modules.dep.bin
    check "only root can read the state" test "$(stat -c '%a %u' "$state")" = "700 0"
    quiet
    headstart show "$state/boot.pack" >"$out/pack" 2>&1
}

# is_over FILE: checks that a replay has reported its end; before that it reports that it runs.
is_over() {
    test -s "$1" && ! grep -q '"outcome":"running"' "$1"
}

# Checks that the pack was replayed early in this boot, and that the replay was reported.
a_boot_is_replayed() {
    local file=/run/headstart/replay-boot.json start took bytes end
    check "systemd has finished the boot" booted
    # The replay takes long during the long boot of a desktop.
    if check "the replay reports its result" await 120 is_over "$file"; then
        cp "$file" "$out"
        start=$(field "$file" start_boottime_usec) took=$(field "$file" duration_usec)
        bytes=$(field "$file" data_bytes)
        note "replay: after $((start / 1000)) ms, for $((took / 1000)) ms, $bytes bytes of $(field "$file" files) files"
        check "the replay read over 1 MB" test "${bytes:-0}" -gt 1000000
        check "the replay skipped only deleted files" skipped_only_gone "$file"
        # Userspace is ready long after the start of the replay.
        end=$(systemctl show -p FinishTimestampMonotonic --value)
        check "the replay ended before the boot" test $((start + took)) -lt "$end"
    fi
    check "headstart status shows the replay" status_says_replayed
    quiet
}

# boot_policy POLICY: sets the policy of boots for all further plans. The page cache of the host often
# makes the disk so fast that the planner would rightly choose `off`.
boot_policy() {
    mkdir -p /etc/headstart/headstart.conf.d
    printf '[Replay]\nBootPolicy=%s\nDeadline=60s\n' "$1" >/etc/headstart/headstart.conf.d/hsvm.conf
}

# Plans again, with the policy `gate`: later boots wait until the boot pack is swept, whatever the
# planner would choose. The planner may end the hold before that, where this is faster. How much is
# resident then depends on the speed of the machine, so the planned end is removed from the pack.
boot_is_gated() {
    local raw=/var/lib/hsvm-pack tool=/usr/local/lib/hsvm/hold-until-swept
    boot_policy gate
    headstart plan &&
        install -D -m 0755 /run/hsvm/hold-until-swept "$tool" && # no program runs from /run
        zcat <"$state/boot.pack" >"$raw" && "$tool" <"$raw" | gzip >"$state/boot.pack.new" &&
        [[ ${PIPESTATUS[*]} == "0 0" ]] && mv "$state/boot.pack.new" "$state/boot.pack" || return 1
    ! headstart show "$state/boot.pack" | grep "Held for: [0-9]" || return 1
}

# The next boot with init=/usr/local/lib/hsvm/probe-init measures how much of the boot pack is
# resident when PID 1 starts. It measures the files of the root filesystem, since no other
# filesystem is mounted then.
probe_next_boot() {
    install -m 0755 /run/hsvm/probe-init /usr/local/lib/hsvm/probe-init
    headstart show "$state/boot.pack" --json=short --limit=0 >"$out/pack.json"
    perl -0777 -pe 's|\\/|/|g' "$out/pack.json" | perl -0777 -ne '
        my ($at, @files) = ("");
        while (/"mountpoint":"((?:[^"\\]|\\.)*)"|\{"path":"((?:[^"\\]|\\.)*)"|\{"file":(\d+),"offset":(\d+),"length":(\d+)/g) {
            if (defined $1) {
                ($at, @files) = ($1);
            } elsif (defined $2) {
                push @files, $2;
            } elsif ($at eq "/") {
                print "$4 $5 $files[$3]\n";
            }
        }
    ' >/var/lib/hsvm-ranges
    sync
    test -s /var/lib/hsvm-ranges
}

# Prepares the next boot: replay sweeps the disk in the initrd, and probe-init measures what is resident.
next_boot_is_swept() {
    check "a sweep is planned" boot_is_gated
    check "the next boot will measure what is resident" probe_next_boot
}

# Checks the result of probe-init in this boot.
pack_was_resident() {
    note "resident when PID 1 started: $(cat /run/hsvm-resident) bytes"
    check "nine tenths of the pack were resident when PID 1 started" resident_at_start 90
}

# resident_at_start PERCENT: checks that at least this share was resident
resident_at_start() {
    local resident all
    read -r resident all </run/hsvm-resident
    echo "$resident of $all bytes"
    ((all > 1000000 && resident * 100 >= all * $1))
}

# Checks that the initrd has started the replay, and that the replay began before systemd did.
initrd_has_started() {
    check "the initrd has started the replay" test -e /run/headstart/replay-boot.early
    check "the replay's unit has not started it" unit_is_skipped headstart-replay-boot.service
    check "the replay began before systemd did" replay_precedes_systemd
}

unit_has_run() {
    [ "$(systemctl show -p ConditionResult --value "$1")" = yes ] &&
        [ "$(systemctl show -p Result --value "$1")" = success ]
}

unit_is_skipped() {
    [ "$(systemctl show -p ConditionResult --value "$1")" = no ]
}

replay_precedes_systemd() {
    local start userspace
    start=$(field /run/headstart/replay-boot.json start_boottime_usec)
    userspace=$(systemctl show -p UserspaceTimestampMonotonic --value)
    echo "replay $start us, systemd $userspace us"
    [ "$start" -lt "$userspace" ]
}

# Checks that the trace of the boot, from which the pack was planned, contains what PID 1 read before
# headstartd started, and that headstartd has taken over the recording.
trace_begins_with_mount() {
    check "the trace has the program that PID 1 executes" pack_has "$state/boot.pack" lib/systemd/systemd
    check "the trace has systemd's first library" pack_has "$state/boot.pack" libsystemd-core
    check "no process offers a recording any more" test ! -e /run/headstart/handover
}

# The first boot of a system whose initrd starts recording and replay: it is recorded, and the next boot
# is measured.
initrd_boot_is_recorded() {
    a_boot_is_recorded
    trace_begins_with_mount
    next_boot_is_swept
}

# Checks the boot after initrd_boot_is_recorded.
initrd_boot_is_replayed() {
    a_boot_is_replayed
    initrd_has_started
    pack_was_resident
}

# Checks that the replay in the initrd has asked the filesystem for items of metadata.
items_were_asked_for() {
    check "the filesystem was asked for items" test "$(field /run/headstart/replay-boot.json metadata_ranges)" -gt 20
}

# Checks that the replay skipped only files that were deleted or replaced since the previous boot.
skipped_only_gone() {
    grep -o '"skipped":{[^}]*}' "$1"
    ! grep -qE '"skipped":{[^}]*"(unmounted|device|denied|error|stopped)"' "$1"
}

# Lets the replay of the boot pack wait, in later boots, until all data has arrived. Its status then
# contains the time of this moment.
replay_waits() {
    local dir=/etc/systemd/system/headstart-replay-boot.service.d
    mkdir -p "$dir"
    {
        echo '[Service]'
        echo 'ExecStart='
        sed -n 's|^ExecStart=[^ ]*|& --wait|p' "$(systemctl show -p FragmentPath --value headstart-replay-boot.service)"
    } >"$dir/hsvm.conf"
    cat "$dir/hsvm.conf"
}

# leads_of_boot COUNT: stores the inputs of lead times (hsvm/leads.py): the pack of this boot,
# before it is planned again, and this boot's own trace, which is the COUNTth.
leads_of_boot() {
    check "the boot was recorded" await 120 trace_of boot "$1" || return
    headstart show "$state/boot.pack" --json=short --limit=0 >"$out/leads-pack.json"
    local traces=("$state"/traces/*-boot*.json)
    zcat -f "${traces[-1]}" >"$out/leads-trace.json"
    headstart show "${traces[-1]}" --json=short --limit=0 >"$out/leads-shown.json"
}

status_says_replayed() {
    headstart status | tee /dev/stderr | grep -A3 -i 'replayed in this boot' | grep -q '^ *boot '
}

# a_login_is_recorded USER PROGRAM: checks that the login of the user, whose desktop is up, was recorded
# and learned, and that the packs contain the program of the desktop
a_login_is_recorded() {
    local pack
    boot_policy concurrent
    # The recorder measures when the login has settled. After two minutes the login counts as settled.
    check "the login was recorded" await 300 trace_of login
    check "learning and planning succeed" systemctl start headstart-learn.service
    for pack in "$state/login.pack" "$state/login@$(id -u "$1").pack"; do
        check "$(basename "$pack") exists" test -s "$pack"
        check "the pack contains the desktop" pack_has "$pack" "/$2"
        headstart show "$pack" --limit=0 >"$out/$(basename "$pack").text" 2>&1
    done
}

# a_login_is_replayed STAGE[@UID]: checks the result of this replay, and prints when it ran and how
# much it read
a_login_is_replayed() {
    local file="/run/headstart/replay-$1.json"
    check "the replay of $1 reports its result" await 120 test -s "$file" || return
    cp "$file" "$out"
    note "replay of $1: after $(($(field "$file" start_boottime_usec) / 1000)) ms, for $(($(field "$file" duration_usec) / 1000)) ms, $(field "$file" data_bytes) bytes of $(field "$file" files) files, $(field "$file" outcome)"
    check "the replay read over 1 MB" test "$(field "$file" data_bytes)" -gt 1000000
    check "the replay skipped only deleted files" skipped_only_gone "$file"
}

status_lists_login() {
    headstart status | tee /dev/stderr | grep -A5 -i 'replayed in this boot' | grep -q '^ *login'
}

# first_login_is_recorded USER PROGRAM: checks the end of a boot in which a login is recorded
first_login_is_recorded() {
    check "the boot was recorded" trace_of boot
    a_login_is_recorded "$1" "$2"
    check "there is a pack for the boot" test -s "$state/boot.pack"
    desktop_is_quiet
}

# Checks the end of the next boot, in which a login is recorded, too.
next_login_is_recorded() {
    headstart status
    check "headstart status lists the login" status_lists_login
    check "the login was recorded" await 300 trace_of login 2
    desktop_is_quiet
}

desktop_is_quiet() {
    check "headstart is not on the critical chain" not_on_critical_chain
    quiet
    host screen desktop
}

# --- faults of headstart -------------------------------------------------------------------------

# Checks that the system is in the same state as without headstart, whatever failed in headstart.
nobody_else_suffers() {
    check "systemd has finished the boot" booted
    check "the default target is reached" systemctl is-active default.target
    check "no unit but headstart's failed" only_headstart_failed
    check "headstart is not on the critical chain" not_on_critical_chain
}

only_headstart_failed() {
    systemctl list-units --failed --no-legend --plain | tee /dev/stderr | awk '$1 !~ /^headstart/ { bad = 1 } END { exit bad }'
}

# complains_once PATTERN: checks that headstart's programs log one warning, in one line that matches
complains_once() {
    # The warning may come after the default target is reached, because the recording ends later.
    await 120 one_complaint "$1"
    check "headstart reports the fault in one line" one_complaint "$1"
}

complaints() {
    journal_of -p warning | grep -E ' (headstart|headstartd|headstart-replay)(\[[0-9]+\])?: '
}

one_complaint() {
    local said
    said=$(complaints)
    echo "${said:-nothing}"
    grep -qiE -- "$1" <<<"$said" && [[ $(wc -l <<<"$said") -eq 1 ]]
}

# early_unit COMMAND: runs the command during each later boot, after the recorder has begun.
# no_early_unit ends that.
early_unit() {
    cat >"/etc/systemd/system/hsvm-early.service" <<END
[Service]
Type=oneshot
ExecStart=/bin/sh -c '$1'
[Unit]
After=headstart-record.service
[Install]
WantedBy=multi-user.target
END
    systemctl enable hsvm-early.service
}

no_early_unit() {
    systemctl disable hsvm-early.service
    rm /etc/systemd/system/hsvm-early.service
}

# Stores the journal, the state of the units, and headstart's state as artefacts.
collect() {
    journalctl -b --no-pager -o short-monotonic >"$out/journal" 2>&1
    journalctl -b --no-pager -o json >"$out/journal.json" 2>/dev/null
    systemd-analyze --no-pager critical-chain >"$out/critical-chain" 2>&1
    systemd-analyze --no-pager blame >"$out/blame" 2>&1
    systemctl list-units --all --no-pager >"$out/units" 2>&1
    loginctl --no-pager >"$out/sessions" 2>&1
    findmnt >"$out/mounts" 2>&1
    [[ ! -d $state ]] || cp -a "$state" "$out/state" 2>/dev/null
    [[ ! -d /run/headstart ]] || cp -a /run/headstart "$out/run" 2>/dev/null
    if command -v headstart >/dev/null; then
        headstart status >"$out/status" 2>&1
    fi
}

finish() {
    collect
    tar -C "$out" -cf /dev/disk/by-id/virtio-hsvm-out . 2>/dev/null
    sync
    say finished
    systemctl poweroff --no-block
}
