#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Compares the results of src/volume with those of blkid, lsblk, filefrag, dumpe2fs and debugfs.

bats_require_minimum_version 1.5.0
load helpers

TOOL=$HS_BUILD/tests/tools/tool-volume

setup() {
    hs_setup
    need_loop
    need_command jq
}

# volume JQ-EXPRESSION: prints the value of the expression for the volume mounted on HS_MNT.
volume() {
    "$TOOL" volumes "$HS_MNT" | jq -er --arg t "$HS_MNT" ".volumes[] | select(.target == \$t) | $1"
}

# Compares two files. If they differ, prints the first differences and fails.
same_lines() {
    diff "$1" "$2" >"$HS_TMP/diff" || {
        head -n 20 "$HS_TMP/diff"
        return 1
    }
}

is_what_blkid_says() {
    local fstype=$1 name
    name=$(basename "$HS_LOOP")
    [ "$(volume .uuid)" = "$(blkid -p -o value -s UUID "$HS_LOOP")" ]
    [ "$(volume .fstype)" = "$fstype" ]
    [ "$(volume .device)" = "$name" ]
    [ "$(volume .disk)" = "$name" ]
    [ "$(volume .size_bytes)" = "$(blockdev --getsize64 "$HS_LOOP")" ]
    [ "$(volume .rotational)" = "$(lsblk -ndJ -o ROTA "$HS_LOOP" | jq '.blockdevices[0].rota')" ]
    [ "$(volume .scheduler)" = "$(lsblk -nd -o SCHED "$HS_LOOP" | tr -d ' ')" ]
    [ "$(volume .mountpoint)" = "/" ] # relative to the root that tool-volume got
}

@test "ext4: the volume agrees with blkid and lsblk" {
    hs_filesystem ext4 64
    is_what_blkid_says ext4
    [ "$(volume .read_ahead_kb)" = "$(lsblk -nd -o RA "$HS_LOOP" | tr -d ' ')" ]
    [ "$(volume .st_dev)" = "$(stat -c %d "$HS_MNT")" ]
}

@test "xfs: the volume agrees with blkid and lsblk" {
    hs_filesystem xfs 320
    is_what_blkid_says xfs
}

@test "btrfs: each subvolume is a volume, of one device" {
    hs_filesystem btrfs 128
    is_what_blkid_says btrfs
    btrfs subvolume create "$HS_MNT/sub" >/dev/null
    mkdir "$HS_TMP/second"
    hs_mount "$HS_LOOP" "$HS_TMP/second" subvol=sub
    "$TOOL" volumes "$HS_TMP" >"$HS_TMP/json"
    jq -e '.volumes | length == 2 and ([.[].uuid] | unique | length == 1) and
           ([.[].st_dev] | unique | length == 2) and ([.[].subvolume_id] | unique | length == 2) and
           any(.[]; .subvolume == "/sub")' "$HS_TMP/json"
}

@test "a partition: its own size, its disk's queue" {
    need_command sfdisk
    truncate -s 64M "$HS_TMP/disk"
    printf '2048,40960\n43008,\n' | sfdisk -q "$HS_TMP/disk" >/dev/null
    HS_LOOP=$(losetup --find --show --partscan "$HS_TMP/disk")
    hs_defer losetup --detach "$HS_LOOP"
    hs_wait 5 test -b "${HS_LOOP}p1" || skip "no partitions on loop devices here"
    mkfs.ext4 -q "${HS_LOOP}p1"
    hs_mount "${HS_LOOP}p1"
    [ "$(volume .device)" = "$(basename "$HS_LOOP")p1" ]
    [ "$(volume .disk)" = "$(basename "$HS_LOOP")" ]
    [ "$(volume .size_bytes)" = $((40960 * 512)) ]
    [ "$(volume .scheduler)" = "$(lsblk -nd -o SCHED "$HS_LOOP" | tr -d ' ')" ]
}

@test "a filesystem that is not local and block-backed is no volume" {
    mkdir "$HS_TMP/t"
    mount -t tmpfs none "$HS_TMP/t"
    hs_defer hs_umount "$HS_TMP/t"
    "$TOOL" volumes "$HS_TMP/t" | jq -e '.volumes == []'
}

@test "if a mount hides another, only the former is seen" {
    hs_filesystem ext4 64
    local below=$HS_LOOP
    truncate -s 64M "$HS_TMP/above"
    mkfs.ext4 -q "$HS_TMP/above"
    hs_loop "$HS_TMP/above"
    hs_mount "$HS_LOOP"
    [ "$(volume .device)" = "$(basename "$HS_LOOP")" ]
    run ! [ "$(volume .device)" = "$(basename "$below")" ]
}

@test "if two filesystems have one UUID, the one that was mounted first keeps it" {
    local uuid=3f2b6a1e-0000-4000-8000-000000000001 name
    for name in original copy; do
        truncate -s 64M "$HS_TMP/$name.image"
        mkfs.ext4 -q -U "$uuid" "$HS_TMP/$name.image"
        mkdir "$HS_TMP/$name"
        hs_loop "$HS_TMP/$name.image"
        hs_mount "$HS_LOOP" "$HS_TMP/$name"
    done
    "$TOOL" volumes "$HS_TMP" | jq -e --arg u "$uuid" \
        '[.volumes[] | {(.mountpoint): .uuid}] | add == {"/original": $u, "/copy": ""}'
}

# --- other machines: their /proc and /sys as fixtures -------------------------------------------

# device MAJOR:MINOR NAME [PARENT]: makes a block device; with a parent it is a partition of that
# device.
device() {
    local number=$1 name=$2 parent=${3:-} at=$HS_TMP/root/sys/devices/block/${3:+$3/}$2
    mkdir -p "$at/slaves" "$HS_TMP/root/sys/dev/block/$number" "$HS_TMP/root/sys/class/block"
    [ -z "$parent" ] || rm -r "$at/slaves"
    echo "$number" >"$at/dev"
    [ -z "$parent" ] || echo 1 >"$at/partition"
    ln -s "../../devices/block/${parent:+$parent/}$name" "$HS_TMP/root/sys/class/block/$name"
    printf 'MAJOR=%s\nMINOR=%s\nDEVNAME=%s\n' "${number%:*}" "${number#*:}" "$name" \
        >"$HS_TMP/root/sys/dev/block/$number/uevent"
    echo 2097152 >"$HS_TMP/root/sys/dev/block/$number/size"
}

# queue NAME ROTATIONAL SCHEDULERS: sets the request queue
queue() {
    mkdir -p "$HS_TMP/root/sys/devices/block/$1/queue"
    echo "$2" >"$HS_TMP/root/sys/devices/block/$1/queue/rotational"
    echo "$3" >"$HS_TMP/root/sys/devices/block/$1/queue/scheduler"
}

# removable NAME: marks the device as removable
removable() {
    echo 1 >"$HS_TMP/root/sys/devices/block/$1/removable"
}

# on_bus PATH NAME: moves the disk with its partitions to a bus: sysfs shows both below devices/PATH.
on_bus() {
    local at=$HS_TMP/root/sys/devices/$1/block link
    mkdir -p "$at"
    mv "$HS_TMP/root/sys/devices/block/$2" "$at/"
    for link in "$HS_TMP/root/sys/class/block/$2"*; do
        ln -sfn "$(readlink "$link" | sed "s|/devices/|/devices/$1/|")" "$link"
    done
}

# card NAME TYPE: sets the type of the card, as the kernel does for mmcblk devices
card() {
    mkdir -p "$HS_TMP/root/sys/devices/block/$1/device"
    echo "$2" >"$HS_TMP/root/sys/devices/block/$1/device/type"
}

# on NAME SLAVE…: stacks the device NAME on the devices SLAVE….
on() {
    local name=$1 slave
    shift
    for slave; do mkdir -p "$HS_TMP/root/sys/devices/block/$name/slaves/$slave"; done
}

mounted() {
    mkdir -p "$HS_TMP/root/proc/self"
    printf '%s\n' "$@" >"$HS_TMP/root/proc/self/mountinfo"
}

fixture() {
    "$TOOL" fixture "$HS_TMP/root" >"$HS_TMP/fixture"
    jq -e "$1" "$HS_TMP/fixture" >/dev/null || {
        cat "$HS_TMP/fixture"
        return 1
    }
}

@test "encrypted on a partition of a hard disk: the disk at the bottom counts" {
    device 8:0 sda
    device 8:3 sda3 sda
    device 253:0 dm-0
    device 253:1 dm-1
    on dm-0 sda3
    on dm-1 dm-0
    queue sda 1 "none mq-deadline [bfq]"
    mounted "22 1 253:1 / / rw - ext4 /dev/mapper/vg-root rw"
    fixture '.volumes | length == 1 and (.[0] | .device == "dm-1" and .disk == "sda" and
             .rotational and .class == "hdd" and .scheduler == "bfq" and
             .size_bytes == 1073741824)'
}

@test "a USB stick is removable; a partition is like its disk; an internal disk is not removable" {
    device 8:0 sda
    device 8:16 sdb
    device 8:17 sdb1 sdb
    queue sda 0 "[none]"
    queue sdb 1 "[none]"
    removable sdb
    mounted "22 1 8:0 / / rw - ext4 /dev/sda rw" "23 22 8:17 / /media/stick rw - ext4 /dev/sdb1 rw"
    fixture '[.volumes[] | [.mountpoint, .removable]] | sort == [["/", false], ["/media/stick", true]]'
}

@test "a USB disk that says that it is fixed, an SD card, a Thunderbolt disk, an image file: all are removable" {
    device 8:0 sda
    device 8:16 sdb
    device 8:17 sdb1 sdb
    device 8:32 sdc
    device 253:0 dm-0
    device 253:1 dm-1
    device 179:0 mmcblk0
    device 179:1 mmcblk0p1 mmcblk0
    device 179:8 mmcblk1
    device 259:0 nvme0n1
    device 259:1 nvme1n1
    device 7:0 loop0
    local name
    for name in sda sdb sdc mmcblk0 mmcblk1 nvme0n1 nvme1n1 loop0; do
        queue "$name" 0 "[none]"
        echo 0 >"$HS_TMP/root/sys/devices/block/$name/removable"
    done
    on dm-0 sdb1 sdc # a RAID of two sticks
    on dm-1 loop0
    card mmcblk0 SD
    card mmcblk1 MMC
    on_bus pci0000:00/0000:00:17.0/ata1/host0 sda
    on_bus pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6 sdb
    on_bus platform/soc/xhci-hcd.1/usb10/10-1/10-1:1.0/host7 sdc
    on_bus pci0000:00/0000:00:1d.0/0000:02:00.0/nvme/nvme0 nvme0n1
    on_bus pci0000:00/0000:00:07.0/0000:2b:00.0/nvme/nvme1 nvme1n1
    echo fixed >"$HS_TMP/root/sys/devices/pci0000:00/0000:00:1d.0/0000:02:00.0/removable"
    echo removable >"$HS_TMP/root/sys/devices/pci0000:00/0000:00:07.0/0000:2b:00.0/removable"
    mounted "22 1 8:0 / / rw - ext4 /dev/sda rw" \
        "23 22 8:17 / /stick rw - ext4 /dev/sdb1 rw" "24 22 8:32 / /disk rw - ext4 /dev/sdc rw" \
        "25 22 253:0 / /raid rw - ext4 /dev/dm-0 rw" "26 22 253:1 / /crypt rw - ext4 /dev/dm-1 rw" \
        "27 22 179:1 / /card rw - ext4 /dev/mmcblk0p1 rw" "28 22 179:8 / /emmc rw - ext4 /dev/mmcblk1 rw" \
        "29 22 259:0 / /nvme rw - ext4 /dev/nvme0n1 rw" "30 22 259:1 / /bolt rw - ext4 /dev/nvme1n1 rw" \
        "31 22 7:0 / /image rw - ext4 /dev/loop0 rw"
    fixture '[.volumes[] | select(.removable) | .mountpoint] | sort ==
             ["/bolt", "/card", "/crypt", "/disk", "/image", "/raid", "/stick"]'
    fixture '[.volumes[] | select(.of_system) | .mountpoint] == ["/"]'
}

@test "the filesystems of a system that runs from an SD card belong to the system; other cards and sticks do not" {
    device 179:0 mmcblk0
    device 179:1 mmcblk0p1 mmcblk0
    device 179:2 mmcblk0p2 mmcblk0
    device 179:3 mmcblk0p3 mmcblk0
    device 179:8 mmcblk1
    device 8:0 sda
    device 8:1 sda1 sda
    device 8:2 sda2 sda
    device 8:3 sda3 sda
    queue mmcblk0 0 "[none]"
    card mmcblk0 SD
    card mmcblk1 SD
    on_bus platform/soc/xhci-hcd.1/usb1/1-1/1-1:1.0/host0 sda
    mkdir "$HS_TMP/root/etc"
    printf '%s\n' "PARTUUID=1-2 / ext4 defaults 0 1" "LABEL=data /srv/data ext4 nofail 0 2" \
        "/dev/sda2 /mnt ext4 noauto,users 0 0" >"$HS_TMP/root/etc/fstab"
    mounted "22 1 179:2 / / rw - ext4 /dev/mmcblk0p2 rw" "23 22 179:1 / /boot rw - vfat /dev/mmcblk0p1 rw" \
        "24 22 179:3 / /var rw - ext4 /dev/mmcblk0p3 rw" "25 22 179:8 / /media/card rw - ext4 /dev/mmcblk1 rw" \
        "26 22 8:1 / /srv/data rw - ext4 /dev/sda1 rw" "27 22 8:2 / /mnt rw - ext4 /dev/sda2 rw" \
        "28 22 8:3 / /media/stick rw - ext4 /dev/sda3 rw"
    fixture '[.volumes[] | select(.removable)] | length == 7'
    fixture '[.volumes[] | select(.of_system) | .mountpoint] | sort == ["/", "/boot", "/srv/data", "/var"]'
    # Without a readable fstab the disk of the root filesystem still belongs to the system.
    rm "$HS_TMP/root/etc/fstab"
    fixture '[.volumes[] | select(.of_system) | .mountpoint] | sort == ["/", "/boot", "/var"]'
}

@test "a mirror of two disks has no single disk" {
    device 8:0 sda
    device 8:16 sdb
    device 9:0 md0
    on md0 sda sdb
    queue sda 1 "[none]"
    mounted "22 1 9:0 / / rw - xfs /dev/md0 rw"
    fixture '.volumes[0] | .device == "md0" and .disk == "" and .class == "unknown"'
}

@test "NVMe, an SD card, eMMC: their classes" {
    device 259:0 nvme0n1
    device 259:1 nvme0n1p1 nvme0n1
    queue nvme0n1 0 "[none]"
    device 179:0 mmcblk0
    queue mmcblk0 0 "[mq-deadline]"
    card mmcblk0 SD
    device 179:8 mmcblk1
    queue mmcblk1 0 "[mq-deadline]"
    card mmcblk1 MMC
    mounted "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw" \
        "23 22 179:0 / /card rw - ext4 /dev/mmcblk0 rw" \
        "24 22 179:8 / /emmc rw - ext4 /dev/mmcblk1 rw"
    fixture '[.volumes[] | [.mountpoint, .class]] | sort ==
             [["/", "ssd"], ["/card", "sd"], ["/emmc", "emmc"]]'
}

@test "btrfs by its mapped name; an automount is reported, but not entered" {
    device 8:0 sda
    device 253:0 dm-0
    on dm-0 sda
    queue sda 0 "[none] bfq"
    mkdir "$HS_TMP/root/sys/devices/block/dm-0/dm"
    echo crypt-root >"$HS_TMP/root/sys/devices/block/dm-0/dm/name"
    mounted "22 1 0:30 /@ / rw - btrfs /dev/mapper/crypt-root rw,subvolid=256,subvol=/@" \
        "23 22 0:50 / /net rw - autofs systemd-1 rw,direct"
    fixture '.volumes[0] | .device == "dm-0" and .disk == "sda" and .subvolume == "/@" and
             .subvolume_id == 256'
    fixture '.automounts == ["/net"]'
}

# mapped NAME DM-NAME DM-UUID: makes a device-mapper device
mapped() {
    mkdir -p "$HS_TMP/root/sys/devices/block/$1/dm"
    echo "$2" >"$HS_TMP/root/sys/devices/block/$1/dm/name"
    echo "$3" >"$HS_TMP/root/sys/devices/block/$1/dm/uuid"
}

@test "encryption of volumes: dm-crypt at any level of the stack, homes of systemd-homed" {
    device 8:0 sda
    device 8:1 sda1 sda
    device 253:0 dm-0
    device 253:1 dm-1
    device 253:2 dm-2
    device 7:0 loop0
    on dm-0 sda
    on dm-1 dm-0
    on dm-2 loop0
    mapped dm-0 crypt CRYPT-LUKS2-0123456789abcdef0123456789abcdef-crypt
    mapped dm-1 vg-root LVM-abcdef
    mapped dm-2 home-anna CRYPT-LUKS2-1123456789abcdef0123456789abcdef-home-anna
    mounted "22 1 253:1 / / rw - ext4 /dev/dm-1 rw" \
        "23 22 8:1 / /boot rw - ext4 /dev/sda1 rw" \
        "24 22 253:2 / /home/anna rw - ext4 /dev/dm-2 rw"
    fixture '[.volumes[] | {(.mountpoint): .encryption}] | add == {"/": 1, "/boot": 0, "/home/anna": 2}'
}

# The backends of systemd-homed as /proc/self/mountinfo shows them. A home of the backends `directory`,
# `subvolume` and `fscrypt` is a bind mount of a directory below /home. Only the LUKS backend is encrypted
# as a whole; with fscrypt each file says so itself (record.bats).
@test "encryption of volumes: a home of every backend of systemd-homed" {
    device 8:0 sda
    device 8:1 sda1 sda
    device 8:2 sda2 sda
    device 253:0 dm-0
    device 253:1 dm-1
    device 7:0 loop0
    on dm-0 sda2
    on dm-1 loop0
    mapped dm-0 luks-home CRYPT-LUKS2-0123456789abcdef0123456789abcdef-luks-home
    mapped dm-1 home-luks CRYPT-LUKS2-1123456789abcdef0123456789abcdef-home-luks
    mounted "22 1 8:1 / / rw - ext4 /dev/sda1 rw" \
        "23 22 0:40 / /home rw - btrfs /dev/mapper/luks-home rw,subvolid=5,subvol=/" \
        "24 23 0:40 /directory.homedir /home/directory rw - btrfs /dev/mapper/luks-home rw,subvolid=5,subvol=/" \
        "25 23 0:41 /subvolume.homedir /home/subvolume rw - btrfs /dev/mapper/luks-home rw,subvolid=257,subvol=/subvolume.homedir" \
        "26 22 8:1 /srv/fscrypt.homedir /srv/fscrypt rw - ext4 /dev/sda1 rw" \
        "27 23 253:1 /luks /home/luks rw - btrfs /dev/mapper/home-luks rw,subvolid=5,subvol=/" \
        "28 23 0:60 / /home/cifs rw - cifs //server/cifs rw"
    fixture '[.volumes[] | {(.mountpoint): .encryption}] | add ==
             {"/": 0, "/home": 1, "/home/subvolume": 1, "/home/luks": 2}'
}

@test "a circular, wrong or empty sysfs: no disk, no hang" {
    device 253:0 dm-0
    device 253:1 dm-1
    on dm-0 dm-1
    on dm-1 dm-0
    mounted "22 1 253:0 / / rw - ext4 /dev/dm-0 rw" \
        "23 22 8:99 / /gone rw - ext4 /dev/sdx rw"
    head -c 100000 /dev/urandom >"$HS_TMP/root/sys/dev/block/253:0/size"
    run timeout 20 "$TOOL" fixture "$HS_TMP/root"
    [ "$status" -eq 0 ]
    jq -e '.volumes | length == 2' <<<"$output"
}

# --- extents -----------------------------------------------------------------------------------

# Prints the output of filefrag in the format of the tool.
filefrag_extents() {
    filefrag -v -b4096 "$1" | awk -F: '
        $1 ~ /^ *[0-9]+$/ && $0 !~ /unwritten|delalloc|inline|unknown_loc/ {
            split($2, l, /\.\. */); split($3, p, /\.\. */)
            print l[1] * 4096, p[1] * 4096, $4 * 4096 }'
}

own_extents() {
    "$TOOL" extents "$1" | jq -r '.extents[] | "\(.logical) \(.physical) \(.length)"'
}

# Adjacent extents are joined, because the kernel splits them differently from call to call.
joined() {
    awk 'n && $1 == l + n && $2 == p + n { n += $3; next } n { print l, p, n }
         { l = $1; p = $2; n = $3 } END { if (n) print l, p, n }'
}

extents_agree() {
    filefrag_extents "$1" | joined >"$HS_TMP/theirs"
    own_extents "$1" | joined >"$HS_TMP/ours"
    [ "$(wc -l <"$HS_TMP/theirs")" -ge "$2" ]
    same_lines "$HS_TMP/theirs" "$HS_TMP/ours"
}

# Makes a file of 1,500 extents, more than one FIEMAP call returns. Every second block is a hole.
holey_file() {
    python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(1500):
    os.pwrite(fd, b"x" * 4096, i * 8192)
os.fsync(fd)' "$HS_MNT/holey"
}

@test "ext4: all extents, as filefrag reports them; unwritten ones are left out and counted" {
    hs_filesystem ext4 128 -b 4096
    holey_file
    extents_agree "$HS_MNT/holey" 1500
    # A file with more extents than the caller accepts is refused.
    "$TOOL" extents "$HS_MNT/holey" 1500 | jq -e '.extents | length == 1500'
    run "$TOOL" extents "$HS_MNT/holey" 1499
    [ "$status" -eq 1 ]
    [[ $output == *"Argument list too long"* ]]
    fallocate -l 1M "$HS_MNT/unwritten"
    sync -f "$HS_MNT"
    "$TOOL" extents "$HS_MNT/unwritten" | jq -e '.extents == [] and .skipped >= 1'
}

@test "xfs: all extents, as filefrag reports them" {
    hs_filesystem xfs 320
    holey_file
    extents_agree "$HS_MNT/holey" 1500
}

@test "btrfs: all extents, as filefrag reports them; inline ones are left out and counted" {
    hs_filesystem btrfs 256
    holey_file
    extents_agree "$HS_MNT/holey" 1500
    echo small >"$HS_MNT/inline"
    sync -f "$HS_MNT"
    "$TOOL" extents "$HS_MNT/inline" | jq -e '.extents == [] and .skipped == 1'
}

@test "ext4 with inline data: such a file has no place of its own" {
    hs_filesystem ext4 64 -O inline_data
    echo small >"$HS_MNT/inline"
    sync -f "$HS_MNT"
    "$TOOL" extents "$HS_MNT/inline" | jq -e '.extents == [] and .skipped == 1'
}

@test "a filesystem without FIEMAP is reported" {
    run "$TOOL" extents /proc/version
    [ "$status" -eq 1 ]
    [[ $output == *"/proc/version: Operation not supported" || $output == *"Inappropriate ioctl"* ]]
}

# --- ext2/3/4 metadata -------------------------------------------------------------------------

# Prints the blocks of a list of byte ranges, one per line.
blocks_of() {
    jq -r --argjson b "$1" '.[] | range(.[0] / $b; .[1] / $b)' | sort -n -u
}

# Prints the block of the inode table in which an inode lies, as debugfs reports it.
table_block() {
    debugfs -R "imap <$1>" "$HS_LOOP" 2>/dev/null |
        sed -n 's/.*located at block \([0-9]*\),.*/\1/p'
}

@test "an inode's metadata: its table block, extent tree, xattr block, a directory's blocks" {
    hs_filesystem ext4 256 -b 4096 -I 128
    holey_file # 1,500 extents, so the tree has blocks of its own
    mkdir "$HS_MNT/large"
    (cd "$HS_MNT/large" && touch file-with-a-long-name-to-fill-the-blocks-{0..999})
    echo plain >"$HS_MNT/plain"
    python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.long", b"x" * 200)' "$HS_MNT/plain"
    sync -f "$HS_MNT"
    local inode acl
    inode=$(stat -c %i "$HS_MNT/holey")
    {
        table_block "$inode"
        debugfs -R "ex -n <$inode>" "$HS_LOOP" 2>/dev/null >/dev/null
        # Selects the entries that point to index blocks and leaves. debugfs prints each entry as
        # "level/depth entry/entries logical physical length".
        debugfs -R "ex <$inode>" "$HS_LOOP" 2>/dev/null |
            awk '{ split($0, f, "/") } $1 ~ /^[0-9]+\/$/ && $1 + 0 < $2 + 0 { print $(NF - 1) }'
    } | sort -n -u >"$HS_TMP/theirs"
    "$TOOL" inode "$HS_LOOP" "$inode" | blocks_of 4096 >"$HS_TMP/ours"
    [ "$(wc -l <"$HS_TMP/theirs")" -ge 4 ]
    same_lines "$HS_TMP/theirs" "$HS_TMP/ours"

    inode=$(stat -c %i "$HS_MNT/large")
    {
        table_block "$inode"
        debugfs -R "blocks <$inode>" "$HS_LOOP" 2>/dev/null | tr ' ' '\n' | grep .
    } | sort -n -u >"$HS_TMP/theirs"
    "$TOOL" inode "$HS_LOOP" "$inode" | blocks_of 4096 >"$HS_TMP/ours"
    [ "$(wc -l <"$HS_TMP/theirs")" -gt 10 ]
    same_lines "$HS_TMP/theirs" "$HS_TMP/ours"

    inode=$(stat -c %i "$HS_MNT/plain")
    acl=$(debugfs -R "stat <$inode>" "$HS_LOOP" 2>/dev/null | sed -n 's/^File ACL: \([0-9]*\).*/\1/p')
    [ "$acl" -gt 0 ]
    { table_block "$inode"; echo "$acl"; } | sort -n -u >"$HS_TMP/theirs"
    "$TOOL" inode "$HS_LOOP" "$inode" | blocks_of 4096 >"$HS_TMP/ours"
    same_lines "$HS_TMP/theirs" "$HS_TMP/ours"

    run "$TOOL" inode "$HS_LOOP" 60000
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
}

@test "free blocks are no metadata, whoever has read them" {
    hs_filesystem ext4 64 -b 4096
    sync -f "$HS_MNT"
    local free used
    free=$(dumpe2fs "$HS_LOOP" 2>/dev/null | sed -n 's/^  Free blocks: \([0-9]*\)-.*/\1/p' | head -n 1)
    used=$(table_block 2)
    "$TOOL" filter "$HS_LOOP" "$((used * 4096))-$(((used + 1) * 4096))" \
        "$((free * 4096))-$(((free + 4) * 4096))" >"$HS_TMP/kept"
    jq -e --argjson u "$used" '. == [[$u * 4096, ($u + 1) * 4096]]' "$HS_TMP/kept"
}

@test "ext4 itself reads block bitmaps, which do not count as used; inode bitmaps do" {
    hs_filesystem ext4 64 -b 4096
    local block inode
    block=$(dumpe2fs "$HS_LOOP" 2>/dev/null | sed -n 's/.*Block bitmap at \([0-9]*\).*/\1/p' | head -n 1)
    inode=$(dumpe2fs "$HS_LOOP" 2>/dev/null | sed -n 's/.*Inode bitmap at \([0-9]*\).*/\1/p' | head -n 1)
    "$TOOL" filter "$HS_LOOP" "$((block * 4096))-$(((block + 1) * 4096))" \
        "$((inode * 4096))-$(((inode + 1) * 4096))" >"$HS_TMP/kept"
    jq -e --argjson i "$inode" '. == [[$i * 4096, ($i + 1) * 4096]]' "$HS_TMP/kept"
}

@test "ext4 reads ahead the block bitmaps of groups that were written and have free blocks" {
    hs_filesystem ext4 1024 -b 4096 -O ^flex_bg
    hs_umount "$HS_MNT"
    debugfs -w -R "set_bg 1 free_blocks_count 0" "$HS_LOOP"
    debugfs -w -R "set_bg 1 checksum calc" "$HS_LOOP"
    dumpe2fs "$HS_LOOP" 2>/dev/null | sed -nE '
        /^Group /{ s/.*BLOCK_UNINIT.*/unwritten/; t hold; s/.*/written/; :hold; h }
        /Block bitmap at/{ s/.*Block bitmap at ([0-9]+).*/\1/; G; s/\n/ /; h }
        /^ *[0-9]+ free blocks/{ s/^ *([0-9]+) free blocks.*/\1/; G; s/\n/ /; p }' >"$HS_TMP/groups"
    cat "$HS_TMP/groups"
    # The columns: free blocks, place of the bitmap, state
    grep -q '^0 ' "$HS_TMP/groups"
    grep -q 'unwritten$' "$HS_TMP/groups"
    awk '$1 > 0 && $3 == "written" { print $2 }' "$HS_TMP/groups" | sort -n >"$HS_TMP/theirs"
    [ -s "$HS_TMP/theirs" ]
    "$TOOL" bitmaps "$HS_LOOP" | blocks_of 4096 >"$HS_TMP/ours"
    same_lines "$HS_TMP/theirs" "$HS_TMP/ours"
}

@test "a filesystem that is not ext, or damaged: an error, no crash" {
    hs_filesystem xfs 320
    run "$TOOL" inode "$HS_LOOP" 2
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    truncate -s 64M "$HS_TMP/bad"
    mkfs.ext4 -q "$HS_TMP/bad"
    # The group descriptors point to random places.
    head -c 65536 /dev/urandom | dd of="$HS_TMP/bad" bs=4096 seek=1 conv=notrunc status=none
    run timeout 60 "$TOOL" inode "$HS_TMP/bad" 2 12 100 5000
    [ "$status" -le 1 ]
    truncate -s 1M "$HS_TMP/bad"
    run timeout 60 "$TOOL" inode "$HS_TMP/bad" 2 12 100 5000
    [ "$status" -le 1 ]
}
