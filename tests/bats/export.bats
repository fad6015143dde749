#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What goes from one machine to another: export, import, the model that is shipped.

bats_require_minimum_version 1.5.0
load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes

setup() {
    hs_setup
    need_command jq
    need_command xz
    OTHER=$HS_TMP/other # the state of the importing machine
}

# recorded N: learns the first N traces of the recorded days. On each day each of two people has one
# login and one session.
recorded() {
    mkdir -p -m 700 "$HS_STATE/traces"
    local f
    while read -r f; do
        xz -dc "$f" >"$HS_STATE/traces/$(basename "$f" .xz)"
    done < <(find "$HS_SOURCE/tests/fixtures/sessions" -name '*.json.xz' | sort | head -n "$1")
    hs learn --quiet
}

# Prints the paths of a model's files, applications included.
paths() {
    "$HEADSTART" show --json=short --limit=0 "$1" |
        jq -r '.stages[] | (.files[], .applications[]) | .path? // empty' | sort -u
}

# Returns true if each path in the file is below a directory of the distribution, or is a directory
# whose name is the same on every machine.
only_portable() {
    grep -v -e ^/usr -e ^/etc -e ^/bin -e ^/sbin -e ^/lib -e ^/var/cache/fontconfig "$1" |
        grep -v -x -E '/root|/var(/cache|/lib|/log|/spool)?|/var/cache/cups|/var/lib/(AccountsService(/icons|/users)?|NetworkManager|PackageKit|colord(/icc)?|dbus|headstart|polkit-1|systemd(/backlight|/catalog|/coredump|/linger|/rfkill|/timers)?|udisks2|upower)|/var/log/(cups|journal)|/var/spool/(cron(/crontabs)?|cups)' >"$HS_TMP/others" || true
    [ ! -s "$HS_TMP/others" ]
}

@test "export: contains nothing of a user or of this machine" {
    recorded 32
    hs export --output="$HS_TMP/out.model"
    [ "$(stat -c %a "$HS_TMP/out.model")" = 600 ]
    paths "$HS_STATE/model.json" >"$HS_TMP/before"
    paths "$HS_TMP/out.model" >"$HS_TMP/after"
    grep -q ^/home/bench/ "$HS_TMP/before"
    only_portable "$HS_TMP/after"
    grep -e ^/usr/local -e ^/etc/NetworkManager "$HS_TMP/after" | grep -v -x -E \
        '/usr/local(/bin|/lib|/sbin|/share)?|/etc/NetworkManager(/NetworkManager.conf|/conf.d|/dispatcher.d|/system-connections)?' \
        >"$HS_TMP/local" || true
    [ ! -s "$HS_TMP/local" ]
    # The export keeps everything that other machines need.
    [ "$(grep -c ^/usr/lib "$HS_TMP/after")" -eq "$(grep -c ^/usr/lib "$HS_TMP/before")" ]
    jq -e '[.stages[].uid] | unique == [-1]' "$HS_TMP/out.model"
    jq -e '[.stages[].metadata | length] | add == 0' "$HS_TMP/out.model"
    jq -e '(.learned | [.[]] | flatten | length == 0) and (has("chains") | not)' "$HS_TMP/out.model"
    jq -e '[.stages[] | has("timing") or has("autologins")] | any | not' "$HS_TMP/out.model"
    # Exact sums would show when a session began. Rounded numbers have four significant bits.
    four_bits='def odd_part: if . % 2 == 0 and . > 0 then . / 2 | odd_part else . end; [.sums[][] | odd_part] | max < 16'
    jq -e "$four_bits" "$HS_TMP/out.model"
    run -1 jq -e "$four_bits" <(zcat -f "$HS_STATE/model.json")
    ! grep -q -e bench -e second "$HS_TMP/out.model" || false
    # Without --output=, export writes the same content to standard output.
    hs export >"$HS_TMP/out2.model"
    cmp "$HS_TMP/out.model" "$HS_TMP/out2.model"
}

@test "import into a machine without a model, and into one with a model" {
    recorded 8
    hs export -o "$HS_TMP/out.model"
    run -0 "$HEADSTART" --state="$OTHER" import "$HS_TMP/out.model" --json=short
    jq -e '.n_models == 1 and .n_files > 500' <<<"$output"
    [ "$(stat -c %a "$OTHER")" = 700 ]
    cmp <(jq -S .stages <(zcat -f "$OTHER/model.json")) <(jq -S .stages "$HS_TMP/out.model")
    # The import keeps the list of learned traces, the chains, and what was learned of each user.
    before=$(jq '.learned | length' <(zcat -f "$HS_STATE/model.json"))
    hs import --quiet "$HS_TMP/out.model"
    [ "$(jq '.learned | length' <(zcat -f "$HS_STATE/model.json"))" -eq "$before" ]
    jq -e 'has("chains")' <(zcat -f "$HS_STATE/model.json")
    jq -e '[.stages[].uid] | index(1000) != null and index(-1) != null' <(zcat -f "$HS_STATE/model.json")
}

@test "import: the times and automatic logins of other machines stay out, also those in an old export" {
    recorded 4
    hs export -o "$HS_TMP/out.model"
    jq -c '.stages |= map(.timing = [256, 0, 600000, 0, 300000, 0] | .autologins = [1, 0])' \
        "$HS_TMP/out.model" >"$HS_TMP/old.model"
    "$HEADSTART" --state="$OTHER" import --quiet "$HS_TMP/old.model"
    cmp <(jq -S .stages <(zcat -f "$OTHER/model.json")) <(jq -S .stages "$HS_TMP/out.model")
}

# was_off DAYS: the machine of the model was off for that time, which its own clock does not count.
was_off() {
    zcat -f "$HS_STATE/model.json" | jq -c --argjson usec "$(($1 * 86400))000000" \
        '.wall_clock_usec = .clock_usec | .clock_usec -= $usec | .learned = []' >"$HS_TMP/behind"
    cp "$HS_TMP/behind" "$HS_STATE/model.json"
}

# stages MODEL: prints the stages and users of which the model knows sessions.
stages() {
    zcat -f "$1" | jq -c '.stages[] | [.stage, .uid]' | sort
}

@test "a machine that was off for long keeps what it has learned in an import, and exports it" {
    recorded 8
    hs export -o "$HS_TMP/out.model"
    was_off 280
    hs export -o "$HS_TMP/late.model"
    [ "$(jq .clock_usec "$HS_TMP/late.model")" -eq "$(jq .clock_usec "$HS_TMP/out.model")" ]
    "$HEADSTART" --state="$OTHER" import --quiet "$HS_TMP/late.model"
    cmp <(paths "$HS_TMP/late.model") <(paths "$HS_TMP/out.model")
    stages "$HS_STATE/model.json" >"$HS_TMP/before"
    grep -q ',1000\]' "$HS_TMP/before"
    hs import --quiet "$HS_TMP/out.model"
    # The import knows no users.
    grep -vxF -f <(stages "$HS_STATE/model.json") "$HS_TMP/before" && return 1
    [ "$(paths "$HS_STATE/model.json" | wc -l)" -gt "$(paths "$HS_TMP/out.model" | wc -l)" ]
}

@test "import adds all models or none, and hostile files change nothing" {
    recorded 4
    hs export -o "$HS_TMP/out.model"
    cp "$HS_STATE/model.json" "$HS_TMP/before"
    jq -c '.stages[0].files.used[0] = -5' "$HS_TMP/out.model" >"$HS_TMP/negative"
    jq -c '.halflife_usec = 1' "$HS_TMP/out.model" >"$HS_TMP/halflife"
    head -c 2000 "$HS_TMP/out.model" >"$HS_TMP/truncated"
    : >"$HS_TMP/empty"
    mkfifo "$HS_TMP/fifo"
    echo '{"format":"headstart-trace","version":1}' >"$HS_TMP/trace"
    local f
    for f in negative halflife truncated empty fifo trace nowhere; do
        run --separate-stderr -1 hs import "$HS_TMP/out.model" "$HS_TMP/$f"
        echo "$f: $stderr"
        assert_one_error_line "$stderr"
        [[ $stderr == *"$HS_TMP/$f: "* ]]
        [ -z "$output" ]
        cmp "$HS_STATE/model.json" "$HS_TMP/before"
    done
    # A model with another half-life is also refused if the machine has no model yet, because
    # learning would drop it.
    run --separate-stderr -1 "$HEADSTART" --state="$HS_TMP/empty-state" import "$HS_TMP/halflife"
    assert_one_error_line "$stderr"
    [ ! -e "$HS_TMP/empty-state/model.json" ]
    run --separate-stderr -2 hs import
    assert_one_error_line "$stderr"
    run --separate-stderr -2 hs export somewhere
    assert_one_error_line "$stderr"
}

# --- the model that is shipped --------------------------------------------------------------------------------

# Makes a root with an application and its library. The shipped model knows both, and a program that
# is not installed.
shipped() {
    need_loop
    need_command strings
    hs_filesystem ext4 64
    local f
    for f in /usr/bin/app /usr/lib/libapp.so.1 /usr/bin/gone; do
        mkdir -p "$(dirname "$HS_MNT$f")"
        head -c 30000 /dev/urandom >"$HS_MNT$f"
    done
    sync -f "$HS_MNT"
    mkdir -p "$HS_TMP/maker/traces" "$HS_MNT$(hs_data_dir)"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" login 1750000000 /usr/bin/app \
        /usr/lib/libapp.so.1 /usr/bin/gone >"$HS_TMP/maker/traces/20250615T150640-login.json"
    "$HEADSTART" --state="$HS_TMP/maker" learn --quiet
    "$HEADSTART" --state="$HS_TMP/maker" export -o "$HS_MNT$(hs_data_dir)/default.model"
    rm "$HS_MNT/usr/bin/gone"
}

@test "plan without anything learned: from the shipped model, with derived metadata" {
    shipped
    run -0 hs plan --root="$HS_MNT" --json=short
    [ "$(stat -c %a "$HS_STATE")" = 700 ]
    jq -e '.stages | length == 1 and .[0].stage == "login" and .[0].n_files == 2' <<<"$output"
    [ ! -e "$HS_STATE/model.json" ] # nothing was learned here
    [ ! -e "$HS_STATE/boot.pack" ]
    run -0 hs show --json=short --limit=0 "$HS_STATE/login.pack"
    jq -e '[.. | .n_metadata? // empty] | max > 0' <<<"$output"
    run -0 hs replay --root="$HS_MNT" --stage=login --wait --force
    # After the machine has learned a login of its own, only this login counts.
    mkdir -p "$HS_STATE/traces"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" login 1760000000 /usr/bin/app \
        >"$HS_STATE/traces/20251009T085320-login.json"
    hs learn --quiet
    run -0 hs plan --root="$HS_MNT" --json=short
    jq -e '.stages[0].n_files == 1' <<<"$output"
}

@test "the times of the machines that made the shipped model predict nothing" {
    shipped
    local model=$HS_MNT$(hs_data_dir)/default.model
    # A login took ten minutes there, and waited for the disk all the time.
    jq -c '.stages[0].timing = [256, 0, 600000, 0, 600000, 0]' "$model" >"$HS_TMP/old.model"
    cp "$HS_TMP/old.model" "$model"
    run -0 hs plan --root="$HS_MNT" --json=short
    jq -e '.stages[0].predicted_usec.off < 60000000' <<<"$output"
}

@test "a bad shipped model costs one line, and no plan" {
    shipped
    echo '{"format":' >"$HS_MNT$(hs_data_dir)/default.model"
    run --separate-stderr -1 hs plan --root="$HS_MNT"
    [[ $stderr == *"default.model"*"; ignoring"*"nothing was recorded yet"* ]]
    [ ! -e "$HS_STATE" ]
}

@test "the shipped model is valid, small, and of no user" {
    local model=$HS_SOURCE/data/default.model
    [ "$(stat -c %s "$model")" -lt 2000000 ]
    "$HEADSTART" show --json=short "$model" >/dev/null
    jq -e '[.stages[].stage] | sort == ["boot", "login"]' "$model"
    jq -e '[.stages[].uid] | unique == [-1]' "$model"
    paths "$model" >"$HS_TMP/paths"
    [ "$(wc -l <"$HS_TMP/paths")" -gt 500 ]
    only_portable "$HS_TMP/paths"
}
