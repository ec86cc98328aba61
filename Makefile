# Builds, shows and checks the suite. docs/testing.md explains every check.

CARGO ?= cargo
# One set of build products for tests and the daemons they start: everything in this profile.
TEST_PROFILE := --profile test --locked

.PHONY: help demo test check setup

help:
	@echo "make demo    see it work: real daemons, multi-hop, fail-over, in under a minute"
	@echo "make test    all tests, also end to end with real daemons"
	@echo "make check   format, lints, documentation, benches once, oldest Rust version"
	@echo "make setup   install what these need, or say what is missing"

demo:
	@.ci/setup demo
	@$(CARGO) build --release --locked --quiet -p obu -p rsu -p testbed
	@$(CARGO) run --release --locked --quiet -p testbed -- demo

setup:
	@.ci/setup

check:
	@.ci/setup check
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p node_lib --no-default-features --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	$(CARGO) bench --workspace $(TEST_PROFILE) -- --test
	$(CARGO) test -p testbed --locked --test msrv

test:
	@.ci/setup test
	$(CARGO) build --workspace --bins $(TEST_PROFILE)
	$(CARGO) test --workspace --locked
