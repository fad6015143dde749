# SPDX-License-Identifier: LGPL-2.1-or-later
# The tests use the units' sandboxes: each program performs all its functions with no more
# capabilities than its unit has. A filter kills it at the first system call that the unit denies.
# Under systemd, such a call fails with ENOSYS.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_root
    need_command systemd-analyze setpriv jq python3 "${CC:-cc}"
    need_binary "$HEADSTART" "$HEADSTARTD" "$HEADSTART_REPLAY"
}

# directive UNIT KEY: prints the values of the directive, one per line.
directive() {
    sed -n "s/^$2=//p" "$HS_BUILD/units/headstart-$1.service"
}

# denied UNIT: prints the names of the calls that the unit denies. Its SystemCallFilter= lines are
# combined as systemd.exec(5) describes. A group of systemd may contain groups.
denied() {
    [ -s "$HS_TMP/groups" ] || systemd-analyze syscall-filter 2>/dev/null | sed 's/\x1b\[[0-9;]*m//g' >"$HS_TMP/groups"
    directive "$1" SystemCallFilter | awk '
        function change(name, deny,    i, k, parts) {
            if (name !~ /^@/) {
                if (deny) set[name] = 1; else delete set[name]
                return
            }
            k = split(members[name], parts, " ")
            for (i = 1; i <= k; i++) change(parts[i], deny)
        }
        FNR == NR && /^@/ { group = $1 }
        FNR == NR && /^ / && !/#/ { members[group] = members[group] " " $1 }
        FNR == NR { next }
        {
            deny = sub(/^~/, "")
            for (i = 1; i <= NF; i++) change($i, deny)
        }
        END { for (name in set) print name }' "$HS_TMP/groups" - | sort
}

# calls: prints the names and numbers of all system calls of this architecture that the headers have.
calls() {
    ${CC:-cc} -E -dM -include sys/syscall.h - </dev/null |
        sed -nE 's/^#define __NR_([a-z0-9_]+) \(?(__NR_SYSCALL_BASE ?\+ ?)?([0-9]+)\)?$/\1 \3/p' | sort
}

# numbers <NAMES: prints the numbers of these system calls on this architecture. Names that the
# headers lack are left out.
numbers() {
    sort | join - <(calls) | cut -d' ' -f2
}

# expected PROGRAM: prints the calls that units/calls allows the program.
expected() {
    sed 's/#.*//' "$HS_SOURCE/units/calls/equivalents" | awk -v program="$1" '
        FNR == NR && !/^#/ { for (i = 2; i <= NF; i++) if ($i == program) seen[$1] = 1; next }
        /:/ {
            use = /^always:/
            for (i = 1; i <= NF; i++) {
                name = $i
                colon = sub(/:$/, "", name)
                if (after && use) also[name] = 1
                if (!after && name in seen) use = 1
                if (colon) after = 1
            }
            after = 0
        }
        END { for (c in seen) print c; for (c in also) print c }' "$HS_SOURCE/units/calls/seen" - | sort -u
}

# sandbox UNIT: sets SANDBOX to a script that runs a command with the capabilities, the filter and the I/O
# priority of the unit.
sandbox() {
    local caps io
    denied "$1" | numbers >"$HS_TMP/denied-$1"
    [ "$(wc -l <"$HS_TMP/denied-$1")" -gt 150 ]
    caps=$(directive "$1" CapabilityBoundingSet | tr 'A-Z' 'a-z' | sed 's/cap_/+/g; s/ /,/g')
    io=$(directive "$1" IOSchedulingClass)
    cat >"$HS_TMP/sandbox-$1" <<END
#!/bin/sh
exec ${io:+ionice --class "$io"} setpriv --bounding-set=-all${caps:+,$caps} --inh-caps=-all --ambient-caps=-all \
    "$HS_BUILD/tests/tools/tool-deny-syscalls" "\$@" <"$HS_TMP/denied-$1"
END
    # tests/record-calls observes the calls instead of denying some.
    [ -z "${HEADSTART_NO_FILTER-}" ] || printf '#!/bin/sh\nexec "$@"\n' >"$HS_TMP/sandbox-$1"
    chmod +x "$HS_TMP/sandbox-$1"
    SANDBOX=$HS_TMP/sandbox-$1
}

# populate [SECOND]: makes a filesystem with files of root and of a user, and traces of a boot and of the user's
# login. With SECOND, a directory, it mounts a second filesystem there, with a file of root. The programs access
# that filesystem in another thread (system/disk-call.h).
populate() {
    hs_filesystem ext4 64
    local stage loop=$HS_LOOP second=()
    mkdir -p "$HS_MNT/usr/bin" "$HS_MNT/home/user/private" "$HS_STATE/traces"
    head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/app"
    head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/other"
    head -c 200000 /dev/urandom >"$HS_MNT/home/user/private/file"
    chmod 600 "$HS_MNT/home/user/private/file"
    chmod 700 "$HS_MNT/home/user" "$HS_MNT/home/user/private"
    chown -R 1000:1000 "$HS_MNT/home/user"
    sync -f "$HS_MNT"
    if [ -n "${1-}" ]; then
        mkdir "$HS_MNT$1"
        truncate -s 32M "$HS_TMP/second.img"
        mkfs.ext4 -q "$HS_TMP/second.img"
        hs_loop "$HS_TMP/second.img"
        hs_mount "$HS_LOOP" "$HS_MNT$1"
        head -c 300000 /dev/urandom >"$HS_MNT$1/data"
        sync -f "$HS_MNT$1"
        second=("$1=$HS_LOOP" "$1/data")
        HS_LOOP=$loop
    fi
    for stage in boot login; do
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" $stage $(($(date +%s) - 3600)) \
            /usr/bin/app /usr/bin/other /home/user/private/file "${second[@]}" |
            jq 'if .stage == "login" then .uid = 1000 else . end' \
                >"$HS_STATE/traces/20251101T080000-$stage.json"
    done
    chmod -R go= "$HS_STATE"
}

# on_files VERB… : runs the verb on the files of populate().
on_files() {
    "${WRAPPER[@]}" "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" "$@"
}

# learns, plans, refreshes [WRAPPER…]: runs what a unit runs of this verb, with the wrapper. Everything that the verb
# needs is made before without the wrapper. Prints what the verb has changed.
learns() {
    local WRAPPER=("$@")
    rm -f "$HS_STATE"/*.pack "$HS_STATE"/*.json
    on_files --quiet learn
    "$HEADSTART" show --json=short "$HS_STATE/model.json" | jq -c '[.. | objects | .path? // empty] | sort'
}

plans() {
    local WRAPPER=("$@")
    learns >"$HS_TMP/learned"
    on_files --quiet plan --if-changed
    # Packs alone would not show that the sandbox has killed a measurement, because its result does
    # not change these packs.
    jq -c '[.devices[].samples.far.usec | length > 0]' "$HS_STATE/devices.json"
    local pack
    for pack in "$HS_STATE"/*.pack; do
        "$HEADSTART" show --json=short "$pack" | jq -c '[.. | objects | .path? // empty] | sort'
    done
}

refreshes() {
    local WRAPPER=("$@")
    plans >"$HS_TMP/planned"
    # The file of the user is replaced, and its directory is for the user alone.
    head -c 250000 /dev/urandom >"$HS_MNT/home/user/private/new"
    chown 1000:1000 "$HS_MNT/home/user/private/new"
    mv "$HS_MNT/home/user/private/new" "$HS_MNT/home/user/private/file"
    sync -f "$HS_MNT"
    : >"$HS_STATE/refresh-wanted"
    on_files --json=short refresh
    [ ! -e "$HS_STATE/refresh-wanted" ]
    "$HEADSTART" show --json=short "$HS_STATE/login@1000.pack" | jq -c '[.. | objects | .path? // empty] | sort'
}

# What the background units run: UNIT:FUNCTION.
BACKGROUND=(learn:learns learn:plans plan:plans refresh:refreshes)

@test "the filter of every unit denies the calls that an attacker needs" {
    local u call
    for u in record record-late replay-boot replay-login replay-user@ learn plan refresh bus; do
        denied "$u" >"$HS_TMP/names"
        for call in bpf process_vm_readv process_vm_writev userfaultfd keyctl add_key request_key setuid \
            setresuid setgroups io_uring_setup io_uring_enter mount umount2 move_mount fsopen chroot pivot_root \
            ptrace kexec_load init_module finit_module reboot swapon settimeofday clock_settime mknod mknodat \
            chown fchownat perf_event_open setns unshare memfd_create shmget execveat iopl; do
            grep -qx "$call" "$HS_TMP/names" || {
                echo "$u allows $call"
                return 1
            }
        done
    done
}

@test "a unit allows only calls that its program was seen to make, and their equivalents" {
    local u p
    # The program refuses calls with a higher number than this (system/call-filter.h).
    local last=$(($(calls | sed -n 's/^openat2 //p') + 13))
    calls | awk -v last="$last" '$2 <= last && $1 !~ /^(uretprobe|uprobe)$/ { print $1 }' >"$HS_TMP/calls"
    [ "$(wc -l <"$HS_TMP/calls")" -gt 250 ]
    for u in record:record,kill replay-boot:replay replay-login:replay replay-user@:replay,is-login learn:background \
        plan:background refresh:background bus:bus record-late:true; do
        for p in $(tr , ' ' <<<"${u#*:}"); do
            expected "$p"
        done | sort -u >"$HS_TMP/expected"
        denied "${u%:*}" | sort -u >"$HS_TMP/names"
        comm -23 "$HS_TMP/calls" "$HS_TMP/names" >"$HS_TMP/allowed"
        if [[ $u == replay-user@* ]]; then
            # The unit denies them again.
            sed -i '/^open_by_handle_at$/d; /^capget$/d' "$HS_TMP/expected"
        fi
        diff "$HS_TMP/allowed" <(comm -12 "$HS_TMP/calls" "$HS_TMP/expected") || {
            echo "$u allows the calls on the left, units/calls those on the right"
            return 1
        }
        # A group may only be denied.
        run ! grep '^SystemCallFilter=[^~]*@' "$HS_BUILD/units/headstart-${u%:*}.service"
    done
}

@test "each program that runs in a unit's sandbox completes the filter of the unit" {
    need_command strace
    local unit program
    while read -r unit program; do
        sandbox "$unit"
        strace -f -qq -e trace=prctl,execve -o "$HS_TMP/trace" "$SANDBOX" $program >/dev/null
        sed '1,/execve("[^"]*'"$(basename "${program%% *}")"'".* = 0$/d' "$HS_TMP/trace" >"$HS_TMP/own"
        echo "$program"
        grep -q 'prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, .* = 0$' "$HS_TMP/own"
    done <<END
learn $HEADSTART --version
record $HEADSTARTD --version
replay-boot $HEADSTART_REPLAY --version
replay-user@ $HS_BUILD/src/daemon/is-login 4711
bus $HS_BUILD/src/bus/headstart-bus --version
END
}

@test "the tables of calls name only calls that a program makes" {
    local call causes _
    # A line of the table of equivalents is of use if a program was seen to make one of its calls.
    sed 's/#.*//' "$HS_SOURCE/units/calls/equivalents" | while IFS=: read -r causes _; do
        [ -n "${causes// }" ] && [ "$causes" != always ] || continue
        grep -qE "^(${causes// /|}) " "$HS_SOURCE/units/calls/seen" || {
            echo "no program was seen to make $causes"
            return 1
        }
    done
    calls | cut -d' ' -f1 >"$HS_TMP/calls"
    sed '/^#/d; s/ .*//' "$HS_SOURCE/units/calls/seen" | sort | comm -23 - "$HS_TMP/calls" >"$HS_TMP/unknown"
    [ "$(uname -m)" != x86_64 ] || [ ! -s "$HS_TMP/unknown" ]
}

@test "the test for sandboxes would notice a call that is denied" {
    sandbox learn
    run "$SANDBOX" chroot / true
    [ "$status" -eq 159 ] # 128 + SIGSYS
    run "$SANDBOX" mknod "$HS_TMP/fifo" p
    [ "$status" -eq 159 ]
    run -0 "$SANDBOX" head -n 100 /proc/self/status
    [[ $output == *"Seccomp:"*2* ]]
}

@test "learn, plan and refresh: the sandbox allows everything that they use" {
    populate /second
    local u policy expected
    for u in "${BACKGROUND[@]}"; do
        expected=$("${u#*:}")
        echo "$u: $expected"
        [[ $expected == *"/home/user/private/file"* ]]
        [[ $expected == *'"/second/data"'* ]]
        sandbox "${u%:*}"
        [ "$("${u#*:}" "$SANDBOX")" = "$expected" ]
    done
    for u in learn plan refresh; do
        sandbox "$u"
        # A changed policy is an entry of the journal.
        for policy in concurrent metadata; do
            run -0 unshare --mount --propagation private "$BATS_TEST_DIRNAME/with-journal" "$SANDBOX" "$HEADSTART" \
                --state="$HS_STATE" --root="$HS_MNT" --quiet plan --stage=boot --policy=$policy
        done
        jq -se '.[0].HEADSTART_POLICY == "metadata"' <<<"$output"
    done
}

@test "bus: the sandbox allows everything that it uses, without any capability" {
    need_command dbus-daemon busctl
    mkdir -m 0700 "$HS_STATE"
    echo '{"version":1,"stage":"boot","flags":[],"policy":"off","outcome":"","usage":"none","start_realtime_usec":1700000000000000,"ready_usec":5000000}' >"$HS_STATE/history.jsonl"
    sandbox bus
    [ -z "$(directive bus CapabilityBoundingSet)" ]
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$HS_TMP/bus
    hs_bus_start "$HS_TMP/bus" <<'END'
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy>
END
    "$SANDBOX" "$HS_BUILD/src/bus/headstart-bus" --state="$HS_STATE" --idle=5s 2>"$HS_TMP/service.log" 3>&- &
    hs_defer hs_kill $!
    has_name() {
        busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" status org.headstart1 >/dev/null 2>&1
    }
    hs_wait 10 has_name
    run -0 busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" get-property org.headstart1 /org/headstart1 \
        org.headstart1.Status BootLastUSec
    echo "$output"
    [ "$output" = "t 5000000" ]
    run -0 busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" call org.headstart1 /org/headstart1 \
        org.headstart1.Status GetOwnLogins
    # headstart-bus gives its name back when no call has come for some time, and exits without an
    # error.
    has_exited() {
        if has_name; then return 1; fi
    }
    hs_wait 30 has_exited
    [ -z "$(<"$HS_TMP/service.log")" ]
}

@test "learn, plan and refresh: they need every capability that they have" {
    populate /second
    local u cap other left caps expected
    for u in "${BACKGROUND[@]}"; do
        [ "$u" != learn:learns ] || continue # see the next test
        expected=$("${u#*:}")
        caps=$(directive "${u%:*}" CapabilityBoundingSet)
        [ -n "$caps" ]
        for cap in $caps; do
            left=-all
            for other in $caps; do
                [ "$other" = "$cap" ] || left+=,+$(tr 'A-Z' 'a-z' <<<"${other#CAP_}")
            done
            echo "$u with $left"
            [ "$("${u#*:}" setpriv --bounding-set="$left" --inh-caps=-all 2>/dev/null)" != "$expected" ]
        done
    done
}

@test "learn: it needs no capability, and drops the one that its unit has for the plan" {
    populate
    local expected file=$HS_MNT/home/user/private/file
    expected=$(learns)
    [ "$(learns setpriv --bounding-set=-all --inh-caps=-all)" = "$expected" ]
    local WRAPPER=(setpriv --inh-caps=-all
        --bounding-set="-all,$(directive learn CapabilityBoundingSet | tr 'A-Z' 'a-z' | sed 's/cap_/+/g; s/ /,/g')")
    "${WRAPPER[@]}" cat "$file" >/dev/null
    run -1 on_files learn "$file"
    [[ $output == *"$file: Permission denied"* ]]
}

@test "replay: the sandbox allows everything that it uses, with any policy" {
    populate
    "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" --quiet learn
    local u policy
    for u in replay-boot replay-login replay-user@; do
        sandbox "$u"
        for policy in idle concurrent gate metadata; do
            "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" --quiet plan --stage=boot \
                --policy=$([ $policy = idle ] && echo concurrent || echo $policy)
            "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" --quiet plan --stage=login \
                --policy=$([ $policy = gate ] && echo idle || echo $policy)
            for pack in boot login@1000; do
                hs_cold
                run -0 "$SANDBOX" "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --json --hurry \
                    --status="$HS_TMP/status.json" --timeout=60s "$HS_STATE/$pack.pack"
                echo "$u, $policy, $pack: $output"
                jq -e '.outcome == "done" and (.skipped | length) == 0' <<<"$output"
                [ -s "$HS_TMP/status.json" ]
            done
        done
    done
    hs_cold
    run -0 "$SANDBOX" "$HEADSTART_REPLAY" --root="$HS_MNT" --settle=2s --mount-wait=1s --wait --json \
        "$HS_STATE/boot.pack"
}

# in_sandbox UNIT PROGRAM FILE REGEX N: runs these N tests of a bats file with the program of src/daemon in the
# sandbox of the unit.
in_sandbox() {
    local build=$HS_TMP/build
    mkdir -p "$build/src/daemon"
    ln -s "$HS_BUILD/src/cli" "$HS_BUILD/src/replay" "$HS_BUILD/src/early" "$build/src/"
    ln -s "$HS_BUILD/tests" "$HS_BUILD/hooks" "$build/"
    sandbox "$1"
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$SANDBOX" "$HS_BUILD/src/daemon/$2" >"$build/src/daemon/$2"
    chmod +x "$build/src/daemon/$2"
    HEADSTART_BUILD=$build run bats --tap -f "$4" "$HS_SOURCE/tests/bats/$3"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok' <<<"$output")" -eq "$5" ]
    run ! grep -q '# skip' <<<"$output"
}

# recorder_tests FILE REGEX N: runs these N tests of a bats file with headstartd in its sandbox.
recorder_tests() {
    in_sandbox record headstartd "$@"
}

@test "the condition of the replay for a user: the sandbox allows everything that is-login uses" {
    in_sandbox replay-user@ is-login hooks.bats '^is-login: (the user|without logind)' 2
}

@test "the recorder: the sandbox allows everything that recording uses" {
    recorder_tests record.bats '^(applications: ELF|xfs, btrfs and|metadata by cachestat|resident ranges are|a filesystem that is mounted later)' 5
}

@test "the recorder: the sandbox allows everything that the session cycle uses" {
    recorder_tests session.bats '^(the following application is read ahead at once|learned chains are saved)' 2
}

@test "the recorder: the sandbox allows everything that following logind and systemd uses" {
    recorder_tests stages.bats '^(boot, pause, login|a boot.s line of the history|logind restarts|files that are read between the mount)' 4
}
