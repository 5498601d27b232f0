# Two commands matter: `make demo` (the main job, from nothing) and `make test`. Each sets up what it needs.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
HOROVOD := $(VENV)/.horovod

# Tests start hundreds of processes: each would compile all modules again where this is set.
unexport PYTHONDONTWRITEBYTECODE

FRONT_END := jupyter_ext
FRONT_END_SOURCES := $(shell find $(FRONT_END)/src $(FRONT_END)/style $(FRONT_END)/schema $(FRONT_END)/jupyter-config \
	-type f) $(wildcard $(FRONT_END)/*.json) $(FRONT_END)/build-widget.mjs tools/build_hook.py

.PHONY: help setup demo test check quick-tests lab bench lint types openapi format clean front-end-check

help:
	@echo "make demo    run the quickstart notebook headless: in the kernel, on the cluster, and back"
	@echo "make test    all tests          make check   the quick ones, lint and types (under 2 minutes)"
	@echo "make lab     JupyterLab on notebooks/          make bench   speed ratios -> docs/performance.md"
	@echo "make setup   only the environment in .venv, with the JupyterLab extension built"
	@echo "make openapi the front end's types, after a change of the master's interface"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/setup.sh $(FRONT_END_SOURCES)
	@PYTHON="$(PYTHON)" VENV="$(VENV)" STAMP="$(STAMP)" sh tools/setup.sh
	@touch $(STAMP)

# Only the tests want it, and it takes minutes to build. All else works without it, so a build that fails is said once.
$(HOROVOD): $(STAMP) tools/horovod.sh
	@VENV="$(VENV)" sh tools/horovod.sh || echo "Horovod is not installed, for the reason above: its tests are skipped." \
		"To try again: VENV=$(VENV) sh tools/horovod.sh"
	@touch $(HOROVOD)

demo: setup
	$(BIN)/python tools/demo.py

test: setup $(HOROVOD) lint types front-end-check
	$(BIN)/python -m pytest tests -n 2 --dist loadfile --max-worker-restart 0

# Side by side, as much of it leaves a core idle; each part's output in one piece, where this make can do that.
check: setup $(FRONT_END)/node_modules
	@$(MAKE) --no-print-directory --jobs 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) \
		quick-tests lint types front-end-check

quick-tests: setup
	$(BIN)/python -m pytest tests -m "not slow" --hypothesis-profile quick -n 2 --dist loadfile

lab: setup
	$(BIN)/jupyter lab --notebook-dir notebooks

bench: setup
	$(BIN)/python -m pytest benchmarks -q -s -p no:cacheprovider --benchmark-disable-gc --benchmark-columns=median,iqr,rounds

lint: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# ESLint, Prettier and the TypeScript compiler, then Vitest.
front-end-check: setup $(FRONT_END)/node_modules
	cd $(FRONT_END) && npm run --silent lint
	cd $(FRONT_END) && npm run --silent test

$(FRONT_END)/node_modules:
	cd $(FRONT_END) && npm ci

openapi: setup $(FRONT_END)/node_modules
	$(BIN)/python tools/openapi.py
	cd $(FRONT_END) && npm run --silent types

format: setup
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .
	cd $(FRONT_END) && npm run --silent format

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	rm -rf $(FRONT_END)/node_modules $(FRONT_END)/lib $(FRONT_END)/labextension $(FRONT_END)/.built
	rm -f det_native/display/static/live.*
