# Sourced: `machine NAME` makes a machine of its own in $root, on which what is written is written
# beside the real one and gone at the end; `on LINE` runs a line in it, as root.

machine() {
    local space=$SPACE/$1 place name
    root=$space/root
    mkdir -p "$space/upper" "$space/work" "$root"
    mount -t overlay -o "lowerdir=/,upperdir=$space/upper,workdir=$space/work" none "$root"
    mount -t proc none "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    for place in run tmp; do mount -t tmpfs -o mode=1777 none "$root/$place"; done
    chmod 755 "$root/run"
    mkdir -p "$root/run/systemd/system" "$root/run/lock" "$root/run/test"
    mount --bind "$SPACE/test" "$root/run/test"
    # As on stock Debian, where everybody may open it.
    mount -t tmpfs -o mode=0755 none "$root/dev/net"
    mknod -m 0666 "$root/dev/net/tun" c 10 200
    # Containers leave out manual pages.
    rm -f "$root"/etc/dpkg/dpkg.cfg.d/*
    # Looked up by nobody here, and it takes longer than the package.
    rm -f "$root/var/lib/man-db/auto-update"
    # What an operator has and this machine may not: each does here what it would do.
    for name in sudo make systemctl journalctl wireshark; do
        ln -sf "/run/test/stand_in.py" "$root/usr/bin/$name"
    done
    # Whoever built here may have left programs where they would be found first.
    rm -f "$root"/usr/local/bin/{obu,rsu,v2xctl,v2xtrace}
}

on() {
    chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root USER=root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        bash -euo pipefail -c "cd /tmp; $1"
}
