#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What an upgrade of packages does to what was learned, and how refresh mends it.

bats_require_minimum_version 1.5.0
load helpers

setup() {
    hs_setup
    HS_ROOT=$HS_MNT
    need_loop
    need_command jq
}

# new PATH [BYTES]: replaces a file as dpkg does, by a rename of a new file.
new() {
    mkdir -p "$(dirname "$HS_MNT$1")"
    head -c "${2:-20000}" /dev/urandom >"$HS_MNT$1.dpkg-new"
    mv "$HS_MNT$1.dpkg-new" "$HS_MNT$1"
}

# learned PATH…: learns and plans a boot of an hour ago that read these files as a whole.
learned() {
    mkdir -p -m 700 "$HS_STATE/traces"
    sync -f "$HS_MNT"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot $(($(date +%s) - 3600)) "$@" \
        >"$HS_STATE/traces/20260101T000000-boot.json"
    hs learn --quiet
    hs plan --quiet
}

# Prints the absolute paths of the files of the pack, sorted.
planned() {
    hs show --json=short "$HS_STATE/boot.pack" --limit=0 | jq -r '[.. | .path? // empty] | unique[]' | sed 's,^\([^/]\),/\1,'
}

# Checks that every file agrees with the pack, so that a replay skips nothing.
nothing_skipped() {
    hs replay --stage=boot --wait --force --json=short >"$HS_TMP/replay.json"
    jq -e '.skipped == {} or ([.skipped[]] | add // 0) == 0' "$HS_TMP/replay.json"
}

@test "replaced, removed and renamed files: one refresh, and the pack is right" {
    hs_filesystem ext4 64
    local i all=()
    for ((i = 0; i < 40; i++)); do
        new "/usr/lib/lib$((i / 10)).so.$i"
        all+=("/usr/lib/lib$((i / 10)).so.$i")
    done
    # The name libapp occurs once, so that the successor of this library is unambiguous.
    new /usr/bin/app
    new /usr/lib/libapp.so.1.2.3 100000
    new /usr/lib/modules/6.1.0-30-amd64/kernel/fs/a.ko
    new /usr/lib/modules/6.1.0-30-amd64/kernel/fs/b.ko
    new /usr/share/app/data 50000
    new /usr/share/app/old
    learned /usr/bin/app "${all[@]}" /usr/lib/libapp.so.1.2.3 \
        /usr/lib/modules/6.1.0-30-amd64/kernel/fs/a.ko /usr/lib/modules/6.1.0-30-amd64/kernel/fs/b.ko \
        /usr/share/app/data /usr/share/app/old
    run -0 hs refresh
    [[ $output == "0 files changed, 0 continued under a new name, 0 removed: nothing to do." ]]

    for i in "${all[@]}"; do new "$i" 30000; done
    new /usr/lib/libapp.so.1.2.4 150000
    rm "$HS_MNT/usr/lib/libapp.so.1.2.3" "$HS_MNT/usr/share/app/old"
    new /usr/lib/modules/6.1.0-31-amd64/kernel/fs/a.ko
    rm -r "$HS_MNT/usr/lib/modules/6.1.0-30-amd64"
    new /usr/share/app/data 20000
    sync -f "$HS_MNT"

    run -0 hs refresh --dry-run --json=short
    jq -e '.n_changed == 41 and .n_succeeded == 2 and .n_gone == 2 and .n_unknown == 0 and .planned == false' <<<"$output"
    jq -e '.files | map(select(.state == "succeeded") | .successor) | sort == ["/usr/lib/libapp.so.1.2.4",
        "/usr/lib/modules/6.1.0-31-amd64/kernel/fs/a.ko"]' <<<"$output"
    jq -e '.files | map(select(.state == "gone") | .path) | sort == ["/usr/lib/modules/6.1.0-30-amd64/kernel/fs/b.ko",
        "/usr/share/app/old"]' <<<"$output"
    run -0 hs refresh
    [ "$output" = "41 files changed, 2 continued under a new name, 2 removed: packs planned again." ]

    planned >"$HS_TMP/planned"
    cat "$HS_TMP/planned"
    grep -qx /usr/lib/libapp.so.1.2.4 "$HS_TMP/planned"
    grep -qx /usr/lib/modules/6.1.0-31-amd64/kernel/fs/a.ko "$HS_TMP/planned"
    ! grep -q -e 1.2.3 -e 6.1.0-30 -e /old "$HS_TMP/planned" || false
    nothing_skipped
    # A file that was read as a whole is still read as a whole after it has grown, and not beyond
    # its end after it has shrunk.
    read_whole() {
        hs_cold
        nothing_skipped || return
        : >"$HS_TMP/not-whole"
        for i in "${all[@]}" /usr/bin/app /usr/lib/libapp.so.1.2.4 /usr/share/app/data; do
            [ "$(fincore --bytes --noheadings --output RES "$HS_MNT$i" | tr -d ' ')" -ge \
                "$(stat -c %s "$HS_MNT$i")" ] || echo "not whole: $i" >>"$HS_TMP/not-whole"
        done
        # The kernel may reclaim a page at any time, so up to four files may be incomplete.
        [ "$(wc -l <"$HS_TMP/not-whole")" -le 4 ]
    }
    hs_attempts read_whole
    run -0 hs refresh
    [[ $output == "0 files changed,"*"nothing to do." ]]
}

# metadata: prints the number of metadata ranges in the pack
metadata() {
    hs show --json=short "$HS_STATE/boot.pack" --limit=0 | jq '[.. | .n_metadata? // empty] | max'
}

@test "two versions with one successor: what is known of the more used one stays" {
    hs_filesystem ext4 64
    new /usr/bin/app
    new /usr/lib/libapp.so.1.2.3
    new /usr/lib/libapp.so.1.2.4
    local day
    mkdir -p -m 700 "$HS_STATE/traces"
    sync -f "$HS_MNT"
    for ((day = 1; day <= 4; day++)); do
        "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot $(($(date +%s) - day * 3600)) \
            /usr/bin/app /usr/lib/libapp.so.1.2.$((day == 4 ? 3 : 4)) >"$HS_STATE/traces/2026010${day}T000000-boot.json"
    done
    hs learn --quiet
    hs plan --quiet
    new /usr/lib/libapp.so.1.2.5
    rm "$HS_MNT"/usr/lib/libapp.so.1.2.[34]
    hs refresh --quiet
    run -0 hs explain --json=short /usr/lib/libapp.so.1.2.5
    jq -e '.stages[0] | .sessions_used > 2.5 and .sessions_used < 3.5 and .in_pack' <<<"$output"
}

@test "doctor: files whose inode has changed do not agree with the pack" {
    hs_filesystem ext4 64
    new /usr/bin/app
    touch -d '10 days ago' "$HS_MNT/usr/bin/app" # it does not count as written in place
    learned /usr/bin/app
    run hs doctor --json=short
    jq -e '[.[] | select(.check == "freshness") | .result] == ["ok"]' <<<"$output"
    chmod 700 "$HS_MNT/usr/bin/app"
    run hs doctor --json=short
    jq -e '[.[] | select(.check == "freshness") | .result] == ["problem"]' <<<"$output"
}

@test "an upgrade of 500 packages costs one refresh" {
    hs_filesystem ext4 256
    local i name all=() names=()
    # Numbers count as versions, so these names consist of letters.
    mapfile -t names < <(seq 500 | tr 0-9 a-j)
    for name in "${names[@]}"; do
        new "/usr/bin/$name" 8000
        new "/usr/lib/lib$name.so.1.2" 20000
        all+=("/usr/bin/$name" "/usr/lib/lib$name.so.1.2")
    done
    learned "${all[@]}"
    # One package in ten is removed. In each other package the program becomes another file, and the
    # library gets another name. The first package stays, because its program is the application
    # that reads all files of the trace.
    for ((i = 0; i < 500; i++)); do
        name=${names[i]}
        rm "$HS_MNT/usr/lib/lib$name.so.1.2"
        if ((i % 10 == 5)); then
            rm "$HS_MNT/usr/bin/$name"
        else
            new "/usr/bin/$name" 9000
            new "/usr/lib/lib$name.so.1.10" 30000
        fi
    done
    sync -f "$HS_MNT"
    run -0 hs refresh
    echo "$output"
    [[ $output == "450 files changed, 450 continued under a new name, 100 removed: "* ]]
    planned >"$HS_TMP/planned"
    [ "$(grep -c '^/usr/bin/' "$HS_TMP/planned")" -eq 450 ]
    [ "$(grep -c '^/usr/lib/lib.*\.so\.1\.10$' "$HS_TMP/planned")" -eq 450 ]
    nothing_skipped
    run -0 hs refresh
    [[ $output == "0 files changed, "* ]]
}

@test "metadata of files that came after the last session is in the pack, in addition to the recorded metadata" {
    hs_filesystem ext4 64
    new /bin/app
    new /data/a
    mkdir -p -m 700 "$HS_STATE/traces"
    sync -f "$HS_MNT"
    # The trace contains one metadata block, far from all others, as if cachestat had found it.
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot $(($(date +%s) + 60)) /bin/app /data/a | # the boot is newer than all these files
        jq -c '.volumes[0] += {"metadata_source": "cachestat", "metadata": [60817408, 4096]}' \
            >"$HS_STATE/traces/20260101T000000-boot.json"
    hs learn --quiet
    hs plan --quiet
    metadata
    [ "$(metadata)" -eq 1 ]
    # Both files existed when the model was learned. Now one of them is replaced.
    new /data/a
    sync -f "$HS_MNT"
    hs refresh --quiet
    metadata
    [ "$(metadata)" -gt 1 ]
    nothing_skipped
}

@test "a file whose filesystem is not mounted is not taken for a removed one" {
    hs_filesystem ext4 64
    new /bin/app
    new /opt/tool/a
    new /srv/a
    new /srv/b
    mkdir -p "$HS_MNT/home/user"
    new /home/user/.profile
    learned /bin/app /opt/tool/a /srv/a /srv/b /home/user/.profile
    # /opt and /home are now as empty as mount points without their filesystems. In /srv, `a` is
    # left, so `b` counts as removed.
    rm -r "$HS_MNT"/opt/tool "$HS_MNT/home/user" "$HS_MNT/srv/b"
    run -0 hs refresh --json=short
    jq -e '.n_gone == 1 and .n_unknown == 2 and .planned' <<<"$output"
    planned >"$HS_TMP/planned"
    ! grep -q -e tool -e profile -e /srv/b "$HS_TMP/planned" || false
    nothing_skipped
    # The filesystems are mounted again, and all files are found as before.
    new /opt/tool/a
    mkdir -p "$HS_MNT/home/user"
    new /home/user/.profile
    hs plan --quiet
    planned >"$HS_TMP/planned"
    grep -qx /opt/tool/a "$HS_TMP/planned"
    grep -qx /home/user/.profile "$HS_TMP/planned"
    ! grep -q /srv/b "$HS_TMP/planned" || false
}

@test "nothing learned, a bad model: one line" {
    run --separate-stderr -1 hs refresh
    assert_one_error_line "$stderr"
    [[ $stderr == *"nothing was recorded yet" ]]
    mkdir -m 700 "$HS_STATE"
    echo '{' >"$HS_STATE/model.json"
    run --separate-stderr -1 hs refresh
    assert_one_error_line "$stderr"
    [ "$(<"$HS_STATE/model.json")" = '{' ]
}

@test "a request of a package manager is carried out once" {
    hs_filesystem ext4 64
    new /usr/bin/app
    learned /usr/bin/app
    new /usr/bin/app
    : >"$HS_STATE/refresh-wanted"
    run -0 hs refresh --dry-run
    [ -e "$HS_STATE/refresh-wanted" ]
    run -0 hs refresh
    [[ $output == "1 file changed"*"packs planned again." ]]
    [ ! -e "$HS_STATE/refresh-wanted" ]
    # Nothing has changed, so no pack is planned, but the request is removed.
    : >"$HS_STATE/refresh-wanted"
    hs refresh --quiet
    [ ! -e "$HS_STATE/refresh-wanted" ]
}

@test "nothing learned yet: packs from the shipped model are planned again" {
    hs_filesystem ext4 64
    new /usr/bin/app 40000
    learned /usr/bin/app
    mkdir -p "$HS_MNT$(hs_data_dir)"
    hs export --quiet --output="$HS_MNT$(hs_data_dir)/default.model"
    rm -r "$HS_STATE"/*
    run -1 --separate-stderr hs refresh
    touch -d @1000000000 "$HS_MNT/usr/bin/app" # it does not count as a file that programs write
    hs plan --quiet
    new /usr/bin/app 40000
    run ! nothing_skipped
    run -0 hs refresh
    [[ $output == *"packs planned from the model of the distribution." ]]
    nothing_skipped
}

# --- /var is mounted late ------------------------------------------------------------------------

@test "a copy of the boot pack for early boot, only if the state is on another filesystem" {
    hs_filesystem ext4 64
    new /bin/app
    new /data/a
    local root=$HS_TMP/system copy=$HS_TMP/system/etc/headstart/boot.pack
    mkdir -p "$root/etc"
    export HEADSTART_SYSTEM_ROOT=$root
    # The state is on the root filesystem, so there is no copy.
    learned /bin/app /data/a
    [ -s "$HS_STATE/boot.pack" ]
    [ ! -e "$root/etc/headstart" ]
    # The state is on a filesystem of its own, as /var is on some machines.
    mv "$HS_STATE" "$HS_MNT/state"
    HS_STATE=$HS_MNT/state
    hs plan --quiet
    cmp "$HS_STATE/boot.pack" "$copy"
    # Early boot uses the newer of both, so the copy must be no older.
    [ ! "$HS_STATE/boot.pack" -nt "$copy" ]
    [ "$(stat -c %a "$copy")" = 600 ]
    # headstart-replay replays the first of the given packs that exists. Here this is the second
    # one, the copy.
    run -0 "$HEADSTART_REPLAY" --root="$HS_MNT" --force --wait --json "$HS_TMP/nowhere/boot.pack" "$copy"
    jq -e '.files == 2' <<<"$output"
    run -1 "$HEADSTART_REPLAY" --root="$HS_MNT" --force --wait "$HS_TMP/nowhere" "$HS_TMP/nowhere2"
    # Of packs of the same name it replays the newest, because an old state directory may lie below
    # the mount point of /var.
    mkdir "$HS_TMP/hidden"
    echo damaged | tee "$HS_TMP/hidden/boot.pack" >"$HS_TMP/hidden/login.pack"
    touch -r "$copy" -d '1 hour ago' "$HS_TMP/hidden"/*
    run -0 "$HEADSTART_REPLAY" --root="$HS_MNT" --force --wait --json "$HS_TMP/hidden/boot.pack" "$copy"
    jq -e '.files == 2' <<<"$output"
    run -0 "$HEADSTART_REPLAY" --root="$HS_MNT" --force --wait --json "$copy" "$HS_TMP/hidden/boot.pack"
    run -1 "$HEADSTART_REPLAY" --root="$HS_MNT" --force --wait "$HS_TMP/hidden/login.pack" "$copy"
    touch "$HS_TMP/hidden/boot.pack"
    run -1 "$HEADSTART_REPLAY" --root="$HS_MNT" --force --wait "$HS_TMP/hidden/boot.pack" "$copy"
    run -1 "$HEADSTART_REPLAY" --root="$HS_MNT" --force --wait "$copy" "$HS_TMP/hidden/boot.pack"
    # A boot that is recorded again must not find the copy, because early boot cannot see the
    # request in the state directory.
    hs rerecord --quiet --stage=login
    [ -e "$copy" ]
    hs rerecord --quiet
    [ ! -e "$copy" ]
    hs plan --quiet
    [ ! -e "$copy" ]
    rm "$HS_STATE/rerecord-boot"
    hs plan --quiet
    [ -e "$copy" ]
    # Nor does a copy stay whose writer was killed.
    cp "$copy" "$copy.4194303.tmp"
    : >"$root/etc/headstart/boot-idle.4194303.tmp"
    hs forget --quiet
    [ -z "$(ls -A "$root/etc/headstart")" ]
}

# bind_mounted ROOT WHERE: writes a mount table in which the root filesystem shows its directory /deploy as /, and its
# directory ROOT at WHERE.
bind_mounted() {
    printf '%s\n' "1 0 8:1 /deploy / rw - ext4 /dev/sda1 rw" "2 1 8:1 $1 $2 rw - ext4 /dev/sda1 rw" \
        >"$HEADSTART_SYSTEM_ROOT/proc/self/mountinfo"
}

@test "a copy of the boot pack for early boot, if a directory of the root's filesystem is mounted over /var" {
    hs_filesystem ext4 64
    new /bin/app
    new /data/a
    local root=$HS_TMP/system copy=$HS_TMP/system/etc/headstart/boot.pack
    mkdir -p "$root/etc" "$root/proc/self"
    export HEADSTART_SYSTEM_ROOT=$root
    # The sandbox of a unit mounts the state directory over itself.
    bind_mounted "/deploy$HS_STATE" "$HS_STATE"
    learned /bin/app /data/a
    [ -s "$HS_STATE/boot.pack" ]
    [ ! -e "$copy" ]
    # As OSTree mounts /var
    bind_mounted /var "${HS_STATE%/*}"
    hs plan --quiet
    cmp "$HS_STATE/boot.pack" "$copy"
    # The sandbox is mounted below that.
    bind_mounted "/var/${HS_STATE##*/}" "$HS_STATE"
    hs plan --quiet
    [ -e "$copy" ]
    bind_mounted "/deploy$HS_STATE" "$HS_STATE"
    hs plan --quiet
    [ ! -e "$copy" ]
}

@test "a copy of the boot pack that a full root filesystem does not let replace is removed" {
    hs_filesystem ext4 64
    new /bin/app
    new /data/a
    local root=$HS_TMP/system copy=$HS_TMP/system/etc/headstart/boot.pack
    mkdir -p "$root/etc"
    mount -t tmpfs -o size=64k tmpfs "$root/etc"
    hs_defer hs_umount "$root/etc"
    export HEADSTART_SYSTEM_ROOT=$root
    learned /bin/app /data/a
    mv "$HS_STATE" "$HS_MNT/state"
    HS_STATE=$HS_MNT/state
    hs plan --quiet
    cmp "$HS_STATE/boot.pack" "$copy"
    run ! dd if=/dev/zero of="$root/etc/full" bs=4096
    run -0 hs plan --quiet # early boot does without the copy
    [[ $output == *"cannot update the copies for early boot: No space left on device"* ]]
    [ ! -e "$copy" ]
    rm "$root/etc/full"
    hs plan --quiet
    cmp "$HS_STATE/boot.pack" "$copy"
}

@test "a copy of last-control for early boot is removed with it, and with the copy of the pack" {
    hs_filesystem ext4 64
    new /bin/app
    new /data/a
    local root=$HS_TMP/system copy=$HS_TMP/system/etc/headstart/last-control
    mkdir -p "$root/etc"
    export HEADSTART_SYSTEM_ROOT=$root
    learned /bin/app /data/a
    mv "$HS_STATE" "$HS_MNT/state"
    HS_STATE=$HS_MNT/state
    hs plan --quiet
    [ ! -e "$copy" ]
    # As headstartd leaves both after a control session (stages.bats).
    echo 0123456789abcdef0123456789abcdef | tee "$HS_STATE/last-control" >"$copy"
    hs plan --quiet
    [ ! -e "$HS_STATE/last-control" ]
    [ ! -e "$copy" ]
    # A request to record the boot removes the copies. The next plan makes the copy of the pack again.
    echo 0123456789abcdef0123456789abcdef | tee "$HS_STATE/last-control" >"$copy"
    : >"$copy.4194303.tmp"
    hs rerecord --quiet
    [ -z "$(ls -A "$root/etc/headstart")" ]
}

@test "a copy of boot-idle for early boot, only beside the copy of the pack" {
    hs_filesystem ext4 64
    new /bin/app
    new /data/a
    local root=$HS_TMP/system copy=$HS_TMP/system/etc/headstart/boot-idle first
    mkdir -p "$root/etc"
    export HEADSTART_SYSTEM_ROOT=$root
    learned /bin/app /data/a
    echo '{"version":1,"stage":"boot","flags":[],"policy":"off","outcome":"off","usage":"none","ready_usec":5000000,"start_realtime_usec":'"$(date +%s)"'000000}' \
        >"$HS_STATE/history.jsonl"
    hs plan --quiet --policy=off
    [ -e "$HS_STATE/boot-idle" ]
    [ ! -e "$root/etc/headstart" ]
    mv "$HS_STATE" "$HS_MNT/state"
    HS_STATE=$HS_MNT/state
    hs plan --quiet --policy=off
    [ "$(stat -c '%a %s' "$copy")" = "600 0" ]
    [ -e "${copy%-idle}.pack" ]
    # Nothing writes it again.
    first=$(stat -c %i "$copy")
    hs plan --quiet --policy=off
    [ "$(stat -c %i "$copy")" = "$first" ]
    hs plan --quiet --policy=concurrent
    [ ! -e "$copy" ]
    [ -e "${copy%-idle}.pack" ]
    # Early boot cannot see a request to record the boot, which overrides boot-idle.
    hs plan --quiet --policy=off
    [ -e "$copy" ]
    hs rerecord --quiet
    [ ! -e "$copy" ]
    hs plan --quiet --policy=off
    [ -e "$HS_STATE/boot-idle" ]
    [ ! -e "$copy" ]
    rm "$HS_STATE/rerecord-boot"
    hs plan --quiet --policy=off
    [ -e "$copy" ]
    hs forget --quiet
    [ ! -e "$copy" ]
}

@test "a filesystem that hangs, mounted on a directory whose files were learned, does not stop refresh" {
    [ -e /dev/fuse ] || skip "needs /dev/fuse"
    hs_filesystem ext4 64
    new /home/u/covered/file
    new /usr/bin/app
    new /usr/share/old
    new /usr/share/other
    learned /home/u/covered/file /usr/bin/app /usr/share/old
    "$BATS_TEST_DIRNAME/hung-filesystem" "$(type -P true)" "$HS_MNT/home/u/covered" >"$HS_TMP/hung" 3>&- &
    # When the server of the mount is gone, the mount answers with errors and can be unmounted.
    hs_defer umount -l "$HS_MNT/home/u/covered"
    hs_defer hs_kill $!
    hs_wait 10 grep -q mounted "$HS_TMP/hung"
    kill -USR1 $!
    hs_wait 10 grep -q hung "$HS_TMP/hung"
    new /usr/bin/app
    rm "$HS_MNT/usr/share/old"
    run -0 timeout 30 "$HEADSTART" --state="$HS_STATE" --root="$HS_MNT" refresh --json=short
    echo "$output"
    # What the mount hides is neither there nor gone.
    jq -e '.n_changed == 1 and .n_gone == 1 and .n_unknown == 1' <<<"$output"
}
