# One entry for everything. `make demo` and `make test` need nothing but Python 3.11+ and make.
# `make demo` installs the core only; tests and checks install all extras.
PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.core
EXTRAS := .venv/.installed
SERVICE := .venv/.service
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
DEMO := demo
ADULT := --policy examples/adult/policy.yaml
comma := ,
# Engines whose tests run here; Spark is a large download and of no use without Java.
ENGINES := postgres,polars$(if $(shell command -v java 2>/dev/null),$(comma)spark)

.PHONY: help venv extras demo demo-service test core wheels lint format types imports check docs outputs site pictures bench fuzz mutants clean

help: ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

venv: $(CORE) ## Make .venv with the command `aegis`: the core, without extras.

extras: $(EXTRAS) ## Install all extras and the tools of the tests into .venv.

$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Aegis needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo "Installing Aegis into .venv, once: 650 MB, a minute or more"
	$(PYTHON) -m venv .venv
	$(INSTALL) "pip>=25.1"
	$(INSTALL) --editable .
	$(BIN)/python -m compileall -q src
	@touch $@

$(SERVICE): $(CORE)
	$(INSTALL) --editable ".[service]"
	@touch $@

$(EXTRAS): $(CORE)
	$(INSTALL) --editable ".[ml,dp,sign,service,excel,statistics,$(ENGINES)]" --group dev
	@touch $@

demo: venv ## Advise on and release UCI Adult; results in demo/.
	@mkdir -p $(DEMO)
	$(BIN)/aegis advise data/adult.parquet $(ADULT) -o $(DEMO)/best.yaml --report $(DEMO)/report.html --force
	$(BIN)/aegis apply data/adult.parquet $(ADULT) --configuration $(DEMO)/best.yaml -o $(DEMO)/masked.parquet --certificate $(DEMO)/certificate.json --force
	@echo
	@echo "The results are in $(DEMO)/: open $(DEMO)/report.html in a browser."
	@echo "The command is $(BIN)/aegis. To type only aegis, run this first: . $(BIN)/activate"

demo-service: $(SERVICE) ## Walk a request through catalog, agent and worker; results in demo/service.
	$(BIN)/python examples/service/walk.py $(DEMO)/service

test: extras ## Run the tests.
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

core: extras ## Run the core's own tests in a copy without the wings.
	$(BIN)/python -m tests.core_copy

wheels: extras ## Build wheel and source archive; install each with every Python from 3.11 to 3.14 that is here, and run it.
	$(BIN)/python -m tests.wheels $(PYTHONS)

lint: extras ## Check format and lint.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: extras ## Format, and fix what can be fixed.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: extras ## Check types, strictly.
	$(BIN)/mypy

imports: extras ## Check that rooms import only downward.
	$(BIN)/lint-imports

check: lint types imports test ## Everything that CI checks.

docs: extras ## Make the generated parts of the reference anew, and build the site, in a minute.
	$(BIN)/python -m aegis.cli.reference docs/reference/cli.md
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/figures.py
	$(BIN)/python tests/engines/engines_reference.py
	$(BIN)/python docs/notebook.py
	$(MAKE) site

outputs: extras ## Run the commands of all pages, and write what they print today; takes many minutes.
	$(BIN)/python docs/way.py
	$(BIN)/python docs/outputs.py

site: $(CORE) ## Build the documentation as a site with search, in site/; broken links and anchors fail it.
	$(INSTALL) --group site
	$(BIN)/zensical build --clean --strict

pictures: extras ## Take the README's pictures of the report and of a request again (Chromium must be installed), and draw its badges.
	$(BIN)/python docs/badges.py
	$(BIN)/python docs/pictures.py

bench: extras ## Measure speed and memory; results in .bench/.
	$(INSTALL) --group bench
	$(BIN)/python -m benchmarks

FUZZ ?= --inputs 100000 --releases 2000 --kills 300 --games 300 --faults

fuzz: extras ## Mutated inputs, rechecked releases, kills, games and faults, for hours; FUZZ="--inputs 1000" for less.
	$(BIN)/python -m tests.fuzz $(FUZZ)
	AEGIS_EXAMPLES=200 $(BIN)/python -m pytest -n auto -m hypothesis
	$(BIN)/python tests/service/kills.py 100 7
	$(BIN)/python tests/service/explore.py 50

mutants: extras ## Change the source in 300 small ways and list those that no test notices; MUTANTS="--number 30" for less.
	$(BIN)/python -m tests.mutants $(MUTANTS)

clean: ## Remove what make made.
	rm -rf .venv build dist $(DEMO) .bench .mutants site
