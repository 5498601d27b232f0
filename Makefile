# Two commands matter: `make demo` (the main job, from nothing) and `make test`. Each sets up what it needs.
# The tests are in lanes, by their markers: `make check` has those of 2 minutes, `make test` of 20, `make lanes` of an hour more,
# and `make soak` what is exhaustive. CONTRIBUTING.md tells which test belongs where.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
HOROVOD := $(VENV)/.horovod
# Another Python with another Keras, for a part of the tests; where there is none, they are skipped with a line.
VENV313 := .venv313
TRIED313 := $(VENV)/.python313
# Keras 3 on PyTorch, Python 3.11: made by hand, for a gigabyte.
VENV_TORCH := .venv-keras-torch
# A tool for `make audit` only: it and what it needs stay out of the environment that it looks at.
VENV_AUDIT := .venv-audit
PIP_AUDIT := 2.10.1
# One for `make mutants` only, for the same reason.
VENV_MUTANTS := .venv-mutants
COSMIC_RAY := 8.7.0

# Tests start hundreds of processes: each would compile all modules again where this is set.
unexport PYTHONDONTWRITEBYTECODE

# Processes of pytest. A test waits for other processes a third of its time.
WORKERS ?= 2
SPREAD := -n $(WORKERS) --dist loadfile --max-worker-restart 0
PYTEST := $(BIN)/python -m pytest tests $(SPREAD)
# What a landing waits for: one or two tests that fail run once more, alone.
LANE := tools/lane.py tests $(SPREAD)
CHECK := -m "not slow"
# Properties are tried with few examples here, others each time; `make soak` has thousands.
QUICK := -m "not long and not soak" --hypothesis-profile quick
LANES := -m "long and not soak" $(if $(PART),--part $(PART))
SOAK := -m "soak"
# `make lanes PART=2/8` runs a part of them: .ci/run has another part for each commit.
# What runs on Python 3.13 with Keras 3 too: in `make test`, and in `make lanes` the core and what trains.
PYTEST313 := $(SPREAD) -p no:cacheprovider
LANE313 := $(VENV313)/bin/python tools/lane.py $(SPREAD)
QUICK313 := tests/keras3 tests/notebooks/test_keras3_notebooks.py
CORE313 := tests/schema tests/search tests/storage tests/client tests/master tests/capture tests/test_facade.py \
	tests/test_imports.py tests/compat tests/experimental/test_fitted_environment.py
KERAS313 := tests/keras3 tests/heap/test_keras_objects.py tests/capture/test_watch_models.py tests/capture/test_watched_datasets.py tests/keras/test_keras_exact_resume.py tests/keras/test_callback_state.py tests/keras/test_fit_call.py tests/keras/test_loading_into.py \
	tests/experimental/test_local_keras.py \
	tests/end_to_end/test_keras_faults.py tests/end_to_end/test_other_python.py tests/end_to_end/test_keras3_cluster.py tests/end_to_end/test_keras_histories.py tests/journeys/test_keras_notebook.py tests/notebooks/test_keras3_notebooks.py
SOAK313 := $(KERAS313) tests/keras/test_trial.py tests/keras/test_callbacks.py
PATIENT := --timeout 7200 -o faulthandler_timeout=0

FRONT_END := jupyter_ext
# The types of the master's interface are made from its routes.
FRONT_END_SOURCES := $(shell find $(FRONT_END)/src $(FRONT_END)/style $(FRONT_END)/schema $(FRONT_END)/jupyter-config \
	-type f -not -path '*/generated/*') $(shell find det_native/schema det_native/master/api -name '*.py') tools/openapi.py $(wildcard $(FRONT_END)/*.json) $(FRONT_END)/build-widget.mjs $(FRONT_END)/build-page.mjs tools/build_hook.py

.PHONY: help setup python313 keras-torch demo test quick-lane quick-lane-313 lanes lanes-313 lanes-keras-torch soak soaking properties check quick-tests lab bench static lint types audit mutants \
	openapi docs format clean front-end-check

help:
	@echo "make demo    run the quickstart notebook headless: in the kernel, on the cluster, and back"
	@echo "make test    all features, lint and types (20 minutes)    make check   the quick part of it (2 minutes)"
	@echo "make lanes   longer tests (an hour)   make soak   exhaustive ones (hours)"
	@echo "make lab     JupyterLab on notebooks/          make bench   speed ratios -> docs/performance.md"
	@echo "make python313   Python 3.13 with Keras 3 in .venv313, for lanes-313, a part of make lanes"
	@echo "make keras-torch   Keras 3 on PyTorch in $(VENV_TORCH), for make lanes too"
	@echo "make audit   known vulnerabilities of the pinned dependencies, where the internet is"
	@echo "make mutants   changes in listed modules that their quick tests do not find (10 minutes, part of make soak)"
	@echo "make setup   only the environment in .venv, with the JupyterLab extension built"
	@echo "make docs    docs/api.md, docs/commands.md and the tables in docs/names, of the code as it is"
	@echo "make openapi only the front end's types of the master's interface; make setup makes them, too"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/setup.sh $(FRONT_END_SOURCES)
	@PYTHON="$(PYTHON)" VENV="$(VENV)" STAMP="$(STAMP)" sh tools/setup.sh
	@touch $(STAMP)

# Only the tests want it, and it takes minutes to build. All else works without it, so a build that fails is said once.
$(HOROVOD): $(STAMP) tools/horovod.sh
	@VENV="$(VENV)" sh tools/horovod.sh || echo "Horovod is not installed, for the reason above: its tests are skipped." \
		"To try again: VENV=$(VENV) sh tools/horovod.sh"
	@touch $(HOROVOD)

python313: $(TRIED313)

$(TRIED313): $(STAMP) constraints-3.13.txt tools/python313.txt tools/python313.sh
	@VENV313="$(VENV313)" sh tools/python313.sh
	@touch $(TRIED313)

keras-torch: setup
	@VENV_TORCH="$(VENV_TORCH)" PYTHON="$(PYTHON)" sh tools/keras_torch.sh

demo: setup
	$(BIN)/python tools/demo.py

# What needs no process of pytest is checked beside it.
test: setup $(HOROVOD) $(FRONT_END)/node_modules
	@$(MAKE) --no-print-directory --jobs 2 quick-lane static

quick-lane: setup $(HOROVOD) quick-lane-313
	$(BIN)/python $(LANE) $(QUICK)

quick-lane-313: setup $(TRIED313)
	@[ ! -e $(VENV313)/.installed ] || $(LANE313) $(QUICK313) $(QUICK)

lanes: setup $(HOROVOD) lanes-313 lanes-keras-torch
	$(BIN)/python $(LANE) $(LANES)

# The backend is fixed when Keras is imported: JAX has a run of its own.
lanes-313: setup $(TRIED313)
	@[ -e $(VENV313)/.installed ] || { echo "Python 3.13 is not there: its tests are skipped."; exit 0; }; \
	$(LANE313) $(CORE313) $(CHECK) --hypothesis-profile quick $(if $(PART),--part $(PART)) && \
	$(LANE313) $(KERAS313) $(QUICK) $(if $(PART),--part $(PART)) && \
	KERAS_BACKEND=jax $(LANE313) tests/keras3 $(QUICK)

lanes-keras-torch: setup
	@[ -e $(VENV_TORCH)/.installed ] || { echo "Keras 3 on PyTorch is not there (make keras-torch): its tests are skipped."; exit 0; }; \
	KERAS_BACKEND=torch $(VENV_TORCH)/bin/python -m pytest tests/keras3 tests/keras/test_keras_exact_resume.py $(PYTEST313) -m "not soak"

# What the tests note goes into the table of docs/reliability.md, however they end.
soak: export DET_FIGURES := $(CURDIR)/.soak-figures.jsonl
soak: setup
	@rm -f "$$DET_FIGURES"; $(MAKE) --no-print-directory --keep-going soaking properties mutants; ended=$$?; \
	$(BIN)/python tools/reliability.py "$$DET_FIGURES" && exit $$ended

soaking: setup $(HOROVOD) $(TRIED313)
	$(PYTEST) $(SOAK) $(PATIENT)
	@[ ! -e $(VENV313)/.installed ] || { $(VENV313)/bin/python -m pytest $(SOAK313) $(PYTEST313) $(PATIENT) && \
	KERAS_BACKEND=jax $(VENV313)/bin/python -m pytest tests/keras3 tests/keras/test_keras_exact_resume.py $(PYTEST313) $(PATIENT); }

# Tests of properties again, with ten thousand examples each where those are cheap.
properties: setup $(HOROVOD)
	$(PYTEST) -m "hypothesis and not soak" --hypothesis-profile soak $(PATIENT)

# Side by side, as much of it leaves a core idle; each part's output in one piece, where this make can do that.
TOGETHER := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
check: setup $(FRONT_END)/node_modules
	@$(MAKE) --no-print-directory --jobs 2 $(TOGETHER) quick-tests lint types front-end-check

static:
	@$(MAKE) --no-print-directory $(TOGETHER) lint types front-end-check

quick-tests: setup
	$(PYTEST) $(CHECK) --hypothesis-profile quick

lab: setup
	$(BIN)/jupyter lab --notebook-dir notebooks

bench: setup
	$(BIN)/python -m pytest benchmarks -q -s -p no:cacheprovider --benchmark-disable-gc --benchmark-columns=median,iqr,rounds

lint: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/python tools/merge_marks.py
	$(BIN)/python tools/sizes.py

types: setup
	$(BIN)/mypy

audit: $(VENV_AUDIT)/pip-audit-$(PIP_AUDIT)
	$(VENV_AUDIT)/bin/python tools/audit.py $(VENV_AUDIT)/bin/pip-audit

$(VENV_AUDIT)/pip-audit-$(PIP_AUDIT):
	$(PYTHON) -m venv --clear $(VENV_AUDIT)
	$(VENV_AUDIT)/bin/python -m pip install -q pip-audit==$(PIP_AUDIT)
	@touch $@

# By the tests of the listed modules, as they run in `make check`; CONTRIBUTING.md has the last figures.
mutants: setup
	@if $(MAKE) --no-print-directory $(VENV_MUTANTS)/cosmic-ray-$(COSMIC_RAY); \
	then $(VENV_MUTANTS)/bin/python tools/mutants.py $(BIN)/python $(MODULES); \
	else echo "cosmic-ray $(COSMIC_RAY) is not installed, for the reason above: no mutants are tried."; fi

$(VENV_MUTANTS)/cosmic-ray-$(COSMIC_RAY):
	$(PYTHON) -m venv --clear $(VENV_MUTANTS)
	$(VENV_MUTANTS)/bin/python -m pip install -q cosmic-ray==$(COSMIC_RAY)
	@touch $@

# ESLint, Prettier and the TypeScript compiler, then Vitest.
front-end-check: setup $(FRONT_END)/node_modules
	cd $(FRONT_END) && npm run --silent lint
	cd $(FRONT_END) && npm run --silent test

$(FRONT_END)/node_modules:
	cd $(FRONT_END) && npm ci

# What the build does first, without the rest of it: while the front end and the interface change together.
openapi: $(FRONT_END)/node_modules
	@[ -x $(BIN)/python ] || { echo "There is no $(BIN)/python: run make setup first, which makes these types, too." >&2; exit 1; }
	$(BIN)/python tools/openapi.py
	cd $(FRONT_END) && npm run --silent types

# Pages that are made of the code alone; git ignores them.
docs: setup
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python tools/api_page.py
	$(BIN)/python tools/command_page.py
	$(BIN)/python tools/documented_names.py
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python tools/determined_names.py

format: setup
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .
	cd $(FRONT_END) && npm run --silent format

clean:
	rm -rf $(VENV) $(VENV313) $(VENV_TORCH) $(VENV_AUDIT) $(VENV_MUTANTS) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	rm -rf $(FRONT_END)/node_modules $(FRONT_END)/lib $(FRONT_END)/labextension $(FRONT_END)/.built $(FRONT_END)/src/generated
	rm -f det_native/display/static/live.* docs/api.md docs/commands.md docs/names/*.md
