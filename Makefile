# Every developer command. `make demo` and `make test` do all the set-up they need.

PYTHON ?= python3
BIN := .venv/bin
# The native module is rebuilt when any of these changes.
NATIVE := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml
# Modules that a macro declares (`policies!`, `allocators!`, `ftls!`): cargo fmt does not find them.
LISTED := --edition 2024 $(wildcard crates/sim/src/pool/victim/*.rs crates/sim/src/pool/victim/*/*.rs crates/sim/src/pool/alloc/*.rs crates/sim/src/ftl/*.rs crates/sim/src/ftl/*/*.rs crates/sim/src/ftl/*/*/*.rs)

.PHONY: help demo setup test check check-rust check-python format test-rust test-python fuzz soak bench instructions web generate docs wheel pins clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: .venv/run.stamp  ## uFLIP on a simulated SSD of 2008 (Mtron): key figures on the terminal, report.html
	@rm -rf build/demo && mkdir -p build
	@$(BIN)/uflip run sim:mtron --scale quick --out build/demo
	@rm -f report.html
	@$(BIN)/uflip report build/demo -o report.html

setup: .venv/run.stamp  ## environment and native build; leaves .venv/bin/uflip

# Rust and Python run in parallel, as neither keeps two processors busy; their output is printed one after the other.
test:  ## all checks and tests; works in a fresh clone
	@$(PYTHON) tools/side_by_side.py "check-rust test-rust" "check-python test-python"

check: check-rust check-python  ## formatters, linters, types

check-rust:
	cargo fmt --all --check
	rustfmt --check $(LISTED)
	cargo clippy --workspace --all-targets --locked -q -- -D warnings

check-python: .venv/dev.stamp
	$(PYTHON) tools/check_commits.py
	$(BIN)/ruff check python tests benches tools docs
	$(BIN)/ruff format --check python tests benches tools docs
	$(BIN)/mypy
	$(BIN)/stubtest uflip._native --allowlist tests/stubtest-allowlist.txt --ignore-unused-allowlist

format: .venv/dev.stamp  ## run the formatters
	cargo fmt --all
	rustfmt $(LISTED)
	$(BIN)/ruff check --fix -q python tests benches tools docs
	$(BIN)/ruff format -q python tests benches tools docs

test-rust:
	cargo test --workspace --locked -q

# One worker more than processors: some tests wait for a disk, a server or a kill.
WORKERS ?= $(shell expr $$(nproc) + 1)

# Tests start hundreds of processes. With stored byte code each starts in a tenth of the time, so it is written
# before the first test, even if the environment forbids it. One thread of OpenBLAS: more would compete with the tests.
test-python .venv/byte-code.stamp: export PYTHONDONTWRITEBYTECODE =
test-python: export OPENBLAS_NUM_THREADS = 1
test-python: .venv/dev.stamp .venv/byte-code.stamp
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.venv/byte-code.stamp: requirements/run.txt requirements/dev.txt | .venv/dev.stamp
	@$(BIN)/python -m pytest -q --collect-only >/dev/null || true
	@touch $@

FUZZ_SECONDS ?= 20

fuzz: .venv/dev.stamp  ## every parser, native and Python, under libFuzzer, FUZZ_SECONDS each; needs a C++ compiler
	tools/fuzz.sh $(FUZZ_SECONDS)

SOAK_CASES ?= 20000
SOAK_SECONDS ?= 3600

soak: .venv/dev.stamp  ## long tests: property tests, ten million operations on every merging FTL, random devices, kills, mutated files and command lines, libFuzzer; a failure prints the seed
	PROPTEST_CASES=$(SOAK_CASES) cargo test --release --locked -q -p uflip-sim --lib
	cargo test --release --locked -q -p uflip-sim --lib ten_million -- --ignored --nocapture
	UFLIP_POWER_CUTS=$$((20 * $(SOAK_CASES))) UFLIP_POWER_SEED=$${UFLIP_SWARM_SEED:-$$(date +%s)} \
		cargo test --release --locked -q -p uflip-sim --lib wherever_power_is_cut -- --nocapture
	UFLIP_SWARM_CASES=$(SOAK_CASES) UFLIP_SWARM_SEED=$${UFLIP_SWARM_SEED:-$$(date +%s)} \
		cargo test --release --locked -q -p uflip-sim --test outside swarm:: -- --nocapture
	UFLIP_SOAK=1 cargo test --release --locked -q -p uflip-fuzz serve
	UFLIP_SOAK=1 $(BIN)/python -m pytest -q -o timeout=14400 tests/python/test_uflip_devices.py tests/python/test_faults.py tests/python/test_kills.py tests/python/test_site_kills.py tests/python/test_guard.py tests/python/test_serve_kills.py tests/python/test_serve_clients.py tests/python/test_queue_faults.py tests/python/test_executors.py tests/python/test_zones.py tests/python/test_storage_power_loss.py tests/python/test_pipeline_faults.py
	UFLIP_SOAK=1 $(BIN)/python -m pytest -q tests/python/test_hostile.py tests/python/test_mutations.py
	$(BIN)/python tests/python/campaign.py --seconds $(SOAK_SECONDS)
	tools/fuzz.sh $$(($(SOAK_SECONDS) / 6))

bench: .venv/dev.stamp  ## benchmarks of uflip against bare loops; writes build/bench.json
	cargo build --release --locked -q -p uflip-bench
	$(BIN)/python benches/bench.py

instructions:  ## instructions of a simulated write by part of the simulator; needs valgrind
	CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --release --locked -q -p uflip-bench
	$(PYTHON) benches/instructions.py

web:  ## build the explorer's page from web/ into the package; the only target that needs Node
	cd web && npm ci --silent && npm run --silent build

generate: .venv/dev.stamp  ## regenerate the command reference, the papers page, and the output of examples
	$(BIN)/python tools/gen_cli_reference.py
	$(BIN)/python tools/gen_papers.py
	$(BIN)/python tools/gen_schemas.py
	$(BIN)/python tools/gen_profile_keys.py
	$(BIN)/python tools/gen_causes.py
	$(BIN)/python tools/gen_drive_counters.py
	$(BIN)/python tools/gen_locations.py
	$(BIN)/python tools/gen_api_types.py
	$(BIN)/python tools/run_notebook.py --update docs/how-to/notebook.ipynb
	$(BIN)/python tools/doc_examples.py --update README.md docs/*.md docs/*/*.md

# Warnings are errors: a link without a target is one.
docs: .venv/docs.stamp  ## the documentation as a web site, build/docs/index.html; checks its links
	$(BIN)/sphinx-build -q -W --keep-going -d build/docs-cache -c docs . build/docs
	@echo "build/docs/index.html"

wheel: .venv/run.stamp  ## wheels (manylinux 2.28) and a source distribution; tries them in empty environments of each Python
	tools/wheel.sh

# Pins the packages in requirements/*.in and their dependencies, with hashes. A package has the same version in
# every file.
pins:  ## pin Python packages anew, with hashes
	@cd requirements && for each in dev run build docs site fuzz wheel; do \
	  test $$each = dev && fixed= || fixed="-c dev.txt"; \
	  ../$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
	    --custom-compile-command "make pins" $$fixed $$each.in -o $$each.txt || exit 1; \
	done

clean:  ## remove all build products
	rm -rf build target .venv report.html python/uflip/*.so

.venv/run.stamp: $(NATIVE) requirements/run.txt tools/setup.sh
	@PYTHON=$(PYTHON) tools/setup.sh run
	@touch $@

.venv/dev.stamp: $(NATIVE) requirements/run.txt requirements/dev.txt tools/setup.sh
	@PYTHON=$(PYTHON) tools/setup.sh dev
	@touch .venv/run.stamp $@

.venv/docs.stamp: .venv/dev.stamp requirements/docs.txt
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/docs.txt || \
	  $(BIN)/python -m pip install -q --require-hashes -r requirements/docs.txt
	@touch $@
