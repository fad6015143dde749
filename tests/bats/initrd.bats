# SPDX-License-Identifier: LGPL-2.1-or-later
# The hooks that the tools for building initrds call. The tests replace the functions of these
# tools; tests/vm boots real initrds.

load helpers
bats_require_minimum_version 1.5.0

setup() {
    hs_setup
    LIBEXEC=$HS_TMP/libexec
    DONE=$HS_TMP/done
    : >"$DONE"
    mkdir -p "$LIBEXEC" "$HS_TMP/bin"
    program exit 0
}

# program WORDS: makes a script that replaces headstart-init, notes its arguments and runs WORDS.
program() {
    printf '#!/bin/sh\necho "headstart-init $*" >>"%s"\n%s\n' "$DONE" "$*" >"$LIBEXEC/headstart-init"
    chmod +x "$LIBEXEC/headstart-init"
}

# stub_command NAME WORDS: makes a command that notes its arguments and whether it runs in a
# maintainer script, and runs WORDS.
stub_command() {
    local name=$1
    shift
    # shellcheck disable=SC2016 # the stand-in expands it
    printf '#!/bin/sh\necho "%s $*${DPKG_MAINTSCRIPT_PACKAGE:+ in a maintainer script}" >>"%s"\n%s\n' \
        "$name" "$DONE" "$*" >"$HS_TMP/bin/$name"
    chmod +x "$HS_TMP/bin/$name"
}

# built NAME: prints the path of a copy of the built file that refers to these replacements.
built() {
    local dir
    dir=$(sed -n 's/^#define HEADSTART_LIBEXEC_DIR "\(.*\)"/\1/p' "$HS_BUILD/src/config-paths.h")
    sed -e "s|$dir|$LIBEXEC|g" -e "s|/usr/share/initramfs-tools|$HS_TMP/tool|g" "$HS_BUILD/hooks/$1" >"$HS_TMP/$1"
    chmod +x "$HS_TMP/$1"
    echo "$HS_TMP/$1"
}

was_done() {
    cat "$DONE"
    diff "$DONE" -
}

# noting NAME…: defines these functions of the tools; each notes its arguments.
noting() {
    local f
    for f; do
        eval "$f() { echo \"$f\${*:+ \$*}\" >>\"$DONE\"; }"
    done
}

@test "initramfs-tools: the program is copied, and no build fails" {
    local hook
    hook=$(built initramfs-tools-hook)
    mkdir -p "$HS_TMP/tool"
    echo "copy_exec() { echo \"copy_exec \$*\" >>'$DONE'; }" >"$HS_TMP/tool/hook-functions"
    run -0 "$hook" prereqs
    [ -z "$output" ]
    run -0 "$hook"
    was_done <<<"copy_exec $LIBEXEC/headstart-init"
    echo 'copy_exec() { return 1; }' >"$HS_TMP/tool/hook-functions"
    run -0 "$hook"
    [ "$output" = "headstart: not in the initrd" ]
    # The package was removed, and hooks that are left copy nothing.
    rm "$LIBEXEC/headstart-init"
    run -0 "$hook"
    [ -z "$output" ]
}

@test "initramfs-tools: the boot continues whatever the program does" {
    local script
    script=$(built initramfs-tools-local-bottom)
    run -0 "$script" prereqs
    rootmnt=/some/root run -0 "$script"
    program exit 1
    rootmnt=/some/root run -0 "$script"
    was_done <<'END'
headstart-init --initrd --root=/some/root
headstart-init --initrd --root=/some/root
END
    rm "$LIBEXEC/headstart-init"
    run -0 "$script"
}

@test "mkinitcpio: a unit if systemd runs in the initrd, else a runtime hook" {
    noting add_binary add_file add_symlink add_runscript
    # shellcheck disable=SC1090
    . "$(built mkinitcpio-install)"
    BUILDROOT=$HS_TMP/root
    mkdir -p "$BUILDROOT/usr/lib/systemd"
    build
    touch "$BUILDROOT/usr/lib/systemd/systemd"
    build
    was_done <<END
add_binary $LIBEXEC/headstart-init $LIBEXEC/headstart-init
add_runscript
add_binary $LIBEXEC/headstart-init $LIBEXEC/headstart-init
add_file $(grep -o '[^ ]*/headstart-record.service' "$HS_TMP/mkinitcpio-install" | head -n 1) /usr/lib/systemd/system/headstart-record.service
add_symlink /usr/lib/systemd/system/initrd.target.wants/headstart-record.service ../headstart-record.service
END
    [ -n "$(help)" ]
}

@test "mkinitcpio: the late hook starts the program and never fails" {
    # shellcheck disable=SC1090
    . "$(built mkinitcpio-hook)"
    run_latehook
    program exit 1
    run_latehook
    was_done <<'END'
headstart-init --initrd --root=/new_root
headstart-init --initrd --root=/new_root
END
}

@test "dracut: a unit if systemd runs in the initrd, else a hook" {
    noting inst_binary inst_simple inst_hook ln_r
    # shellcheck disable=SC1090
    . "$(built dracut-module-setup.sh)"
    check
    # shellcheck disable=SC2034
    moddir=/modules systemdsystemunitdir=/units initdir=$HS_TMP/initrd
    dracut_module_included() { false; }
    install
    dracut_module_included() { [ "$1" = systemd ]; }
    install
    was_done <<END
inst_binary $LIBEXEC/headstart-init
inst_hook pre-pivot 60 /modules/headstart.sh
inst_binary $LIBEXEC/headstart-init
inst_simple $(grep -o '[^ ]*/headstart-record.service' "$HS_TMP/dracut-module-setup.sh" | head -n 1) /units/headstart-record.service
ln_r /units/headstart-record.service /units/initrd.target.wants/headstart-record.service
END
    [ -d "$HS_TMP/initrd/units/initrd.target.wants" ]
    # The initrd of a crash kernel.
    IN_KDUMP=1 run ! check
    rm "$LIBEXEC/headstart-init"
    run ! check
    run -0 sh -n "$HS_BUILD/hooks/dracut-headstart.sh"
}

@test "the initrd's unit keeps its descriptors, and has ended when the root is switched" {
    need_command systemd-analyze
    local unit=$HS_BUILD/hooks/headstart-record.service
    # The unit must have the same name as the host's unit, otherwise systemd would not pass the
    # descriptors on.
    [ -e "$HS_BUILD/units/headstart-record.service" ]
    grep -qx 'FileDescriptorStorePreserve=yes' "$unit"
    grep -qx 'Type=oneshot' "$unit"
    run -1 grep -x 'RemainAfterExit=yes' "$unit"
    grep -qx 'ConditionKernelCommandLine=!headstart=0' "$unit"
    # The unit of the host accepts descriptors in its store, and does not preserve them after it has
    # ended.
    grep -q '^FileDescriptorStoreMax=' "$HS_BUILD/units/headstart-record.service"
    run -1 grep -q '^FileDescriptorStorePreserve=' "$HS_BUILD/units/headstart-record.service"
    sed "s|^ExecStart=[^ ]*|ExecStart=$HEADSTART_INIT|" "$unit" >"$HS_TMP/headstart-record.service"
    SYSTEMD_UNIT_PATH=$HS_TMP: run systemd-analyze verify --man=no "$HS_TMP/headstart-record.service"
    # Two messages report no fault of the unit. systemd before 254 does not know
    # FileDescriptorStorePreserve=, and drops the descriptors. sysroot.mount exists in initrds only.
    [ -z "$(grep headstart <<<"$output" | grep -vE 'FileDescriptorStorePreserve|sysroot\.mount not found')" ]
}

@test "a rebuild that fails costs one line and fails nothing" {
    local script
    script=$(built rebuild-initrd)
    stub_command dracut exit 0
    stub_command update-initramfs 'echo building; echo "cannot write: No space left on device" >&2; exit 1'
    DPKG_MAINTSCRIPT_PACKAGE=headstart PATH=$HS_TMP/bin:$PATH run -0 "$script"
    [ "$output" = "headstart: the initrd was not built again (update-initramfs: cannot write: No space left on device)" ]
    stub_command update-initramfs 'echo building'
    DPKG_MAINTSCRIPT_PACKAGE=headstart PATH=$HS_TMP/bin:$PATH run -0 "$script"
    [ -z "$output" ]
    PATH=$HS_TMP/bin:$PATH run -0 "$script" 6.1.0-13-amd64
    PATH=$HS_TMP/bin:$PATH run -0 "$script" --all
    was_done <<'END'
update-initramfs -u
update-initramfs -u
update-initramfs -u -k 6.1.0-13-amd64
update-initramfs -u -k all
END
    # Without a tool there is nothing to build.
    rm "$HS_TMP/bin/update-initramfs" "$HS_TMP/bin/dracut"
    PATH=$HS_TMP/bin:$PATH run -0 "$script"
    [ -z "$output" ]
}

@test "a rebuild with dracut, which deletes the image if the filesystem is full, needs room for a second image" {
    local script root=$HS_TMP/root kernel
    script=$(built rebuild-initrd)
    stub_command dracut 'exit 0'
    for kernel in 6.1.0-9 6.1.0-13 6.12.3; do
        mkdir -p "$root/lib/modules/$kernel"
        : >"$root/lib/modules/$kernel/modules.dep"
    done
    mkdir -p "$root/lib/modules/7.0-removed" "$root/boot/efi/id/6.1.0-13" "$root/etc"
    echo id >"$root/etc/machine-id"
    : >"$root/boot/initramfs-6.12.3.img"
    : >"$root/boot/initrd-6.1.0-9"
    : >"$root/boot/efi/id/6.1.0-13/initrd"
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$script"
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$script" 6.1.0-9
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$script" --all
    # Images that are larger than the free space.
    truncate -s 8T "$root/boot/initramfs-6.12.3.img" "$root/boot/efi/id/6.1.0-13/initrd"
    : >"$root/boot/initrd.img-6.1.0-9"
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$script"
    [ "$output" = "headstart: the initrd was not built again ($root/boot/initramfs-6.12.3.img: too little free space on its filesystem)" ]
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$script" --all
    [ "${#lines[@]}" -eq 2 ]
    [[ $output == *"id/6.1.0-13/initrd: too little"*"initramfs-6.12.3.img: too little"* ]]
    was_done <<END
dracut --quiet --force --kver 6.12.3 $root/boot/initramfs-6.12.3.img
dracut --quiet --force --kver 6.1.0-9 $root/boot/initrd-6.1.0-9
dracut --quiet --force --kver 6.1.0-9 $root/boot/initrd-6.1.0-9
dracut --quiet --force --kver 6.1.0-13 $root/boot/efi/id/6.1.0-13/initrd
dracut --quiet --force --kver 6.12.3 $root/boot/initramfs-6.12.3.img
dracut --quiet --force --kver 6.1.0-9 $root/boot/initrd.img-6.1.0-9
END
}

@test "a rebuild with dracut makes no image of a name that no boot loader reads, and knows Arch's names" {
    local script root=$HS_TMP/root kernel
    script=$(built rebuild-initrd)
    stub_command dracut 'exit 0'
    for kernel in 6.12.1-arch1-1 6.12.2-lts 6.12.3; do
        mkdir -p "$root/lib/modules/$kernel"
        : >"$root/lib/modules/$kernel/modules.dep"
    done
    echo linux >"$root/lib/modules/6.12.1-arch1-1/pkgbase"
    echo linux-lts >"$root/lib/modules/6.12.2-lts/pkgbase"
    mkdir "$root/boot"
    : >"$root/boot/initramfs-linux.img"
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$script" --all
    [ "${#lines[@]}" -eq 2 ]
    [ "${lines[0]}" = "headstart: the initrd was not built again (kernel 6.12.2-lts has no image that dracut would find)" ]
    [[ ${lines[1]} == *"(kernel 6.12.3 has no image that dracut would find)" ]]
    truncate -s 8T "$root/boot/initramfs-linux.img"
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$script" 6.12.1-arch1-1
    [[ $output == *"$root/boot/initramfs-linux.img: too little free space on its filesystem)" ]]
    was_done <<END
dracut --quiet --force --kver 6.12.1-arch1-1 $root/boot/initramfs-linux.img
END
}

# with_images FILE…: makes these files below the root of rebuilding, and nothing else in /boot and /efi.
with_images() {
    local file
    rm -rf "$HS_TMP/root/boot" "$HS_TMP/root/efi"
    mkdir -p "$HS_TMP/root/boot"
    for file; do
        mkdir -p "$(dirname "$HS_TMP/root/$file")"
        : >"$HS_TMP/root/$file"
    done
}

# rebuilding ARGUMENT…: runs rebuild-initrd on a system with the kernel 6.12.3 and the machine ID 0123.
rebuilding() {
    local root=$HS_TMP/root
    mkdir -p "$root/lib/modules/6.12.3" "$root/etc/kernel" "$root/etc/dracut.conf.d" "$root/usr/lib/dracut/dracut.conf.d"
    : >"$root/lib/modules/6.12.3/modules.dep"
    echo 0123 >"$root/etc/machine-id"
    stub_command dracut 'exit 0'
    : >"$DONE"
    HEADSTART_SYSTEM_ROOT=$root PATH=$HS_TMP/bin:$PATH run -0 "$(built rebuild-initrd)" "$@"
}

@test "a rebuild with dracut leaves the unified kernel images of other tools alone, and names the command" {
    local image said
    for image in boot/EFI/Linux/0123-6.12.3.efi boot/efi/EFI/Linux/fedora-6.12.3+3.efi efi/EFI/Linux/0123-6.12.3.efi \
        boot/EFI/Linux/linux-6.12.3-0123.efi; do # without uefi=yes, dracut does not build the last one either
        with_images "$image"
        said="headstart: the initrd was not built again (dracut does not build $HS_TMP/root/$image; if kernel-install"
        said+=" does, run kernel-install add 6.12.3 $HS_TMP/root"
        rebuilding --all
        [ "$output" = "$said/boot/vmlinuz-6.12.3)" ]
        was_done </dev/null
        touch "$HS_TMP/root/lib/modules/6.12.3/vmlinuz"
        rebuilding 6.12.3
        [ "$output" = "$said/lib/modules/6.12.3/vmlinuz)" ]
        was_done </dev/null
        rm "$HS_TMP/root/lib/modules/6.12.3/vmlinuz"
    done
    # uefi=yes does not make another tool's image dracut's, nor the image of another kernel or machine.
    echo 'uefi="yes"' >"$HS_TMP/root/etc/dracut.conf"
    with_images boot/EFI/Linux/0123-6.12.3.efi boot/EFI/Linux/linux-6.12.30-0123.efi boot/EFI/Linux/linux-6.12.3-4567.efi
    rebuilding
    [[ $output == *"(dracut does not build "*"; if kernel-install does, run kernel-install add 6.12.3 "* ]]
    was_done </dev/null
}

@test "a rebuild with dracut builds a unified kernel image if dracut's configuration says so" {
    local root=$HS_TMP/root image
    rebuilding # makes the directories
    echo ' uefi="yes" # one file' >"$root/usr/lib/dracut/dracut.conf.d/50-uefi.conf"
    for image in boot/EFI/Linux/linux-6.12.3-0123.efi boot/efi/EFI/Linux/linux-6.12.3-0123-build.efi \
        efi/EFI/Linux/linux-6.12.3-Default.efi boot/EFI/Linux/linux-6.12.3.efi; do
        with_images "$image" boot/initramfs-6.12.3.img boot/EFI/Linux/0123-6.12.3.efi
        rebuilding
        [ -z "$output" ]
        was_done <<<"dracut --quiet --force --kver 6.12.3 --uefi $root/$image"
    done
    truncate -s 8T "$root/$image"
    rebuilding
    [ "$output" = "headstart: the initrd was not built again ($root/$image: too little free space on its filesystem)" ]
    was_done </dev/null
    # An initrd does not become a unified kernel image.
    with_images boot/initramfs-6.12.3.img boot/EFI/Linux/0123-6.12.3.efi
    rebuilding
    was_done <<<"dracut --quiet --force --kver 6.12.3 --no-uefi $root/boot/initramfs-6.12.3.img"
    # The last setting counts, and a file in /etc replaces that of the same name.
    echo 'uefi=no' >"$root/etc/dracut.conf.d/60-no.conf"
    rebuilding
    was_done <<<"dracut --quiet --force --kver 6.12.3 $root/boot/initramfs-6.12.3.img"
    rm "$root/etc/dracut.conf.d/60-no.conf"
    ln -s /dev/null "$root/etc/dracut.conf.d/50-uefi.conf"
    rebuilding
    was_done <<<"dracut --quiet --force --kver 6.12.3 $root/boot/initramfs-6.12.3.img"
    printf "#uefi=no\nuefi='yes'" >"$root/etc/dracut.conf"
    rebuilding
    was_done <<<"dracut --quiet --force --kver 6.12.3 --no-uefi $root/boot/initramfs-6.12.3.img"
}

@test "a rebuild with dracut replaces the initrd of this system, never that of another one" {
    local root=$HS_TMP/root image
    rebuilding # makes the directories
    printf token >"$root/etc/kernel/entry-token"
    printf 'NAME="Some Linux"\nID=some\nIMAGE_ID="some image"\nIMAGE_ID=image\n' >"$root/etc/os-release"
    for image in efi/0123 boot/0123 boot/efi/token efi/some boot/image boot/Default; do
        with_images "$image/6.12.3/initrd" boot/4567/6.12.3/initrd boot/initramfs-6.12.3.img
        rebuilding
        [ -z "$output" ]
        was_done <<<"dracut --quiet --force --kver 6.12.3 $root/$image/6.12.3/initrd"
    done
    with_images efi/4567/6.12.3/initrd boot/initramfs-6.12.3.img
    rebuilding
    was_done <<<"dracut --quiet --force --kver 6.12.3 $root/boot/initramfs-6.12.3.img"
    with_images efi/4567/6.12.3/initrd
    rebuilding
    [[ $output == *"(kernel 6.12.3 has no image that dracut would find)" ]]
    was_done </dev/null
}

@test "a rebuild with mkinitcpio builds the images of all presets" {
    stub_command mkinitcpio 'exit 0'
    PATH=$HS_TMP/bin:$PATH run -0 "$(built rebuild-initrd)"
    was_done <<'END'
mkinitcpio -P
END
}

@test "a rebuild with mkinitcpio and dracut leaves the images to mkinitcpio if it has a preset" {
    local root=$HS_TMP/root argument
    rebuilding # makes the directories
    with_images boot/initramfs-linux.img
    echo linux >"$root/lib/modules/6.12.3/pkgbase"
    stub_command mkinitcpio 'exit 0'
    # Without a preset, mkinitcpio builds nothing.
    mkdir "$root/etc/mkinitcpio.d"
    rebuilding
    was_done <<<"dracut --quiet --force --kver 6.12.3 $root/boot/initramfs-linux.img"
    : >"$root/etc/mkinitcpio.d/linux.preset"
    for argument in "" --all 6.12.3; do
        rebuilding ${argument:+"$argument"}
        [ -z "$output" ]
        was_done <<<"mkinitcpio -P"
    done
    # A preset may remain after mkinitcpio was removed.
    rm "$HS_TMP/bin/mkinitcpio"
    rebuilding
    was_done <<<"dracut --quiet --force --kver 6.12.3 $root/boot/initramfs-linux.img"
}

# package FUNCTION: runs this function of the Arch package's script. The script finds no commands but the
# replacements and those that it needs for files, so that it never builds the initrd of this machine.
package() {
    local command
    sed -e "s|/usr/lib/headstart|$LIBEXEC|g" -e "s|/etc/headstart|$HS_TMP/etc|g" -e "s|/run/headstart|$HS_TMP/run|g" \
        -e "s|/run/systemd/system|$HS_TMP/absent|" "$HS_SOURCE/data/packaging/arch/headstart.install" >"$HS_TMP/package"
    for command in rm cp mkdir sh; do
        ln -sf "$(command -v $command)" "$HS_TMP/bin/$command"
    done
    # shellcheck disable=SC2016 # the inner shell expands it
    PATH=$HS_TMP/bin "$BASH" -c '. "$0"; "$1"' "$HS_TMP/package" "$1"
}

@test "the Arch package builds the initrd again with dracut, and leaves mkinitcpio to its hook" {
    local program
    stub_command systemctl exit 0
    for program in install-hooks rebuild-initrd; do
        stub_command $program exit 0
        mv "$HS_TMP/bin/$program" "$LIBEXEC"
    done
    mkdir "$HS_TMP/etc"
    touch "$HS_TMP/etc/"{boot.pack,boot.pack.7.tmp,boot-idle,last-control,last-control.7.tmp,disabled}
    package post_install
    package post_upgrade
    package pre_remove
    rm "$LIBEXEC/rebuild-initrd" # pacman removes the files of the package
    package post_remove
    [ "$(ls "$HS_TMP/etc")" = disabled ]
    [ -z "$(ls "$HS_TMP/run")" ]
    stub_command rebuild-initrd exit 0
    mv "$HS_TMP/bin/rebuild-initrd" "$LIBEXEC"
    stub_command mkinitcpio exit 0
    package post_install
    package post_upgrade
    package pre_remove
    package post_remove
    [ -z "$(ls "$HS_TMP/run")" ]
    # Without the copy nothing fails.
    rm "$HS_TMP/bin/mkinitcpio"
    package post_remove
    sed -i -e /systemctl/d -e "s, $,," "$DONE"
    was_done <<'END'
install-hooks install
rebuild-initrd
rebuild-initrd
install-hooks remove
rebuild-initrd --all
install-hooks install
install-hooks remove
END
}
