#!/usr/bin/env bash
# Makes docs/figures/NAME.txt again: what the commands behind the simulated figures of docs/performance.md print.
# Each is the same on every machine and in every run; so `git diff docs/figures` says what a change of the code
# has changed.
#
#   docs/figures.sh              all of them but the sweeps and worth, in half an hour on two cores; that is
#                                `make figures`
#   docs/figures.sh NAME...      some of them
#   docs/figures.sh --list       their names and commands; makes nothing
#
# The movements of bologna.toml are not part of the repository; the head of that file says where they come from.
# V2X_BOLOGNA names the file.
set -euo pipefail
cd "$(dirname "$0")/.."

scenarios=examples/scenarios
# A frame a second to a client of each vehicle and one from it.
talk=$(cat <<'END'
--set 'client=[{id="server",lan="city"},{id="tablet",behind="obus"}]' --set 'flow=[{from="tablet",to="server",frames_per_s=1,arrivals="even"},{from="server",to="tablet",frames_per_s=1,arrivals="even"}]'
END
)
# A tenth of what corridor.toml carries, so that one channel is enough for it.
tenth=$(cat <<'END'
--set 'flow=[{id="up",from="host",to="server",frames_per_s=25,arrivals="even"},{id="down",from="server",to="host",frames_per_s=12,arrivals="even"}]'
END
)
# Two relays, the better one of which falls silent at 100 s.
death=$(cat <<'END'
--set 'link=[{from="rsu1",to="left"},{from="rsu1",to="right"},{from="left",to="far"},{from="right",to="far",loss=0.2}]' --set 'fault=[{at="100s",what="isolate",node="left"}]' --set 'flow=[{from="laptop",to="server",frames_per_s=100,arrivals="even"},{from="server",to="laptop",frames_per_s=100,arrivals="even"}]'
END
)
# Twelve RSUs, each with few vehicles.
covered=$(
    printf "%s" "--set 'rsu=["
    for x in 300 700 1100 1500; do
        for y in 350 700 1050; do printf '{id="x%sy%s",position_m=[%s,%s],lan="city"},' $x $y $x $y; done
    done
    printf "]'"
)
town="$scenarios/bologna.toml --mobility \"\$V2X_BOLOGNA\""
# One test at a time, so that what they print stands in one order.
printed="-- --nocapture --test-threads 1"
node="cargo test --locked --profile sim -p sim --test sim"
simulator="cargo test --locked --profile sim -p simulator --test simulator"

# A line each: name, blank, command.
figures() {
    cat <<END
failover $node failover:: $printed
handover $node handover:: $printed
loss V2X_SIM_RUNS=1000 $node loss:: $printed
corridor-gaps $node corridor:: $printed
convergence V2X_SIM_RUNS=14 $node convergence:: $printed
crowd $node crowd:: $printed
busy-crowd $simulator busy_crowd:: $printed
silent-relay $simulator batman::a_silent_relay $printed
search $node search:: $printed
search-deep V2X_SEARCH_NODES=4 V2X_SEARCH_DEPTH=2 V2X_SEARCH_SLOTS=2 V2X_SEARCH_EVERY=200 $node search::no_run $printed
thresholds-loss V2X_SIM_THRESHOLDS='6000 80 1000,8000 80 1000,9000 80 1000,10000 80 1000,12000 80 1000,9000 70 1000,9000 90 1000' $node handover::thresholds_tried $printed --ignored
thresholds-signal V2X_SIM_THRESHOLDS='9000 80 60000 500 100 1000,9000 80 600 500 100 1000,9000 80 600 1000 300 2000,9000 80 900 500 100 1000,9000 80 1200 500 100 1000,9000 80 1200 500 500 1000,9000 80 1200 500 100 3000,9000 80 1800 500 100 1000' $node corridor::signal_thresholds_tried $printed --ignored
corridor v2xsim run $scenarios/corridor.toml --vary obu.speed_kmh=50,90,130 --vary radio.reports_signal=true,false --seeds 100
rules-corridor v2xsim run $scenarios/corridor.toml --vary obu.speed_kmh=50,90,130 --vary 'settings.obu.policy={},{prediction=false},{standby=false},{ranking="hops"}' --seeds 50
rules-diamond for n in 3 1 0; do v2xsim run $scenarios/diamond.toml --seeds 200 --set settings.obu.cached_candidates=\$n; done
rerouting-death for on in true false; do v2xsim run $scenarios/diamond.toml --seeds 200 --set settings.obu.policy.rerouting=\$on --set settings.rsu.rerouting=\$on; done
rules-platoon v2xsim run $scenarios/platoon.toml --seeds 20 --vary radio.loss=0,0.05,0.1,0.2 --vary 'settings.obu.policy.ranking="cost","hops"'
rules-suppression v2xsim run $town --set duration=60s --set mobility.pick=first --vary mobility.count=50,100,200,400 --vary settings.obu.policy.suppression=true,false
town v2xsim run $town --seed 1 --seeds 4
town-contention v2xsim run $town --seed 1 --seeds 4 --set radio.access=csma
busy-town v2xsim run $town --seed 1 --seeds 4 --set duration=120s $talk
busy-town-contention v2xsim run $town --seed 1 --seeds 4 --set duration=120s $talk --set radio.access=csma
covered-town v2xsim run $town --seeds 12 --set duration=30s --set warm_up=5s $covered $talk --set mobility.count=300 --set mobility.pick=first --vary 'radio={model="disk",range_m=300,access="csma"},{model="dual-slope",access="csma"}'
given-up v2xsim run $town --seed 1 --seeds 4 --set duration=60s $talk --set radio.access=csma --vary radio.reports_unacknowledged=false,true
given-up-fading v2xsim run $town --seed 1 --seeds 4 --set duration=60s $talk --set 'radio={model="dual-slope",shadowing=true,fading="nakagami-suburb"}' --set mobility.pick=first --vary mobility.count=50,100,150 --vary radio.reports_unacknowledged=false,true
full-town v2xsim run $town --seed 1 --seeds 3 $talk --set radio.access=csma
protocols-corridor v2xsim protocols $scenarios/corridor.toml --seeds 20 --set radio.access=csma $tenth
protocols-town v2xsim protocols $town --seeds 4 --set duration=60s --set radio.access=csma $talk
protocols-death v2xsim protocols $scenarios/diamond.toml --seeds 20 --set duration=120s --set warm_up=60s $death
sweep v2xsim sweep $town --scenes 8 --measured 30s --out target/sweep.json || [ \$? -eq 1 ]
sweep-without-rerouting v2xsim sweep $town --scenes 8 --measured 30s --kind busy --set settings.obu.policy.rerouting=false --set settings.rsu.rerouting=false --out target/sweep-without-rerouting.json || [ \$? -eq 1 ]
sweep-told v2xsim sweep $town --scenes 8 --measured 30s --kind busy --set radio.reports_unacknowledged=true --out target/sweep-told.json || [ \$? -eq 1 ]
sweep-ideal v2xsim sweep $town --scenes 8 --measured 30s --kind busy --nodes ideal-routing --out target/sweep-ideal.json
sweep-ideal-load for n in 2 4 8; do echo \$n frames a second; v2xsim sweep $town --scenes 8 --measured 10s --kind busy --nodes ideal-routing --set flow.frames_per_s=\$n --out target/sweep-load.json | grep -E '│.*(busy|frames lost  |delay p99)'; done
sweep-ideal-late for every in 300ms 1s 3s; do echo every \$every; v2xsim sweep $town --scenes 8 --measured 10s --kind busy --nodes ideal-routing --set settings.ideal_every=\$every --out target/sweep-late.json | grep -E '│.*(busy|frames lost  |delay p99)'; done
worth .ci/worth
protocols-growth for n in 40 80 160; do v2xsim protocols $town --nodes daemons,batman-model --seeds 1 --set duration=30s --set mobility.count=\$n; done
END
}

# Without frames of tables, what cargo and its tests say of themselves, and what depends on the machine.
figures_only() {
    sed -E -e 's/^test [a-z_0-9:]+ \.\.\. ?//' \
        -e '/^[╭╞╰]/d' -e '/ simulated in .* of processor time/d' \
        -e '/^(ok|ignored.*|running [0-9]+ tests?|test result: .*)?$/d'
}

make_figure() {
    local name=$1 command=$2 began=$SECONDS printed
    printed=$(bash -c "set -e; $command" | figures_only) || {
        echo "figures: $name: the command failed" >&2
        exit 1
    }
    [ -n "$printed" ] || { echo "figures: $name: the command printed nothing" >&2; exit 1; }
    printf '$ %s\n%s\n' "$command" "$printed" >"docs/figures/$name.txt"
    echo "$name: $((SECONDS - began)) s"
}

if [ "${1:-}" = --list ]; then
    figures
    exit
fi
for name; do
    grep -q "^$name " <<<"$(figures)" || { echo "figures: no figure is called $name; see --list" >&2; exit 2; }
done
chosen=$(figures | while read -r name command; do
    if [ $# -eq 0 ] && [[ $name != sweep* && $name != worth ]] || printf '%s\n' "$@" | grep -qx -- "$name"; then echo "$name $command"; fi
done)
if grep -qE 'V2X_BOLOGNA|^worth' <<<"$chosen" && [ ! -r "${V2X_BOLOGNA:-}" ]; then
    echo "figures: V2X_BOLOGNA must name the movements of the town; see the head of $scenarios/bologna.toml" >&2
    exit 2
fi
export V2X_BOLOGNA="${V2X_BOLOGNA:-}" PATH="${CARGO_TARGET_DIR:-$PWD/target}/sim:$PATH"
unset "${!V2X_SIM_@}" "${!V2X_SEARCH_@}"
cargo build --locked --profile sim -p simulator
mkdir -p docs/figures
while read -r name command; do make_figure "$name" "$command" </dev/null; done <<<"$chosen"
