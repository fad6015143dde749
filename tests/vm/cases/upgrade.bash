# A package is upgraded between boots 2 and 3: refresh finds its new files, boot 3 replays them; an upgrade just before a reboot.
# image: d13-ext4
# boots: 4
# timeout: 900
program=/usr/bin/kmod
boot_1() {
    a_boot_is_recorded
    check "the pack has the program" pack_has "$state/boot.pack" "$program"
}

boot_2() {
    a_boot_is_replayed
    local before
    before=$(stat -c %i "$program")
    check "a newer package is built" newer_package kmod "$program"
    # The second call stands for the frontend of a package manager, which calls dpkg several times.
    check "dpkg upgrades the package" dpkg -i /tmp/upgrade.deb
    check "dpkg upgrades the package again" dpkg -i /tmp/upgrade.deb
    check "the program has a new inode" test "$(stat -c %i "$program")" != "$before"
    check "dpkg's trigger starts a refresh" await 300 has_run headstart-refresh.service
    check "both upgrades cost one refresh" test "$(refreshes)" -eq 1
    check "the refresh succeeds" test "$(systemctl show -p Result --value headstart-refresh.service)" = success
    check "the pack has the new file" pack_knows "$state/boot.pack" "$program"
    quiet
}

boot_3() {
    a_boot_is_replayed
    check "every file of the pack is unchanged" nothing_replaced
    check "a newer package is built" newer_package kmod "$program"
    check "dpkg upgrades the package" dpkg -i /tmp/upgrade.deb
    # The machine is rebooted before the refresh runs.
    check "the request for a refresh is stored" test -e "$state/refresh-wanted"
}

boot_4() {
    check "systemd has finished the boot" booted
    check "the request for a refresh has survived the reboot" test -e "$state/refresh-wanted"
    check "the boot was recorded" await 120 trace_of boot 4
    check "learning and planning succeed" systemctl start headstart-learn.service
    check "a refresh ran before learning" test "$(refreshes)" -eq 1
    check "the request for a refresh was removed" test ! -e "$state/refresh-wanted"
    check "the pack has the new file" pack_knows "$state/boot.pack" "$program"
    quiet
}

# newer_package NAME PROGRAM: makes a later version of the installed package with a different
# program
newer_package() {
    local tree=/tmp/upgrade f
    rm -rf "$tree"
    mkdir -p "$tree/DEBIAN"
    dpkg -L "$1" | while read -r f; do
        [[ -d $f && ! -L $f ]] || cp -a --parents "$f" "$tree" || return
    done
    head -c 8192 /dev/zero >>"$tree$2"
    dpkg-query -s "$1" | sed -E '/^Status:/d; s/^(Version: .*)/\1+hsvm1/; /^Conffiles:/,/^[^ ]/{/^Conffiles:|^ /d}' \
        >"$tree/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$tree" /tmp/upgrade.deb
}

refreshes() {
    journalctl -b -u headstart-refresh.service -o cat --no-pager | grep -c '^Starting '
}

# pack_knows PACK FILE: checks that the pack contains the present version of the file
pack_knows() {
    local one
    one=$(headstart show "$1" --limit=0 --json=short | grep -oE "\{[^{}]*\"path\": *\"$2\"[^{}]*")
    echo "$one, not $(stat -c %i "$2")"
    grep -qE "\"inode\": *$(stat -c %i "$2")[,}]" <<<"$one,"
}

nothing_replaced() {
    grep -o '"skipped":{[^}]*}' /run/headstart/replay-boot.json
    ! grep -q '"replaced"' /run/headstart/replay-boot.json
}
