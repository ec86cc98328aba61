# For whoever is not root, and may neither overlay this machine nor become another user: what is in
# the package is listed and unpacked, and its programs do what the guide says of a laptop.
package=$(echo "$SPACE"/test/*.deb)
dpkg-deb -c "$package" | awk '{ sub("^0/0$", "root:root", $2); print $1, $2, substr($6, 2) }' \
    > "$SPACE/test/files.txt"
dpkg-deb -x "$package" "$SPACE/unpacked"
mkdir "$SPACE/bin"
ln -s "$SPACE/test/stand_in.py" "$SPACE/bin/sudo"
mount -t tmpfs none /tmp
cd /tmp
PATH=$SPACE/bin:$SPACE/unpacked/usr/bin:$PATH USER=root bash -euxo pipefail \
    "$SPACE/test/laptop.sh" < /dev/null > "$SPACE/test/laptop.txt" 2>&1 \
    || { cat "$SPACE/test/laptop.txt"; exit 1; }
