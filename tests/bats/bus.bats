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

@test "users see the figures of the machine and those of their own logins, and no path" {
    sessions >"$HS_STATE/history.jsonl"
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
    ! grep -q '/\|daemon\|bin' <<<"$output" || false
    run -0 own 1
    jq -e '.Known and .Saved > 0.45 and .Saved < 0.55 and .LastUSec < 4100000' <<<"$output"
    run -0 own 2
    jq -e '.Known and .Saved > -0.01 and .Saved < 0.01' <<<"$output"
    run -0 own 65534
    jq -e '(.Known | not) and .Replayed == 0 and .LastUSec == 0' <<<"$output"
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
    : >"$HS_STATE/boot.pack"
    bus_start
    service_start
    mkdir -p "$BUS/root/etc" "$BUS/root/proc"
    user() { as "$1" env HEADSTART_SYSTEM_ROOT="$BUS/root" "$HEADSTART" --state="$HS_STATE" "${@:2}"; }
    run -0 --separate-stderr user 1 status
    echo "$output"
    [ -z "$stderr" ]
    [[ $output == *"Status: on (ready)"*"Boot: saves 4."*", 40 %"*"Your logins: saves 4."*", 50 %"* ]]
    [[ $output == *"Logins of all users: "*"Root sees more"* && $output != *"$HS_STATE"* ]]
    # A user sees the same figures of the boots as root, and in the history the same rows of the boots
    # and of the user's own logins.
    diff <(user 1 status --json=short | jq '.benefit[0]') <(hs status --json=short | jq '.benefit[0]')
    # The reasons for leaving out are not compared: the first login is left out, and a user sees
    # another first login than root.
    diff <(user 2 history --json=short --limit=0 | jq -c 'map(del(.left_out))') \
        <(hs history --json=short --limit=0 | jq -c 'map(select(.uid == null or .uid == 2) | del(.left_out))')
    run -0 user 65534 history --json=short --limit=0 --stage=login
    [ "$output" = "[]" ]
    # The page has sessions and figures, and neither timelines nor names of files.
    run -0 user 1 report
    [[ $output == *"Your boot takes "* && $output != *"The newest boot"* && $output != *"most data"* ]]
    # Output that names paths is for root only.
    run -1 user 1 plot boot
    [[ $output == *"Permission denied"* ]]
    run -1 user 1 explain /bin/sh
    [[ $output == *"Permission denied (run headstart as root)"* ]]
    # If the service does not run, the command prints one clear line.
    hs_kill "$SERVICE"
    run -1 user 1 status
    assert_one_error_line "$output"
    [[ $output == *"only root may read $HS_STATE, and headstart-bus does not answer: "* ]]
}
