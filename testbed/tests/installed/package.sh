# The package is installed, installed over itself while an instance runs, removed and purged.
# What it must leave behind is written to $SPACE/test/*.txt for the test to judge.
source "$SPACE/test/machine.sh"
machine package
package=/run/test/$(basename "$SPACE"/test/*.deb)

on "dpkg -i $package"
on "dpkg -s v2x-node" | grep -x 'Status: install ok installed'
on "dpkg --verify v2x-node" > "$SPACE/test/harmed.txt"
on "dpkg -L v2x-node | tail -n +2 | xargs stat -c '%A %U:%G %n'" > "$SPACE/test/files.txt"
on "getent passwd v2x; getent group v2x" > "$SPACE/test/user.txt"
on "ls -A /var/lib/v2x /run/v2x" && exit 1

for program in obu rsu v2xctl v2xtrace; do
    test "$(on "command -v $program")" = "/usr/bin/$program"
    on "$program --version"
    # What the shell would offer behind `PROGRAM --h`.
    on "source /usr/share/bash-completion/completions/$program
        COMP_WORDS=($program --h) COMP_CWORD=1
        _$program $program --h $program
        printf '%s\n' \"\${COMPREPLY[@]}\" | grep -x -- --help"
    on "man -w $program | grep /usr/share/man/"
done
on "man --warnings -l \$(dpkg -L v2x-node | grep '/man/.*gz')" \
    2> "$SPACE/test/pages.txt" > "$SPACE/test/manual.txt"
on "systemd-analyze verify obu@car.service rsu@road.service" 2> "$SPACE/test/units.txt"

# An instance that runs takes the new program.
ip link add radio0 type veth peer name radio1
ip link set radio0 up
on "printf 'bind = \"radio0\"\n' > /etc/v2x/car.toml; systemctl enable --now obu@car"
before=$(on "cat /run/units/obu@car.pid")
on "dpkg -i $package"
after=$(on "cat /run/units/obu@car.pid")
test "$before" != "$after"
kill -0 "$after"
on "test -s /var/lib/v2x/obu-car.boots -a -S /run/v2x/obu0.sock"

# Removed it runs no more, and what was configured and counted is still there.
on "dpkg -r v2x-node"
! kill -0 "$after" 2> /dev/null
on "test ! -e /usr/bin/obu -a -e /etc/v2x/car.toml.example -a -e /var/lib/v2x/obu-car.boots"
on "dpkg -i $package"
on "systemctl start obu@car"
on "dpkg -r v2x-node"

# Purged, nothing is left but what the operator made, and the user: files may belong to it.
on "dpkg -P v2x-node"
on "! dpkg -s v2x-node"
(cd "$SPACE/package/upper" && find . -type f -o -type l) > "$SPACE/test/left.txt"
find "$root/run" -name '*v2x*' >> "$SPACE/test/left.txt"
