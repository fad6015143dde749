#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# From a prediction to a pack, on real filesystems.

bats_require_minimum_version 1.5.0
load helpers
# shellcheck disable=SC2034 # hs_loop uses it
HS_SHARES_CACHE=yes

TOOL=$HS_BUILD/tests/tools/tool-plan

setup() {
    hs_setup
    need_loop
    need_command jq
    PLAN=$HS_TMP/plan.json
}

# plan [OPTION…] <PREDICTION: plans. The fields of the input have the order that the head of
# tool-plan describes, and are separated by a space.
plan() {
    tr ' ' '\t' | "$TOOL" "$@" "$HS_MNT" >"$PLAN"
}

# planned JQ-EXPRESSION [ARGUMENT…]: checks that the expression is true of the plan.
planned() {
    local expression=$1
    shift
    jq -e "$@" "$expression" "$PLAN" >/dev/null || {
        echo "# not so: $expression" >&2
        jq -c '[.summary, .volumes[] | del(.metadata)]' "$PLAN" | head -c 3000 >&2
        return 1
    }
}

# physical FILE: prints the byte of the device at which the file's first extent lies, according to
# filefrag.
physical() {
    filefrag -v -b4096 "$1" | awk '$1 == "0:" { sub(/\.\..*/, "", $4); print $4 * 4096 }'
}

@test "a pack lists data in physical order and files in the order of their inodes" {
    hs_filesystem ext4 256 -b 4096
    local i
    # The sizes make the allocator jump, so that the order of inodes differs from that of places.
    for i in 7 2 9 4 1 8; do
        head -c $((i * 700000)) /dev/urandom >"$HS_MNT/f$i"
        sync -f "$HS_MNT"
    done
    rm "$HS_MNT/f9"
    head -c 3000000 /dev/urandom >"$HS_MNT/f3"
    sync -f "$HS_MNT"
    for i in 1 2 3 4 7 8; do echo "/f$i 0 8192"; done | plan --class=hdd
    planned '.volumes | length == 1'
    planned '.volumes[0].data | map(.physical) | . == sort and length == 6'
    planned '.volumes[0].files | map(.inode) | . == sort and length == 6'
    for i in 1 2 3 4 7 8; do
        # shellcheck disable=SC2016
        planned 'any(.volumes[0].data[]; .path == $p and .physical == $at)' \
            --arg p "f$i" --argjson at "$(physical "$HS_MNT/f$i")"
    done
}

# An upgrade that calls no fsync, and a refresh before the filesystem has chosen places.
@test "a file whose data has no place on the device yet stays in the plan" {
    hs_filesystem ext4 256
    # The memory of the data is not written back for some seconds.
    unplaced() {
        rm -f "$HS_MNT/new"
        head -c 1000000 /dev/urandom >"$HS_MNT/new"
        plan --class=hdd <<<"/new 0 900000"
        filefrag -v "$HS_MNT/new" | grep -q delalloc
    }
    hs_attempts unplaced
    planned '.volumes[0].data | map(.length) | add >= 900000'
    # The same once it is written.
    sync -f "$HS_MNT"
    plan --class=hdd <<<"/new 0 900000"
    planned '.volumes[0].data | map(.length) | add >= 900000'
}

@test "a fragmented file: all of its extents, not only the first" {
    hs_filesystem ext4 256
    python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(700):
    os.pwrite(fd, b"x" * 4096, i * 4096 * 300)
os.fsync(fd)' "$HS_MNT/holey"
    plan --class=ssd <<<"/holey 0 900000000"
    # Holes are not read.
    planned '.volumes[0].data | length == 700'
    planned '[.volumes[0].data[].length] | add == 700 * 4096'
}

@test "names of one file are read once; directories and empty files are opened" {
    hs_filesystem ext4 64
    head -c 100000 /dev/urandom >"$HS_MNT/a"
    ln "$HS_MNT/a" "$HS_MNT/b"
    mkdir "$HS_MNT/d"
    touch "$HS_MNT/empty"
    sync -f "$HS_MNT"
    plan <<<"/a 0 8192
/b 4096 40960
/d
/empty"
    planned '.summary.skipped.duplicate == 1'
    planned '[.volumes[0].data[].length] | add == 45056'
    planned '[.volumes[0].files[] | select(.directory) | .path] == ["d"]'
    planned '.volumes[0].files | length == 3'
    planned '.summary.data_bytes == 45056'
}

@test "the budget keeps the likeliest objects, and counts metadata first" {
    hs_filesystem ext4 64
    local i
    for i in 1 2 3 4; do head -c 409600 /dev/urandom >"$HS_MNT/f$i"; done
    sync -f "$HS_MNT"
    plan --budget=1000000 <<<"/f1 0 409600 0.3
/f2 0 409600 0.9
/f3 0 409600 0.8
/f4 0 409600 0.1"
    planned '[.volumes[0].data[].path] | unique == ["f2", "f3"]'
    planned '.summary.skipped.budget >= 2'
    planned '.summary.data_bytes + .summary.metadata_bytes <= 1000000'
    plan --least=0.5 <<<"/f1 0 409600 0.3
/f2 0 409600 0.9"
    planned '[.volumes[0].data[].path] | unique == ["f2"]'
    planned '.summary.skipped.unlikely >= 1'
}

@test "a path that names something else now is skipped and counted" {
    hs_filesystem ext4 64
    mkfifo "$HS_MNT/fifo"
    mknod "$HS_MNT/null" c 1 3
    ln -s loop "$HS_MNT/loop"
    echo x >"$HS_MNT/plain"
    ln -s plain "$HS_MNT/link"
    mkdir "$HS_MNT/tmpfs"
    mount -t tmpfs none "$HS_MNT/tmpfs"
    hs_defer hs_umount "$HS_MNT/tmpfs"
    echo x >"$HS_MNT/tmpfs/file"
    plan <<<"/fifo 0 4096
/null 0 4096
/loop 0 4096
/link 0 4096
/gone 0 4096
/plain/below 0 4096
/tmpfs/file 0 4096
/plain 0 4096"
    planned '[.volumes[0].files[].path] == ["plain"]'
    planned '.summary.skipped | .type >= 4 and .gone >= 1 and .filesystem == 1'
}

@test "metadata: that of every file and the directories above, derived if none is known" {
    hs_filesystem ext4 256 -b 4096 -N 65536 -O ^flex_bg
    mkdir -p "$HS_MNT/a/b"
    echo x >"$HS_MNT/a/b/file"
    sync -f "$HS_MNT"
    plan <<<"/a/b/file 0 4096"
    local p block
    for p in a/b/file a/b a .; do
        block=$(debugfs -R "imap <$(stat -c %i "$HS_MNT/$p")>" "$HS_LOOP" 2>/dev/null |
            sed -n 's/.*located at block \([0-9]*\),.*/\1/p')
        # shellcheck disable=SC2016
        planned 'any(.volumes[0].metadata[]; .offset <= $b and $b < .offset + .length)' \
            --argjson b $((block * 4096))
    done
    planned '.volumes[0].metadata | map(.offset) | . == sort'
}

# has_block NUMBER: whether the planned metadata contains the block of 4096 bytes.
has_block() {
    jq -e --argjson b $(($1 * 4096)) \
        'any(.volumes[0].metadata[]; .offset <= $b and $b < .offset + .length)' "$PLAN" >/dev/null
}

# ext4 reads its block bitmaps by itself soon after the mount. On a disk that seeks, these reads disturb a sweep.
@test "metadata: a sweep at boot reads the block bitmaps that it passes" {
    hs_filesystem ext4 256 -b 4096
    local bitmap metadata
    echo x >"$HS_MNT/file"
    sync -f "$HS_MNT"
    bitmap=$(dumpe2fs "$HS_LOOP" 2>/dev/null | sed -n 's/.*Block bitmap at \([0-9]*\).*/\1/p' | head -n 1)
    metadata="@$(blkid -p -o value -s UUID "$HS_LOOP") $(((bitmap + 12) * 4096)) 4096"
    plan --boot --class=hdd <<<"$metadata
/file 0 4096"
    has_block "$bitmap"
    plan --class=hdd <<<"$metadata
/file 0 4096"
    run ! has_block "$bitmap"
    plan --boot --class=ssd <<<"$metadata
/file 0 4096"
    run ! has_block "$bitmap"
    # Far from what is planned, the bitmap would take a seek.
    plan --boot --class=hdd <<<"${metadata/ * / 134217728 }
/file 0 4096"
    run ! has_block "$bitmap"
}

@test "metadata of the model that lies beyond the device, or of another filesystem, is left out" {
    hs_filesystem ext4 64
    echo x >"$HS_MNT/file"
    sync -f "$HS_MNT"
    plan <<<"@$(blkid -p -o value -s UUID "$HS_LOOP") 1099511627776 4096
@00000000-0000-0000-0000-000000000000 4096 4096
/file 0 4096"
    planned '[.volumes[].metadata[] | select(.offset >= 67108864)] == []'
    planned '.volumes | length == 1'
}

@test "xfs: by place, and the inodes of every file and the directories above as items" {
    hs_filesystem xfs 320
    local i p address n
    mkdir -p "$HS_MNT/dir"
    for ((i = 0; i < 200; i++)); do echo "$i" >"$HS_MNT/dir/f$i"; done
    head -c 3000000 /dev/urandom >"$HS_MNT/a"
    head -c 3000000 /dev/urandom >"$HS_MNT/b"
    sync -f "$HS_MNT"
    plan --class=hdd <<<"/b 0 3000000
/a 0 3000000
/dir/f7 0 4096
/dir/f190 0 4096"
    planned '.volumes[0].fstype == "xfs"'
    planned '.volumes[0].data | map(.physical) | . == sort and length >= 2'
    # shellcheck disable=SC2016
    planned 'any(.volumes[0].data[]; .path == "a" and .physical == $at)' \
        --argjson at "$(physical "$HS_MNT/a")"
    for p in . dir a b dir/f7 dir/f190; do
        n=$(stat -c %i "$HS_MNT/$p")
        # The place of the inode in units of 512 bytes, according to xfs_db
        address=$(xfs_db -r -c "convert inode $n daddr" "$HS_LOOP" | sed -n 's/.*(\([0-9]*\)).*/\1/p')
        # shellcheck disable=SC2016
        planned 'any(.volumes[0].metadata[]; .offset <= $b and $b < .offset + .length)' \
            --argjson b $((address * 512))
    done
    planned '.volumes[0].metadata | map(select(.entries | not)) | length <= 4 and all(.object > 0)'
    planned '.volumes[0].metadata | map(.offset) | . == sort'
}

# entries DIRECTORY: prints "true" for each range of the device with entries of the directory, according to
# xfs_bmap, that is an item of the plan, and "false" for each that is not
entries() {
    xfs_bmap -v "$1" | sed -n 's/.*[^.0-9]\([0-9]*\)\.\.\([0-9]*\) .*/\1 \2/p' | while read -r first last; do
        # shellcheck disable=SC2016
        jq --argjson from $((first * 512)) --argjson to $(((last + 1) * 512)) \
            'any(.volumes[0].metadata[]; .entries and .offset < $to and .offset + .length > $from)' "$PLAN"
    done | uniq
}

@test "xfs: the entries of directories are items, but not those of a large one with few names, and not below it" {
    hs_filesystem xfs 320
    local i
    mkdir -p "$HS_MNT/small/in" "$HS_MNT/large/in" "$HS_MNT/inline"
    for ((i = 0; i < 60; i++)); do
        echo "$i" >"$HS_MNT/small/file-with-a-long-name-$i"
        echo "$i" >"$HS_MNT/small/in/file-with-a-long-name-$i"
        echo "$i" >"$HS_MNT/large/in/file-with-a-long-name-$i"
    done
    for ((i = 0; i < 900; i++)); do echo "$i" >"$HS_MNT/large/file-with-a-long-name-$i"; done
    echo x >"$HS_MNT/inline/x"
    sync -f "$HS_MNT"
    [ "$(xfs_bmap -v "$HS_MNT/large" | wc -l)" -ge 5 ]
    plan --class=hdd <<<"/small/in/file-with-a-long-name-7 0 4096
/large/file-with-a-long-name-7 0 4096
/large/in/file-with-a-long-name-7 0 4096
/inline/x 0 4096"
    [ "$(entries "$HS_MNT/small")" = true ]
    [ "$(entries "$HS_MNT/small/in")" = true ]
    [ "$(entries "$HS_MNT/large")" = false ]
    [ "$(entries "$HS_MNT/large/in")" = false ]
    # A directory that is listed needs all of its entries, and so do many names.
    plan --class=hdd <<<"/large
/large/in/file-with-a-long-name-7 0 4096"
    [ "$(entries "$HS_MNT/large")" = true ]
    [ "$(entries "$HS_MNT/large/in")" = true ]
    plan --class=hdd < <(for ((i = 0; i < 300; i++)); do
        printf '/large/file-with-a-long-name-%d\t0\t4096\n' $((i * 3))
    done)
    [ "$(entries "$HS_MNT/large")" = true ]
}

# name_key NAME: prints the key under which btrfs-progs shows the entry of that name
name_key() {
    btrfs inspect-internal dump-tree -t 5 "$HS_LOOP" | awk -v name="name: $1" '
        $1 == "item" { key = $0; sub(/.*key \(/, "", key); sub(/\).*/, "", key) }
        index($0, name) && length($0) == index($0, name) + length(name) - 1 && key ~ /DIR_ITEM/ { print key }'
}

# has_leaf TREE KEY: checks that the metadata of the plan contains the leaf of the btrfs tree in which
# btrfs-progs shows the first item whose key begins like that
has_leaf() {
    local address place
    address=$(btrfs inspect-internal dump-tree -t "$1" "$HS_LOOP" | awk -v key=" key ($2" '
        $1 == "leaf" { leaf = $2 }
        $1 == "item" && index($0, key) && !found { found = 1; print leaf }')
    place=$(btrfs-map-logical -l "$address" "$HS_LOOP" | sed -n 's/^mirror 1 .*physical \([0-9]*\) .*/\1/p')
    # shellcheck disable=SC2016
    planned 'any(.volumes[0].metadata[]; .offset == $at and .length == 16384)' --argjson at "$place" ||
        { echo "leaf $address at $place with the key $2" && false; }
}

@test "btrfs: the leaves with inodes, names, extents and checksums are items" {
    hs_filesystem btrfs 256
    need_command btrfs-map-logical
    local i p
    mkdir -p "$HS_MNT/dir/below"
    for ((i = 0; i < 2000; i++)); do echo "$i" >"$HS_MNT/dir/file-with-a-long-name-$i"; done
    head -c 300000 /dev/urandom >"$HS_MNT/dir/below/data"
    sync -f "$HS_MNT"
    btrfs filesystem sync "$HS_MNT"
    plan --class=hdd <<<"/dir/file-with-a-long-name-7 0 4096
/dir/file-with-a-long-name-1907 0 4096
/dir/below/data 0 300000"
    for p in . dir dir/file-with-a-long-name-7 dir/file-with-a-long-name-1907 dir/below/data; do
        has_leaf 5 "$(stat -c %i "$HS_MNT/$p") INODE_ITEM 0)"
    done
    for p in file-with-a-long-name-7 file-with-a-long-name-1907 below; do
        has_leaf 5 "$(name_key "$p"))"
    done
    has_leaf 5 "$(stat -c %i "$HS_MNT/dir/below/data") EXTENT_DATA 0)"
    has_leaf 7 "EXTENT_CSUM EXTENT_CSUM"
    # Only a part of the leaves is needed.
    # shellcheck disable=SC2016
    planned '.volumes[0].metadata | length < $all / 3' \
        --argjson all "$(btrfs inspect-internal dump-tree -t 5 "$HS_LOOP" | grep -c '^leaf .* items')"
    planned '.volumes[0].metadata | map(.offset) | . == sort and . == unique'
}

@test "btrfs: the items of a subvolume are those of its own tree" {
    hs_filesystem btrfs 256
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    echo x >"$HS_MNT/@/file"
    sync -f "$HS_MNT"
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    plan <<<"/file 0 4096"
    local tree
    tree=$(btrfs inspect-internal rootid "$HS_MNT")
    has_leaf "$tree" "$(stat -c %i "$HS_MNT/file") INODE_ITEM 0)"
}

@test "btrfs: two subvolumes do not repeat the leaves of checksums" {
    hs_filesystem btrfs 256
    btrfs subvolume create "$HS_MNT/@" >/dev/null
    btrfs subvolume create "$HS_MNT/@home" >/dev/null
    head -c 300000 /dev/urandom >"$HS_MNT/@/a"
    head -c 300000 /dev/urandom >"$HS_MNT/@home/b"
    mkdir "$HS_MNT/@/home"
    btrfs filesystem sync "$HS_MNT"
    hs_umount "$HS_MNT"
    mount -o subvol=@ "$HS_LOOP" "$HS_MNT"
    mount -o subvol=@home "$HS_LOOP" "$HS_MNT/home"
    hs_defer hs_umount "$HS_MNT/home"
    plan <<<"/a 0 300000
/home/b 0 300000"
    planned '.volumes | length == 2'
    planned '[.volumes[].metadata[].offset] | length >= 3 and sort == unique'
}

@test "btrfs: one volume per subvolume, and no estimate, since places are logical" {
    hs_filesystem btrfs 256
    btrfs subvolume create "$HS_MNT/sub" >/dev/null
    head -c 300000 /dev/urandom >"$HS_MNT/a"
    head -c 300000 /dev/urandom >"$HS_MNT/sub/b"
    sync -f "$HS_MNT"
    plan --class=hdd <<<"/a 0 300000"
    planned '.summary.estimated_usec == null'
    planned '.volumes | length == 1 and .[0].fstype == "btrfs"'
    planned '[.volumes[0].data[].length] | add == 303104 or add == 300000'
}

@test "without FIEMAP files are read as well, without a place" {
    hs_filesystem ext4 64 -b 4096
    head -c 300000 /dev/urandom >"$HS_MNT/a"
    sync -f "$HS_MNT"
    printf '/a\t0\t300000\n' |
        "$HS_BUILD/tests/tools/tool-without-syscall" fiemap EOPNOTSUPP "$TOOL" "$HS_MNT" >"$PLAN"
    planned '[.volumes[].files[].path] == ["a"]'
    planned '[.volumes[].data[] | select(.physical != null)] == []'
    planned '[.volumes[0].data[].length] | add >= 300000'
}

@test "a filesystem without a UUID cannot be recognized: skipped and counted" {
    need_command mksquashfs
    grep -qw squashfs /proc/filesystems || skip "the kernel has no squashfs"
    mkdir "$HS_TMP/tree"
    head -c 300000 /dev/urandom >"$HS_TMP/tree/a"
    mksquashfs "$HS_TMP/tree" "$HS_TMP/image" -quiet -no-progress >/dev/null
    hs_loop "$HS_TMP/image"
    hs_mount "$HS_LOOP" "$HS_MNT" ro
    plan <<<"/a 0 300000"
    planned '.volumes == [] and .summary.skipped.filesystem == 1'
}

@test "the same prediction makes the same pack, byte for byte" {
    hs_filesystem ext4 64
    for i in 1 2 3; do head -c 200000 /dev/urandom >"$HS_MNT/f$i"; done
    sync -f "$HS_MNT"
    local p="/f1 0 200000
/f2 4096 40960
/f3 0 4096"
    plan --output="$HS_TMP/one" <<<"$p"
    plan --output="$HS_TMP/two" <<<"$p"
    cmp "$HS_TMP/one" "$HS_TMP/two"
    "$HEADSTART" show "$HS_TMP/one" >/dev/null
}

@test "a user's set contains files that root or the user owns and that nobody else can write" {
    hs_filesystem ext4 64
    local f
    for f in root mine theirs everyones groups mine-groups private; do
        head -c 100000 /dev/urandom >"$HS_MNT/$f"
    done
    mkdir "$HS_MNT/sticky" "$HS_MNT/sticky/mine-below"
    chmod 1777 "$HS_MNT/sticky"
    chown 4001:4001 "$HS_MNT"/{mine,private,sticky/mine-below}
    chown 4001:100 "$HS_MNT/mine-groups"
    chown 4002:4002 "$HS_MNT/theirs"
    chmod 666 "$HS_MNT/everyones"
    chgrp 100 "$HS_MNT/groups"
    chmod 664 "$HS_MNT"/{groups,mine-groups,private}
    sync -f "$HS_MNT"
    local p="/everyones 0 4096
/groups 0 4096
/mine 0 4096
/mine-groups 0 4096
/private 0 4096
/root 0 4096
/sticky
/sticky/mine-below
/theirs 0 4096"

    plan --uid=4001 <<<"$p"
    planned '[.volumes[].files[].path] | sort == ["mine", "private", "root", "sticky/mine-below"]'
    planned '.summary.skipped.owner == 5'
    # The set of user 4002 contains the files of root and of that user.
    plan --uid=4002 <<<"$p"
    planned '[.volumes[].files[].path] | sort == ["root", "theirs"]'
    # The set for all users contains only files of root.
    plan <<<"$p"
    planned '[.volumes[].files[].path] == ["root"]'
    planned '[.volumes[].data[].path] == ["root"]'
}

@test "metadata is not derived for a file that does not belong in a set" {
    hs_filesystem ext4 256 -b 4096 -N 65536 -O ^flex_bg
    mkdir -p "$HS_MNT/theirs"
    echo x >"$HS_MNT/theirs/file"
    chown -R 4002:4002 "$HS_MNT/theirs"
    sync -f "$HS_MNT"
    plan --uid=4002 <<<"/theirs/file 0 4096"
    planned '.volumes[0].metadata | length > 0'
    plan --uid=4001 <<<"/theirs/file 0 4096"
    planned '[.volumes[].metadata[]] == []'
}

@test "equally likely files are not cut by their paths" {
    hs_filesystem ext4 64
    mkdir "$HS_MNT/home" "$HS_MNT/usr"
    head -c 409600 /dev/urandom >"$HS_MNT/home/video"
    head -c 409600 /dev/urandom >"$HS_MNT/usr/libc"
    chown 4001:4001 "$HS_MNT/home/video"
    sync -f "$HS_MNT"
    plan --uid=4001 --budget=600000 <<<"/home/video 0 409600 1
/usr/libc 0 409600 1"
    planned '[.volumes[].data[].path] | unique == ["usr/libc"]'
}

@test "17,000 paths of 4,000 bytes: the likeliest fit into the pack, the others are counted" {
    hs_filesystem ext4 256 -N 20000
    # tool-plan's input is made together with the files: all but the last are equally likely, and
    # the last is likelier.
    python3 - "$HS_MNT" >"$HS_TMP/input" <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY)
name, path = "d" * 249, ""
for i in range(15):
    os.mkdir(name, dir_fd=fd)
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY, dir_fd=fd)
    path += "/" + name
for i in range(17000):
    file = str(i).zfill(244)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd))
    print(path + "/" + file, 0, 4096, 1 if i == 16999 else 0.5, sep="\t")
END
    "$TOOL" --output="$HS_TMP/pack" "$HS_MNT" <"$HS_TMP/input" >"$PLAN"
    planned '.summary.skipped.limit > 10000 and .summary.n_files > 4000'
    planned 'any(.volumes[].files[]; .path | endswith("16999"))'
    "$HEADSTART" show "$HS_TMP/pack" >/dev/null
}
