# SPDX-License-Identifier: LGPL-2.1-or-later
# The command: headstart plan.

load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_binary "$HEADSTART"
}

# Makes a small ext4 on HS_MNT with a program, a library, a directory and a file, and learns a boot
# and a login that use them.
learned() {
    mountpoint -q "$HS_MNT" || hs_filesystem ext4 64
    mkdir -p "$HS_MNT/usr/bin" "$HS_MNT/usr/share/d" "$HS_STATE/traces"
    head -c 300000 /dev/urandom >"$HS_MNT/usr/bin/app"
    head -c 700000 /dev/urandom >"$HS_MNT/usr/share/lib.so"
    echo x >"$HS_MNT/usr/share/d/small"
    sync -f "$HS_MNT"
    local stage
    for stage in boot login; do
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" $stage 1793520000 \
            /usr/bin/app /usr/share/lib.so /usr/share/d /usr/share/d/small \
            >"$HS_STATE/traces/20261101T080000-$stage.json"
    done
    hs learn --quiet
}

plan() {
    hs plan --root="$HS_MNT" "$@"
}

@test "plan: both packs, as text and as JSON, readable by root alone" {
    learned
    run --separate-stderr -0 plan
    echo "$output"
    [ -z "$stderr" ]
    [[ $output =~ boot\ +-\ +(concurrent|metadata)\ +3\ +1\  ]]
    [[ $output =~ login\ +-\ +idle\ +3\ +1\  ]]
    [ "$(stat -c %a "$HS_STATE/boot.pack" "$HS_STATE/login.pack" | sort -u)" = 600 ]
    run -0 plan --json=short
    jq -e '(.stages | length) == 2 and all(.stages[]; .data_bytes >= 1000000 and .n_files == 3)' <<<"$output"
    jq -e '[.stages[].reason] == ["fastest", "fastest"] and (.stages[1].predicted_usec | keys) == ["idle", "off"]' <<<"$output"
    jq -e '.stages[0] | .predicted_usec as $p | all($p.off, $p.concurrent, $p.metadata; . > 0) and
        $p[.policy] == ([$p.concurrent, $p.metadata] | min)' <<<"$output"
    run -0 hs show "$HS_STATE/login.pack"
    [[ $output == *"Stage: login"* && $output == *"/usr/share/lib.so"* ]]
    run -0 hs show --json=short "$HS_STATE/login.pack"
    jq -e '.kind == "pack" and .policy == "idle"' <<<"$output"
    jq -e '[.volumes[0].files[] | .path] | sort ==
        ["/usr/bin/app", "/usr/share/d", "/usr/share/d/small", "/usr/share/lib.so"]' <<<"$output"
    run -0 hs status
    [[ $output == *"Status: on (ready"* ]]
    run -0 hs status --json=short
    jq -e '.stages[1] | .pack_policy == "idle" and .pack_bytes > 1000000' <<<"$output"
}

@test "plan --if-changed: only if one of its inputs is newer" {
    local first
    learned
    run -0 plan --if-changed
    [[ $output == *"boot "* ]]
    first=$(stat -c %i "$HS_STATE/boot.pack")
    run -0 plan --if-changed
    [ -z "$output" ]
    [ "$(stat -c %i "$HS_STATE/boot.pack")" = "$first" ]
    touch -d tomorrow "$HS_STATE/model.json"
    run -0 plan --if-changed
    [ "$(stat -c %i "$HS_STATE/boot.pack")" != "$first" ]
    touch -d yesterday "$HS_STATE/model.json"
    rm "$HS_STATE"/*.pack
    run -0 plan --if-changed
    [ -s "$HS_STATE/login.pack" ]
    mkdir -p "$HS_TMP/root/etc/headstart"
    touch -d tomorrow "$HS_TMP/root/etc/headstart/headstart.conf"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run -0 plan --if-changed
    [[ $output == *"boot "* ]]
    # An editor that writes a drop-in in place does not change its directory.
    touch -d yesterday "$HS_TMP/root/etc/headstart/headstart.conf"
    mkdir -p "$HS_TMP/root/usr/lib/headstart/headstart.conf.d"
    touch "$HS_TMP/root/usr/lib/headstart/headstart.conf.d/10-own.conf"
    touch -d yesterday "$HS_TMP/root/usr/lib/headstart/headstart.conf.d"
    touch -d yesterday "$HS_TMP/root/usr/lib/headstart/headstart.conf.d/10-own.conf"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run -0 plan --if-changed
    [ -z "$output" ]
    # A mask is a link to a file that is as new as the boot.
    mkdir -p "$HS_TMP/root/dev" "$HS_TMP/root/etc/headstart/headstart.conf.d"
    mknod "$HS_TMP/root/dev/null" c 1 3
    touch -d tomorrow "$HS_TMP/root/dev/null"
    ln -s /dev/null "$HS_TMP/root/etc/headstart/headstart.conf.d/10-own.conf"
    touch -h -d yesterday "$HS_TMP/root/etc/headstart/headstart.conf.d/10-own.conf"
    touch -d yesterday "$HS_TMP/root/etc/headstart/headstart.conf.d"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run -0 plan --if-changed
    [ -z "$output" ]
    touch -d tomorrow "$HS_TMP/root/usr/lib/headstart/headstart.conf.d/10-own.conf"
    HEADSTART_SYSTEM_ROOT=$HS_TMP/root run -0 plan --if-changed
    [[ $output == *"boot "* ]]
}

@test "plan --if-changed: packs that a clock ahead has dated do not prevent a plan" {
    local first
    learned
    run -0 plan
    first=$(stat -c %i "$HS_STATE/boot.pack")
    touch -d 'next year' "$HS_STATE"/*.pack
    touch "$HS_STATE/model.json"
    run -0 plan --if-changed
    [ "$(stat -c %i "$HS_STATE/boot.pack")" != "$first" ]
    run -0 plan --if-changed
    [ -z "$output" ]
}

@test "plan: a pack for each user, and one for any user" {
    learned
    local uid
    for uid in 1000 1001; do
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" login $((1793520000 + uid)) \
            /usr/bin/app "$([ $uid = 1000 ] && echo /usr/share/lib.so || echo /usr/share/d/small)" |
            jq --argjson uid $uid '.uid = $uid | .boot_id = ("0000000000000000000000000000" + ($uid | tostring))' \
                >"$HS_STATE/traces/20261101T09$uid-login.json"
    done
    hs learn --quiet
    run -0 plan --json=short
    jq -e '[.stages[] | [.stage, .uid]] ==
        [["boot", null], ["login", null], ["login", 1000], ["login", 1001]]' <<<"$output"
    has() {
        hs show --json=short "$HS_STATE/$1.pack" |
            jq -e --arg f "$2" 'any(.volumes[].files[]; .path == $f)' >/dev/null
    }
    [ "$(stat -c %a "$HS_STATE/login@1000.pack")" = 600 ]
    has login@1000 /usr/share/lib.so
    has login@1001 /usr/share/d/small
    run ! has login@1000 /usr/share/d/small
    run ! has login@1001 /usr/share/lib.so
    has login /usr/share/d/small
    has login /usr/share/lib.so
    # A login is a control session for the packs of its user and of all users, or for neither.
    salt() { hs show --json=short "$HS_STATE/$1.pack" | grep -o '"salt":[0-9]*'; }
    [ "$(salt login)" = "$(salt login@1000)" ]
    [ "$(salt login)" = "$(salt login@1001)" ]
    [ "$(salt login)" != "$(salt boot)" ]
    local before
    before=$(salt login)
    rm "$HS_STATE/login@1000.pack"
    plan --quiet
    [ "$(salt login)" = "$before" ]
    [ "$(salt login@1000)" = "$before" ]
    rm "$HS_STATE"/*.pack
    run -0 plan --stage=login --user=1001 --quiet
    [ "$(cd "$HS_STATE" && echo *.pack)" = login@1001.pack ]
    refused 1 "nothing was learned of a login of this user" plan --root="$HS_MNT" --user=7
}

@test "status and doctor look at the packs of users and applications" {
    learned
    chmod 0700 "$HS_STATE"
    mkdir -p "$HS_TMP/root/proc"
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    touch -d @1793000000 "$HS_MNT/usr/share/lib.so" # it does not count as a file that programs write
    plan --quiet
    run -0 hs status --json=short
    jq -e '.users == [] and .n_further_users == 0' <<<"$output"
    local uid name
    for uid in {1001..1010}; do
        cp "$HS_STATE/login.pack" "$HS_STATE/login@$uid.pack"
        touch -d "@$((1793520000 + uid))" "$HS_STATE/login@$uid.pack"
    done
    : >"$HS_STATE/login@x.pack"
    # The newest packs are shown, and the others are counted.
    run -0 hs status --json=short
    jq -e '[.users[].uid] == [range(1010; 1002; -1)] and .n_further_users == 2 and
        all(.users[]; .pack_policy == "idle") and .problems == []' <<<"$output"
    run -0 hs status
    [[ $output == *"Login packs of users: the newest 8 of 10"* && $output =~ 1010\ +idle\  ]]
    # doctor NAME TEXT: checks that doctor finds this problem of the pack, and how it is mended.
    finds() {
        run -1 hs doctor --root="$HS_MNT" --json=short
        jq -e --arg n "$1" --arg t "$2" 'any(.[]; .result == "problem" and (.found | contains($n) and contains($t)) and
            .cost != null and (.remedy | startswith("headstart ")))' <<<"$output"
    }
    doctor_ok() {
        run hs doctor --root="$HS_MNT" --json=short
        jq -e --arg t "$1" 'any(.[]; .result == "ok" and .found == $t)' <<<"$output"
    }
    doctor_ok "10 checked packs of users"
    jq -e 'all(.[]; .result != "problem" or .check == "units")' <<<"$output"
    # A damaged pack. doctor also finds one that status does not read.
    printf HEADSTRT >"$HS_STATE/login@1001.pack"
    finds "login@1001.pack" "cannot be used"
    touch -d @1793529999 "$HS_STATE/login@1001.pack"
    run -0 hs status --json=short
    jq -e '.users[0].pack_policy == "bad" and (.problems | any(.found | contains("login@1001.pack cannot be used")))' <<<"$output"
    # status reads the heads of these packs only, and notices that one was cut.
    head -c -40 "$HS_STATE/login@1002.pack" >"$HS_STATE/login@1001.pack"
    run -0 hs status --json=short
    jq -e '.users | map(select(.uid == 1001 and .pack_policy == "bad")) | length == 1' <<<"$output"
    rm "$HS_STATE/login@1001.pack"
    # Damaged launch sets, of a user and of everybody
    for name in launch@1000-0123456789abcdef launch-0123456789abcdef; do
        cp "$HS_STATE/login.pack" "$HS_STATE/$name.pack"
    done
    doctor_ok "2 checked packs of applications"
    for name in launch@1000-0123456789abcdef launch-0123456789abcdef; do
        printf HEADSTRT >"$HS_STATE/$name.pack"
        finds "$name.pack" "cannot be used"
    done
    rm "$HS_STATE"/launch*
    # Files that have changed since. Of many packs with the same problem the newest are named.
    cp "$HS_STATE/login.pack" "$HS_STATE/login@1001.pack"
    rm "$HS_STATE/login.pack" "$HS_STATE/boot.pack"
    doctor_ok "only users have packs"
    doctor_ok "10 checked packs of users"
    cp "$HS_MNT/usr/share/lib.so" "$HS_MNT/new"
    mv "$HS_MNT/new" "$HS_MNT/usr/share/lib.so"
    finds "login@1010.pack" "1 of 4 files have changed"
    finds "2 further packs of users: out of date"
    run -0 hs status
    [[ $output == *"Status: on (ready)"* ]]
}

@test "plan: options" {
    learned
    run -0 plan --stage=login --policy=metadata --json=short
    jq -e '[.stages[] | .stage, .policy, .reason] == ["login", "metadata", "configured"]' <<<"$output"
    [ ! -e "$HS_STATE/boot.pack" ]
    run -0 plan --stage=boot --policy=gate --deadline=2500ms --quiet
    [ -z "$output" ]
    run -0 hs show --json=short "$HS_STATE/boot.pack"
    jq -e '.policy == "gate" and .deadline_usec == 2500000' <<<"$output"
    refused 2 "policy 'gate' is not for login" plan --root="$HS_MNT" --stage=login --policy=gate
    run -0 plan --stage=boot --budget=400K --json=short
    jq -e '.budget_bytes == 409600 and .stages[0].data_bytes <= 409600' <<<"$output"
    run -0 plan --stage=boot --min-probability=100 --json=short
    jq -e '.stages[0].n_files == 3' <<<"$output"
}

@test "plan: uses the configuration" {
    learned
    mkdir -p "$HS_TMP/root/etc/headstart"
    cat >"$HS_TMP/root/etc/headstart/headstart.conf" <<CONF
[Memory]
Budget=500K
[Replay]
BootPolicy=gate
LoginPolicy=off
Deadline=3s
ControlInterval=7
CONF
    export HEADSTART_SYSTEM_ROOT=$HS_TMP/root
    run -0 plan --json=short
    jq -e '.budget_bytes == 512000 and [.stages[].policy] == ["gate", "off"]' <<<"$output"
    run -0 hs show --json=short "$HS_STATE/boot.pack"
    jq -e '.deadline_usec == 3000000 and .control_interval == 7' <<<"$output"
    local salt
    salt=$(jq .salt <<<"$output")
    run -0 plan
    run -0 hs show --json=short "$HS_STATE/boot.pack"
    [ "$(jq .salt <<<"$output")" = "$salt" ] # the salt is kept, so that control sessions stay evenly spread
    # The command line takes precedence.
    run -0 plan --budget=1G --policy=concurrent --json=short
    jq -e '.budget_bytes == 1073741824 and [.stages[].policy] == ["concurrent", "concurrent"]' <<<"$output"
}

# boot_recorded DAYS: replaces the history by a boot that was recorded DAYS days ago
boot_recorded() {
    echo '{"version":1,"stage":"boot","flags":[],"policy":"off","outcome":"off","usage":"none","ready_usec":5000000,"start_realtime_usec":'$((($(date +%s) - $1 * 86400) * 1000000))'}' \
        >"$HS_STATE/history.jsonl"
}

@test "plan: with policy off and a recording of the last week, a boot starts nothing until the policy changes" {
    learned
    run -0 plan --policy=off --stage=boot
    [ ! -e "$HS_STATE/boot-idle" ] # never recorded
    boot_recorded 1
    run -0 plan --policy=off --stage=boot
    [ -e "$HS_STATE/boot-idle" ]
    run -0 plan --dry-run --policy=concurrent --stage=boot
    [ -e "$HS_STATE/boot-idle" ]
    boot_recorded 8
    # The boots since then have lines in the history, but were not recorded.
    echo '{"version":1,"stage":"boot","flags":["light"],"policy":"off","usage":"none","start_realtime_usec":'"$(date +%s)000000}" \
        >>"$HS_STATE/history.jsonl"
    run -0 plan --policy=off --stage=boot
    [ ! -e "$HS_STATE/boot-idle" ]
    boot_recorded 1
    run -0 plan --policy=off --stage=boot
    [ -e "$HS_STATE/boot-idle" ]
    run -0 plan --policy=concurrent --stage=boot
    [ ! -e "$HS_STATE/boot-idle" ]
}

@test "plan --if-changed: a boot is recorded again a week later, even if nothing was learned since" {
    learned
    boot_recorded 6
    run -0 plan --policy=off
    [ -e "$HS_STATE/boot-idle" ]
    touch -d '6 days ago' "$HS_STATE/boot-idle"
    run -0 plan --if-changed --policy=off
    [ -z "$output" ]
    boot_recorded 8
    touch -d '8 days ago' "$HS_STATE/boot-idle"
    run -0 plan --if-changed --policy=off
    [[ $output == *"boot "* ]]
    [ ! -e "$HS_STATE/boot-idle" ]
    run -0 plan --if-changed --policy=off
    [ -z "$output" ]
}

@test "plan --dry-run prints the operations and writes nothing" {
    learned
    run -0 plan --dry-run --stage=login
    [[ $output =~ read\ +[0-9]+\ +0\ +[0-9]+\ +100\.0%\ +/\ +usr/share/lib.so ]]
    [[ $output =~ open\ .*usr/bin/app ]]
    [ ! -e "$HS_STATE/login.pack" ]
    run -0 plan --dry-run --json=short
    jq -e '.operations | keys == ["boot", "login"]' <<<"$output"
    jq -e '[.operations.login[] | select(.operation == "read") | .length] | add >= 1000000' <<<"$output"
    jq -e '[.operations.login[] | select(.operation == "read") | .physical] | . == sort' <<<"$output"
    [ ! -e "$HS_STATE/boot.pack" ]
}

@test "plan: files that are gone or were replaced by something else are skipped and counted" {
    learned
    rm "$HS_MNT/usr/share/lib.so"
    rm "$HS_MNT/usr/share/d/small"
    mkfifo "$HS_MNT/usr/share/d/small"
    run --separate-stderr -0 plan --stage=login
    [[ $output == *"1 gone"* ]]
    run -0 hs show --json=short "$HS_STATE/login.pack"
    jq -e '[.volumes[0].files[].path] | sort == ["/usr/bin/app", "/usr/share/d"]' <<<"$output"
}

@test "plan: no state, no model, a bad model, nothing of the stage: one line, and the old packs stay" {
    refused 1 "$HS_STATE: nothing was recorded yet" plan
    mkdir "$HS_STATE"
    refused 1 "model.json: nothing was learned yet" plan
    learned
    run -0 plan
    sha256sum "$HS_STATE"/*.pack >"$HS_TMP/sums"
    refused 1 "No such file or directory" plan --root="$HS_TMP/nowhere"
    mkdir "$HS_TMP/empty"
    refused 1 "no filesystem on a local block device" plan --root="$HS_TMP/empty"
    truncate -s -20 "$HS_STATE/model.json"
    refused 1 "model.json: " plan --root="$HS_MNT"
    sha256sum -c "$HS_TMP/sums"
    rm "$HS_STATE/model.json" "$HS_STATE"/traces/*boot*
    run -0 hs learn
    refused 1 "nothing was learned of boot yet" plan --root="$HS_MNT" --stage=boot
    run -0 plan
}

@test "plan: a full disk leaves the old pack in place" {
    learned
    cp -r "$HS_STATE" "$HS_TMP/saved"
    mount -t tmpfs -o size=512k,mode=700 tmpfs "$HS_STATE"
    hs_defer hs_umount "$HS_STATE"
    cp -r "$HS_TMP/saved/." "$HS_STATE/"
    run -0 plan
    sha256sum "$HS_STATE"/*.pack >"$HS_TMP/sums"
    dd if=/dev/zero of="$HS_STATE/fill" bs=4k 2>/dev/null || true
    refused 1 "boot.pack: No space left on device" plan --root="$HS_MNT"
    sha256sum -c "$HS_TMP/sums"
    ! compgen -G "$HS_STATE/*.tmp" || false
}

# replayed_whole FILE PAGES: replays with cold caches, and checks that this many pages of the file
# are resident afterwards
replayed_whole() {
    hs_cold
    run -0 hs replay --root="$HS_MNT" --stage=login --wait
    echo "$output"
    [ "$(fincore --noheadings --bytes --output PAGES "$1")" -eq "$2" ]
}

@test "replay: the pack of the stage, or the given one" {
    need_binary "$HEADSTART_REPLAY"
    refused 1 "login.pack: no pack yet" replay
    learned
    run -0 plan
    hs_attempts replayed_whole "$HS_MNT/usr/share/lib.so" 171
    run -0 hs replay --root="$HS_MNT" --dry-run "$HS_STATE/boot.pack"
    [[ $output == *lib.so* ]]
    echo bad >"$HS_TMP/bad.pack"
    run hs replay "$HS_TMP/bad.pack"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    refused 1 "No such file" replay "$HS_TMP/no.pack"
    run -0 hs replay --root="$HS_MNT" --json=short
    jq -e '.stage == "login" and .data_bytes >= 1000000 and .skipped == {}' <<<"$output"
    run -0 hs replay --root="$HS_MNT" --quiet
    [ -z "$output" ]
}

# --- the disk decides --------------------------------------------------------------------------

# turns: makes the loop device claim to rotate, as virtual disks do
turns() {
    local queue=/sys/block/${HS_LOOP##*/}/queue/rotational
    hs_defer sh -c "echo $(cat "$queue") >'$queue'"
    echo 1 >"$queue"
}

# planned_policy POLICY: checks that a boot is planned with this policy, and a login with idle
planned_policy() {
    SYSTEMD_LOG_LEVEL=debug run -0 --separate-stderr plan --json=short
    # shellcheck disable=SC2154 # run sets it
    echo "$stderr"
    jq -e --arg policy "$1" '[.stages[].policy] == [$policy, "idle"]' <<<"$output"
}

# not_held: checks that the boot is not held. Its policy is then concurrent or metadata. Which of
# them depends on the measured speed, and a busy machine makes a device without delays look slow.
not_held() {
    SYSTEMD_LOG_LEVEL=debug run -0 --separate-stderr plan --json=short
    # shellcheck disable=SC2154 # run sets it
    echo "$stderr"
    jq -e '[.stages[].policy] | .[0] == ("concurrent", "metadata") and .[1] == "idle"' <<<"$output" |
        grep -q true
}

@test "plan: a boot is held for one sweep if the disk was measured to seek" {
    hs_simulated_disk hdd7200 on 512
    turns
    learned
    # The plan is repeated, because other processes may keep the disk or the machine busy, and an
    # unclear result does not count as slow seeks.
    hs_wait 60 planned_policy gate
    run -0 hs show --json=short "$HS_STATE/boot.pack"
    jq -e '[.volumes[].device_class] == ["hdd"]' <<<"$output"
    # The administrator's setting is used, and the measurement is kept.
    run -0 plan --json=short --policy=concurrent --stage=boot
    jq -e '.stages[0].policy == "concurrent"' <<<"$output"
    run -0 hs show --json=short "$HS_STATE/boot.pack"
    jq -e '[.volumes[].seeks_slowly] == [true]' <<<"$output"
}

@test "plan: no boot is held because a disk claims to rotate" {
    hs_simulated_disk hdd7200 off 512
    turns
    learned
    not_held
}

@test "plan: no boot is held for a disk behind a network, also when a sweep was requested once" {
    hs_simulated_disk netdisk on 512
    turns
    learned
    hs plan --root="$HS_MNT" --quiet --stage=boot --policy=gate
    planned_policy concurrent
}

# login UID: learns one more login of that user.
login() {
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" login $((1793530000 + $1)) \
        /usr/bin/app /usr/share/lib.so | sed "s/\"uid\": -1/\"uid\": $1/" \
        >"$HS_STATE/traces/20261101T09$1-login.json"
    hs learn --quiet
}

# device_is_measured: plans, and checks that the plan did not measure anything
device_is_measured() {
    local before
    before=$(cksum <"$HS_STATE/devices.json")
    plan --quiet
    [ "$(cksum <"$HS_STATE/devices.json")" = "$before" ]
}

@test "plan: a failure for one user or stage leaves the others their packs" {
    learned
    login 1000
    login 1001
    login 1002
    # Until the device is measured, each plan may change the device profile. The profile decides which
    # gaps between ranges are read as well, and therefore changes the packs.
    hs_wait 60 device_is_measured
    local paths='[.volumes[].files[].path] | sort'
    hs show --json=short "$HS_STATE/login@1002.pack" | jq -c "$paths" >"$HS_TMP/old"
    cp "$HS_STATE/login@1002.pack" "$HS_TMP/old.pack"
    rm "$HS_STATE"/*.pack
    # A directory takes the place of the middle pack, which then cannot be written.
    mkdir -p "$HS_STATE/login@1001.pack/x"
    run --separate-stderr -1 plan --quiet
    echo "$stderr"
    [ "$(wc -l <<<"$stderr")" -eq 2 ]
    [[ $stderr == *"login@1001.pack: "*$'\n'*"1 of 5 packs were not planned, the old packs are kept" ]]
    local p
    for p in boot login login@1000 login@1002; do
        hs show "$HS_STATE/$p.pack" >/dev/null
    done
    hs show --json=short "$HS_STATE/login@1002.pack" | jq -c "$paths" | diff "$HS_TMP/old" -
    [ "$(zcat -f "$HS_STATE/login@1002.pack" | wc -c)" -eq "$(zcat -f "$HS_TMP/old.pack" | wc -c)" ]

    # If the pack of one stage cannot be written, the other packs are made nevertheless.
    rm -r "$HS_STATE"/*.pack
    mkdir -p "$HS_STATE/boot.pack/x"
    run --separate-stderr -1 plan
    [[ $stderr == *"1 of 5 packs were not planned"* ]]
    [[ $output == *"login "*1002* ]]
    hs show "$HS_STATE/login@1002.pack" >/dev/null
}

@test "plan: a policy that one of the stages does not support is refused before anything is written" {
    learned
    run --separate-stderr -2 plan --policy=gate
    [[ $stderr == *"'gate' is not for login"* ]]
    run -1 compgen -G "$HS_STATE/*.pack"
}

@test "plan: packs for everybody contain files of root, a user's pack also files of that user" {
    learned
    chown 1000:1000 "$HS_MNT/usr/share/lib.so"
    login 1000
    login 1001
    plan --quiet
    holds() {
        hs show --json=short "$HS_STATE/$1.pack" | jq -e --arg p "$2" 'any(.volumes[].files[]; .path == $p)'
    }
    local pack
    for pack in boot login login@1001 login@1000; do
        run -0 holds "$pack" /usr/bin/app
    done
    run -0 holds login@1000 /usr/share/lib.so
    for pack in boot login login@1001; do
        run -1 holds "$pack" /usr/share/lib.so
    done
    # The accounts of system services are trusted during a boot only.
    chown 110:110 "$HS_MNT/usr/share/lib.so"
    plan --quiet
    run -0 holds boot /usr/share/lib.so
    for pack in login login@1000 login@1001; do
        run -1 holds "$pack" /usr/share/lib.so
    done
}

@test "plan: one user's flood of files leaves the others their packs, in the memory of the unit" {
    learned
    login 1000
    need_memory_limits
    local i flood=(_ "30000 4000" "60000 4000" "15000 200")
    for i in 1 2 3; do
        # shellcheck disable=SC2086 # two words
        "$BATS_TEST_DIRNAME/make-flood" login $((1793540000 + i)) 1001 ${flood[i]} "x$i" \
            >"$HS_STATE/traces/20261101T12000$i-login.json"
    done
    prlimit --as=$((256 << 20)) "$HEADSTART" --state="$HS_STATE" --quiet learn || true
    prlimit --as=$((256 << 20)) "$HEADSTART" --state="$HS_STATE" plan --root="$HS_MNT"
    local p
    for p in boot login login@1000 login@1001; do
        hs show "$HS_STATE/$p.pack" >/dev/null
    done
    hs show --json=short "$HS_STATE/login@1000.pack" | jq -e '[.volumes[].files[]] | length == 2'
}

@test "plan: if memory is short, a quarter of the files is planned" {
    local paths=() i number
    hs_filesystem ext4 64
    mkdir -p "$HS_MNT/usr" "$HS_STATE/traces"
    for i in $(seq 300); do
        paths+=("/usr/file$i")
        head -c 4096 /dev/urandom >"$HS_MNT/usr/file$i"
    done
    sync -f "$HS_MNT"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot 1793520000 "${paths[@]}" \
        >"$HS_STATE/traces/20261101T080000-boot.json"
    hs learn --quiet
    # One allocation fails in each run: the 100th, the 200th, and so on. If it fails while the model
    # is read, plan ends. If it fails while a pack is planned, plan tries again.
    for number in $(seq 100 100 3000); do
        LD_PRELOAD=$HS_BUILD/tests/faults/libfaults.so HEADSTART_FAULTS="reallocarray $number ENOMEM" \
            HEADSTART_FAULTS_PROGRAM=headstart HEADSTART_FAULTS_OUTPUT=$HS_TMP/calls \
            ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 \
            "$HEADSTART" --state="$HS_STATE" plan --root="$HS_MNT" --stage=boot --quiet \
            2>"$HS_TMP/error" && grep -q "quarter" "$HS_TMP/error" && break
    done
    cat "$HS_TMP/error"
    [ "$(<"$HS_TMP/error")" = "headstart: cannot plan boot with 300 files, trying with a quarter of them: Cannot allocate memory" ]
    hs show --json=short "$HS_STATE/boot.pack" >"$HS_TMP/pack"
    [ "$(jq '[.. | objects | .path? // empty | select(test("file[0-9]"))] | length' "$HS_TMP/pack")" -eq 75 ]
}

# files PATH…: makes files of root in a filesystem on HS_MNT.
files() {
    local f
    hs_filesystem ext4 64
    for f; do
        mkdir -p "$HS_MNT${f%/*}"
        head -c 100000 /dev/urandom >"$HS_MNT$f"
    done
    sync -f "$HS_MNT"
}

# recorded N STAGE FILTER PATH…: adds the trace of the Nth day. The trace passes through the jq filter.
recorded() {
    local n=$1 stage=$2 filter=$3
    shift 3
    mkdir -p "$HS_STATE/traces"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" "$stage" $((1793520000 + n * 86400)) "$@" |
        jq --arg n "$n" '.boot_id = "0000000000000000000000000000000" + $n | '"$filter" \
            >"$HS_STATE/traces/2026110${n}T080000-$stage.json"
}

# Prints the files of the boot pack in the order of first need.
boot_files() {
    hs show --json=short --limit=0 "$HS_STATE/boot.pack" |
        jq -r '[.volumes[].files[]] | sort_by(.need_usec)[].path' | paste -sd ' '
}

# boots_and_logins FLAG…: learns and plans three boots and a login of the user 1000 after each of them.
# FLAG is the flag of one login, or nothing.
boots_and_logins() {
    local n
    rm -rf "$HS_STATE"
    for n in 1 2 3; do
        recorded $n boot . /usr/lib/systemd /usr/lib/udev /usr/lib/dbus
        recorded $n login ".uid = 1000 | .flags = [${!n:+\"${!n}\"}]" \
            /usr/bin/desktop /usr/lib/dbus /home/user/own /usr/bin/clock
    done
    hs learn --quiet
    plan --quiet
}

@test "plan: the boot pack also serves a login that begins without a greeter, in order of need" {
    files /usr/lib/systemd /usr/lib/udev /usr/lib/dbus /usr/bin/desktop /usr/bin/clock /home/user/own
    chown 1000:1000 "$HS_MNT/home/user/own"
    boots_and_logins autologin autologin autologin
    run -0 boot_files
    [ "$output" = "/usr/lib/systemd /usr/lib/udev /usr/lib/dbus /usr/bin/desktop /usr/bin/clock" ]
    run -0 hs show --json=short --limit=0 "$HS_STATE/login@1000.pack"
    jq -e 'any(.volumes[].files[]; .path == "/home/user/own")' <<<"$output"
    boots_and_logins
    run -0 boot_files
    [ "$output" = "/usr/lib/systemd /usr/lib/udev /usr/lib/dbus" ]
    # One of three logins is no habit.
    boots_and_logins autologin
    run -0 boot_files
    [ "$output" = "/usr/lib/systemd /usr/lib/udev /usr/lib/dbus" ]
}

# in_boot_pack FILE: checks that the metadata of the boot pack contains the inode of the file.
in_boot_pack() {
    local block size
    block=$(debugfs -R "imap <$(stat -c %i "$HS_MNT$1")>" "$HS_LOOP" 2>/dev/null |
        sed -n 's/.*located at block \([0-9]*\),.*/\1/p')
    size=$(dumpe2fs -h "$HS_LOOP" 2>/dev/null | awk '/^Block size:/ { print $3 }')
    hs show --json=short --limit=0 "$HS_STATE/boot.pack" |
        jq -e --argjson b $((block * size)) 'any(.volumes[0].metadata[]; .offset <= $b and $b < .offset + .length)'
}

@test "plan: the boot pack has the metadata of a login that was only replayed" {
    need_command debugfs dumpe2fs
    files /usr/lib/systemd /usr/bin/desktop
    # The inode of the last file is in another block than those before it.
    local i n observed later=/usr/bin/later
    for ((i = 0; i < 40; i++)); do echo >"$HS_MNT/usr/bin/$i"; done
    head -c 100000 /dev/urandom >"$HS_MNT$later"
    sync -f "$HS_MNT"
    for observed in '[]' '[1048576, 4096]'; do
        rm -rf "$HS_STATE"
        for n in 1 2 3; do
            # The sessions are newer than the files: metadata of newer files is derived in any case.
            recorded $n boot '.start_realtime_usec = ((now + 60) * 1000000 | floor) |
                .volumes[0].metadata_source = "cachestat" | .volumes[0].metadata = [0, 4096]' /usr/lib/systemd
            recorded $n login '.uid = 1000 | .flags = ["replayed", "autologin"] |
                .start_realtime_usec = ((now + 60) * 1000000 | floor) | .volumes[0].metadata_source = "cachestat" | .volumes[0].metadata = '"$observed" \
                /usr/bin/desktop $later
        done
        hs learn --quiet
        plan --quiet
        in_boot_pack /usr/bin/desktop
        in_boot_pack $later
        hs show --json=short --limit=0 "$HS_STATE/boot.pack" | jq -e --argjson o "$observed" '.volumes[0].metadata as $m |
            any($m[]; .offset <= 1048576 and 1048576 < .offset + .length) == ($o != [])'
    done
}

@test "plan: replayed boots do not hide that an upgrade has moved inodes" {
    need_command debugfs dumpe2fs
    local n at=() upgraded=/usr/lib/upgraded
    files /usr/lib/systemd
    # Until now metadata was observed. Replay observed none since.
    at[1]=$(date +%s%6N)
    sleep 0.1 # the times of files are those of the kernel's last tick
    for ((n = 0; n < 40; n++)); do echo >"$HS_MNT/usr/lib/$n"; done # another block of inodes
    echo >"$HS_MNT$upgraded"
    sync -f "$HS_MNT"
    sleep 0.1
    at[2]=$(date +%s%6N) at[3]=$((at[2] + 1)) # a date after now would not count
    recorded 1 boot ".start_realtime_usec = ${at[1]}"' | .volumes[0].metadata_source = "cachestat" | .volumes[0].metadata = [0, 4096]' \
        /usr/lib/systemd
    for n in 2 3; do
        recorded $n boot ".start_realtime_usec = ${at[n]}"' | .flags = ["replayed"] |
            .volumes[0].metadata_source = "none" | .volumes[0].metadata = []' /usr/lib/systemd $upgraded
    done
    hs learn --quiet
    # history OUTCOME: the boots as headstartd remembers them
    history() {
        for n in 1 2 3; do
            jq -nc --arg outcome "$1" --argjson n $n --argjson at "${at[n]}" '{version: 1, stage: "boot", flags: [], usage: "none",
                boot_id: ("0000000000000000000000000000000" + ($n | tostring)), start_realtime_usec: $at, policy: "concurrent",
                outcome: (if $n > 1 then $outcome else "" end)}'
        done >"$HS_STATE/history.jsonl"
    }
    history done
    plan --quiet
    in_boot_pack $upgraded
    # If a later boot ran without replay, its observation is complete.
    history ""
    plan --quiet
    run ! in_boot_pack $upgraded
}

# plan_as_root: runs `headstart plan` in a mount namespace of its own whose root is HS_MNT. The programs of this machine
# are at /usr there.
plan_as_root() {
    mkdir -p "$HS_MNT/usr" "$HS_MNT/proc" "$HS_MNT/sys" "$HS_MNT/state" "$HS_MNT$HEADSTART_BUILD"
    unshare --mount --propagation private bash -e -s "$HS_MNT" "$HS_STATE" "$HEADSTART_BUILD" "$HEADSTART" "$@" <<'END'
root=$1 state=$2 build=$3 program=$4
shift 4
mount --bind /usr "$root/usr"
for d in /bin /lib /lib64; do
    if [ -L "$d" ]; then
        [ -L "$root$d" ] || cp -a "$d" "$root$d"
    elif [ -d "$d" ]; then
        mkdir -p "$root$d"
        mount --bind "$d" "$root$d"
    fi
done
for d in /proc /sys; do
    mount --rbind "$d" "$root$d"
done
mount --bind "$build" "$root$build"
mount --bind "$state" "$root/state"
exec chroot "$root" "$program" --state=/state plan "$@"
END
}

@test "plan: an exact recording of the next boot is requested, and of the login that it contains" {
    files /opt/systemd /opt/desktop /opt/clock
    # A disk that seeks is not recorded exactly. The kernel sets this value again when it attaches a file to the device.
    echo 0 >"/sys/block/${HS_LOOP#/dev/}/queue/rotational"
    local n flag
    for flag in autologin ""; do
        rm -rf "$HS_STATE"
        for n in 1 2 3; do
            recorded $n boot . /opt/systemd
            recorded $n login ".uid = 1000 | .flags = [${flag:+\"$flag\"}]" /opt/desktop /opt/clock
        done
        hs learn --quiet
        for n in 1 2 3 4; do
            # The time of an automatic login contains its boot.
            jq -cn --argjson n $n --arg f "$flag" '{version: 1, policy: "concurrent", outcome: "done", usage: "none",
                start_realtime_usec: ((now - 86400 + $n) * 1000000 | floor)} |
                (. + {stage: "boot"} + if $f == "" then {flags: [], ready_usec: 1000000} else {flags: ["unsettled"]} end),
                (. + {stage: "login", uid: 1000, flags: [$f | select(. != "")], ready_usec: 9000000, began_usec: 1000000})'
        done >"$HS_STATE/history.jsonl"
        # The first replayed boots show what replay gains.
        head -n 6 "$HS_STATE/history.jsonl" >"$HS_TMP/history"
        cp "$HS_STATE/history.jsonl" "$HS_TMP/whole"
        cp "$HS_TMP/history" "$HS_STATE/history.jsonl"
        plan_as_root --quiet --policy=concurrent
        run ! compgen -G "$HS_STATE/rerecord-*"
        cp "$HS_TMP/whole" "$HS_STATE/history.jsonl"
        plan_as_root --quiet --policy=concurrent
        jq -e '.exact and .read_ahead_kb == 16 and (has("uid") | not)' "$HS_STATE/rerecord-boot"
        # A boot that contains the login is a control session exactly when the login is one.
        for n in boot login login@1000; do
            hs show --json=short "$HS_STATE/$n.pack" | jq -c '[.salt, .control_interval]'
        done | uniq >"$HS_TMP/draws"
        [ "$(wc -l <"$HS_TMP/draws")" = $((1 + (${#flag} == 0))) ]
        jq -e '.[1] >= 2' <"$HS_TMP/draws"
        # status shows the intervals of the packs. The history of these boots alone would give 0 with an automatic login.
        diff <(hs status --json=short | jq -c '.benefit[].control_interval') \
            <(for n in boot login; do hs show --json=short "$HS_STATE/$n.pack" | jq .control_interval; done)
        if [ -n "$flag" ]; then
            jq -e '.exact and .read_ahead_kb == 16 and .uid == 1000' "$HS_STATE/rerecord-login"
        else
            [ ! -e "$HS_STATE/rerecord-login" ]
        fi
    done
    # A request of the administrator stays as it is.
    rm "$HS_STATE/rerecord-boot"
    hs rerecord --quiet --next-boot --stage=boot
    plan_as_root --quiet --policy=concurrent
    jq -e '.exact | not' "$HS_STATE/rerecord-boot"
}

# automatic_logins N REPLAYED-SECONDS [CONTROL-SECONDS]: prints the history of N boots with an automatic login, replayed with
# the policy `gate`. With CONTROL-SECONDS every third boot is a control session.
automatic_logins() {
    jq -cn --argjson n "$1" --argjson s "$2" --argjson c "${3:-null}" 'range($n) as $i |
        ($c != null and $i % 3 == 1) as $control |
        {version: 1, policy: "gate", usage: "none", outcome: (if $control then "control" else "done" end),
            flags: (if $control then ["control"] else [] end), boot_id: "\($i + 100000)",
            start_realtime_usec: ((now - 86400 * ($n - $i)) * 1000000 | floor)} |
        (. + {stage: "boot", flags: (.flags + ["unsettled"])}),
        (. + {stage: "login", uid: 1000, flags: (.flags + ["autologin"]), began_usec: 1000000,
            ready_usec: (((if $control then $c else $s end) * 1000000 + $i * 1000))})' >"$HS_STATE/history.jsonl"
}

@test "plan: measured automatic logins decide about the policy of their boots" {
    files /opt/systemd /opt/desktop
    local n
    for n in 1 2 3; do
        recorded $n boot . /opt/systemd
        recorded $n login '.uid = 1000 | .flags = ["autologin"]' /opt/desktop
    done
    hs learn --quiet
    # Two replayed boots show nothing: the planner chooses the fastest policy. `gate` is none on this disk.
    plan --quiet --stage=boot --policy=gate
    automatic_logins 2 9
    plan --quiet --stage=boot
    hs show --json=short "$HS_STATE/boot.pack" | jq -e '.policy != "gate" and .reason == "fastest"'
    # After four the policy stays. The first session does not count.
    plan --quiet --stage=boot --policy=gate
    automatic_logins 4 9
    plan --quiet --stage=boot
    hs show --json=short "$HS_STATE/boot.pack" | jq -e '.policy == "gate" and .reason == "undecided"'
    automatic_logins 40 9 12
    plan --quiet --stage=boot
    hs show --json=short "$HS_STATE/boot.pack" | jq -e '.policy == "gate" and .reason == "measured"'
    # Replay that makes them longer is switched off.
    automatic_logins 40 9 6
    plan --quiet --stage=boot
    hs show --json=short "$HS_STATE/boot.pack" | jq -e '.policy == "off" and .reason == "harmful"'
    run -0 hs history --json=short --limit=0
    jq -e 'map(select(.stage == "boot"))[1:] | all(.left_out == "counts with its automatic login")' <<<"$output"
}

# boots_recorded FLAG…: learns and plans three boots. FLAG is the flag of one boot, or nothing.
boots_recorded() {
    local n
    rm -rf "$HS_STATE"
    for n in 1 2 3; do
        recorded $n boot ".flags = [${!n:+\"${!n}\"}]" /usr/bin/app
    done
    hs learn --quiet
    plan --quiet
}

@test "plan: the shipped model adds what was not observed, if most recordings began late" {
    files /usr/bin/app /usr/lib/systemd
    recorded 1 boot . /usr/lib/systemd
    hs learn --quiet
    mkdir -p "$HS_MNT$(hs_data_dir)"
    hs export --quiet --output="$HS_MNT$(hs_data_dir)/default.model"
    boots_recorded late late
    run -0 boot_files
    [ "$(tr ' ' '\n' <<<"$output" | sort | paste -sd ' ')" = "/usr/bin/app /usr/lib/systemd" ]
    boots_recorded late
    run -0 boot_files
    [ "$output" = /usr/bin/app ]
    boots_recorded
    run -0 boot_files
    [ "$output" = /usr/bin/app ]
}
