# Two commands matter: `make demo` (the main job, from nothing) and `make test`. Each sets up what it needs.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo test check lab bench lint types format clean

help:
	@echo "make demo    run the quickstart notebook headless: in the kernel, on the cluster, and back"
	@echo "make test    all tests          make check   the quick ones, lint and types (under 2 minutes)"
	@echo "make lab     JupyterLab on notebooks/          make bench   speed ratios -> docs/performance.md"
	@echo "make setup   only the environment in .venv"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/setup.sh
	@touch $(STAMP)

demo: setup
	$(BIN)/python tools/demo.py

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests -n 2 --dist loadfile

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests -m "not slow" -n 2 --dist loadfile

lab: setup
	$(BIN)/jupyter lab --notebook-dir notebooks

bench: setup
	$(BIN)/python -m pytest benchmarks -q -s -p no:cacheprovider --benchmark-disable-gc --benchmark-columns=median,iqr,rounds

lint: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
