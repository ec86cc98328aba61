# Builds, shows and checks the suite. docs/testing.md explains every check.

CARGO ?= cargo
PROFILE ?= release
RELEASE := $${CARGO_TARGET_DIR:-target}/release

.PHONY: deb units portable help page demo corridor bench figures count structure soak restarts days fuzz test long mutants e2e check setup

help:
	@echo "make demo      see it work: real daemons, multi-hop, fail-over, in under a minute"
	@echo "make corridor  drive past five road-side units at three speeds, compare with the simulator"
	@echo "make bench     the data path against the kernel and a naive relay: a table in eight minutes"
	@echo "make figures   the simulated figures of the documentation again, into docs/figures/; half an hour; V2X_BOLOGNA=FILE"
	@echo "make soak      load the data path in every way there is, 1 GiB checked in each; up to half an hour"
	@echo "make restarts  end living daemons, kill -9 after 5 s, 45 s and 10 min, in 20 towns at once; a quarter of an hour"
	@echo "make days      a long life in ten minutes: everything that goes wrong, drawn from a seed; what must hold is watched"
	@echo "make page      the web page of living daemons and of a simulation in headless Chromium: pictures in target/page/"
	@echo "make test      all tests, also end to end with real daemons"
	@echo "make mutants   plant faults into the control planes, count those a test notices; SAMPLE=8 for every eighth"
	@echo "make fuzz      libFuzzer on every parser and on both nodes, a minute each; SECONDS_EACH=600"
	@echo "make count     lines of code and constants of the control planes, without tests and comments"
	@echo "make structure lines of each crate, its share, files in circles, long lines, repeated lines; AT=COMMIT"
	@echo "make long      the long form of the simulations: 100,000 towns, 10,000,000 faults; ten minutes"
	@echo "make e2e       end-to-end tests only; TEST=part_of_a_name for some of them"
	@echo "make check     format, lints, documentation, benches once, oldest Rust version"
	@echo "make portable  compile for aarch64, armv7 and i686; daemons without a C library (musl) run the demo's pings"
	@echo "make deb       a package of the daemons with units, manual pages and completions: target/debian/"
	@echo "make units     the package under a systemd of its own: its units start, restart, reload and stop; half a minute, needs root"
	@echo "make setup     install what these need, or say what is missing"

# What to install first, and what the testbed does with the real daemons.
define testbed
	@.ci/setup $(1)
	@$(CARGO) build --release --locked -p obu -p rsu -p testbed
	@$(RELEASE)/testbed $(2)
endef

demo:
	$(call testbed,demo,demo)

corridor:
	$(call testbed,demo,corridor)

# Leave the machine alone meanwhile. ROUNDS=5 for fewer; results go to target/bench/.
bench:
	$(call testbed,bench,bench $(if $(ROUNDS),--rounds $(ROUNDS)))

# V2X_BOLOGNA names the movements of the town, which are not part of the repository. FIGURES="town crowd" for some.
figures:
	@docs/figures.sh $(FIGURES)

# MIB=100 for less of it.
soak:
	$(call testbed,bench,soak $(if $(MIB),--mib $(MIB)))

# RUNS=5 for fewer towns.
restarts:
	$(call testbed,demo,restarts $(if $(RUNS),--runs $(RUNS)))

page:
	@.ci/setup page
	@$(CARGO) build --release --locked -p recorder -p simulator
	$(call testbed,page,page)

# MINUTES=60 for more of it, SEED=14 to see the same faults again.
days:
	$(call testbed,demo,days $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)))

# The manual pages and completions come from the flags themselves. PROFILE=sim builds in a fraction of the time.
deb:
	@.ci/setup deb
	$(CARGO) build --profile $(PROFILE) --locked -p obu -p rsu -p v2xctl -p recorder -p packaging
	$(CARGO) run --profile $(PROFILE) --locked -p packaging --bin pages -- packaging/pages
	$(CARGO) deb --locked --no-build --profile $(PROFILE) -p packaging

# The package under a systemd of its own; needs root.
units: deb
	.ci/units target/debian/v2x-node_*.deb

# CI takes the targets that its machine can have; this one fails if one cannot be had.
portable:
	@.ci/setup demo
	@.ci/portable

setup:
	@.ci/setup

# The last command names the whole workspace, so that what it builds is what `make test` goes on with.
check:
	@.ci/setup check
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p node_lib --no-default-features --locked -- -D warnings
	$(CARGO) clippy -p node_lib --no-default-features --features io --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	$(CARGO) bench --workspace --profile test --locked -- --test
	$(CARGO) test --workspace --locked --test dependencies

# Cargo builds everything before the first test runs, the daemons among it: their command-line
# tests need them. So the end-to-end tests meet the daemons of the same sources and profile.
test:
	@.ci/setup test
	$(CARGO) test --workspace --locked

# The simulations of `make test` at full size. Each prints what it did, and fails like a test.
long:
	V2X_SIM_RUNS=100000 V2X_SIM_FAULTS=100 $(CARGO) test --profile sim --locked -p sim --test sim random::whoever -- --nocapture
	V2X_SEARCH_NODES=4 V2X_SEARCH_DEPTH=2 V2X_SEARCH_FRAMES=1 $(CARGO) test --profile sim --locked -p sim --test sim search::no_run -- --nocapture
	V2X_SIM_RUNS=100 V2X_SIM_SECONDS=60 $(CARGO) test --profile sim --locked -p recorder --test recorder sim_replay:: -- --nocapture
	V2X_SIM_RUNS=2000 $(CARGO) test --profile sim --locked -p testbed --lib no_client_is_cut_off -- --nocapture
	V2X_RECONNECTS=1000 $(CARGO) test --profile sim --locked -p daemon --test control reconnects -- --nocapture
	RECORDER_KILLS=200 $(CARGO) test --profile sim --locked -p recorder --test process kill -- --nocapture
	V2X_DAY_HOURS=24 $(CARGO) test --profile sim --locked -p sim --test day -- --nocapture
	$(CARGO) build --locked -p obu -p rsu -p testbed
	FAULTS_ROUNDS=1000 $(CARGO) test --locked -p testbed --test testbed -- --exact faults::a_radio_that_flaps_leaks_nothing
	FAULTS_ROUNDS=100 $(CARGO) test --locked -p testbed --test testbed -- again_and_again
	FAULTS_SECONDS=60 $(CARGO) test --locked -p testbed --test testbed -- a_tap_that
	FAULTS_SECONDS=100 $(CARGO) test --locked -p testbed --test testbed -- a_shaped_radio
	DAY_HOURS=24 $(CARGO) test --locked -p testbed --test testbed -- --exact --nocapture day::daemons_hold_no_more_at_its_end
	$(CARGO) test --locked -p testbed --test bench
	$(CARGO) run --profile sim --locked -p simulator -- run examples/scenarios/corridor.toml --vary obu.speed_kmh=50,90,130 --seeds 100

# AREAS="rsu control" for some; docs/testing.md says more.
mutants:
	@SAMPLE=$(or $(SAMPLE),1) SHARD=$(or $(SHARD),0) .ci/mutants $(AREAS)

# Needs cargo-fuzz and a nightly toolchain. SECONDS_EACH=600 for more.
fuzz:
	@.ci/fuzz $(SECONDS_EACH)

count:
	@.ci/count

# AT=<commit> shows another state, to compare.
structure:
	@.ci/structure $(AT)

e2e:
	@.ci/setup test
	$(CARGO) test --workspace --locked --no-run
	$(CARGO) test -p testbed --locked --test testbed -- $(or $(TEST),e2e::)
