# make demo: a tour on a small table.  make test: everything that must pass.  make test-browser: the explorer's page in
# Chromium.  make test-engines: Spark and Ray.  make test-wheel: the tests on the installed wheel.  make docs: the site,
# into build/docs/.  make bench: how to measure.  make clean.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# A stamp is newer than pyproject.toml if its extras are installed: a second call does not install again.
DEMO_STAMP := $(VENV)/.stamp-demo
TEST_STAMP := $(VENV)/.stamp-test
BROWSER_STAMP := $(VENV)/.stamp-test-browser
ENGINES_STAMP := $(VENV)/.stamp-test-engines
DOCS_STAMP := $(VENV)/.stamp-docs
RELEASE_STAMP := $(VENV)/.stamp-release
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

.PHONY: help demo check test test-browser test-engines test-numba test-wheel docs bench wheel release-check clean

help:
	@sed -n '1,3s/^# //p' Makefile

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[cli,explore,pandas,report]'
	@touch $@

$(TEST_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

$(BROWSER_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test-browser]'
	@touch $@

$(ENGINES_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test-engines]'
	@touch $@

$(DOCS_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

$(RELEASE_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[release]'
	@touch $@

demo: $(DEMO_STAMP)
	@$(BIN)/python examples/demo.py

check: $(TEST_STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Two processes share the kernels that either compiled. More processes would compile more of them at the same time.
WORKERS ?= 2

# Kernels that wheels would not bring fail the run: see the top of src/jointforest/runtime/signatures.txt.
test: check
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --check-signatures

ifeq ($(CHROMIUM),)
test-browser:
	@echo "The tests of the explorer's page need Chromium: apt install chromium, or CHROMIUM=/path/to/it. Not run."
else
test-browser: export CHROMIUM := $(CHROMIUM)
test-browser: $(BROWSER_STAMP)
	$(BIN)/python -m pytest -q tests/browser
endif

test-engines: $(ENGINES_STAMP)
	$(BIN)/python -m pytest -q tests/engines

# One environment for each series of numba that runtime/compile.py names.
NUMBAS = $(shell sed -n 's/^TESTED_RELEASES = (\(.*\))/\1/p' src/jointforest/runtime/compile.py | tr -d '",')

test-numba:
	@for series in $(NUMBAS); do \
	  $(PYTHON) -m venv build/numba-$$series && \
	  build/numba-$$series/bin/python -m pip install --quiet --editable '.[test]' "numba==$$series.*" && \
	  NUMBA_CACHE_DIR=build/numba-$$series/cache build/numba-$$series/bin/python -m pytest -q tests/runtime \
	    tests/models/box_forest/test_posterior.py tests/models/box_forest/test_sampling.py || exit 1; \
	done

docs: $(DOCS_STAMP)
	@rm -rf docs/reference/generated
	$(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html."

# A wheel with compiled kernels, and the source distribution, in dist/.
wheel: $(RELEASE_STAMP)
	$(BIN)/python tools/build_wheel.py

# The whole suite on the installed wheel, whose kernels are the only ones that are there at first. TESTS=tests/api: less.
TESTS ?= tests
test-wheel: wheel
	rm -rf build/test-wheel
	$(PYTHON) -m venv build/test-wheel
	build/test-wheel/bin/python -m pip install --quiet "$$(ls dist/*.whl)[test]"
	NUMBA_CACHE_DIR=$(CURDIR)/build/test-wheel/cache build/test-wheel/bin/python -m pytest -q -n $(WORKERS) --dist worksteal $(TESTS)

release-check: $(RELEASE_STAMP)
	$(BIN)/python tools/release_check.py

bench:
	@echo "Each benchmark is one command; it prints a table and writes JSON to benchmarks/results/."
	@echo "Install first: make test (or pip install -e '.[test]'), then:"
	@for f in benchmarks/[a-z]*.py; do [ -e "$$f" ] && echo "  $(BIN)/python $$f --help"; done; true

clean:
	rm -rf build dist docs/gallery docs/generated docs/reference/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f $(DEMO_STAMP) $(TEST_STAMP) $(BROWSER_STAMP) $(ENGINES_STAMP) $(DOCS_STAMP) $(RELEASE_STAMP)
