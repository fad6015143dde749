# SPDX-License-Identifier: LGPL-2.1-or-later
# headstart-replay on real filesystems: what it reads, what it must never open, how it ends.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    need_root
    need_binary "$HEADSTART_REPLAY"
    MKPACK=$HS_BUILD/tests/tools/tool-mkpack
    PACK=$HS_TMP/test.pack
}

# fill DIRECTORY: makes 480 small files in 28 directories, and one large file
fill() {
    local i k
    for ((i = 0; i < 24; i++)); do
        mkdir -p "$1/d$((i % 4))/e$i"
        for ((k = 0; k < 20; k++)); do
            head -c $(((i * 20 + k) * 37)) /dev/urandom >"$1/d$((i % 4))/e$i/f$k"
        done
    done
    head -c 10485760 /dev/urandom >"$1/large"
    sync -f "$1"
}

# make_pack [OPTION…]: makes PACK of all files and directories below HS_MNT, except lost+found
make_pack() {
    find "$HS_MNT" \( -type f -o -type d \) -not -name lost+found | sort |
        "$MKPACK" "$@" "$PACK" "$HS_MNT"
}

replay() {
    "$HEADSTART_REPLAY" --root="$HS_MNT" "$@"
}

# replayed FILTER: prints what the jq filter gives for the JSON result
replayed() {
    jq -er "$1" <<<"$output"
}

# Prints how many bytes of the file are in memory
resident() {
    fincore --noheadings --bytes --output RES "$1"
}

# is_resident FILE BYTES: checks that at least this many bytes of the file are in memory
is_resident() {
    [ "$(resident "$1")" -ge "$2" ]
}

# cold_replay FILE BYTES [OPTION…]: replays with cold caches, and checks that at least this many
# bytes of the file are in memory afterwards
cold_replay() {
    local file=$1 bytes=$2
    shift 2
    hs_cold
    run -0 replay --wait --json "$@" "$PACK"
    is_resident "$file" "$bytes"
}

# bad REASON: checks that the pack is refused with status 1 and one line that contains REASON
bad() {
    run --separate-stderr replay "$PACK"
    echo "$stderr"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    assert_one_error_line "$stderr"
    [[ $stderr == *"$1"* ]]
}

# --- basic behaviour ------------------------------------------------------------------------------

@test "under systemd, the result and a refused pack are entries of the journal with fields" {
    local journal=(unshare --mount --propagation private tests/bats/with-journal)
    cd "$HS_SOURCE"
    "$MKPACK" "$PACK" </dev/null
    run -0 "${journal[@]}" "$HEADSTART_REPLAY" --wait "$PACK"
    jq -se 'length == 2 and .[1].stdout == "" and .[1].stderr == "" and
        (.[0] | .MESSAGE_ID == "4c189a94035e4a8b8c7eae4006cb5fc9" and .HEADSTART_OUTCOME == "done" and
         .SYSLOG_IDENTIFIER == "headstart-replay" and .PRIORITY == "6" and .HEADSTART_FILES == "0" and
         .HEADSTART_STAGE == "login" and (.HEADSTART_DURATION_USEC | tonumber) > 0)' <<<"$output"
    echo nonsense >"$PACK"
    run -1 "${journal[@]}" "$HEADSTART_REPLAY" --wait "$PACK"
    jq -se --arg pack "$PACK" 'length == 2 and .[1].stderr == "" and
        (.[0] | .MESSAGE_ID == "0f48a9f37c32493b9b253b0aabe7c3a1" and .HEADSTART_PACK == $pack and
         .PRIORITY == "3" and (.HEADSTART_REASON | length) > 3)' <<<"$output"
}

@test "an empty pack is replayed at once and with one line" {
    "$MKPACK" "$PACK" </dev/null
    run -0 replay --wait "$PACK"
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"0 metadata ranges (0B), 0 files, 0 data ranges (0B) resident in"*"; skipped 0" ]]
}

# Checks that a replay that may wait for a quiet disk reads everything.
settled() {
    cold_replay "$HS_MNT/file" 300000 --policy=idle --settle=1min
    [ "$(replayed .resident)" = true ]
}

@test "--settle waits for a quiet moment, then everything is read" {
    hs_filesystem ext4 100
    head -c 300000 /dev/urandom >"$HS_MNT/file"
    sync -f "$HS_MNT"
    make_pack --metadata
    hs_attempts settled
    # --hurry says that a login has begun, so replay does not wait for a quiet disk.
    hs_attempts cold_replay "$HS_MNT/file" 300000 --policy=idle --hurry --settle=5min
    # The pack itself is read after the wait.
    need_command strace
    env ASAN_OPTIONS=detect_leaks=0 strace -f -o "$HS_TMP/strace" "$HEADSTART_REPLAY" --settle=1s "$PACK"
    run -0 grep -oE '/proc/(pressure/io|diskstats)|/test\.pack' <(grep open "$HS_TMP/strace")
    [[ ${lines[0]} == /proc/* ]]
    [ "${lines[-1]}" = /test.pack ]
    run -2 "$HEADSTART_REPLAY" --settle=soon "$PACK"
    run -2 "$HEADSTART_REPLAY" --settle=1h "$PACK"
}

@test "usage: each error is reported, with status 2" {
    run -2 --separate-stderr "$HEADSTART_REPLAY"
    [[ $stderr == *"no pack given"* ]]
    run -2 "$HEADSTART_REPLAY" --policy=fast a
    run -2 "$HEADSTART_REPLAY" --ioprio=realtime a
    run -2 "$HEADSTART_REPLAY" --no-such-thing a
    run -0 "$HEADSTART_REPLAY" --help
    [[ $output == *--dry-run* ]]
    run -0 "$HEADSTART_REPLAY" --version
}

# appended BYTES: checks that a replay reads BYTES of the data that were appended to the file
appended() {
    cold_replay "$HS_MNT/file" $((40960 + $1)) && [ "$(resident "$HS_MNT/file")" -le $((40960 + $1 + 131072)) ]
}

# in_place CLASS: makes PACK of a file that is written in place, on a disk of the class
in_place() {
    hs_filesystem ext4 100
    head -c 40960 /dev/urandom >"$HS_MNT/file"
    sync -f "$HS_MNT"
    make_pack --metadata --volatile "--class=$1"
}

# append BYTES
append() {
    head -c "$1" /dev/urandom >>"$HS_MNT/file"
    sync -f "$HS_MNT"
}

@test "replay reads data that were appended after the plan to a file that is written in place, up to a bound" {
    in_place sd
    append 200000
    hs_attempts appended 200000
    append 8000000
    hs_attempts appended 1048576
}

@test "replay reads four times as much appended data from a disk that seeks" {
    in_place hdd
    append 8000000
    hs_attempts appended 4194304
}

@test "replay reads no appended data from a file that was not written to after the plan" {
    in_place hdd
    # The data is there, but the modification time is that of the plan.
    touch -r "$HS_MNT/file" "$HS_TMP/time"
    append 200000
    touch -r "$HS_TMP/time" "$HS_MNT/file"
    sync -f "$HS_MNT"
    hs_attempts appended 0
}

@test "replay reads the new version of a file that programs write to, and of no other file" {
    in_place hdd
    head -c 40960 /dev/urandom >"$HS_MNT/new"
    mv "$HS_MNT/new" "$HS_MNT/file"
    sync -f "$HS_MNT"
    hs_attempts appended 0
    make_pack --metadata --class=hdd
    head -c 40960 /dev/urandom >"$HS_MNT/new"
    mv "$HS_MNT/new" "$HS_MNT/file"
    sync -f "$HS_MNT"
    hs_cold
    "$HEADSTART_REPLAY" --wait --json "$PACK" >"$HS_TMP/result"
    [ "$(jq .skipped.replaced "$HS_TMP/result")" -eq 1 ]
    [ "$(resident "$HS_MNT/file")" -eq 0 ]
}

# --- what it reads ---------------------------------------------------------------------------------

walk() {
    ls -lR "$HS_MNT" >/dev/null
    find "$HS_MNT" -newer /proc/self/exe >/dev/null
}

replay_and_walk() {
    local before walked
    hs_cold
    run -0 --separate-stderr replay --wait --json "$PACK"
    before=$(hs_reads)
    walk
    walked=$(($(hs_reads) - before))
    find "$HS_MNT" -type f -exec cat {} + >/dev/null
    echo "walking read $walked times, then reading $(($(hs_reads) - before - walked)) times"
    # The pack does not contain lost+found, so a few reads remain.
    [ $walked -le 3 ] && [ $(($(hs_reads) - before)) -le 6 ]
}

# after_replay FSTYPE: checks that everything is resident, and that walking the tree reads next to
# nothing
after_replay() {
    local before
    hs_filesystem "$1" 400
    fill "$HS_MNT"
    make_pack --metadata
    hs_cold
    before=$(hs_reads)
    walk
    # Without replay, walking the tree reads from the disk.
    [ $(($(hs_reads) - before)) -ge 10 ]
    hs_attempts replay_and_walk
    echo "$output"
    [ "$(replayed .files)" -eq 510 ]
    [ "$(replayed .resident)" = true ]
    [ "$(replayed '.skipped | length')" -eq 0 ]
}

@test "ext4: after replay, ls -lR, find -newer and cat read next to nothing" {
    after_replay ext4
    [ "$(replayed .metadata_ranges)" -gt 0 ]
}

@test "xfs: after replay, ls -lR, find -newer and cat read next to nothing" {
    after_replay xfs
    [ "$(replayed .metadata_ranges)" -gt 0 ]
}

@test "btrfs: after replay, ls -lR, find -newer and cat read next to nothing" {
    after_replay btrfs
    [ "$(replayed .metadata_ranges)" -gt 0 ]
}

# items_bring_inodes: replays the pack, which has items, and looks for reads afterwards.
items_bring_inodes() {
    local before
    hs_cold
    run -0 replay --wait --json --policy=metadata "$PACK"
    [ "$(replayed .metadata_ranges)" -ge 1 ] && [ "$(replayed '.skipped | length')" -eq 0 ] || return
    before=$(hs_reads)
    find "$HS_MNT/d0" -type f -newer /proc/version >/dev/null
    [ $(($(hs_reads) - before)) -le 3 ]
}

# items_read FILESYSTEM: checks that items bring inodes into memory that no open has read
items_read() {
    local n
    hs_filesystem "$1" 400
    fill "$HS_MNT"
    make_pack --metadata
    n=$("$HEADSTART_REPLAY" --root="$HS_MNT" --dry-run "$PACK" | grep -c '^item ')
    [ "$n" -ge 2 ]
    # Inodes of the other half are in the same blocks, but the replay opens none of them.
    find "$HS_MNT" -path '*/d0/*' -type f | sort | "$MKPACK" --metadata "$PACK" "$HS_MNT"
    hs_attempts items_bring_inodes
}

@test "xfs: the policy metadata asks for items" {
    items_read xfs
}

@test "btrfs: the policy metadata asks for items" {
    items_read btrfs
}

# many_directories: fills HS_MNT with 30 directories, each with a block of entries, and one with many blocks
many_directories() {
    local i k
    for ((i = 0; i < 30; i++)); do
        mkdir -p "$HS_MNT/top/d$i"
        for ((k = 0; k < 40; k++)); do : >"$HS_MNT/top/d$i/an-empty-file-with-a-long-name-$k"; done
    done
    mkdir "$HS_MNT/large"
    for ((k = 0; k < 2000; k++)); do : >"$HS_MNT/large/an-empty-file-with-a-long-name-$k"; done
    sync -f "$HS_MNT"
}

# lists_without_reads: after a replay with the policy metadata, a listing of the 30 directories reads nothing
lists_without_reads() {
    local before
    hs_cold
    run -0 replay --wait --json --policy=metadata "$PACK"
    [ "$(replayed '.skipped | length')" -eq 0 ]
    before=$(hs_reads)
    find "$HS_MNT/top" >/dev/null
    [ "$(hs_reads)" -eq "$before" ]
}

@test "xfs: items bring the entries of directories into memory" {
    hs_filesystem xfs 400
    many_directories
    # Each directory has one name in the pack. No open lists them.
    find "$HS_MNT/top" -name '*-7' | sort | "$MKPACK" --metadata "$PACK" "$HS_MNT"
    [ "$("$HEADSTART" show --json=short --limit=0 "$PACK" |
        jq '[.volumes[].metadata[].item | select(startswith("entries "))] | length')" -ge 31 ]
    hs_attempts lists_without_reads
}

@test "xfs: a directory that is gone, or has another inode, is no error" {
    hs_filesystem xfs 400
    many_directories
    find "$HS_MNT/top" -name '*-7' | sort | "$MKPACK" --metadata "$PACK" "$HS_MNT"
    rm -r "$HS_MNT/top/d0" "$HS_MNT/top/d1"
    mkdir "$HS_MNT/top/d1"
    sync -f "$HS_MNT"
    hs_cold
    run -0 replay --wait --json "$PACK"
    [ "$(replayed '.skipped | keys == ["gone"]')" = true ]
    [ "$(replayed .files)" -eq 28 ]
}

# reads_of OPTION…: prints how many sectors a replay of the directory `large` reads
reads_of() {
    local before
    echo "$HS_MNT/large" | "$MKPACK" "$@" "$PACK" "$HS_MNT"
    hs_cold
    before=$(hs_sectors)
    replay --wait "$PACK" >/dev/null
    echo $(($(hs_sectors) - before))
}

looked_up_reads_less() {
    [ $(($(reads_of --looked-up) + 128)) -le "$(reads_of)" ]
}

@test "xfs: replay lists directories, but not those that were only looked up" {
    hs_filesystem xfs 400
    many_directories
    hs_attempts looked_up_reads_less
}

# replays_without FILESYSTEM CAPABILITY: replays without this capability; all files are opened, and no item is skipped
replays_without() {
    need_command setpriv
    hs_filesystem "$1" 400
    fill "$HS_MNT"
    make_pack --metadata
    hs_cold
    run -0 setpriv --bounding-set="-$2" --inh-caps="-$2" \
        "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --json "$PACK"
    [ "$(replayed '.skipped | length')" -eq 0 ]
    [ "$(replayed .files)" -eq 510 ]
    [ "$(replayed .resident)" = true ]
}

@test "without CAP_SYS_ADMIN items of btrfs are left out, and opening the files reads what they need" {
    replays_without btrfs sys_admin
    [ "$(replayed .metadata_ranges)" -eq 0 ]
}

@test "without CAP_SYS_ADMIN, as in the units, items of xfs are read" {
    replays_without xfs sys_admin
    [ "$(replayed .metadata_ranges)" -ge 2 ]
}

@test "without CAP_DAC_READ_SEARCH items of xfs are left out, and opening the files reads what they need" {
    replays_without xfs dac_read_search
    [ "$(replayed .metadata_ranges)" -eq 0 ]
}

@test "btrfs: an item that is gone reads the block in which it would be, and is no error" {
    hs_filesystem btrfs 400
    fill "$HS_MNT"
    make_pack --metadata
    rm -r "$HS_MNT/d0"
    sync -f "$HS_MNT"
    hs_cold
    run -0 replay --wait --json "$PACK"
    [ "$(replayed .metadata_ranges)" -ge 2 ]
    [ "$(replayed '.skipped | keys == ["gone"]')" = true ]
}

replay_metadata() {
    local before
    hs_cold
    run -0 replay --wait --policy=metadata --json "$PACK"
    before=$(hs_reads)
    walk
    [ $(($(hs_reads) - before)) -le 3 ]
}

@test "ext4: the policy metadata reads metadata ranges and no data" {
    hs_filesystem ext4 200
    fill "$HS_MNT"
    make_pack --metadata
    hs_attempts replay_metadata
    [ "$(replayed .metadata_ranges)" -gt 0 ]
    [ "$(replayed .files)" -eq 0 ]
    [ "$(replayed .data_bytes)" -eq 0 ]
    [ "$(resident "$HS_MNT/large")" -eq 0 ]
}

replay_large() {
    local before
    hs_cold
    before=$(hs_reads)
    run -0 replay --wait "$PACK"
    echo "$output, $(($(hs_reads) - before)) requests"
    # The limit has room for 40 MiB in requests of half of max_sectors_kb and for the reads of
    # opening, but not for 10,240 pages one by one.
    [ $(($(hs_reads) - before)) -le $((40960 / $(<"$1/max_sectors_kb") * 2 + 60)) ] || return
    [ "$(resident "$HS_MNT/large")" -eq 41943040 ]
}

@test "a large range is read in a few large requests, whatever read_ahead_kb is" {
    local queue
    hs_filesystem ext4 100
    head -c 41943040 /dev/urandom >"$HS_MNT/large"
    sync -f "$HS_MNT"
    find "$HS_MNT" -name large | "$MKPACK" "$PACK" "$HS_MNT"
    queue=/sys/block/$(basename "$HS_LOOP")/queue
    hs_defer eval "echo $(<"$queue/read_ahead_kb") >$queue/read_ahead_kb"
    echo 4 >"$queue/read_ahead_kb"
    hs_attempts replay_large "$queue"
}

# Without --wait, because only then neighbours are joined. Waits until the last file is resident.
replay_neighbours() {
    local before i
    hs_cold
    before=$(hs_reads)
    run -0 replay --json "$PACK"
    [ "$(replayed .files)" -ge 200 ] || return
    for ((i = 0; i < 50; i++)); do
        [ "$(resident "$HS_MNT/f299")" -eq 4096 ] && break
        sleep 0.1
    done
    [ $(($(hs_reads) - before)) -le 150 ] || return
    [ "$(cat "$HS_MNT"/f* | sha256sum)" = "$1" ]
}

@test "no thread of a replay reads more than 48 MiB and one request" {
    local i
    need_strace
    hs_filesystem ext4 320
    for ((i = 0; i < 160; i++)); do head -c 1048576 /dev/zero >"$HS_MNT/f$i"; done
    sync -f "$HS_MNT"
    make_pack
    hs_cold
    strace -f --seccomp-bpf -e trace=fadvise64 -o "$HS_TMP/calls" \
        "$HEADSTART_REPLAY" --root="$HS_MNT" --wait "$PACK"
    # bfq gives a thread that has read 60 MB a lower weight.
    awk '/WILLNEED/ { split($0, a, ", "); bytes[$1] += a[3] }
        END { for (t in bytes) { all += bytes[t]; if (bytes[t] > 60e6) exit 1 } exit all < 160e6 }' "$HS_TMP/calls"
}

@test "neighbouring files are read with one request" {
    local i sum
    hs_filesystem ext4 100
    for ((i = 100; i < 300; i++)); do
        head -c 4096 /dev/urandom >"$HS_MNT/f$i"
    done
    sync -f "$HS_MNT"
    sum=$(cat "$HS_MNT"/f* | sha256sum)
    find "$HS_MNT" -name 'f*' | "$MKPACK" --metadata --class=emmc "$PACK" "$HS_MNT"
    hs_attempts replay_neighbours "$sum"
}

@test "parallel: every device class reads the same" {
    local class
    hs_filesystem ext4 200
    fill "$HS_MNT"
    for class in unknown hdd sd emmc netdisk ssd; do
        make_pack --metadata --class=$class
        hs_attempts cold_replay "$HS_MNT/large" 10485760
        echo "$class: $output"
        [ "$(replayed .files)" -ge 505 ]
        [ "$(replayed .resident)" = true ]
        [ "$(replayed '.skipped | length')" -eq 0 ]
    done
}

@test "few descriptors are enough: RLIMIT_NOFILE of 256, and of 40" {
    local limit class
    need_command prlimit
    hs_filesystem ext4 200
    fill "$HS_MNT"
    replay() {
        prlimit --nofile=$limit:$limit "$HEADSTART_REPLAY" --root="$HS_MNT" "$@"
    }
    for class in hdd ssd; do
        make_pack --metadata --class=$class
        for limit in 256 40; do
            hs_attempts cold_replay "$HS_MNT/large" 10485760
            echo "$class, $limit: $output"
            [ "$(replayed .resident)" = true ]
            [ "$(replayed '.skipped | length')" -eq 0 ]
        done
    done
}

@test "neighbouring files are read with few descriptors: RLIMIT_NOFILE of 40" {
    local i class
    need_command prlimit
    hs_filesystem ext4 100
    for ((i = 100; i < 500; i++)); do
        head -c 4096 /dev/urandom >"$HS_MNT/f$i"
    done
    sync -f "$HS_MNT"
    for class in hdd emmc ssd; do
        find "$HS_MNT" -name 'f*' | "$MKPACK" --metadata --class=$class "$PACK" "$HS_MNT"
        hs_cold
        run -0 prlimit --nofile=40:40 "$HEADSTART_REPLAY" --root="$HS_MNT" --json "$PACK"
        echo "$class: $output"
        [ "$(replayed .files)" -eq 400 ]
        [ "$(replayed .data_ranges)" -eq 400 ]
        [ "$(replayed '.skipped | length')" -eq 0 ]
    done
}

replay_subvolume() {
    run -0 "$HEADSTART_REPLAY" --root="$HS_TMP" --wait --json "$HS_TMP/$1.pack"
    [ "$(resident "$HS_TMP/$1/file")" -ge 100000 ]
}

@test "btrfs: each subvolume is found by its own mount" {
    local s
    need_command btrfs
    hs_filesystem btrfs 300
    for s in a b; do
        btrfs subvolume create "$HS_MNT/@$s" >/dev/null
        head -c 100000 /dev/urandom >"$HS_MNT/@$s/file"
    done
    sync -f "$HS_MNT"
    hs_umount "$HS_MNT"
    mkdir "$HS_TMP/a" "$HS_TMP/b"
    for s in a b; do
        hs_mount "$HS_LOOP" "$HS_TMP/$s" "subvol=@$s"
        find "$HS_TMP/$s" -type f | "$MKPACK" "$HS_TMP/$s.pack" "$HS_TMP/$s"
        hs_umount "$HS_TMP/$s"
    done
    hs_drop_caches
    for s in a b; do
        mount -o "subvol=@$s" "$HS_LOOP" "$HS_TMP/$s"
    done
    hs_attempts replay_subvolume b
    [ "$(replayed .files)" -eq 1 ]
    [ "$(resident "$HS_TMP/a/file")" -eq 0 ]
    hs_attempts replay_subvolume a
}

@test "a filesystem that is not mounted, or not below the root, is skipped and counted" {
    hs_filesystem ext4 100
    head -c 100000 /dev/urandom >"$HS_MNT/file"
    make_pack --metadata
    mkdir "$HS_TMP/elsewhere"
    run -0 "$HEADSTART_REPLAY" --root="$HS_TMP/elsewhere" --wait "$PACK"
    echo "$output"
    [[ $output =~ skipped\ [0-9]+\ \([0-9]+\ unmounted\)$ ]]
    hs_umount "$HS_MNT"
    run -0 replay --wait --json "$PACK"
    [ "$(replayed .skipped.unmounted)" -ge 3 ]
    [ "$(replayed .files)" -eq 0 ]
    run -1 --separate-stderr "$HEADSTART_REPLAY" --root="$HS_TMP/nowhere" "$PACK"
    assert_one_error_line "$stderr"
}

@test "a filesystem that another mount covers is not mistaken for that one" {
    hs_filesystem ext4 100
    head -c 100000 /dev/urandom >"$HS_MNT/file"
    make_pack --metadata
    mount -t tmpfs none "$HS_MNT"
    hs_defer umount "$HS_MNT"
    run -0 replay --wait --json "$PACK"
    echo "$output"
    [ "$(replayed .files)" -eq 0 ]
    [ "$(replayed .skipped.unmounted)" -ge 3 ]
}

@test "a device of another size: its metadata is not read, its files are" {
    hs_filesystem ext4 100
    head -c 100000 /dev/urandom >"$HS_MNT/file"
    sync -f "$HS_MNT"
    make_pack --metadata --device-size=52428800
    hs_attempts cold_replay "$HS_MNT/file" 100000
    echo "$output"
    [ "$(replayed .metadata_ranges)" -eq 0 ]
    [ "$(replayed .skipped.device)" -ge 1 ]
    [ "$(replayed .files)" -eq 2 ]
}

# --- what it must not open --------------------------------------------------------------------------

@test "a path that became a FIFO, device, symlink, loop, directory, mount, or nothing: counted, not opened" {
    local f trace=$HS_TMP/strace
    need_command strace
    hs_filesystem ext4 100
    mkdir "$HS_MNT/dir" "$HS_MNT/wasdir"
    for f in kept fifo device socket symlink loop directory gone replaced grown dir/behind covered; do
        head -c 20000 /dev/urandom >"$HS_MNT/$f"
    done
    sync -f "$HS_MNT"
    make_pack
    cd "$HS_MNT"
    rm fifo device socket symlink loop directory gone
    mkfifo fifo
    mknod device c 1 5
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
    ln -s kept symlink
    ln -s loop loop
    mkdir directory
    cp -p replaced new && mv new replaced
    echo more >>grown
    mv dir moved && ln -s moved dir
    rmdir wasdir && echo now a file >wasdir
    cd /
    mount --bind "$HS_MNT/kept" "$HS_MNT/covered"
    hs_defer umount "$HS_MNT/covered"
    # An open of the FIFO by any process would wake this writer.
    (
        : >"$HS_MNT/fifo"
        touch "$HS_TMP/opened"
    ) 3>&- &
    local writer=$!
    hs_defer kill $writer
    # LeakSanitizer cannot work under a tracer. In one file, calls of several threads would be torn.
    run -0 env ASAN_OPTIONS=detect_leaks=0 strace -ff -y -o "$trace" "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --json "$PACK"
    echo "$output"
    cat "$trace".* >"$trace"
    [ "$(replayed .outcome)" = done ]
    # Only the root directory and `kept` were opened.
    [ "$(replayed .files)" -eq 2 ]
    [ "$(replayed .data_ranges)" -eq 1 ]
    [ "$(replayed .skipped.gone)" -eq 1 ]
    # These are fifo, device, socket, symlink, loop, directory, dir, dir/behind, wasdir and covered.
    [ "$(replayed .skipped.type)" -eq 10 ]
    [ "$(replayed .skipped.replaced)" -eq 2 ]
    [ ! -e "$HS_TMP/opened" ]
    kill -0 $writer
    # Besides the pack, only mount points and `kept` are opened for reading.
    ! grep -v O_PATH "$trace" | grep -E 'open(at2?)?\(.*(fifo|device|socket|symlink|loop|directory|replaced|grown|behind|wasdir|covered)>$' || false
    grep -v O_PATH "$trace" | grep -qE 'open(at2?)?\(.*kept>$'
}

@test "without capabilities: files that may not be opened are counted" {
    need_command setpriv
    hs_filesystem ext4 100
    head -c 20000 /dev/urandom >"$HS_MNT/mine"
    head -c 20000 /dev/urandom >"$HS_MNT/theirs"
    head -c 20000 /dev/urandom >"$HS_MNT/secret"
    chown 12345 "$HS_MNT/theirs" "$HS_MNT/secret"
    chmod 600 "$HS_MNT/secret"
    sync -f "$HS_MNT"
    make_pack --metadata
    replay() {
        hs_without sys_admin,fowner,dac_override,dac_read_search \
            "$HEADSTART_REPLAY" --root="$HS_MNT" "$@"
    }
    hs_attempts cold_replay "$HS_MNT/theirs" 20000
    echo "$output"
    [ "$(replayed .files)" -eq 3 ]
    [ "$(replayed .skipped.denied)" -eq 1 ]
    [ "$(resident "$HS_MNT/secret")" -eq 0 ]
}

# --- bad packs ------------------------------------------------------------------------------------

@test "a missing, empty, foreign, truncated, flipped or newer pack, or none at all: one line, status 1" {
    local good=$HS_TMP/good
    "$MKPACK" "$good" </dev/null
    rm -f "$PACK"
    bad "No such file"
    : >"$PACK"
    bad "empty"
    head -c 4096 /dev/urandom >"$PACK"
    bad "not a headstart pack"
    head -c 100 "$good" >"$PACK"
    bad "truncated"
    { cat "$good" && echo more; } >"$PACK"
    bad "bytes after its end"
    cp "$good" "$PACK"
    printf '\x01' | dd of="$PACK" bs=1 seek=60 conv=notrunc status=none
    bad "checksum"
    cp "$good" "$PACK"
    printf '\x03' | dd of="$PACK" bs=1 seek=8 conv=notrunc status=none
    bad "version"
    printf '\x01' | dd of="$PACK" bs=1 seek=8 conv=notrunc status=none
    bad "version"
    rm "$PACK" && mkdir "$PACK"
    bad "directory"
    rmdir "$PACK" && mkfifo "$PACK"
    bad "not a regular file"
    rm "$PACK" && truncate -s 65M "$PACK"
    bad "larger than a pack may be"
}

# --- sessions without replay ----------------------------------------------------------------------

@test "a control session replays nothing, and reports that" {
    "$MKPACK" --control=1 "$PACK" </dev/null
    run -0 replay --status="$HS_TMP/new/directory/status.json" "$PACK"
    [[ $output == *"nothing replayed: a control session" ]]
    [ "$(jq -r .outcome "$HS_TMP/new/directory/status.json")" = control ]
    # An explicit policy, or --force, overrides the control session.
    run -0 replay --policy=idle "$PACK"
    [[ $output == *"skipped 0" ]]
    run -0 replay --force "$PACK"
    [[ $output == *"skipped 0" ]]
}

# config_path NAME: prints a path that is fixed when headstart is built.
config_path() {
    sed -n "s/^#define $1 \"\\(.*\\)\"\$/\\1/p" "$HS_BUILD/src/config-paths.h"
}

@test "a control boot reads headstart's own files ahead, a control login nothing" {
    local stage file units own=() all
    need_command fincore
    units=$(config_path HEADSTART_UNIT_DIR)
    own=("$(config_path HEADSTART_LIBEXEC_DIR)/headstartd" "$units/headstart-record.service"
        "$units/headstart-learn.path" /usr/lib/some/libjson-c.so.5.2.0)
    all=("${own[@]}" "$units/other.service" /usr/lib/some/libjson.so.5)
    hs_filesystem ext4 64
    for file in "${all[@]}"; do
        mkdir -p "$HS_MNT${file%/*}"
        head -c 20000 /dev/urandom >"$HS_MNT$file"
    done
    # A page that is reclaimed at once does not come back by itself.
    control_reads() {
        hs_cold
        run -0 replay "$PACK"
        [[ $output == *"nothing replayed: a control session" ]] || return
        for file in "${all[@]}"; do
            if [ $stage = boot ] && [[ " ${own[*]} " == *" $file "* ]]; then
                hs_wait 3 is_resident "$HS_MNT$file" 20000 || return
            else
                [ "$(resident "$HS_MNT$file")" -eq 0 ] || return
            fi
        done
    }
    for stage in login boot; do
        make_pack --stage=$stage --control=1
        hs_attempts control_reads
    done
}

@test "after a control session in another boot there is none until the next plan" {
    local noted=$HS_TMP/last-control id
    id=$(tr -d - </proc/sys/kernel/random/boot_id)
    "$MKPACK" --control=1 "$PACK" </dev/null
    # The sessions of one boot are all control sessions. A damaged file has no effect.
    for x in "$id" "" "$id$id" "${id::31}" "${id::31}/" "${id^^}X"; do
        echo "$x" >"$noted"
        run -0 replay "$PACK"
        [[ $output == *"nothing replayed: a control session" ]]
    done
    printf '%s' 0123456789abcdef0123456789abcdef >"$noted" # a torn write
    run -0 replay "$PACK"
    [[ $output == *"nothing replayed: a control session" ]]
    echo 0123456789abcdef0123456789abcdef >"$noted"
    run -0 replay "$PACK"
    [[ $output == *"skipped 0" ]]
    (cd "$HS_TMP" && "$HEADSTART_REPLAY" "${PACK##*/}") >"$HS_TMP/said"
    grep -q "skipped 0" "$HS_TMP/said"
    ln -sf /dev/zero "$noted"
    run -0 replay "$PACK"
    [[ $output == *"nothing replayed: a control session" ]]
}

@test "the status of a login is for root only" {
    "$MKPACK" --control=1 "$PACK" </dev/null
    run -0 replay --status="$HS_TMP/status.json" "$PACK"
    [ "$(jq -r .stage "$HS_TMP/status.json")" = login ]
    [ "$(stat -c %a "$HS_TMP/status.json")" = 600 ]
    "$MKPACK" --control=1 --stage=boot "$PACK" </dev/null
    run -0 replay --status="$HS_TMP/status.json" "$PACK"
    [ "$(jq -r .stage "$HS_TMP/status.json")" = boot ]
    [ "$(stat -c %a "$HS_TMP/status.json")" = 644 ]
}

@test "headstart=0 on the kernel command line: nothing is done" {
    need_command unshare
    "$MKPACK" "$PACK" </dev/null
    echo "root=/dev/sda1 headstart=0 quiet" >"$HS_TMP/cmdline"
    run -0 unshare --mount sh -c \
        "mount --bind '$HS_TMP/cmdline' /proc/cmdline && exec '$HEADSTART_REPLAY' --policy=idle '$PACK'"
    [[ $output == *"nothing replayed: headstart=0 is on the kernel command line" ]]
    echo "root=/dev/sda1 noheadstart=0 headstart=01" >"$HS_TMP/cmdline"
    run -0 unshare --mount sh -c \
        "mount --bind '$HS_TMP/cmdline' /proc/cmdline && exec '$HEADSTART_REPLAY' '$PACK'"
    [[ $output == *"skipped 0" ]]
}

@test "the policy off replays nothing" {
    "$MKPACK" --policy=off "$PACK" </dev/null
    run -0 replay "$PACK"
    [[ $output == *"nothing replayed: the policy is off" ]]
}

# --- reports --------------------------------------------------------------------------------------

@test "the dry run prints the operations in their order and reads nothing" {
    local before
    hs_filesystem ext4 100
    fill "$HS_MNT"
    make_pack --metadata
    hs_cold
    before=$(hs_sectors)
    run -0 replay --dry-run "$PACK"
    [[ ${lines[-1]} == *"would be read; skipped 0" ]]
    [ "$(grep -c ^open <<<"$output")" -eq 510 ]
    # The operations are sorted by kind, the opens by inode, and the data by place. Opens read nothing
    # here, because the pack has their metadata. Therefore they come last.
    [ "$(cut -d' ' -f1 <<<"$output" | grep -E '^(metadata|open|data)$' | uniq | tr '\n' ' ')" = "metadata data open " ]
    grep ^open <<<"$output" | sed 's/.*#\([0-9]*\).*/\1/' | sort -nc
    grep ^data <<<"$output" | sed 's/.*@\([0-9]*\).*/\1/' | sort -nc
    [ "$(resident "$HS_MNT/large")" -eq 0 ]
    run -0 replay --dry-run --json "$PACK"
    jq -es '[.[] | select(.operation == "open")] | length == 510' <<<"$output"
    jq -es '.[-1].outcome == "dry-run"' <<<"$output"
}

@test "file names are bytes, and the JSON stays valid" {
    hs_filesystem ext4 100
    echo x >"$HS_MNT/$(printf 'a"b\\c\n\xff%%')" || true
    printf '%s\n' "$HS_MNT" | "$MKPACK" "$PACK" "$HS_MNT"
    cp "$PACK" "$HS_TMP/$(printf 'p"\\\xff').pack"
    run -0 replay --json "$HS_TMP/$(printf 'p"\\\xff').pack"
    jq -e '.pack | endswith("p\"\\%FF.pack")' <<<"$output"
}

@test "a status that cannot be written is no failure" {
    "$MKPACK" "$PACK" </dev/null
    run -0 --separate-stderr replay --status=/proc/nowhere/status.json "$PACK"
    assert_one_error_line "$stderr"
    RUNTIME_DIRECTORY=$HS_TMP/run run -0 --separate-stderr replay "$PACK"
    [ "$(jq -r .stage "$HS_TMP/run/replay-login.json")" = login ]
    [ -z "$stderr" ]
}

# --- a disk that hangs ---------------------------------------------------------------------------------

# hung_disk: makes an ext4 on a disk whose server can be stopped; PACK contains its files. Sets
# DISKSIM.
hung_disk() {
    hs_simulated_disk ssd off 64
    fill_some
    make_pack --metadata "$@"
    hs_cold
}

fill_some() {
    local i
    for ((i = 0; i < 20; i++)); do
        head -c 300000 /dev/urandom >"$HS_MNT/f$i"
    done
    sync -f "$HS_MNT"
}

# listen: opens a notification socket, whose messages go to HS_TMP/notified
listen() {
    NOTIFY_SOCKET=$HS_TMP/notify
    python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    with open(sys.argv[2], "a") as f:
        f.write(s.recv(4096).decode() + "\n")
' "$NOTIFY_SOCKET" "$HS_TMP/notified" 3>&- &
    hs_defer kill $!
    hs_wait 10 test -S "$NOTIFY_SOCKET"
    export NOTIFY_SOCKET
}

notified() {
    grep -qx "$1" "$HS_TMP/notified" 2>/dev/null
}

notified_twice() {
    [ "$(grep -cx READY=1 "$HS_TMP/notified")" -eq 2 ]
}

# end PID: kills the process if it still runs
end() {
    kill "$1" 2>/dev/null || true
}

# waits N: checks that headstart-replay has begun N times to wait for a mount
waits() {
    [ "$(grep -c "not mounted yet" "$HS_TMP/notified")" -eq "$1" ]
}

@test "--mount-wait: filesystems that are mounted later are then read, once; the others are not waited for" {
    local pid
    listen
    hs_filesystem ext4 100
    fill_some
    make_pack --metadata --policy=concurrent
    hs_umount "$HS_MNT"
    "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --json --mount-wait=5min \
        --status="$HS_TMP/status.json" "$PACK" \
        >"$HS_TMP/result" 3>&- &
    pid=$!
    hs_defer end $pid
    hs_wait 10 notified "STATUS=Waiting for filesystems that are not mounted yet"
    notified READY=1
    # The recorder can see that the replay runs.
    jq -e '.outcome == "running" and .policy == "concurrent"' "$HS_TMP/status.json"
    # Another mount does not end the wait. A login does not end it either, but only makes replay
    # hurry.
    mkdir "$HS_TMP/other"
    mount -t tmpfs none "$HS_TMP/other"
    hs_defer umount "$HS_TMP/other"
    kill -USR1 $pid
    kill -0 $pid
    [ ! -s "$HS_TMP/result" ]
    hs_mount "$HS_LOOP"
    # Nothing is missing any more, so headstart-replay ends by itself.
    wait $pid
    output=$(<"$HS_TMP/result")
    echo "$output"
    [ "$(replayed .outcome)" = done ]
    [ "$(replayed .files)" -eq 21 ]
    [ "$(replayed .resident)" = true ]
    [ "$(replayed '.skipped | length')" -eq 0 ]
    [ "$(grep -cx READY=1 "$HS_TMP/notified")" -eq 1 ]
}

@test "--mount-wait ends after its time or with a signal, but not when another filesystem is mounted" {
    local pid
    listen
    hs_filesystem ext4 100
    fill_some
    make_pack --metadata --policy=concurrent
    # Everything is mounted, so there is no wait.
    run -0 replay --json --mount-wait=5min "$PACK"
    [ "$(replayed .files)" -eq 21 ]
    hs_umount "$HS_MNT"
    run -0 replay --json --mount-wait=1ms "$PACK"
    [ "$(replayed .skipped.unmounted)" -ge 21 ]
    : >"$HS_TMP/notified"
    "$HEADSTART_REPLAY" --root="$HS_MNT" --json --mount-wait=5min "$PACK" \
        >"$HS_TMP/result" 3>&- &
    pid=$!
    hs_defer end $pid
    hs_wait 10 notified "STATUS=Waiting for filesystems that are not mounted yet"
    # Another filesystem is mounted in place of the missing one. Replay checks it once, and the wait
    # continues.
    mkfs.ext4 -q -F -U random "$HS_LOOP"
    hs_mount "$HS_LOOP"
    hs_wait 10 notified "STATUS=Replaying what has been mounted"
    hs_wait 10 waits 2
    kill -TERM $pid
    wait $pid
    output=$(<"$HS_TMP/result")
    echo "$output"
    [ "$(replayed .outcome)" = done ]
    [ "$(replayed .files)" -eq 0 ]
    [ "$(replayed .skipped.unmounted)" -ge 21 ]
    run -2 replay --mount-wait=1h "$PACK"
}

@test "gate: ready when the sweep is done" {
    listen
    hs_filesystem ext4 100
    fill_some
    # The deadline of a pack is limited, so this pack cannot hold the boot for an hour.
    make_pack --metadata --policy=gate --deadline=3600000000
    hs_cold
    run -0 replay --wait --status="$HS_TMP/status.json" "$PACK"
    hs_wait 5 notified READY=1
    notified STATUS=Sweeping
    # A margin of five seconds keeps the service manager from killing it at the deadline.
    [ "$(sed -n 's/^EXTEND_TIMEOUT_USEC=//p' "$HS_TMP/notified")" -le 65000000 ]
    [ "$(sed -n 's/^EXTEND_TIMEOUT_USEC=//p' "$HS_TMP/notified")" -gt 5000000 ]
    [[ $output == *resident* && $output != *"the boot went on"* ]]
    jq -e '.hold_end == "swept" and .held_usec > 0' "$HS_TMP/status.json"
}

@test "gate: ready at the deadline although the disk hangs; the sweep continues when it is back" {
    hung_disk --policy=gate --deadline=200000
    listen
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
    replay --wait --json --status="$HS_TMP/status.json" "$PACK" >"$HS_TMP/result" 3>&- &
    local pid=$!
    hs_wait 10 notified READY=1
    kill -0 $pid
    [ ! -s "$HS_TMP/result" ]
    # The status contains the end of the hold while the disk still hangs.
    hs_wait 10 jq -e '.outcome == "running" and .hold_end == "deadline" and .held_usec >= 200000' "$HS_TMP/status.json"
    kill -CONT $DISKSIM
    wait $pid
    output=$(<"$HS_TMP/result")
    echo "$output"
    [ "$(replayed .resident)" = true ]
    [ "$(replayed '.skipped | length')" -eq 0 ]
    [ "$(replayed .hold_end)" = deadline ]
    [ "$(replayed .held_usec)" -ge 200000 ]
    # The line that headstart-replay prints contains the end of the hold as well.
    hs_cold
    kill -STOP $DISKSIM
    replay --wait "$PACK" >"$HS_TMP/result" 3>&- &
    pid=$!
    hs_wait 10 notified_twice
    kill -CONT $DISKSIM
    wait $pid
    grep -q 'the boot went on after .*: the deadline had passed' "$HS_TMP/result"
}

@test "a pack that hangs delays nothing for long, and is replayed when it can be read" {
    hung_disk --policy=gate --deadline=60000000
    listen
    cp "$PACK" "$HS_MNT/pack"
    sync -f "$HS_MNT"
    hs_cold
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
    "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --json --status="$HS_TMP/status.json" "$HS_MNT/pack" \
        >"$HS_TMP/result" 3>&- &
    local pid=$!
    hs_wait 10 notified READY=1
    notified "STATUS=Waiting for the disk"
    # The status says so while the pack still hangs.
    hs_wait 10 jq -e '.outcome == "loading" and .hold_end == "pack-late" and .held_usec >= 2000000 and .policy == null' \
        "$HS_TMP/status.json"
    # A login begins. headstart-replay keeps the signal until there is a replay that can hurry.
    kill -USR1 $pid
    kill -CONT $DISKSIM
    wait $pid
    output=$(<"$HS_TMP/result")
    echo "$output"
    [ "$(replayed .outcome)" = done ]
    [ "$(replayed .resident)" = true ]
    ! notified STATUS=Sweeping || false
    [ "$(replayed .hold_end)" = pack-late ]
}

# hung_pack OPTION…: makes a pack on a disk that hangs. Only the first page of the pack is in memory.
hung_pack() {
    local i
    hs_simulated_disk ssd off 64
    for ((i = 0; i < 400; i++)); do
        echo $i >"$HS_MNT/small$i"
    done
    sync -f "$HS_MNT"
    make_pack --metadata "$@"
    [ "$(stat -c %s "$PACK")" -gt 20000 ]
    cp "$PACK" "$HS_MNT/pack"
    sync -f "$HS_MNT"
    hs_cold
    # The page is locked, because the kernel may reclaim a page at any time.
    python3 -c '
import ctypes, mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
os.pread(fd, 4096, 0)
if ctypes.CDLL(None).mlockall(2) != 0:  # MCL_FUTURE locks what is mapped from here on
    sys.exit(1)
m = mmap.mmap(fd, 4096, prot=mmap.PROT_READ)
print("locked", flush=True)
time.sleep(600)' "$HS_MNT/pack" >"$HS_TMP/locked" 3>&- &
    hs_defer hs_kill $!
    hs_wait 10 grep -q locked "$HS_TMP/locked"
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
}

# start_hung OPTION…: starts to replay that pack. Sets `pid`.
start_hung() {
    "$@" "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --json --status="$HS_TMP/status.json" "$HS_MNT/pack" \
        >"$HS_TMP/result" 3>&- &
    pid=$!
    hs_defer end $pid
}

@test "a pack of which only the header can be read holds the boot until its deadline, and only under gate" {
    local pid
    hung_pack --policy=gate --deadline=200000
    listen
    start_hung
    hs_wait 10 jq -e '.outcome == "loading" and .hold_end == "deadline" and .held_usec >= 200000' "$HS_TMP/status.json"
    notified READY=1
    kill -CONT $DISKSIM
    wait $pid
    output=$(<"$HS_TMP/result")
    [ "$(replayed .outcome)" = done ]
    [ "$(replayed .hold_end)" = deadline ]
    [ "$(grep -cx READY=1 "$HS_TMP/notified")" -eq 1 ]
}

@test "a pack of which only the header can be read holds no boot under other policies" {
    local pid
    hung_pack --policy=concurrent --deadline=60000000
    listen
    start_hung
    hs_wait 10 notified READY=1
    ! notified "STATUS=Waiting for the disk" || false
    kill -CONT $DISKSIM
    wait $pid
    output=$(<"$HS_TMP/result")
    [ "$(replayed .outcome)" = done ]
    [ "$(replayed .hold_end)" = null ]
    [ "$(grep -cx READY=1 "$HS_TMP/notified")" -eq 1 ]
}

# with_words WORDS COMMAND…: runs the command with this kernel command line.
with_words() {
    echo "$1" >"$HS_TMP/cmdline"
    shift
    # shellcheck disable=SC2016 # the inner shell expands it
    exec unshare --mount sh -c 'mount --bind "$0" /proc/cmdline && exec "$@"' "$HS_TMP/cmdline" "$@"
}

@test "headstart.deadline= limits the hold, before and after the pack is read" {
    local pid
    hung_disk --policy=gate --deadline=60000000
    listen
    cp "$PACK" "$HS_MNT/pack"
    sync -f "$HS_MNT"
    hs_cold
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
    start_hung with_words "quiet headstart.deadline=300ms"
    hs_wait 10 jq -e '.outcome == "loading" and .hold_end == "pack-late" and .held_usec >= 300000 and .held_usec < 2000000' \
        "$HS_TMP/status.json"
    kill -CONT $DISKSIM
    wait $pid
    hs_cold
    cat "$HS_MNT/pack" >/dev/null
    rm "$HS_TMP/status.json"
    kill -STOP $DISKSIM
    # A busy machine has two seconds to read the pack.
    start_hung with_words "quiet headstart.deadline=3s"
    hs_wait 10 jq -e '.outcome == "running" and .hold_end == "deadline" and .held_usec >= 3000000' "$HS_TMP/status.json"
    [ "$(sed -n 's/^EXTEND_TIMEOUT_USEC=//p' "$HS_TMP/notified")" -le 8000000 ]
    kill -CONT $DISKSIM
    wait $pid
}

@test "the deadline counts from the time that headstart-init passes" {
    local now
    listen
    hs_filesystem ext4 100
    fill_some
    make_pack --metadata --policy=gate --deadline=30000000
    # The pack must be read 1.5 seconds after `now` at the latest, so program and pack are in memory.
    cold_now() {
        hs_cold
        "$HEADSTART_REPLAY" --version >/dev/null
        cat "$PACK" >/dev/null
        now=$(python3 -c 'import time; print(time.monotonic_ns() // 1000)')
    }
    cold_now
    # headstart-init counts the requested time from this time, too.
    HEADSTART_HOLD_BEGIN_USEC=$((now - 500000)) replay --wait --status="$HS_TMP/status.json" "$PACK"
    jq -e '.hold_end == "swept" and .held_usec >= 500000 and .duration_usec < .held_usec' "$HS_TMP/status.json"
    hs_wait 5 notified STATUS=Sweeping
    [ "$(sed -n 's/^EXTEND_TIMEOUT_USEC=//p' "$HS_TMP/notified")" -eq 30000000 ]
    # The deadline has passed already.
    make_pack --metadata --policy=gate --deadline=300000
    cold_now
    HEADSTART_HOLD_BEGIN_USEC=$((now - 500000)) replay --wait --status="$HS_TMP/status.json" "$PACK"
    jq -e '.hold_end == "deadline" and .held_usec >= 500000' "$HS_TMP/status.json"
    make_pack --metadata --policy=gate --deadline=30000000
    # A time that cannot be right is ignored.
    for x in $((now + 1000000000)) 1x -1 ""; do
        hs_cold
        HEADSTART_HOLD_BEGIN_USEC=$x replay --wait --status="$HS_TMP/status.json" "$PACK"
        jq -e '.hold_end == "swept"' "$HS_TMP/status.json"
    done
}

@test "--timeout: a replay whose pack hangs ends then, and the status says that it failed" {
    local pid status=0
    hung_disk --policy=gate
    listen
    cp "$PACK" "$HS_MNT/pack"
    sync -f "$HS_MNT"
    hs_cold
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
    "$HEADSTART_REPLAY" --root="$HS_MNT" --timeout=300ms --status="$HS_TMP/status.json" "$HS_MNT/pack" \
        2>"$HS_TMP/error" 3>&- &
    pid=$!
    hs_wait 10 jq -e '.outcome == "failed" and .files == 0' "$HS_TMP/status.json"
    grep -q "the pack could not be read in time" "$HS_TMP/error"
    kill -CONT $DISKSIM
    # `run` waits in a subshell, which knows the process only if it has ended already.
    wait $pid || status=$?
    [ $status -eq 1 ]
    # A pack that cannot be used.
    head -c 100 /dev/urandom >"$HS_TMP/random"
    rm "$HS_TMP/status.json"
    run -1 replay --status="$HS_TMP/status.json" "$HS_TMP/random"
    jq -e '.outcome == "failed"' "$HS_TMP/status.json"
}

@test "a filesystem that no pack reads is not opened" {
    need_strace
    hs_filesystem ext4 100
    fill_some
    make_pack --metadata
    mkdir "$HS_MNT/other"
    truncate -s 64M "$HS_TMP/other"
    mkfs.ext4 -q "$HS_TMP/other"
    mount -o loop "$HS_TMP/other" "$HS_MNT/other"
    hs_defer hs_umount "$HS_MNT/other"
    strace -f -e trace=openat -o "$HS_TMP/calls" "$HEADSTART_REPLAY" --wait "$PACK"
    grep -q "\"$HS_MNT\"" "$HS_TMP/calls"
    ! grep "\"$HS_MNT/other\"" "$HS_TMP/calls" || false
}

@test "if a volume is not at its old place, only mounts of its type are opened" {
    need_strace
    need_command mksquashfs
    hs_filesystem ext4 100
    echo x >"$HS_MNT/file"
    sync -f "$HS_MNT"
    echo "$HS_MNT/file" | "$MKPACK" "$PACK" "$HS_MNT"
    hs_umount "$HS_MNT"
    mkdir "$HS_TMP/elsewhere" "$HS_TMP/snap"
    hs_mount "$HS_LOOP" "$HS_TMP/elsewhere"
    mksquashfs "$HS_TMP/elsewhere" "$HS_TMP/squashfs" -quiet -no-progress
    hs_loop "$HS_TMP/squashfs"
    hs_mount "$HS_LOOP" "$HS_TMP/snap"
    strace -f -e trace=openat,open -o "$HS_TMP/calls" "$HEADSTART_REPLAY" --wait "$PACK"
    grep -q "\"$HS_TMP/elsewhere\"" "$HS_TMP/calls"
    ! grep "\"$HS_TMP/snap\"" "$HS_TMP/calls" || false
    # Of a mount at the old place, no superblock is read that cannot have a known UUID.
    hs_umount "$HS_TMP/snap"
    hs_mount "$HS_LOOP" "$HS_MNT"
    strace -f -e trace=openat,open,pread64 -o "$HS_TMP/calls" "$HEADSTART_REPLAY" --wait "$PACK"
    grep -q "\"$HS_MNT\"" "$HS_TMP/calls"
    ! grep "pread64.*, $((65536 + 4096)), 0)" "$HS_TMP/calls" || false
}

@test "other policies are ready at once, although the disk hangs" {
    hung_disk --policy=concurrent
    listen
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
    replay "$PACK" 3>&- &
    local pid=$!
    hs_wait 10 notified READY=1
    kill -CONT $DISKSIM
    wait $pid
}

@test "--timeout: the summary comes then, although the disk hangs" {
    hung_disk
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
    "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --status="$HS_TMP/status.json" --timeout=4s \
        "$PACK" 3>&- &
    local pid=$!
    hs_wait 10 grep -q stopped "$HS_TMP/status.json"
    output=$(<"$HS_TMP/status.json")
    echo "$output"
    [ "$(replayed .outcome)" = stopped ]
    # The directory is sometimes in memory although the caches were dropped. Then all data is requested, and none
    # arrives. Otherwise the first file cannot be opened. In both cases the summary counts each file and range, except
    # the one under way.
    [ "$(replayed '(.skipped.stopped // 0) + .files + .data_ranges')" -ge 39 ]
    kill -CONT $DISKSIM
    wait $pid
    run -2 replay --timeout=2h "$PACK"
    run -2 replay --timeout=0 "$PACK"
}

@test "SIGTERM: the summary comes at once, although the disk hangs" {
    hung_disk
    listen
    kill -STOP $DISKSIM
    hs_defer kill -CONT $DISKSIM
    "$HEADSTART_REPLAY" --root="$HS_MNT" --wait --json --status="$HS_TMP/status.json" "$PACK" \
        >"$HS_TMP/result" 3>&- &
    local pid=$!
    hs_wait 10 notified READY=1
    # From this status on, headstart-replay handles signals.
    hs_wait 10 grep -qs '"outcome":"running"' "$HS_TMP/status.json"
    # A login begins, without any effect.
    kill -USR1 $pid
    kill -TERM $pid
    hs_wait 10 grep -q stopped "$HS_TMP/status.json"
    output=$(<"$HS_TMP/status.json")
    echo "$output"
    [ "$(replayed .outcome)" = stopped ]
    jq -e '.outcome == "stopped"' "$HS_TMP/result"
    # Threads that hang in the kernel end when the kernel releases them.
    kill -CONT $DISKSIM
    wait $pid
}

@test "a copy of the filesystem, with its UUID and a shorter mount point, is not mistaken for it" {
    local uuid=3f2b6a1e-0000-4000-8000-000000000002 name original
    for name in where-it-was c; do
        truncate -s 64M "$HS_TMP/$name.image"
        mkfs.ext4 -q -U "$uuid" "$HS_TMP/$name.image"
        mkdir "$HS_TMP/$name"
    done
    hs_loop "$HS_TMP/where-it-was.image"
    original=$HS_LOOP
    hs_mount "$original" "$HS_TMP/where-it-was"
    echo x >"$HS_TMP/where-it-was/file"
    sync -f "$HS_TMP/where-it-was"
    echo "$HS_TMP/where-it-was/file" | "$MKPACK" "$PACK" "$HS_TMP/where-it-was"
    hs_loop "$HS_TMP/c.image"
    hs_mount "$HS_LOOP" "$HS_TMP/c"
    run -0 "$HEADSTART_REPLAY" --dry-run --json "$PACK"
    [ "$(head -n 1 <<<"$output" | jq -r .filesystem)" = "$HS_TMP/where-it-was" ]
    # If the original is not mounted, the UUID identifies the filesystem.
    hs_umount "$HS_TMP/where-it-was"
    run -0 "$HEADSTART_REPLAY" --dry-run --json "$PACK"
    [ "$(head -n 1 <<<"$output" | jq -r .filesystem)" = "$HS_TMP/c" ]
    # The original is found also if it is mounted after the copy.
    hs_mount "$original" "$HS_TMP/where-it-was"
    run -0 "$HEADSTART_REPLAY" --dry-run --json "$PACK"
    [ "$(head -n 1 <<<"$output" | jq -r .filesystem)" = "$HS_TMP/where-it-was" ]
}

# on_served_image UID DIRECTORY [own]: what the replay of the pack finds on an image that this user serves.
on_served_image() {
    local name=disk$1
    truncate -s 16M "$HS_TMP/$name.image"
    mkfs.ext4 -q -U 3f2b6a1e-0000-4000-8000-000000000003 "$HS_TMP/$name.image"
    hs_serve_image "$HS_TMP/$name.image" "$1" "$2" ${3:+"$3"}
    run -0 "$HEADSTART_REPLAY" --dry-run --json "$PACK"
}

# user_serves_copy [own]: the filesystem of the pack is mounted again from an image that a user serves, and is not
# read.
user_serves_copy() {
    hs_filesystem ext4 16 -U 3f2b6a1e-0000-4000-8000-000000000003
    echo x >"$HS_MNT/file"
    sync -f "$HS_MNT"
    echo "$HS_MNT/file" | "$MKPACK" "$PACK" "$HS_MNT"
    hs_umount "$HS_MNT"
    need_command strace
    on_served_image 1000 "$HS_MNT" ${1:+"$1"}
    [ "$(jq -r 'select(.filesystem) | .filesystem' <<<"$output" | grep -cxF "$HS_MNT")" -eq 0 ]
    env ASAN_OPTIONS=detect_leaks=0 strace -f -y -e trace=pread64,read,ioctl -o "$HS_TMP/calls" "$HEADSTART_REPLAY" --wait "$PACK"
    run -1 grep -E 'read.*/dev/loop' "$HS_TMP/calls"
    # The kernel would ask the program of the user for the answer.
    run -1 grep "$(findmnt -no SOURCE "$HS_MNT")>, LOOP_GET_STATUS" "$HS_TMP/calls"
}

@test "a disk whose content a user serves is not read, because it could hang" {
    user_serves_copy
}

@test "a disk whose content a user serves is not read, if root may not read its file either" {
    user_serves_copy own
}

@test "a disk whose content root serves is read" {
    hs_filesystem ext4 16 -U 3f2b6a1e-0000-4000-8000-000000000003
    echo x >"$HS_MNT/file"
    sync -f "$HS_MNT"
    echo "$HS_MNT/file" | "$MKPACK" "$PACK" "$HS_MNT"
    hs_umount "$HS_MNT"
    on_served_image 0 "$HS_MNT"
    [ "$(head -n 1 <<<"$output" | jq -r .filesystem)" = "$HS_MNT" ]
}

# --- earlier replays of the same boot -----------------------------------------------------------------

# made NAME STAGE FILE…: makes a pack of these files of HS_MNT
made() {
    local pack=$HS_TMP/$1 stage=$2
    shift 2
    printf "$HS_MNT/%s\n" "$@" | "$MKPACK" --stage="$stage" "$pack" "$HS_MNT"
}

@test "--except leaves out what another replay of this boot has read, while it is in memory" {
    local own=(--wait --json --status="$HS_TMP/run/replay-login@1000.json")
    hs_filesystem ext4 64
    for name in a b c; do
        head -c 1000000 /dev/urandom >"$HS_MNT/$name"
    done
    hs_cold
    made everyone login a b
    made user login a b c
    made boot boot b
    # The other replay has not run.
    run -0 replay "${own[@]}" --except="$HS_TMP/everyone" "$HS_TMP/user"
    replayed '.files == 3 and .data_bytes > 2900000'
    hs_attempts left_out
    # Data that has left memory is read again.
    hs_cold
    run -0 replay "${own[@]}" --except="$HS_TMP/everyone" "$HS_TMP/user"
    replayed '.files == 3 and .data_bytes > 2900000'
    # The status belongs to another pack, or to a replay that has read nothing.
    hs_cold
    run -0 replay --wait --status="$HS_TMP/run/replay-login.json" "$HS_TMP/user"
    run -0 replay "${own[@]}" --except="$HS_TMP/everyone" "$HS_TMP/user"
    replayed '.files == 3'
    sed -i 's/"outcome":"done"/"outcome":"control"/' "$HS_TMP/run/replay-login.json"
    run -0 replay "${own[@]}" --except="$HS_TMP/user" "$HS_TMP/user"
    replayed '.files == 3'
    # A pack that cannot be read is no obstacle; a third one is too many.
    echo nonsense >"$HS_TMP/bad"
    run -0 replay "${own[@]}" --except="$HS_TMP/bad" --except="$HS_TMP/none" "$HS_TMP/user"
    replayed '.files == 3'
    run -2 replay --except=a --except=b --except=c "$HS_TMP/user"
    assert_one_error_line "$output"
}

# A memory reclaimer may evict what the first replay has read. Then the second one reads everything.
left_out() {
    run -0 replay --wait --status="$HS_TMP/run/replay-login.json" "$HS_TMP/everyone"
    run -0 replay --wait --status="$HS_TMP/run/replay-boot.json" "$HS_TMP/boot"
    run -0 replay "${own[@]}" --except="$HS_TMP/everyone" "$HS_TMP/user"
    replayed '.outcome == "done" and .files == 1 and .data_bytes < 1100000' || return 1
    run -0 replay "${own[@]}" --except="$HS_TMP/boot" --except="$HS_TMP/everyone" "$HS_TMP/user"
    replayed '.files == 1' || return 1
    run -0 replay "${own[@]}" --except="$HS_TMP/boot" "$HS_TMP/user"
    replayed '.files == 2' || return 1
    # What a replay that has not ended reads is left out without samples.
    sed -i 's/"outcome":"done"/"outcome":"running"/' "$HS_TMP/run/replay-boot.json"
    run -0 replay "${own[@]}" --except="$HS_TMP/boot" "$HS_TMP/user"
    replayed '.files == 2' || return 1
    # One that has given up, and one that reads no data, bring in nothing more.
    sed 's/"skipped":{/&"stopped":2/' "$HS_TMP/run/replay-boot.json" >"$HS_TMP/run/stopped.json"
    cp "$HS_TMP/run/stopped.json" "$HS_TMP/run/replay-boot.json"
    run -0 replay "${own[@]}" --except="$HS_TMP/boot" "$HS_TMP/user"
    replayed '.files == 3' || return 1
    sed -i 's/"stopped":2//; s/"policy":"[a-z]*"/"policy":"metadata"/' "$HS_TMP/run/replay-boot.json"
    run -0 replay "${own[@]}" --except="$HS_TMP/boot" "$HS_TMP/user"
    replayed '.files == 3' || return 1
    sed -i 's/"outcome":"running"/"outcome":"done"/' "$HS_TMP/run/replay-boot.json"
    run -0 replay "${own[@]}" --except="$HS_TMP/boot" "$HS_TMP/user"
    replayed '.files == 3'
}
