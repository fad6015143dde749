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

# defined NAME: prints a path from the configuration of the build.
defined() {
    sed -n "s/^#define $1 \"\(.*\)\"/\1/p" "$HS_BUILD/src/config-paths.h"
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

@test "doctor: with mkinitcpio, the remedy names HOOKS, because rebuild-initrd changes no configuration" {
    local program remedy
    remedy="add headstart to HOOKS of the mkinitcpio configuration that the preset in /etc/mkinitcpio.d names, run mkinitcpio -P, and reboot"
    program=$(defined HEADSTART_LIBEXEC_DIR)/headstart-init
    with_root proc/sys/kernel/osrelease etc/mkinitcpio.d/linux.preset.pacnew boot/initramfs-linux.img "$program"
    echo 6.12.3-arch1-1 >"$HS_TMP/root/proc/sys/kernel/osrelease"
    touch -d '2 hours ago' "$HS_TMP/root/boot/initramfs-linux.img"
    [[ $(found early) == "note: "*" the initrd is older than headstart: ${program%/*}/rebuild-initrd "* ]]
    : >"$HS_TMP/root/etc/mkinitcpio.d/linux.preset"
    [[ $(found early) == "note: "*" the initrd is older than headstart: $remedy" ]]
    rm "$HS_STATE/boot.pack"
    [[ $(found early) == "note: "*"; the initrd is older than headstart: $remedy" ]]
    : >"$HS_STATE/boot.pack"
    touch -d '1 minute' "$HS_TMP/root/boot/initramfs-linux.img"
    printf 'cpu 1\nbtime %s\n' "$(date -d '1 hour' +%s)" >"$HS_TMP/root/proc/stat"
    [[ $(found early) == "note: "*" this boot's initrd did not start headstart: $remedy" ]]
    rm "$HS_TMP/root/boot/initramfs-linux.img"
    echo 'initrd=\initramfs-linux.img' >"$HS_TMP/root/proc/cmdline"
    [[ $(found early) == "note: "*", and its image was not found: $remedy" ]]
}

@test "doctor: each directory of a boot loader that may have passed an initrd" {
    local dir
    with_root
    [[ $(found early) == "note: "*": no initrd was found: add init="* ]]
    for dir in boot/loader/entries {efi,boot/efi}/loader {efi,boot/efi,boot}/EFI/Linux; do
        mkdir -p "$HS_TMP/root/$dir"
        [[ $(found early) == "note: "*", and its image was not found: "*"/rebuild-initrd "* ]]
        rm -rf "$HS_TMP/root/boot" "$HS_TMP/root/efi"
    done
}

# with_manager UNIT: makes this the display manager.
with_manager() {
    mkdir -p "$HS_TMP/root/etc/systemd/system"
    ln -sf "/lib/systemd/system/$1" "$HS_TMP/root/etc/systemd/system/display-manager.service"
}

@test "doctor: install-hooks replaces no file, so the administrator has to add the call of the hook" {
    local file hook line said
    with_root
    hook=$(defined HEADSTART_LIBEXEC_DIR)/hook
    line="[ ! -x $hook ] || $hook user \"\$USERNAME\""
    for file in gdm3:/etc/gdm3/PostLogin/Default gdm:/etc/gdm3/PostLogin/Default gdm:/etc/gdm/PostLogin/Default; do
        with_manager "${file%%:*}.service"
        [[ $(found display-manager) == "note: "*" does not have headstart's hook: ${hook%/hook}/install-hooks install" ]]
        file=${file#*:}
        with_root "$file"
        printf '#!/bin/sh\n# %s\nexit 0\n' "$hook" >"$HS_TMP/root$file"
        said="note: $file does not call headstart's hook: add this to $file, because install-hooks never replaces a file: $line"
        [ "$(found display-manager)" = "$said" ]
        # A link to somewhere else is such a file, too.
        ln -sf /nowhere "$HS_TMP/root$file"
        [ "$(found display-manager)" = "$said" ]
        rm "$HS_TMP/root$file"
        printf '#!/bin/sh\n%s\n' "$line" >"$HS_TMP/root$file"
        [[ $(found display-manager) == "ok: "*" is installed: null" ]]
        # The line succeeds without headstart.
        sh -euc "$(sed "s,$hook,$HS_TMP/absent,g" "$HS_TMP/root$file")"
        rm "$HS_TMP/root$file"
    done
    with_manager lightdm.service
    file=/usr/share/lightdm/lightdm.conf.d/00-headstart.conf
    with_root "$file"
    [[ $(found display-manager) == *": add this to $file, "*": the lines of $(defined HEADSTART_DATA_DIR)/hooks/lightdm/headstart.conf" ]]
    cp "$HS_BUILD/hooks/lightdm-headstart.conf" "$HS_TMP/root$file"
    [[ $(found display-manager) == "ok: "*" is installed: null" ]]
}

@test "doctor: the file that overrides DisplayCommand= of SDDM's hook" {
    local ours system=/usr/lib/sddm/sddm.conf.d own=/etc/sddm.conf.d remedy file
    ours=DisplayCommand=$(defined HEADSTART_LIBEXEC_DIR)/hook-sddm-display
    remedy="set $ours in the section [X11] of /etc/sddm.conf"
    with_root
    with_manager sddm.service
    mkdir -p "$HS_TMP/root"{$system,$own}
    ln -s "$(defined HEADSTART_DATA_DIR)/hooks/sddm/headstart.conf" "$HS_TMP/root$system/00-headstart.conf"
    # overridden FILE: checks that doctor reports the file. Without a FILE, nothing overrides the hook.
    overridden() {
        if [ "$1" ]; then
            [ "$(found display-manager)" = "note: $1 sets DisplayCommand= after headstart's file, so SDDM does not run the hook: $remedy" ]
        else
            [ "$(found display-manager)" = "ok: the hook of sddm.service is installed: null" ]
        fi
    }
    overridden ""
    # SDDM reads neither hidden files nor comments, and other sections have no such key.
    for file in 00-a .zzz; do
        printf '[X11]\nDisplayCommand=x\n' >"$HS_TMP/root$system/$file"
    done
    printf '[X11]\n#DisplayCommand=x\nDisplayCommands=x\n[Wayland]\nDisplayCommand=x\n' >"$HS_TMP/root$system/default.conf"
    overridden ""
    # As on Arch Linux.
    printf '[General]\nNumlock=none\n\n[X11]\n# Path\nDisplayCommand=/usr/share/sddm/scripts/Xsetup\n' \
        >"$HS_TMP/root$system/default.conf"
    overridden $system/default.conf
    # The last file counts, whatever its name and the name of the section before SDDM 0.14.
    for file in b a c; do
        printf ' [XDisplay] # old\n DisplayCommand = x\n' >"$HS_TMP/root$own/$file"
    done
    overridden $own/c
    printf '[X11]\nDisplayCommand=\n' >"$HS_TMP/root/etc/sddm.conf"
    overridden /etc/sddm.conf
    # The remedy ends the note.
    printf '[X11]\n%s\n' "$ours" >"$HS_TMP/root/etc/sddm.conf"
    overridden ""
}

@test "doctor: each unit of the preset that is not enabled" {
    local unit units dir wants
    mapfile -t units < <(sed -n 's/^enable //p' "$HS_SOURCE/data/90-headstart.preset")
    [ "${#units[@]}" -ge 7 ]
    for dir in etc usr/lib; do
        wants=$HS_TMP/root/$dir/systemd/system/some.target.wants
        with_root "${units[@]/#/${wants#"$HS_TMP/root/"}/}"
        [ "$(found units)" = "ok: the units are enabled: null" ]
        for unit in "${units[@]}"; do
            mv "$wants/$unit" "$wants/.."
            [ "$(found units)" = "problem: $unit is not enabled: headstart enable" ]
            mv "$wants/../$unit" "$wants"
        done
        rm -r "$HS_TMP/root/$dir/systemd"
    done
    [ "$(found units | sort)" = "$(printf 'problem: %s is not enabled: headstart enable\n' "${units[@]}" | sort)" ]
}

@test "doctor: the oldest kernel is that of the README" {
    local oldest release
    oldest=$(tr '\n' ' ' <"$HS_SOURCE/README.md" | sed -n 's/.* needs Linux \([0-9.]*[0-9]\).*/\1/p')
    with_root proc/sys/kernel/osrelease proc/sys/fs/fanotify/max_user_marks
    for release in 4.19.300 5.$((${oldest#5.} - 1)).16-some; do
        echo "$release" >"$HS_TMP/root/proc/sys/kernel/osrelease"
        [[ $(found kernel) == "problem: Linux ${release%.*} is older than Linux $oldest, "*": boot a kernel from $oldest on" ]]
    done
    echo "$oldest.0" >"$HS_TMP/root/proc/sys/kernel/osrelease"
    [[ $(found kernel) == "note: Linux $oldest has no cachestat(2): "* ]]
}
