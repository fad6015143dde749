# Installs the package, as dpkg does it on a running system.
# shellcheck shell=bash disable=SC2154
boot_1() {
    booted
    check "dpkg installs the package" dpkg -i "$files/headstart.deb"
    check "it runs" headstart --version
    check "no unit failed" no_failed_units
    # What systemd's units of it are, for the artefacts.
    systemctl list-unit-files --no-pager 'headstart*' >"$out/unit-files"
}
