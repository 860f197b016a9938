# One entry for everything. `make demo` and `make test` need nothing but Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: venv demo test lint types imports docs bench check clean format

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Aegis needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[ml]" --group dev
	touch $(STAMP)

test: venv
	$(BIN)/python -m pytest -n auto

lint: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: venv
	$(BIN)/mypy

imports: venv
	$(BIN)/lint-imports

check: lint types imports test

clean:
	rm -rf .venv build dist demo .bench
