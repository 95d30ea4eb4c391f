# Everything runs in .venv, which is made on the first call. Needs Python 3.11.2+, pip, g++ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SANITIZED := .venv-sanitize
TSAN := .venv-tsan
CORE := CMakeLists.txt pyproject.toml constraints.txt $(wildcard native/*/*.cc native/*/*.h)
# Processes of a test run, and how pytest-xdist gives them their tests: make test PROCESSES=3 DIST=worksteal
PROCESSES ?= 2
DIST ?= loadfile
# The build uses cmake and ninja from PATH if they are there, and has pip bring them if not.
INSTALL := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test quick test-long test-browser test-arm64 chromium docs check lint types sanitize tsan fuzz wheel bench clean

help: ## Say what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

$(VENV)/.base: $(CORE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --editable '.[train,tensorflow-cpu,view]'
	@touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python $(INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(BIN)/python $(INSTALL) --editable '.[check]'
	@touch $@

$(VENV)/.release: $(VENV)/.test
	$(BIN)/python $(INSTALL) --editable '.[release]'
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/python $(INSTALL) --editable '.[docs]'
	@touch $@

$(VENV)/.bench: $(VENV)/.base
	$(BIN)/python $(INSTALL) --editable '.[bench]'
	@touch $@

demo: $(VENV)/.base ## From raw files to a trained model and a report: convert, inspect, train, evaluate, predict, export
	$(BIN)/penstock demo

test: $(VENV)/.test ## Run all tests, with the same examples of property tests in every run
	$(BIN)/python -m pytest -m 'not long' --numprocesses=$(PROCESSES) --dist=$(DIST)

quick: $(VENV)/.test ## Run the unit and property tests that need no framework, process or server: under two minutes
	$(BIN)/python -m pytest -m 'not heavy and not long' --numprocesses=$(PROCESSES) tests/unit tests/property

test-long: $(VENV)/.test ## Run the property tests with new random examples, and the campaigns that take hours
	$(BIN)/python -m pytest -m 'hypothesis or long' --hypothesis-profile=fresh --timeout=0
	$(MAKE) tsan

test-browser: $(VENV)/.test chromium ## Run the tests of the viewer and of reports in headless Chromium (installs Debian's if it is missing)
	PENSTOCK_BROWSER=required $(BIN)/python -m pytest tests/browser

chromium:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null && exit; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	  echo "chromium or chromedriver is missing: install both (on Debian, as root:" \
	    "apt-get install chromium chromium-driver)." >&2; \
	  exit 1; \
	fi; \
	apt-get update && apt-get install -y --no-install-recommends chromium chromium-driver

# Every page is read again, so that no warning of an earlier build is forgotten: warnings are errors.
docs: $(VENV)/.docs ## Build the documentation site in build/docs, with the outputs of its notebooks
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning docs build/docs
	@echo "The site: build/docs/index.html"

check: lint types sanitize ## Style, types, and the core under the sanitizers

lint: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/lint.py
	$(BIN)/clang-format --dry-run -Werror $(wildcard native/*/*.cc native/*/*.h)

types: $(VENV)/.check
	$(BIN)/mypy

# What attacks the core itself; the other tests of faults and laws have no bytes of the core in them.
ATTACKS := tests/unit/native $(wildcard tests/property/test_core_*.py) tests/property/test_dataset_values.py \
  $(wildcard tests/faults/test_wire_*.py) tests/faults/test_framing.py tests/faults/test_between_frames.py \
  tests/faults/test_compression_faults.py tests/faults/test_file_faults.py tests/faults/test_memory.py \
  tests/faults/test_policy.py tests/property/test_wire_protobuf.py tests/property/test_program.py \
  tests/property/test_png.py tests/unit/decode/test_png.py

# The core built with g++'s address and undefined-behaviour sanitizers: its fuzz targets over mutations of known
# inputs, then the tests that attack it through Python.
sanitize: $(SANITIZED)/.installed
	$(MAKE) -C native/fuzz standalone
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 PENSTOCK_SANITIZED=1 \
	$(SANITIZED)/bin/python -m pytest -m 'not long' $(ATTACKS)

$(SANITIZED)/.installed: $(CORE)
	$(PYTHON) -m venv $(SANITIZED)
	$(SANITIZED)/bin/python $(INSTALL) \
	  --config-settings=cmake.define.PENSTOCK_SANITIZE=ON \
	  --config-settings=cmake.define.PENSTOCK_WARNINGS_ARE_ERRORS=ON --config-settings=build-dir=build/sanitize \
	  . pytest pytest-timeout hypothesis protobuf pillow
	@touch $@

# The tests in which several threads use the core at once. Not those of mappings: they return from a signal inside a
# copy, which the sanitizer makes itself and does not return from. TensorFlow is in none of these: its own threads are
# not built for the sanitizer.
THREADED := -k thread --deselect tests/unit/native/test_mapping.py tests/unit/native tests/unit/decode/test_png.py \
  tests/unit/read/test_scatter.py tests/unit/read/test_shard.py tests/unit/test_dataset.py \
  tests/unit/batch/test_maker.py tests/faults/test_loader_threads.py

# Without randomized addresses: of those, the runtime of older compilers finds some in the way.
tsan: $(TSAN)/.installed ## The core built with the thread sanitizer, under the tests that share it between threads
	LD_PRELOAD="$$(g++ -print-file-name=libtsan.so)" TSAN_OPTIONS="exitcode=66" PENSTOCK_SANITIZED=1 \
	setarch -R $(TSAN)/bin/python -m pytest -m 'not long' $(THREADED)

$(TSAN)/.installed: $(CORE)
	$(PYTHON) -m venv $(TSAN)
	$(TSAN)/bin/python $(INSTALL) \
	  --config-settings=cmake.define.PENSTOCK_SANITIZE_THREADS=ON --config-settings=install.strip=false \
	  --config-settings=cmake.define.PENSTOCK_WARNINGS_ARE_ERRORS=ON --config-settings=build-dir=build/tsan \
	  . pytest pytest-timeout hypothesis protobuf pillow
	@touch $@

test-arm64: ## The core on ARM64, in emulation (installs Debian's cross compiler and qemu if they are missing)
	$(MAKE) -C native/arm64

fuzz: ## Fuzz the parsers with libFuzzer (installs Debian's clang if it is missing)
	$(MAKE) -C native/fuzz libfuzzer

# The tests install each of the files into an empty environment, outside this folder.
wheel: $(VENV)/.release ## Build the source archive and manylinux wheels into dist/, and try each in an empty environment
	$(BIN)/python .ci/wheels.py --python $(PYTHON)
	PENSTOCK_DIST=$(CURDIR)/dist $(BIN)/python -m pytest --timeout=3600 tests/integration/test_release_files.py

bench: $(VENV)/.bench ## Measure reading, writing, loading and images against TensorFlow, OpenCV and others
	$(BIN)/python benchmarks/read.py
	$(BIN)/python benchmarks/write.py
	$(BIN)/python benchmarks/wide.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/images.py
	$(BIN)/python benchmarks/scaling.py

clean: ## Remove what was built
	rm -rf $(VENV) $(SANITIZED) $(TSAN) build dist demo
