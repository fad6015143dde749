# Installs the package, as dpkg does it on a running system.
# shellcheck shell=bash disable=SC2154
boot_1() {
    booted
    local from=$SECONDS
    check "dpkg installs the package" dpkg -i "$files/headstart.deb"
    note "dpkg took $((SECONDS - from)) s"
    check "headstart is in the initrd" in_initrd headstart-init
    # The host stores the initrd for the boots of the cases, in which qemu passes it to the kernel.
    cp "$(initrd_file)" "$out/initrd"
    check "it runs" headstart --version
    check "no unit failed" no_failed_units
    # Writes the state of headstart's units to the artefacts.
    systemctl list-unit-files --no-pager 'headstart*' >"$out/unit-files"
}
