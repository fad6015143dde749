# SPDX-License-Identifier: LGPL-2.1-or-later
# A private system bus, on which tool-fake-logind stands in for systemd and logind. A file that loads this
# also loads helpers.

# Call it in setup().
logind_setup() {
    FAKE=$HS_BUILD/tests/tools/tool-fake-logind
    need_binary "$FAKE"
    need_command dbus-daemon
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$HS_TMP/bus
}

# Starts a bus that allows everything to every user. Sets BUS.
bus_start() {
    hs_bus_start "$HS_TMP/bus" <<END
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
<allow eavesdrop="false"/><allow receive_sender="*"/></policy>
END
    # shellcheck disable=SC2034 # used by the tests
    BUS=$HS_BUS
}

# Starts tool-fake-logind, which appears on the bus only after `fake appear`.
fake_start() {
    # bash unsets the variables of a coprocess when it reaps the coprocess, even if the next
    # coprocess has already set them. The previous coprocess is therefore ended before the next one
    # starts, and the process ID and the descriptors are kept in variables of their own.
    [ -z "${FAKE_PID-}" ] || hs_kill "$FAKE_PID"
    [ -z "${FAKE_IN-}" ] || exec {FAKE_IN}>&- {FAKE_OUT}<&-
    coproc FAKE_IO { exec "$FAKE" 2>"$HS_TMP/fake.log" 3>&-; }
    # shellcheck disable=SC2154 # set by coproc
    FAKE_PID=$FAKE_IO_PID
    exec {FAKE_IN}>&"${FAKE_IO[1]}" {FAKE_OUT}<&"${FAKE_IO[0]}"
    hs_defer hs_kill "$FAKE_PID"
}

# fake COMMAND…: sends a command to tool-fake-logind and waits until it is done.
fake() {
    local answer
    echo "$*" >&"$FAKE_IN"
    read -r -t 10 answer <&"$FAKE_OUT"
    [ "$answer" = "done" ] || {
        echo "# fake $*: $answer $(cat "$HS_TMP/fake.log")" >&2
        return 1
    }
}
