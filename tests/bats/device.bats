# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart plan measures devices: what it reads, what it finds, and what it keeps.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_root
    need_command jq
    need_binary "$HEADSTART"
}

# learned: makes a file on the mounted filesystem, and learns a boot that read this file.
learned() {
    mkdir -p "$HS_MNT/usr/bin" "$HS_STATE/traces"
    head -c 4000000 /dev/urandom >"$HS_MNT/usr/bin/app"
    sync -f "$HS_MNT"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot $(($(date +%s) - 3600)) /usr/bin/app \
        >"$HS_STATE/traces/20251101T080000-boot.json"
    hs learn --quiet
}

plan() {
    hs plan --root="$HS_MNT" --quiet "$@"
}

delays() {
    echo "delays $1" >"$HS_TMP/fuse/control"
}

# device FILTER: prints the result of the jq filter for the only measured device of `headstart
# status`.
device() {
    hs status --root="$HS_MNT" --json=short | jq -e ".devices | length == 1 and (.[0] | $1)"
}

@test "a plan measures within its limits, later plans continue, and a complete measurement is kept" {
    hs_simulated_disk usb2 off 512
    learned
    delays on
    local i before took n=0 now
    for i in {1..12}; do
        before=$(hs_sectors)
        took=$(date +%s%N)
        plan
        # The limit has room for 0.5 s of measurement, 0.5 s for a disk that hangs, and the plan
        # itself on a busy machine.
        [ $(($(date +%s%N) - took)) -lt 8000000000 ]
        [ $((($(hs_sectors) - before) * 512)) -lt 72000000 ]
        now=$(jq '[.devices[].samples[].usec | length] | add' "$HS_STATE/devices.json")
        echo "plan $i: $now samples"
        if device .complete; then
            break
        fi
        [ "$now" -gt "$n" ]
        n=$now
    done
    device '.complete and .n_plans >= 3 and .seeks_slowly == false'
    before=$(stat -c %Y%Z "$HS_STATE/devices.json")
    plan
    [ "$(stat -c %Y%Z "$HS_STATE/devices.json")" = "$before" ]
    # The results may differ from the true values by what FUSE and a busy machine add.
    device '.rate_bytes_per_sec > 20e6 and .rate_bytes_per_sec < 36e6'
    device '.latency_usec >= 900 and .latency_usec < 4000'
    delays off
}

@test "a measurement belongs to a filesystem and a disk" {
    hs_filesystem ext4 64
    learned
    plan
    device '.n_plans == 1'
    # A copy of the same filesystem is mounted from another disk.
    hs_umount "$HS_MNT"
    hs_detach "$HS_LOOP" "$HS_IMAGE"
    cp "$HS_IMAGE" "$HS_TMP/clone"
    hs_loop "$HS_TMP/clone"
    hs_mount "$HS_LOOP"
    run hs status --root="$HS_MNT" --json=short
    jq -e '.devices == []' <<<"$output"
    plan
    device '.n_plans == 1'
    jq -e '.devices | length == 2' "$HS_STATE/devices.json"
}

@test "nothing is measured on battery, in a dry run, or with another state directory" {
    hs_filesystem ext4 64
    learned
    plan --dry-run >/dev/null
    [ ! -e "$HS_STATE/devices.json" ]
    local supply=$HS_TMP/system/sys/class/power_supply/BAT0
    mkdir -p "$supply"
    echo Battery >"$supply/type"
    echo Discharging >"$supply/status"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/system plan
    [ ! -e "$HS_STATE/devices.json" ]
    echo Charging >"$supply/status"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/system plan
    [ -s "$HS_STATE/devices.json" ]
}

# swept SECONDS TAKES POLICY OUTCOME RESIDENT [HELD [HOLD_END]]: writes a report of headstart-replay for
# this boot, and plans. According to the report, the replay starts SECONDS from now, takes TAKES
# microseconds, and holds the boot for HELD microseconds, until HOLD_END.
swept() {
    mkdir -p "$HS_TMP/system/run/headstart"
    jq -n --argjson start "$((($(date +%s) + $1) * 1000000))" --argjson takes "$2" --arg policy "$3" \
        --arg outcome "$4" --argjson resident "$5" --argjson held "${6:-null}" --arg until "${7:-swept}" '{policy: $policy,
        outcome: $outcome, resident: $resident, start_realtime_usec: $start, duration_usec: $takes,
        data_bytes: 100000000} + if $held then {held_usec: $held, hold_end: $until} else {} end' \
        >"$HS_TMP/system/run/headstart/replay-boot.json"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/system plan
}

@test "sweeps of replay correct the measured profile" {
    hs_simulated_disk usb2 off 512
    learned
    delays on
    local rate i
    # A measurement that a busy machine delays is completed by further plans.
    for i in {1..12}; do
        plan
        device .complete && break
    done
    delays off
    rate=$(hs status --root="$HS_MNT" --json=short | jq '.devices[0].rate_bytes_per_sec')
    # Sweeps that were disturbed or unfinished, or that read an older pack, do not count. A replay that
    # ends when everything was requested shows nothing if everything fits into its window.
    swept 60 4000000 concurrent done true
    swept 61 4000000 idle done false
    swept 62 4000000 gate stopped false 4000000
    swept 63 4000000 gate done false 1000000
    swept 64 4000000 gate done false
    swept -3600 4000000 gate done true 4000000
    swept 65 4000000 gate done false 4000000
    swept 66 4000000 gate done true 4000000 pack-late
    device '.n_sweeps == 0'
    for i in 1 2 3; do
        swept $((60 * i)) 4000000 gate done true 4000000
        device ".n_sweeps == $i"
    done
    # The same sweep counts only once.
    HEADSTART_SYSTEM_ROOT=$HS_TMP/system plan
    device '.n_sweeps == 3'
    # The sweeps change the rate by a factor of two at most.
    device "(.rate_bytes_per_sec - $rate / 2) | fabs < 1e5"
}

@test "a disk that hangs delays a plan by a second, and nothing is lost" {
    hs_simulated_disk ssd off 256
    learned
    plan
    cp "$HS_STATE/devices.json" "$HS_TMP/before"
    delays on
    # A dry run reads the files that a plan needs into the cache. The plan below then needs the disk
    # only to measure it.
    plan --dry-run >/dev/null
    echo pause >"$HS_TMP/fuse/control"
    local start end
    start=$(date +%s%N)
    run timeout 20 "$HEADSTART" --state="$HS_STATE" plan --root="$HS_MNT" --quiet
    end=$(date +%s%N)
    echo resume >"$HS_TMP/fuse/control"
    delays off
    [ "$status" -eq 0 ]
    [ $((end - start)) -lt 10000000000 ]
    jq -e --slurpfile before "$HS_TMP/before" \
        '[.devices[].samples[].usec | length] >= [$before[0].devices[].samples[].usec | length]' \
        "$HS_STATE/devices.json"
}

@test "a file of devices that cannot be used is set aside with one line" {
    hs_filesystem ext4 64
    learned
    plan
    cp "$HS_STATE/devices.json" "$HS_TMP/good"
    local bad
    for bad in '' '[' '{}' '{"format":"headstart-trace","version":1,"devices":[]}' \
        '{"format":"headstart-devices","version":2,"devices":[]}' \
        '{"format":"headstart-devices","version":1,"devices":[1]}' \
        "$(jq -c '.devices[0].samples.far.usec[0] = -1' "$HS_TMP/good")" \
        "$(jq -c '.devices[0].samples.far.depth[0] = 0' "$HS_TMP/good")" \
        "$(jq -c '.devices[0].samples.far.plan |= .[1:]' "$HS_TMP/good")" \
        "$(jq -c '.devices[0].samples.near.requests[0] = 7' "$HS_TMP/good")" \
        "$(jq -c '.devices += .devices' "$HS_TMP/good")" \
        "$(jq -c '.devices[0].disk = ("x" * 600)' "$HS_TMP/good")" \
        "$(jq -c '[range(17)] as $i | .devices = [$i[] as $n | .devices[0] | .uuid = "\($n)"]' "$HS_TMP/good")"; do
        printf '%s' "$bad" >"$HS_STATE/devices.json"
        rm -f "$HS_STATE/devices.json.bad"
        run -0 hs status --json=short
        jq -e '.devices_error | type == "string"' <<<"$output"
        run --separate-stderr -0 hs plan --root="$HS_MNT" --quiet
        echo "$bad: $stderr"
        assert_one_error_line "$stderr"
        [ "$(cat "$HS_STATE/devices.json.bad")" = "$bad" ]
        device '.n_plans == 1'
    done
    # A FIFO in place of the file is set aside as well.
    rm -f "$HS_STATE/devices.json" "$HS_STATE/devices.json.bad"
    mkfifo "$HS_STATE/devices.json"
    run --separate-stderr -0 timeout 20 "$HEADSTART" --state="$HS_STATE" plan --root="$HS_MNT" --quiet
    assert_one_error_line "$stderr"
    device '.n_plans == 1'
}
