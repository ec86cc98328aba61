# What docs/operating.md says is done: at a road side and in a vehicle, whose radios hear each
# other, and on a laptop without a radio, for which the machine of the vehicle serves once more.
source "$SPACE/test/machine.sh"
for place in road car laptop; do ip netns add "$place"; done
ip link add wlan0 netns road type veth peer name wlan0 netns car
for place in road car; do ip -n "$place" link set wlan0 up; done

walk() {
    nsenter --net="/run/netns/$1" bash -euo pipefail -c "source '$SPACE/test/machine.sh'
        root='$root'; on 'bash -euxo pipefail /run/test/$1.sh'" \
        < /dev/null > "$SPACE/test/$1.txt" 2>&1 || { cat "$SPACE/test/$1.txt"; exit 1; }
}

for place in road car; do
    machine "$place"
    walk "$place"
    for unit in "$root"/run/units/*.pid; do
        cat "/proc/$(cat "$unit")/status" > "$SPACE/test/$(basename "$unit" .pid).status"
    done
done
on "systemctl stop obu@car; rm -r /run/v2x drive.pcapng"
walk laptop
