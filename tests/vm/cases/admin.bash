# The shipped model at the first boot; a login at the console, which is learned automatically; disable, enable, rerecord; purge.
# image: d13-ext4
# boots: 4
boot_1() {
    check "systemd has finished the boot" booted
    check "nothing was learned" test ! -e "$state/model.json"
    check "the installation planned from the shipped model" test -s "$state/boot.pack"
    check "the boot pack was replayed" await 120 is_over /run/headstart/replay-boot.json
    note "$(cat /run/headstart/replay-boot.json)"
    check "some of the planned files exist" test "$(field /run/headstart/replay-boot.json files)" -gt 20
    check "the boot was recorded" await 120 trace_of boot
    # Users log in at the console if there is no greeter.
    host key ctrl-alt-f1
    check "a user logs in at the console" login_at_console user
    check "the login was recorded" await 180 trace_of login
    check "the login is learned automatically" await 300 has_run headstart-learn.service
    check "there is a model" test -s "$state/model.json"
    check "there is a pack for that user" await 60 test -s "$state/login@$(id -u user).pack"
    quiet
}

boot_2() {
    a_boot_is_replayed
    check "the login pack was replayed, without a greeter" await 120 is_over /run/headstart/replay-login.json
    check "a user logs in at the console" login_at_console user
    check "the user's own pack was replayed, too" await 120 is_over "/run/headstart/replay-login@$(id -u user).json"
    check "disable --now succeeds" headstart disable --now
    check "no unit or process of headstart runs any more" nothing_runs
    quiet
}

boot_3() {
    check "systemd has finished the boot" booted
    check "no unit or process of headstart runs" nothing_runs
    check "nothing was replayed" test ! -e /run/headstart/replay-boot.json
    check "enable --now succeeds" headstart enable --now
    check "headstart records" systemctl is-active headstart-record.service
    check "rerecord --now succeeds" headstart rerecord --now
    check "headstart records again" systemctl is-active headstart-record.service
    check "status lists the stages that are not replayed" tells "boot, login"
    quiet
}

boot_4() {
    check "systemd has finished the boot" booted
    check "the boot was recorded anew" await 120 trace_of boot
    check "nothing was replayed in this boot" test ! -e /run/headstart/replay-boot.json
    check "only the login is still requested" tells login
    quiet
    check "dpkg purges the package" dpkg --purge headstart
    check "no unit or process of headstart runs" nothing_runs
    check "no file of headstart is left" nothing_left
    check "no unit failed" no_failed_units
}

tells() {
    headstart status
    headstart status | grep -E "Recorded without replay: $1\$"
}

nothing_left() {
    local left
    left=$(find / -xdev -name '*headstart*' -not -path '/proc/*' -not -path '/run/hsvm/*' \
        -not -path '/var/log/*' -not -path '/var/lib/systemd/deb-systemd-helper-*' -not -path '/tmp/*' |
        grep -v hsvm)
    [[ -z $left ]] || {
        echo "$left"
        return 1
    }
}
