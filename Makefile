# Every target sets itself up: only python3 (3.11 or newer) is needed beforehand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
TESTS  ?=
# Many tests wait: four at once keep two cores busy, of the slow ones five.
JOBS   ?= 4
test-all test-rest: JOBS = 5
LONGER ?= 10
PYTEST  = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.DEFAULT_GOAL := help
# Tests start thousands of processes: where this is set, each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: browser promtool help setup demo test test-all test-rest test-again torture check fix bench lock clean

help:  ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/dev.stamp  ## make .venv with everything tests and checks need

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unstuck needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	@echo "setting up $(VENV) (once)"
	@$(PIP) install --require-hashes -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	@echo "installing what tests and checks need (once)"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pytest --collect-only -qq >$(VENV)/collect.log || true  # compiles them; else each worker does
	@touch $@

browser:  ## install the browser that a few tests need (Debian, as root); without it those tests say so
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { echo "installing chromium (once)"; apt-get update -qq && apt-get install -y -qq chromium >$(VENV)/browser.log; } || true

# Out of the package, and nothing of it installed: it would start its server.
promtool: $(VENV)/dev.stamp  ## fetch Prometheus's tool that a few tests need (Debian); without it those tests say so
	@command -v promtool >/dev/null || [ -x $(BIN)/promtool ] || ! command -v apt-get >/dev/null || \
	  { echo "fetching promtool (once)"; cd $(VENV) && \
	    { apt-get -qq download prometheus || { apt-get -qq update && apt-get -qq download prometheus; } } && \
	    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >bin/promtool.new && \
	    chmod +x bin/promtool.new && mv bin/promtool.new bin/promtool; rm -f prometheus_*.deb; } 2>$(VENV)/promtool.log || true

demo: $(VENV)/run.stamp  ## run the product on SQLite with a living example
	@$(BIN)/python -m unstuck demo $(ARGS)

# tests/tiers.py says which test is in which tier.
test: $(VENV)/dev.stamp  ## run the tests of every commit (TESTS=path: those, whatever their tier; JOBS=n at once)
	@$(PYTEST) $(or $(TESTS),-m commit)

test-all: $(VENV)/dev.stamp browser promtool  ## run every test, the whole stories with real workers too
	@$(PYTEST) $(or $(TESTS),-m "not torture and not sample")

test-rest: $(VENV)/dev.stamp browser promtool  ## run what test-all runs and test does not
	@$(PYTEST) -m slow $(TESTS)

test-again: $(VENV)/dev.stamp  ## run what failed because the machine stood still (tests/support/standstill.py)
	@test -s $(VENV)/again.txt && xargs -d '\n' -a $(VENV)/again.txt $(PYTEST)

torture: $(VENV)/dev.stamp  ## run races and random stories LONGER=10 times as long, until you stop it
	@UNSTUCK_TEST_LONGER=$(LONGER) $(PYTEST) -m torture $(TESTS)

check: $(VENV)/dev.stamp  ## format, lint, types, import arrows, class names
	@$(BIN)/ruff format --check --quiet . || { echo "run: make fix"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache >$(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }
	@$(BIN)/python tests/class_names.py
	@echo "format, lint, types, import arrows and class names are in order"

fix: $(VENV)/dev.stamp  ## format and repair what can be repaired
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

bench: $(VENV)/dev.stamp  ## first figures beside peers (see bench/README.md)
	@$(BIN)/python -m bench $(ARGS)

lock: $(VENV)/dev.stamp  ## resolve requirements/*.in anew into hash-pinned *.txt
	@$(PIP) install uv
	@for set in run dev; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate --upgrade requirements/$$set.in -o requirements/$$set.txt; done

clean:  ## remove .venv, caches and demo data
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-data build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
