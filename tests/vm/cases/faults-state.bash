# headstart=0, a corrupt pack, a state directory that is missing, read-only, full: the boot goes on.
# image: d13-ext4
# boots: 7
# append-2: headstart=0
# ci: yes
boot_1() {
    a_boot_is_recorded
}

boot_2() {
    nobody_else_suffers
    check "no unit or process of headstart runs" nothing_runs
    check "nothing was replayed" test ! -e /run/headstart/replay-boot.json
    quiet
    # The damage is behind the header, so the file is still recognized as a pack.
    dd if=/dev/urandom of="$state/boot.pack" bs=1 seek=4096 count=256 conv=notrunc status=none
}

boot_3() {
    nobody_else_suffers
    complains_once "boot\\.pack"
    check "nothing was replayed" grep -q '"outcome":"failed"' /run/headstart/replay-boot.json
    check "the boot was recorded" await 120 trace_of boot 2
    check "learning and planning succeed" systemctl start headstart-learn.service
    check "there is a pack again" test -s "$state/boot.pack"
    rm -rf "$state"
}

boot_4() {
    nobody_else_suffers
    quiet
    check "the boot was recorded" await 120 trace_of boot
    check "learning and planning succeed" systemctl start headstart-learn.service
    check "there is a pack again" test -s "$state/boot.pack"
    chattr +i "$state" "$state/traces"
}

boot_5() {
    nobody_else_suffers
    complains_once "traces|$state"
    chattr -i "$state" "$state/traces"
    echo "tmpfs $state tmpfs size=4k,mode=0700 0 0" >>/etc/fstab
}

boot_6() {
    nobody_else_suffers
    check "the state directory is small" mountpoint "$state"
    complains_once "No space left"
    sed -i '$d' /etc/fstab
}

boot_7() {
    a_boot_is_replayed
    check "the boot was recorded" await 120 trace_of boot 2
    check "learning and planning succeed" systemctl start headstart-learn.service
    check "headstart is not on the critical chain" not_on_critical_chain
}
