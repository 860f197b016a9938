# One entry for everything. `make demo` and `make test` need nothing but Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
DEMO := demo
ADULT := --policy examples/adult/policy.yaml
comma := ,
# Engines whose tests run here; Spark is a large download and of no use without Java.
ENGINES := postgres,polars$(if $(shell command -v java 2>/dev/null),$(comma)spark)

.PHONY: help venv demo demo-service test lint format types imports check docs bench fuzz clean

help: ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

venv: $(STAMP) ## Make .venv with the command `aegis` in it.

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Aegis needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[ml,dp,sign,service,excel,statistics,$(ENGINES)]" --group dev
	$(BIN)/python -m compileall -q src
	@touch $(STAMP)

demo: venv ## Advise on and release UCI Adult; results in demo/.
	@mkdir -p $(DEMO)
	$(BIN)/aegis advise data/adult.parquet $(ADULT) -o $(DEMO)/best.yaml --report $(DEMO)/report.html --force
	$(BIN)/aegis apply data/adult.parquet $(ADULT) --configuration $(DEMO)/best.yaml -o $(DEMO)/masked.parquet --certificate $(DEMO)/certificate.json --force

demo-service: venv ## Walk a request through catalog, agent and worker; results in demo/service.
	$(BIN)/python examples/service/walk.py $(DEMO)/service

test: venv ## Run the tests.
	$(BIN)/python -m pytest -n auto

lint: venv ## Check format and lint.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: venv ## Format, and fix what can be fixed.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: venv ## Check types, strictly.
	$(BIN)/mypy

imports: venv ## Check that rooms import only downward.
	$(BIN)/lint-imports

check: lint types imports test ## Everything that CI checks.

docs: venv ## Make the generated parts of the reference anew.
	$(BIN)/python -m aegis.cli.reference docs/reference/cli.md
	$(BIN)/python docs/generate.py

bench: venv ## Measure speed and memory; results in .bench/.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group bench
	$(BIN)/python -m benchmarks

FUZZ ?= --inputs 100000 --releases 2000 --kills 300 --faults

fuzz: venv ## Mutated inputs, rechecked releases, kills and faults, for hours; FUZZ="--inputs 1000" for less.
	$(BIN)/python -m tests.fuzz $(FUZZ)
	$(BIN)/python tests/service/kills.py 100 7
	$(BIN)/python tests/service/explore.py 50

clean: ## Remove what make made.
	rm -rf .venv build dist $(DEMO) .bench
