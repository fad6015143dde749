#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart relocate: the files of the packs lie next to each other, and no content is lost.

bats_require_minimum_version 1.5.0
load helpers

setup() {
    hs_setup
    HS_ROOT=$HS_MNT
    need_loop
    need_command jq e2fsck chattr filefrag tune2fs
}

# planned [COMMAND…]: makes files in pieces of 16 KiB, runs the command, and plans a boot that reads
# the files. The filesystem has blocks of 4096 bytes, or of HS_BLOCK.
planned() {
    local i
    hs_filesystem ext4 64 -m 0 -b "${HS_BLOCK:-4096}"
    mkdir -p "$HS_MNT/usr/lib" "$HS_MNT/usr/share"
    cp /bin/sleep "$HS_MNT/usr/running"
    # The only free space is in pieces.
    fallocate -l $(($(stat -f -c '%a * %S' "$HS_MNT") - 1048576)) "$HS_MNT/fill"
    for ((i = 0; i < 64; i++)); do
        fallocate -p -o $((i * 65536)) -l 16384 "$HS_MNT/fill"
    done
    fallocate -l 1048576 "$HS_MNT/rest" || true
    head -c 262144 /dev/urandom >"$HS_MNT/usr/lib/liba.so"
    head -c 163840 /dev/urandom >"$HS_MNT/usr/lib/libb.so"
    head -c 98304 /dev/urandom >"$HS_MNT/usr/share/c"
    sync -f "$HS_MNT"
    rm "$HS_MNT/fill" "$HS_MNT/rest"
    find "$HS_MNT/usr" -type f -exec touch -d '10 days ago' {} +
    "$@"
    mkdir -p -m 700 "$HS_STATE/traces"
    sync -f "$HS_MNT"
    "$BATS_TEST_DIRNAME/make-trace" "$HS_MNT" "$HS_LOOP" boot $(($(date +%s) - 3600)) \
        /usr/lib/liba.so /usr/lib/libb.so /usr/share/c /usr/running >"$HS_STATE/traces/20260101T000000-boot.json"
    hs learn --quiet
    hs plan --quiet
    (cd "$HS_MNT" && find . -type f -exec sha256sum {} + | sort) >"$HS_TMP/contents"
}

# Checks the contents of all files and the filesystem. The caches are cold, so the disk is read.
nothing_lost() {
    hs_cold
    (cd "$HS_MNT" && find . -type f -exec sha256sum {} + | sort) >"$HS_TMP/now"
    diff "$HS_TMP/contents" "$HS_TMP/now"
    hs_umount "$HS_MNT"
    e2fsck -fn "$HS_LOOP"
    mount "$HS_LOOP" "$HS_MNT"
}

pieces() {
    filefrag "$HS_MNT$1" | sed 's/.*: \([0-9]*\) extent.*/\1/'
}

@test "relocate: a dry run changes nothing, a run makes one piece of the files" {
    planned
    [ "$(pieces /usr/lib/liba.so)" -ge 8 ]
    # The root may be a relative path.
    cd "$(dirname "$HS_MNT")"
    run -0 "$HEADSTART" --root="$(basename "$HS_MNT")" --state="$HS_STATE" relocate --dry-run --force --json=short
    jq -e '.filesystems[0].n_files == 4' <<<"$output"
    cd "$OLDPWD"
    run -0 hs relocate --dry-run --force --json=short
    jq -e '.filesystems[0] | .n_files == 4 and .n_skipped == 0 and .moved_bytes == 0 and .bytes >= 512 * 1024 and
        .n_fragments_before >= 20 and .n_fragments_after == 1 and
        .predicted_usec_after <= .predicted_usec_before' <<<"$output"
    [ "$(pieces /usr/lib/liba.so)" -ge 8 ]

    run -0 hs relocate --force --json=short
    jq -e '.filesystems[0] | .n_skipped == 0 and .moved_bytes == .bytes and .n_fragments_after <= 2 and
        .predicted_usec_after <= .predicted_usec_before' <<<"$output"
    [ "$(pieces /usr/lib/liba.so)" -eq 1 ]
    [ "$(pieces /usr/share/c)" -eq 1 ]
    nothing_lost
    # The pack was planned again: replay finds every file, and its data lies in one stretch.
    hs replay --stage=boot --wait --force --json=short | jq -e '.skipped == {} or ([.skipped[]] | add // 0) == 0'
}

# Writes libb.so in eight pieces, of 160,840 bytes in all.
write_libb_in_pieces() {
    local i
    rm "$HS_MNT/usr/lib/libb.so"
    for ((i = 0; i < 8; i++)); do
        head -c 20105 /dev/urandom >>"$HS_MNT/usr/lib/libb.so"
        sync -f "$HS_MNT"
        head -c 20000 /dev/urandom >>"$HS_MNT/between"
        sync -f "$HS_MNT"
    done
    touch -d '10 days ago' "$HS_MNT/usr/lib/libb.so"
}

@test "relocate: a file that ends within a page, on a filesystem whose blocks are smaller than pages" {
    HS_BLOCK=1024
    planned write_libb_in_pieces
    [ "$(pieces /usr/lib/libb.so)" -ge 3 ]
    run -0 hs relocate --force --json=short
    jq -e '(.filesystems[0] | .n_skipped == 0 and .moved_bytes > 0) and .skipped == []' <<<"$output"
    [ "$(pieces /usr/lib/libb.so)" -eq 1 ]
    nothing_lost
}

@test "relocate: without --force only disks that seek slowly are touched" {
    planned
    run -0 hs relocate
    [[ $output == "Nothing to do: no pack reads from an ext4 filesystem with a journal on a disk that seeks slowly." ]]
    [ "$(pieces /usr/lib/liba.so)" -ge 8 ]
}

@test "relocate: running, written, immutable and changed files stay" {
    planned chattr +i "$HS_MNT/usr/lib/libb.so"
    hs_defer chattr -i "$HS_MNT/usr/lib/libb.so"
    "$HS_MNT/usr/running" 1000 3>&- &
    hs_defer hs_wait 10 eval "! kill $! 2>/dev/null"
    hs_wait 10 test "/proc/$!/exe" -ef "$HS_MNT/usr/running"
    exec 9>>"$HS_MNT/usr/share/c"
    run -0 hs relocate --force --json=short
    exec 9>&-
    jq -e '[.skipped[] | .reason] | sort == ["attributes", "running", "written"]' <<<"$output"
    jq -e '.filesystems[0].moved_bytes == 256 * 1024' <<<"$output"
    [ "$(pieces /usr/lib/liba.so)" -eq 1 ]
    [ "$(pieces /usr/share/c)" -ge 3 ]
    chattr -i "$HS_MNT/usr/lib/libb.so"
    echo new >"$HS_MNT/usr/lib/libb.so"
    run -0 hs relocate --dry-run --force --json=short
    jq -e '[.skipped[] | .reason] | index("changed")' <<<"$output"
}

@test "relocate: a full and a read-only filesystem give one line, and nothing changes" {
    planned
    fallocate -l $(($(stat -f -c '%a * %S' "$HS_MNT") - 262144)) "$HS_MNT/fill"
    run -1 --separate-stderr hs relocate --force
    # shellcheck disable=SC2154 # set by run
    [[ $stderr == *"too little free space"* ]]
    rm "$HS_MNT/fill"
    mount -o remount,ro "$HS_MNT"
    run -1 --separate-stderr hs relocate --force
    [[ $stderr == *"cannot move the files: Read-only file system" ]]
    mount -o remount,rw "$HS_MNT"
    nothing_lost
}

@test "relocate: on a corrupt filesystem the damaged file stays, and nothing else is lost" {
    need_command debugfs
    planned
    hs_umount "$HS_MNT"
    debugfs -w -R "clri /usr/share/c" "$HS_LOOP"
    mount -o errors=continue "$HS_LOOP" "$HS_MNT"
    run -0 --separate-stderr hs relocate --force --json=short
    jq -e '.skipped | any(.path == "usr/share/c" and .reason == "changed")' <<<"$output"
    hs_cold
    grep -vE ' \./usr/share/c$| \.$' "$HS_TMP/contents" | (cd "$HS_MNT" && sha256sum --check --quiet)
}

@test "relocate: a filesystem without a journal is left alone" {
    planned
    hs_umount "$HS_MNT"
    tune2fs -O ^has_journal "$HS_LOOP"
    mount "$HS_LOOP" "$HS_MNT"
    run -0 hs relocate --force
    [ "$output" = "Nothing to do: no pack reads from an ext4 filesystem with a journal." ]
    [ "$(pieces /usr/lib/liba.so)" -ge 8 ]
}

make_sparse() {
    truncate -s 8M "$HS_MNT/usr/share/c"
    touch -d '10 days ago' "$HS_MNT/usr/share/c"
}

@test "relocate: a sparse file stays" {
    planned make_sparse
    run -0 hs relocate --force --json=short
    jq -e '[.skipped[] | [.path, .reason]] == [["usr/share/c", "without place"]]' <<<"$output"
    [ "$(pieces /usr/lib/liba.so)" -eq 1 ]
}

@test "relocate: kills at any moment lose nothing" {
    local i pid n=${HEADSTART_KILLS:-12}
    planned
    for ((i = 0; i < n; i++)); do
        "$HEADSTART" --root="$HS_MNT" --state="$HS_STATE" relocate --force --quiet 3>&- 2>/dev/null &
        pid=$!
        sleep "0.0$((RANDOM % 10))"
        kill -KILL $pid 2>/dev/null || true
        wait $pid || true
        (cd "$HS_MNT" && sha256sum --quiet -c "$HS_TMP/contents")
    done
    nothing_lost
    echo "# $n kills, nothing lost" >&3
}
