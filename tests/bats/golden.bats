# SPDX-License-Identifier: LGPL-2.1-or-later
# Compares what the build computes from fixtures with the golden results in tests/golden/expected.
# The results must not change unless a commit says so and updates the golden results
# (tests/golden/update).

load helpers
bats_require_minimum_version 1.5.0

GOLDEN=$HS_SOURCE/tests/golden

setup() {
    hs_setup
    need_command python3
    need_binary "$HEADSTART"
    # tests/golden/measure unpacks images in this directory and attaches them to loop devices.
    export TMPDIR=$HS_TMP
}

# golden PART PATTERN…: measures the part and compares the files that match.
golden() {
    local part=$1 name
    local -A names=()
    "$GOLDEN/measure" "$HS_BUILD" "$HS_TMP/measured" "$part"
    for name in "${@:2}"; do
        for name in "$GOLDEN"/expected/$name.json "$HS_TMP"/measured/$name.json; do
            [ -e "$name" ] && names[$(basename "$name")]=1
        done
    done
    [ "${#names[@]}" -gt 0 ]
    "$GOLDEN/compare" "$GOLDEN/expected" "$HS_TMP/measured" "${!names[@]}"
}

@test "golden: evaluate" {
    golden evaluate 'evaluate-*'
}

@test "golden: show of traces and models, and the model of the recorded days" {
    golden show 'show-*' default-model learned-model
}

@test "golden: packs, and the results of learn and plan" {
    need_loop
    need_filesystem ext4
    need_filesystem xfs
    need_filesystem btrfs
    golden packs packs 'plan*'
}

@test "golden: the directives of the units" {
    need_command meson
    golden units units
}

@test "golden: the exposure of the units" {
    need_command meson systemd-analyze systemctl
    local recorded installed
    recorded=$(jq .systemd "$GOLDEN/expected/exposure.json")
    installed=$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
    [ "$recorded" = "$installed" ] || skip "systemd $recorded rated the units, this is $installed"
    golden units exposure
}

@test "golden: compare finds a changed number, a lost key and a lost file" {
    mkdir "$HS_TMP"/{a,b}
    echo '{"x": [1, 2.0], "y": "z"}' | tee "$HS_TMP/a/f.json" >"$HS_TMP/b/f.json"
    run -0 "$GOLDEN/compare" "$HS_TMP/a" "$HS_TMP/b"
    echo '{"y": "z", "x": [1, 2.0000000001]}' >"$HS_TMP/b/f.json"
    run -0 "$GOLDEN/compare" "$HS_TMP/a" "$HS_TMP/b"
    echo '{"x": [1, 2.00000001], "y": "z"}' >"$HS_TMP/b/f.json"
    run -1 "$GOLDEN/compare" "$HS_TMP/a" "$HS_TMP/b"
    [[ $output == *"f.json: x[1]: 2.0 -> 2.00000001"* ]]
    echo '{"x": [1, 2.0]}' >"$HS_TMP/b/f.json"
    run -1 "$GOLDEN/compare" "$HS_TMP/a" "$HS_TMP/b"
    rm "$HS_TMP/b/f.json"
    run -1 "$GOLDEN/compare" "$HS_TMP/a" "$HS_TMP/b"
}

@test "golden: compare calls a renamed key renamed, and fails" {
    mkdir "$HS_TMP"/{a,b}
    echo '{"old": [1, 2], "y": "z"}' >"$HS_TMP/a/f.json"
    echo '{"new": [1, 2], "y": "z"}' >"$HS_TMP/b/f.json"
    run -1 "$GOLDEN/compare" "$HS_TMP/a" "$HS_TMP/b"
    [ "${lines[0]}" = "f.json: old: same value, renamed -> new" ]
    echo '{"new": [1, 3], "y": "z"}' >"$HS_TMP/b/f.json"
    run -1 "$GOLDEN/compare" "$HS_TMP/a" "$HS_TMP/b"
    [ "${lines[0]}" = "f.json: old: [1, 2] -> absent" ]
}
