# Makes an encrypted copy of the running system on the target disk. The key lies in the initrd: what
# is tested is the way through the layers, not secrecy.
# shellcheck shell=bash disable=SC2154
boot_1() {
    set -e
    local disk=/dev/disk/by-id/virtio-hsvm-target root=/mnt
    install -d -m 0700 /etc/keys
    head -c 64 /dev/urandom >/etc/keys/root.key
    chmod 0600 /etc/keys/root.key
    cryptsetup luksFormat --batch-mode --pbkdf=pbkdf2 --pbkdf-force-iterations=1000 \
        --key-file=/etc/keys/root.key "$disk"
    cryptsetup open --key-file=/etc/keys/root.key "$disk" hsvm-crypt
    vgcreate --quiet hsvm /dev/mapper/hsvm-crypt
    lvcreate --quiet --yes --size=512M --name=home hsvm
    lvcreate --quiet --yes --extents=100%FREE --name=root hsvm
    mke2fs -q -t ext4 /dev/hsvm/root
    mke2fs -q -t ext4 /dev/hsvm/home
    mount /dev/hsvm/root "$root"
    mkdir "$root/home"
    mount /dev/hsvm/home "$root/home"
    # Mounts "/" once more, without the mounts below it.
    mkdir /run/hsvm/plain
    mount --bind / /run/hsvm/plain
    cp -a /run/hsvm/plain/. "$root"
    rm -rf "$root"/var/log/journal/*
    {
        echo "/dev/mapper/hsvm-root / ext4 defaults 0 1"
        echo "/dev/mapper/hsvm-home /home ext4 defaults 0 2"
    } >"$root/etc/fstab"
    echo "hsvm-crypt UUID=$(cryptsetup luksUUID "$disk") /etc/keys/root.key luks,initramfs" \
        >"$root/etc/crypttab"
    echo 'KEYFILE_PATTERN="/etc/keys/*.key"' >>"$root/etc/cryptsetup-initramfs/conf-hook"
    echo 'UMASK=0077' >"$root/etc/initramfs-tools/conf.d/hsvm"
    local d
    for d in dev proc sys run; do
        mount --rbind --make-rslave "/$d" "$root/$d"
    done
    chroot "$root" update-initramfs -u
    cp "$root"/boot/initrd.img-* "$out/initrd"
    # Everything is released, because a mapping in use keeps the machine from powering off.
    umount --recursive "$root"
    vgchange --quiet --activate n hsvm
    cryptsetup close hsvm-crypt
    sync
    ok "encrypted"
}
