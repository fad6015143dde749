# Power cuts at random moments of a boot, its recording, learning and planning: the state stays
# usable.
# image: d13-ext4
# boots: 7
# cut: 2,3,4,5,6
# timeout: 900
boot_1() {
    a_boot_is_recorded
    # At the beginning of each boot, the unit requests a power cut within the next minute.
    early_unit "stty -F /dev/ttyS1 raw -echo; echo host cut-within 60 >/dev/ttyS1"
    sync
}

boot_2() {
    until_power_fails
}

boot_3() {
    until_power_fails
}

boot_4() {
    until_power_fails
}

boot_5() {
    until_power_fails
}

boot_6() {
    no_early_unit
    sync
    booted
    nothing_is_lost
    host cut-within 20
    until_power_fails
}

boot_7() {
    nobody_else_suffers
    nothing_is_lost
    check "learning and planning succeed" systemctl start headstart-learn.service
    check "there is a pack" test -s "$state/boot.pack"
    check "no unit failed" no_failed_units
}

# Lets headstart write its model and all its packs again and again.
until_power_fails() {
    local policy
    while :; do
        for policy in off metadata gate; do
            systemctl start headstart-learn.service
            headstart plan --policy="$policy"
        done
    done
}

nothing_is_lost() {
    check "the model can be read" headstart show "$state/model.json"
    check "the packs can be read" show_all "$state"/*.pack
    check "the traces can be read" show_all "$state"/traces/*.json
    check "nothing was set aside" test -z "$(find "$state" -name '*.bad')"
    check "at most one temporary file of each name is left" at_most_one_temporary
}

show_all() {
    local f
    for f; do
        headstart show "$f" || return
    done
}

at_most_one_temporary() {
    find "$state" -name '*.tmp' | tee /dev/stderr | sed -E 's/\.[0-9]+\.tmp$//' | sort | uniq -d | { ! grep .; }
}
