# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart-bus: figures for settings panels, on a private bus with headstart's D-Bus policy.

load helpers
bats_require_minimum_version 1.5.0

HEADSTART_BUS=$HS_BUILD/src/bus/headstart-bus

setup() {
    hs_setup
    need_root
    need_binary "$HEADSTART_BUS" "$HEADSTART"
    need_command jq dbus-daemon busctl python3 setpriv
    mkdir -m 0700 "$HS_STATE"
    mkdir -p "$HS_TMP/root/etc/headstart" "$HS_TMP/root/proc"
    echo quiet >"$HS_TMP/root/proc/cmdline"
    printf '[Session]\nLaunchReplay=no\n' >"$HS_TMP/root/etc/headstart/headstart.conf"
    # Other users cannot reach HS_TMP, so the bus gets a directory of its own.
    BUS=$(mktemp -d /tmp/headstart-bus.XXXXXX)
    hs_defer rm -rf "$BUS"
    chmod 0755 "$BUS"
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$BUS/socket
}

# Starts a bus with the rules of a system bus: nothing is allowed but what a policy file allows.
bus_start() {
    hs_bus_start "$BUS/socket" <<END
<policy context="default"><allow user="*"/><deny own="*"/><deny send_type="method_call"/>
<allow send_type="signal"/><allow send_requested_reply="true" send_type="method_return"/>
<allow send_requested_reply="true" send_type="error"/><allow receive_type="method_call"/>
<allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
<allow send_destination="org.freedesktop.DBus"/></policy>
<include>$HS_SOURCE/data/dbus/org.headstart1.conf</include>
END
}

answers() {
    busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" status org.headstart1 >/dev/null 2>&1
}

service_start() {
    "$HEADSTART_BUS" --state="$HS_STATE" --root="$HS_TMP/root" 2>"$HS_TMP/service.log" 3>&- &
    SERVICE=$!
    hs_defer hs_kill $SERVICE
    hs_wait 10 answers
}

# as UID COMMAND…: runs the command as that user.
as() {
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}

# ask UID: prints all properties as JSON, name -> value
ask() {
    as "$1" busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" --json=short call org.headstart1 /org/headstart1 \
        org.freedesktop.DBus.Properties GetAll s org.headstart1.Status | jq -c '.data[0] | map_values(.data)'
}

own() {
    as "$1" busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" --json=short call org.headstart1 /org/headstart1 \
        org.headstart1.Status GetOwnLogins | jq -c '.data[0] | map_values(.data)'
}

own_launches() {
    as "$1" busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" --json=short call org.headstart1 /org/headstart1 \
        org.headstart1.Status GetOwnLaunches | jq -c '.data[0][] | fromjson'
}

# Prints boots, and logins of two users that every system has: 1 (faster with replay) and 2 (not faster).
sessions() {
    python3 - <<'END'
import json, time
for i in range(60):
    c = i % 4 == 2
    for stage, uid, control, replayed in (("boot", None, 10, 6), ("login", 1, 8, 4), ("login", 2, 5, 5)):
        print(json.dumps({"version": 1, "stage": stage, "flags": ["control"] if c else [], "policy": "idle",
                          "outcome": "control" if c else "done", "usage": "none",
                          "start_realtime_usec": int((time.time() - 86400 * (60 - i)) * 1e6),
                          "ready_usec": round((control if c else replayed) * (1 + i % 7 / 1000) * 1e6)}
                         | ({"uid": uid} if uid else {})))
END
}

# Prints starts of an application by two users.
starts() {
    python3 - <<'END'
import json
for i in range(40):
    control = i % 4 == 1
    print(json.dumps({"version": 1, "application": "/usr/bin/editor", "uid": 1 + i // 20, "start_realtime_usec": 1760000000000000 + i,
                      "took_usec": (2000000 if control else 1000000) + i, "files": 300, "replayed": "control" if control else "yes"}))
END
}

@test "users see the figures of the machine and those of their own logins, and no path" {
    sessions >"$HS_STATE/history.jsonl"
    starts >"$HS_STATE/launches.jsonl"
    # A boot that did not settle has no time.
    tail -n 3 "$HS_STATE/history.jsonl" | jq -c 'select(.stage == "boot") | del(.ready_usec)' >>"$HS_STATE/history.jsonl"
    : >"$HS_STATE/boot.pack"
    bus_start
    service_start
    run -0 ask 65534
    echo "$output"
    jq -e '.BootLastUSec > 5000000 and .BootLastUSec < 11000000' <<<"$output"
    jq -e '.Enabled and .BootKnown and .BootPolicy == "idle" and (.BootHarmful | not) and
        .BootSaved > 0.35 and .BootSaved < 0.45 and .BootSavedLow < .BootSaved' <<<"$output"
    # The figures are those of `headstart status`.
    diff <(hs status --json=short | jq -S '.benefit[] | {n: .n_replayed, c: .n_control, s: .saved,
        l: .saved_low, h: .saved_high, w: .replayed_usec, o: .control_usec}') \
        <(jq -S '("Boot", "Login") as $s | {n: .[$s + "Replayed"], c: .[$s + "Control"], s: .[$s + "Saved"],
        l: .[$s + "SavedLow"], h: .[$s + "SavedHigh"], w: .[$s + "WithUSec"], o: .[$s + "WithoutUSec"]}' <<<"$output")
    diff <(hs status --json=short | jq -S '.launches | {n: .n_replayed, c: .n_control, k: .known, s: .saved,
        l: .saved_low, h: .saved_high}') \
        <(jq -S '{n: .LaunchReplayed, c: .LaunchControl, k: .LaunchKnown, s: .LaunchSaved, l: .LaunchSavedLow,
        h: .LaunchSavedHigh}' <<<"$output")
    jq -e '.LaunchKnown and .LaunchSaved > 0.45' <<<"$output"
    jq -e '.BootOffReason == "" and .LoginOffReason == "" and .LaunchOffReason == "configured"' <<<"$output"
    ! grep -q '/\|daemon\|bin' <<<"$output" || false
    run -0 own 1
    jq -e '.Known and .Saved > 0.45 and .Saved < 0.55 and .LastUSec < 4100000' <<<"$output"
    run -0 own 2
    jq -e '.Known and .Saved > -0.01 and .Saved < 0.01' <<<"$output"
    run -0 own 65534
    jq -e '(.Known | not) and .Replayed == 0 and .LastUSec == 0' <<<"$output"
    # Users get the lines of their own starts, and no other line.
    diff <(own_launches 1) <(jq -c 'select(.uid == 1)' "$HS_STATE/launches.jsonl")
    [ "$(own_launches 2 | wc -l)" -eq 20 ]
    [ -z "$(own_launches 65534)" ]
    # Nothing can be set, and only root may take the name.
    run ! as 65534 busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" set-property org.headstart1 /org/headstart1 \
        org.headstart1.Status Enabled b false
    run ! as 65534 "$HEADSTART_BUS" --state="$HS_STATE"
    [[ $output == *"headstart-bus: the system bus: "* ]]
    [ -z "$(<"$HS_TMP/service.log")" ]
    # The man page describes exactly the properties and methods that exist.
    diff <(as 65534 busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" introspect org.headstart1 /org/headstart1 org.headstart1.Status |
        awk '$2 == "property" || $2 == "method" { print substr($1, 2) }' | sed 's/^\(Boot\|Login\)/STAGE/' | sort -u) \
        <(sed -n '/^\.SH PROPERTIES/,/^\.SH SECURITY/p' "$HS_SOURCE/docs/man/headstart-bus.8" |
            sed -n '/^\.TP/{n;p}' | sed 's/\\fISTAGE\\fR/STAGE/g; s/^\.B //; s/,//g; s/()//' | tr ' ' '\n' | sort -u)
}

# history FIRST LAST: prints lines of the history with all fields, as of the sessions FIRST to LAST of 3,000.
history() {
    python3 - "$@" <<'END'
import json, sys, time
numbers = [n + "_usec" for n in "firmware loader kernel initrd finished io_some io_full replay predicted packages".split()]
numbers += ["disk_reads", "disk_read_bytes", "memory_bytes", "replay_files", "replay_data_bytes", "replay_metadata_bytes"]
numbers += [f"{a}_{b}" for a in ("hit", "waste", "miss") for b in ("files", "bytes")]
for i in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
    print(json.dumps({"version": 1, "stage": "login" if i % 3 else "boot", "flags": [], "policy": "idle", "outcome": "done",
                      "usage": "per-file", "boot_id": "0" * 32, "kernel": "6.1.0-18-amd64", "distribution": "debian 12",
                      "device": "nvme0n1", "scheduler": "mq-deadline", "ready_usec": 6000000 + i,
                      "start_realtime_usec": int((time.time() - 86400 * (3000 - i)) * 1e6)}
                     | {n: 123456789 for n in numbers} | ({"uid": 1} if i % 3 else {}), separators=(",", ":")))
END
}

# peak: prints the largest amount of memory that the service had, in KiB
peak() {
    awk '$1 == "VmHWM:" { print $2 }' "/proc/$SERVICE/status"
}

@test "with 3,000 sessions and 1,000 applications the service needs half of its unit's memory at most" {
    need_memory_limits
    local limit
    limit=$(sed -n 's/^MemoryMax=\([0-9]*\)M$/\1/p' "$HS_SOURCE/units/headstart-bus.service.in")
    history 1 1500 >"$HS_STATE/history.1.jsonl"
    history 1501 3000 >"$HS_STATE/history.jsonl"
    # Both files of starts have their full length.
    for _ in {1..80}; do starts; done | head -c 520000 | sed '$d' >"$HS_STATE/launches.1.jsonl"
    cp "$HS_STATE/launches.1.jsonl" "$HS_STATE/launches.jsonl"
    # No pack exists, so that the service looks into the model: of 1,000 applications, 84 MB of text.
    python3 -c 'import json
print("{\n\"learned\":[[1,2]],\n\"x\":" + json.dumps(["/usr/bin/application-%d" % (i % 1000) for i in range(3000000)]) + "}")' |
        gzip -1 >"$HS_STATE/model.json"
    bus_start
    service_start
    run -0 ask 65534
    jq -e '.State == "learned" and .LaunchReplayed > 300' <<<"$output"
    run -0 as 1 busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" --json=short call org.headstart1 /org/headstart1 \
        org.headstart1.Status GetHistory
    jq -e '.data[0] | length == 1200' <<<"$output"
    # The service keeps the old figures while it reads the new ones.
    sleep 2.1
    [ "$(own_launches 1 | wc -l)" -gt 1000 ]
    echo "# 3000 sessions, 1000 applications, $(($(zcat "$HS_STATE/model.json" | wc -c) / 1000000)) MB of text:" \
        "$(peak) KiB of memory of at most $((limit * 1024)) KiB" >&3
    [ "$(peak)" -lt $((limit * 512)) ]
    [ -z "$(<"$HS_TMP/service.log")" ]
}

@test "while the state cannot be read, calls get an error and the journal gets one line" {
    bus_start
    history 1 3000 >"$HS_STATE/history.jsonl"
    truncate -s 100M "$HS_STATE/history.jsonl"
    service_start
    enabled() {
        as 65534 busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" get-property org.headstart1 /org/headstart1 \
            org.headstart1.Status Enabled
    }
    for _ in 1 2 3 4 5; do
        run ! enabled
    done
    sleep 2.1
    run ! enabled
    [ "$(wc -l <"$HS_TMP/service.log")" -eq 1 ]
    rm "$HS_STATE/history.jsonl"
    sleep 2.1
    run -0 enabled
}

@test "without state, and while headstart is off, the service answers so" {
    bus_start
    rm -r "$HS_STATE"
    service_start
    run -0 ask 65534
    jq -e '.Enabled and .State == "empty" and (.BootKnown | not) and .BootPolicy == ""' <<<"$output"
    hs_kill "$SERVICE"
    : >"$HS_TMP/root/etc/headstart/disabled"
    service_start
    run -0 ask 65534
    jq -e '(.Enabled | not) and .State == "off"' <<<"$output"
}

@test "status, history and report show a user the machine's boots and the user's own logins, and no path" {
    sessions >"$HS_STATE/history.jsonl"
    starts >"$HS_STATE/launches.jsonl"
    : >"$HS_STATE/boot.pack"
    bus_start
    service_start
    mkdir -p "$BUS/root/etc" "$BUS/root/proc"
    user() { as "$1" env HEADSTART_SYSTEM_ROOT="$BUS/root" "$HEADSTART" --state="$HS_STATE" "${@:2}"; }
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    run -0 --separate-stderr user 1 status
    echo "$output"
    [ -z "$stderr" ]
    [[ $output == *"Status: on (ready)"*"Boot: saves 4."*", 40 %"*"Your logins: saves 4."*", 50 %"* ]]
    [[ $output == *"Logins of all users: "*"Root sees more"* && $output != *"$HS_STATE"* ]]
    [[ $output == *"Launches of all users: saves 50 % (between 50 % and 50 %; 29 starts with replay, 10 without)"* &&
        $output == *"Your launches: saves 1."*", 50 % ("*", now off (LaunchReplay=no)"*"/usr/bin/editor "* ]]
    # JSON has what the text has.
    run -0 user 1 status --json=short
    jq -e --argjson root "$(hs status --json=short | jq '.launches | del(.applications, .n_left_out)')" \
        '.all_launches == ($root | .control_usec = null | .replayed_usec = null)' <<<"$output"
    jq -e --argjson root "$(hs status --json=short | jq '.benefit[1]')" \
        '.all_logins | .saved == $root.saved and .n_control == $root.n_control and .control_usec == $root.control_usec' <<<"$output"
    jq -e '.launches | .known and (.applications | map(.application)) == ["/usr/bin/editor"] and .n_replayed < 20' <<<"$output"
    # Of another user's starts nothing is shown.
    run -0 user 65534 status
    [[ $output == *"Your launches: off (LaunchReplay=no)"* && $output != *editor* ]]
    diff <(user 2 history --launches --json=short --limit=0 | jq -c 'map(del(.left_out))') \
        <(hs history --launches --json=short --limit=0 | jq -c 'map(select(.uid == 2) | del(.left_out))')
    run -0 user 65534 history --launches
    [ "$output" = "No start of an application was recorded yet." ]
    # A user sees the same figures of the boots as root, and in the history the same rows of the boots
    # and of the user's own logins. How often control sessions are drawn is in the packs, which only root reads.
    diff <(user 1 status --json=short | jq '.benefit[0]') <(hs status --json=short | jq '.benefit[0] | .control_interval = null')
    user 1 status --json=short | jq -e '[.benefit[], .launches.applications[]] | length == 3 and all(.control_interval == null)'
    # The reasons for leaving out are not compared: the first login is left out, and a user sees
    # another first login than root.
    diff <(user 2 history --json=short --limit=0 | jq -c 'map(del(.left_out))') \
        <(hs history --json=short --limit=0 | jq -c 'map(select(.uid == null or .uid == 2) | del(.left_out))')
    run -0 user 65534 history --json=short --limit=0 --stage=login
    [ "$output" = "[]" ]
    # The page has sessions and figures, and neither timelines nor names of files.
    run -0 user 1 report
    [[ $output == *"Your boot takes "* && $output != *"The newest boot"* && $output != *"most data"* ]]
    # A user finds the own logins in the table of the newest sessions, and no logins of others.
    [[ $output == *"/usr/bin/editor"* && $output == *"no applications of other users"* ]]
    rows() { grep -o '<th scope="row">[^<]*, login</th>' <<<"$output" | wc -l; }
    [ "$(rows)" -eq 6 ]
    [[ $output == *"Time of each login, oldest first"* ]]
    run -0 user 65534 report
    [[ $(rows) -eq 0 && $output != *editor* ]]
    # Output that names paths is for root only.
    run -1 user 1 plot boot
    [[ $output == *"Permission denied"* ]]
    run -1 user 1 explain /bin/sh
    [[ $output == *"Permission denied (run headstart as root)"* ]]
    # A stage that is not replayed has the reason of the user's own pack.
    "$HS_BUILD/tests/tools/tool-mkpack" --policy=idle "$HS_STATE/login.pack" </dev/null
    "$HS_BUILD/tests/tools/tool-mkpack" --policy=off --reason="no gain" "$HS_STATE/login@2.pack" </dev/null
    "$HS_BUILD/tests/tools/tool-mkpack" --stage=boot --policy=off --reason=configured "$HS_STATE/boot.pack" </dev/null
    hs_kill "$SERVICE"
    service_start
    run -0 user 1 status --json=short
    jq -e '(.benefit | map(.off_reason)) == ["configured", null] and .all_logins.off_reason == null' <<<"$output"
    run -0 user 2 status --json=short
    jq -e '(.benefit | map(.off_reason)) == ["configured", "no gain"] and .all_logins.off_reason == null' <<<"$output"
    run -0 own 2
    jq -e '.OffReason == "no gain"' <<<"$output"
    run -0 user 2 status
    [[ $output == *"Boot: saves 4."*", now off (BootPolicy=off)"*"Your logins: no certain effect on "*", now not replayed: "* ]]
    # If the service does not run, the command prints one clear line.
    hs_kill "$SERVICE"
    run -1 user 1 status
    assert_one_error_line "$output"
    [[ $output == *"only root may read $HS_STATE, and headstart-bus does not answer: "* ]]
}
