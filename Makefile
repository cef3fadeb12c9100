# polypath. `make` lists what there is.

# Without the job server of make, which a recipe cannot reach.
ALONE := env -u MAKEFLAGS
CARGO ?= $(ALONE) cargo
PYTEST := .venv/bin/python -m pytest
LAB := .venv-lab
# How long `make fuzz` runs its targets.
FUZZ_SECONDS ?= 30
# How many random networks `make quick` has.
QUICK_CASES ?= 1000
# The crates that are published, in the order of their dependencies.
CRATES := polypath-proto polypath-dtls polypath polypath-apps polypath-sim polypath-virtual polypath-ports polypath-cli
# Where the lock file may not change.
LOCKED := $(if $(filter true,$(CI)),--locked)
# What tests exercise: one set of crates for all of them, so that nothing is built twice with other features.
# maturin builds the Python module: optimised, and in CI with the profile of all tests, which shares what they have built.
PROFILE := $(if $(filter true,$(CI)),dev,release)
SHARED := $(if $(filter true,$(CI)),--features polypath-py/tested)
TESTED := --workspace --exclude polypath-py --exclude polypath-proto
BUILD_TESTED = $(CARGO) build $(LOCKED) $(TESTED) --all-targets
# The core's own tests run for seconds. Built for nothing else, and without optimisation, they are built four times as fast.
TEST_CORE = $(CARGO) test $(LOCKED) -p polypath-proto --config 'profile.test.package.polypath-proto.opt-level=0'
# The end-to-end tests, with these words for pytest.
pytest = if [ -x .venv/bin/python ]; then echo '$(PYTEST) -c tests/pytest.ini $(1)'; $(PYTEST) -c tests/pytest.ini $(1); \
	else echo "skipped: end-to-end tests (no .venv: scripts/setup.sh test)"; [ "$$CI" != true ]; fi

# What is measured on real sockets next to the kernel's TCP, anew: a part, and its program.
sockets = if [ "$$(id -u)" = 0 ]; then $(CARGO) build --release -p polypath-cli && rm -f docs/$(1)-sockets.tsv && \
	benches/$(2) $(SOCKETS); else echo 'skipped: $(1) on sockets (not root)'; fi

# Files are in UTF-8, whatever the locale; some tools do not run without a home.
export PYTHONUTF8 := 1
ifeq ($(HOME),)
export HOME := $(shell getent passwd "$$(id -u)" | cut -d : -f 6)
endif

.PHONY: help build demo test quick check deny test-rust test-e2e test-python test-clock differential policies blackout \
	interop programs fleet paths links bench fuzz clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the program, optimised: target/release/polypath
	@scripts/setup.sh build
	$(CARGO) build --release $(LOCKED) -p polypath-cli -p polypath-preload -p polypath-supervise

demo: ## a file over two paths, the one in use cut half way; under a minute
	@scripts/setup.sh build
	@scripts/demo.py

test: ## every test; installs the system packages they need where it may; a line for each lane at the end
	@scripts/lanes.py setup-check check-quick+setup test-rust+deny+wheel+check-slow:idle+fuzz-briefly:idle \
		test-e2e+test-python test-clock

quick: ## under two minutes once built: formats, lints, units, protocol, simulator, few random networks; not: docs, processes, Python, fuzzing
	@scripts/setup.sh build
	@scripts/lanes.py check-quick test-quick

check: check-quick check-slow ## formatting, lints, docs, the crates' layers, circles between modules, the length of files, words to avoid in comments

deny: ## licences, bans and sources of what polypath is built on; advisories where there is a database
	scripts/deny.sh

test-rust: ## the tests of the crates
	$(CARGO) test $(LOCKED) $(TESTED) --no-fail-fast || failed=1; $(TEST_CORE) --features ns2 || failed=1; exit $${failed:-0}

test-e2e: ## the tests of the program: real processes, namespaces, captures (see tests/)
	$(BUILD_TESTED)
	@$(call pytest,-m "not clock" tests)

test-clock: ## those of them that compare clock times, one after the other: nothing else should run meanwhile
	$(BUILD_TESTED)
	@$(call pytest,-m clock -n 0 tests)

# The lanes of `make test` and `make quick` that are no targets of their own. Those of `make quick` build what the others
# build, with the same features.
.PHONY: setup setup-check check-quick check-slow test-quick
setup:
	@scripts/setup.sh test

setup-check:
	@scripts/setup.sh check

check-quick:
	scripts/check-layers.py
	scripts/check-circles.py
	scripts/check-lengths.py
	scripts/check-english.py
	scripts/check-rfc-map.py
	$(CARGO) fmt --check
	$(CARGO) fmt --check --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --check --manifest-path benches/peers/quinn/Cargo.toml
	$(CARGO) clippy $(LOCKED) --workspace --all-targets -- -D warnings
	$(CARGO) clippy $(LOCKED) -p polypath-proto --no-default-features -- -D warnings  # without ns-2's sender

check-slow:
	$(TEST_CORE) --lib --quiet  # without ns-2's sender
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc $(LOCKED) --workspace --no-deps

test-quick:
	POLYPATH_CASES=$(QUICK_CASES) $(CARGO) test $(LOCKED) $(TESTED) --no-fail-fast --lib --bins \
		--test protocol --test conformance --test layer --test simulator --test virtual --test random_networks || failed=1; \
		$(TEST_CORE) --features ns2 --lib || failed=1; exit $${failed:-0}

test-python: ## the Python package: wheel, types, tests (see python/)
	@if [ -x $(LAB)/bin/python ]; then $(MAKE) --no-print-directory lab; \
	else echo "skipped: tests of the Python package (no $(LAB): scripts/setup.sh test)"; [ "$$CI" != true ]; fi

# These use the processors while other tests wait. The tests go first, but a busy machine must not starve these.
.PHONY: fuzz-briefly wheel
fuzz-briefly:
	$(ALONE) nice -n 10 scripts/fuzz.sh 20

wheel:
	@if [ -x $(LAB)/bin/maturin ]; then rm -f target/wheels/polypath-*.whl && cd python && \
		$(ALONE) nice -n 5 ../$(LAB)/bin/maturin build --profile $(PROFILE) $(SHARED) $(LOCKED) --out ../target/wheels; fi

.PHONY: lab installed own-policy
installed: wheel
	$(LAB)/bin/python -m pip install -q --disable-pip-version-check --force-reinstall --no-deps target/wheels/polypath-*.whl

.PHONY: figures recording docs
figures: ## the figure of the README and of the site, from a run in the simulator
	$(CARGO) build $(LOCKED) -p polypath-cli
	scripts/readme-figure.py

recording: ## records the demo as docs/figures/demo-light.svg and demo-dark.svg
	$(CARGO) build --release $(LOCKED) -p polypath-cli
	scripts/recording.py

docs: ## the site, in target/site: without warnings, links checked
	@[ -x .venv-docs/bin/mkdocs ] && cmp -s scripts/docs-requirements.txt .venv-docs/requirements.txt || { \
		python3 -m venv .venv-docs && .venv-docs/bin/python -m pip install -q --disable-pip-version-check \
		-r scripts/docs-requirements.txt && cp scripts/docs-requirements.txt .venv-docs/requirements.txt; }
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet

.PHONY: site newcomer installations targets deb install-c msrv features packages semver
# What a test in a clean root file system of Debian needs: root, and minutes.
clean_debian = scripts/setup.sh package && $(PYTEST) -c packaging/tests/pytest.ini packaging/tests/$(1)

site: docs ## opens every page of the site in Chromium, narrow and wide, light and dark: four minutes; SCREENSHOTS=folder keeps pictures
	@scripts/setup.sh site
	@cmp -s scripts/site-requirements.txt .venv-docs/site-requirements.txt || { \
		.venv-docs/bin/python -m pip install -q --disable-pip-version-check -r scripts/site-requirements.txt && \
		cp scripts/site-requirements.txt .venv-docs/site-requirements.txt; }
	.venv-docs/bin/python scripts/check-site.py $(if $(SCREENSHOTS),--screenshots $(SCREENSHOTS))

newcomer: ## the README's commands in a clean Debian, up to a file and a figure: under five minutes plus downloads, as root, on an idle machine
	@$(call clean_debian,test_newcomer.py)

installations: ## Debian package, static program, wheel, source distribution and container, each tried in a clean Debian, and a capture in a newer Wireshark: half an hour, as root
	$(CARGO) build $(LOCKED) -p polypath-cli
	@$(call clean_debian,test_installations.py packaging/tests/test_captures.py)

targets: ## compiles for Windows and macOS as far as Debian's packages allow: ten minutes, as root
	@$(call clean_debian,test_targets.py)

deb: ## a Debian package in target/debian: program, man pages, completions, systemd units
	packaging/deb.sh

install-c: ## the C library: libraries, headers and pkg-config file below PREFIX (/usr/local), LIBDIR, DESTDIR; LIBRARIES=folder of another build
	$(ALONE) packaging/install-c.sh $(if $(LIBRARIES),--libraries '$(LIBRARIES)')

packages: ## what `cargo publish` would upload of each crate, compiled from the packages alone; nothing is uploaded
	$(CARGO) publish --dry-run $(LOCKED) $(foreach crate,$(CRATES),-p $(crate))

msrv: ## compiles the program with the oldest Rust that Cargo.toml states (rustup toolchain install it)
	$(CARGO) +$(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) check --locked --target-dir target/msrv -p polypath-cli

features: ## compiles every combination of the crates' features
	$(CARGO) check $(LOCKED) -p polypath-proto --no-default-features
	$(CARGO) check $(LOCKED) -p polypath-proto --features ns2
	$(CARGO) check $(LOCKED) -p polypath-sim --no-default-features
	$(CARGO) check $(LOCKED) -p polypath-sim
	$(CARGO) check $(LOCKED) -p own-policy --no-default-features
	$(CARGO) check $(LOCKED) -p own-policy --no-default-features --features python

semver: ## the changes of the libraries' interfaces since the last release are allowed by its version (cargo install cargo-semver-checks)
	@tag=$$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || { echo 'no release to compare with'; exit 0; }; \
	for crate in $(filter-out polypath-cli,$(CRATES)); do $(CARGO) semver-checks --baseline-rev $$tag -p $$crate || exit 1; done

own-policy: ## the example's policies as a Python module, in target/own-policy (docs/own-policy.md)
	$(CARGO) build --profile $(PROFILE) $(LOCKED) -p own-policy --no-default-features --features python $(SHARED)
	@mkdir -p target/own-policy
	cp "$${CARGO_TARGET_DIR:-target}/$(PROFILE:dev=debug)/libown_policy.so" target/own-policy/own_policy.abi3.so

lab: installed own-policy
	$(BUILD_TESTED)
	$(LAB)/bin/ruff check tests benches scripts packaging
	cd python && ../$(LAB)/bin/ruff format --check . && ../$(LAB)/bin/ruff check . && ../$(LAB)/bin/mypy
	$(LAB)/bin/python -m mypy.stubtest --ignore-disjoint-bases --mypy-config-file python/stubtest.ini polypath._core
	POLYPATH_BIN="$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/polypath" $(LAB)/bin/python -m pytest -c python/pyproject.toml python/tests

differential: ## two hundred random loss scripts of every combination compared with ns-2, packet by packet
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory installed
	POLYPATH_SCRIPTS=200 $(LAB)/bin/python -m pytest -c python/pyproject.toml -s python/tests/test_ns2_differential.py

policies: ## the retransmission policies on real sockets at 3, 5 and 8 % loss, compared with the simulator: ten minutes
	@scripts/setup.sh build
	$(CARGO) build --release $(LOCKED) -p polypath-cli
	cd tests && POLYPATH="$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/polypath" ../.venv/bin/python policies_grid.py

blackout: ## the time without data after a cut, with the papers' constants, in simulator, emulator and namespaces: four minutes, as root; writes docs/failover.md
	@scripts/setup.sh test
	$(CARGO) build --release $(LOCKED) -p polypath-cli
	cd tests && POLYPATH="$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/polypath" ../.venv/bin/python blackout_grid.py

interop: ## all of the tests with other SCTP stacks: fifteen minutes; writes docs/interoperability.md
	@scripts/setup.sh test
	$(CARGO) build $(LOCKED) -p polypath-cli
	$(CARGO) build $(LOCKED) -p polypath --example peer
	POLYPATH_INTEROP=write $(PYTEST) -c tests/pytest.ini -n 0 tests/interop

# CASE=0x... (or a file) replays one; FIRST=0x... begins elsewhere; NS2=1 draws cases of the ns-2 profiles only.
programs: ## the SCTP programs of Debian under `polypath run`: ten minutes, as root; installs them; writes the table in docs/run.md
	@scripts/setup.sh programs
	$(CARGO) build $(LOCKED) -p polypath-cli -p polypath-preload -p polypath-supervise
	POLYPATH_PROGRAMS=write $(PYTEST) -c tests/pytest.ini -n 0 tests/programs tests/test_run.py

fleet: ## random networks: CASES of them, from a number on that follows from the commit; failures go to the corpus, minimised
	$(CARGO) run $(LOCKED) --profile fleet -p polypath-fleet -- $(if $(CASE),--replay $(CASE),\
		$(if $(CASES),--cases $(CASES)) $(if $(FIRST),--first $(FIRST)) $(if $(NS2),--ns2) $(if $(WORKERS),--workers $(WORKERS)))

paths: ## standstill, aggregation and shared bottlenecks of several paths in the simulator, and as root next to MPTCP on sockets; writes docs/paths.md
	$(CARGO) build --release $(LOCKED) -p polypath-sim --example multipath
	scripts/paths.py $(PATHS)
	@$(call sockets,paths,sockets.py paths)
	@$(call sockets,cuts,sockets.py cuts)

links: ## goodput, queues, retransmissions over a table of links in the simulator, and as root next to Linux TCP on sockets: two hours; writes docs/links.md
	@scripts/setup.sh build
	benches/links.py
	@$(call sockets,links,sockets.py links)
	@$(call sockets,shares,shares.py)

bench: ## speed next to ns-2, usrsctp, quinn and plain UDP; writes docs/performance.md
	@scripts/setup.sh bench
	benches/run.py

fuzz: ## the fuzz targets, all at once, for FUZZ_SECONDS (see fuzz/)
	@scripts/fuzz.sh $(FUZZ_SECONDS)

clean: ## everything that was built
	$(CARGO) clean
	rm -rf .venv .venv-lab .venv-docs
