# The recorder killed in mid-boot, power cut while recording and while learning: the next boot is right.
# image: d13-ext4
# boots: 5
# cut: 3,4
boot_1() {
    a_boot_is_recorded
    early_unit "exec systemctl kill --signal=KILL headstart-record.service"
}

boot_2() {
    nobody_else_suffers
    check "the recorder was killed" was_killed
    check "no other warning is logged" no_complaint
    a_boot_is_replayed_beside_that
    no_early_unit
    # The unit disables itself, so that the power of the next boot is not cut.
    early_unit "rm /etc/systemd/system/multi-user.target.wants/hsvm-early.service; sync; \
        stty -F /dev/ttyS1 raw -echo; echo host cut >/dev/ttyS1; sleep 60"
    sync
}

was_killed() {
    [[ $(systemctl show -p Result --value headstart-record.service) == signal ]]
}

no_complaint() {
    ! complaints
}

a_boot_is_replayed_beside_that() {
    check "the replay reports its result" test -s /run/headstart/replay-boot.json
}

boot_3() {
    not_ok "the power was cut too late"
}

boot_4() {
    a_boot_is_replayed
    check "no temporary file of the recording is left" no_leftovers
    check "the boot was recorded" await 120 trace_of boot 2
    # Creates the state of a cut at the worst moment, which a random cut seldom hits.
    : >"$state/model.json.1.tmp"
    : >"$state/traces/20261121T000000-boot.json.1.tmp"
    sync
    systemctl start --no-block headstart-learn.service
    await 30 pgrep -f 'headstart --quiet (learn|plan)'
    host cut
}

no_leftovers() {
    find "$state" -mindepth 1 | sort
    ! find "$state" -name '*.tmp' | grep .
}

boot_5() {
    a_boot_is_replayed
    check "no temporary file of the learning is left" no_leftovers
    check "the boot was recorded" await 120 trace_of boot 3
    check "learning and planning succeed" systemctl start headstart-learn.service
    check "the model can be read" headstart show "$state/model.json"
    check "headstart is not on the critical chain" not_on_critical_chain
}
