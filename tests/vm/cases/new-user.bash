# A new user follows README: installs the package, reboots twice, and reads what headstart says. The texts are in the artefacts.
# image: d13-ext4
# initrd: installed
# boots: 3
# timeout: 1200

# shellcheck disable=SC2154

# everything_said: stores what a user reads, and pictures
everything_said() {
    headstart status >"$out/status"
    headstart history >"$out/history"
    headstart doctor >"$out/doctor"
    headstart explain --last-boot >"$out/explain-last-boot"
    headstart explain --last-login >"$out/explain-last-login"
    headstart report -o "$out/report.html"
    headstart plot boot -o "$out/boot.svg"
    headstart plot login -o "$out/login.svg"
    cp -a "$state" "$out/state"
}

says() {
    grep -E "$2" "$out/$1" || {
        cat "$out/$1"
        return 1
    }
}

# log_in_and_learn N: logs in, and waits until headstart has learned from N boots and logins
log_in_and_learn() {
    check "systemd has finished the boot" booted
    check "a user logs in at the console" login_at_console user
    check "the login was recorded" await 240 trace_of login "$1"
    check "headstart has learned and planned" await 300 eval "has_run headstart-learn.service && [[ $state/boot.pack -nt $state/model.json ]]"
    everything_said
    quiet
}

boot_1() {
    headstart status >"$out/status-before-login"
    log_in_and_learn 1
    check "status: it is on" says status '^Status: on'
    check "status: it is too early for an effect" says status '^Boot: not enough sessions yet'
    check "doctor: recording and replay begin before the system manager" says doctor 'before the system manager'
}

boot_2() {
    log_in_and_learn 2
    check "status names what this boot replayed" says status '^Replayed in this boot'
    check "the user asks for a boot and a login without replay" headstart measure
    headstart status >"$out/status-measure"
    check "status names the request" says status-measure 'without replay'
}

boot_3() {
    log_in_and_learn 3
    check "this boot was a control session" says history 'boot .* control'
    check "so was the login" says history 'login .* control'
    check "the report is at most 500 kB" test "$(stat -c %s "$out/report.html")" -lt 500000
}
