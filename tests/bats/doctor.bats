# SPDX-License-Identifier: LGPL-2.1-or-later
# What doctor finds out about the initrd, the hooks of display managers, the units and the kernel, and its remedies.
# benefit.bats has the other checks of doctor.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
    need_command jq
    mkdir -m 0700 "$HS_STATE"
}

# found CHECK: prints what doctor finds with this check, and the remedy.
found() {
    run hs doctor --json=short
    jq -r --arg c "$1" '.[] | select(.check == $c) | "\(.result): \(.found): \(.remedy)"' <<<"$output"
}

# with_root FILE...: makes a root directory with these empty files, for the checks of doctor, and a boot pack.
with_root() {
    local file
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    for file in proc/cmdline "$@"; do
        mkdir -p "$(dirname "$HS_TMP/root/$file")"
        : >"$HS_TMP/root/$file"
    done
    : >"$HS_STATE/boot.pack"
}

@test "doctor: the initrd has started headstart, although the replay has not finished there" {
    local run=$HS_TMP/root/run/headstart
    with_root run/headstart/early-usec
    [ "$(found early)" = "ok: recording and replay begin before the system manager: null" ]
    # Neither a boot pack nor the lack of one changes what has started.
    rm "$HS_STATE/boot.pack"
    [ "$(found early)" = "ok: recording and replay begin before the system manager: null" ]
    : >"$run/record-boot.early"
    [[ $(found early) == "ok: recording began before the system manager, and this boot was not replayed, "* ]]
    rm "$run"/*
    : >"$HS_STATE/boot.pack"
    [[ $(found early) == "note: "* ]]
}
