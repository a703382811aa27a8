# Every target sets up what it needs first; nothing has to be typed before it.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
# Compiled modules are kept: every process of a test run would otherwise compile all of them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help python setup demo test unit soak timings check format bench bench-peers docs lock

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## */\t/' | expand -t 12

setup: python ## .venv with the command .venv/bin/headgate, and the jars
	@$(PYTHON) tools/setup.py

python:
	@if [ -z "$(PYTHON)" ]; then echo "Headgate needs Python 3.11 or newer, and none was found on the PATH."; \
	echo "Install one (for example: apt-get install python3 python3-venv) and run make again."; exit 1; fi

demo: setup ## a whole world in one command, and what goes through it
	@$(BIN)/python examples/demo.py

test: setup ## every test, with the real services, which it starts itself
	@$(BIN)/python tools/run_tests.py

unit: setup ## the tests that need neither Java nor a service
	$(BIN)/pytest -m unit -n 2 --dist worksteal

# The long rounds of what `make test` tries once or twice. Each of them takes minutes.
soak: setup ## long rounds of kills, schema changes, random schemas and records
	HEADGATE_KILLS=20 HEADGATE_CYCLES=300 HEADGATE_SCHEMA_CHANGES=40 HEADGATE_CLUSTER_ROUNDS=20 HEADGATE_EXAMPLES=10 HEADGATE_APICURIO=full \
		HEADGATE_BAD_RECORDS=500000 \
		$(BIN)/pytest -m "soak or long" --override-ini timeout=3600

timings: setup ## every test, and what each module takes into tests/timings.txt
	@$(BIN)/python tools/run_tests.py --timings

check: setup docs ## lint, types, the rules of the house, dependencies, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

format: setup ## write the code in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## ratios against peers measured in the same run
	$(BIN)/python -m bench

bench-peers: setup ## Headgate beside Flink SQL and Debezium's JDBC sink, which it downloads (500 MB)
	$(BIN)/python -m bench.peers

docs: setup ## the documentation, warnings as errors
	$(BIN)/python -m tools.generate_docs --check
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

lock: python ## pin dependencies and jars anew
	@$(PYTHON) tools/setup.py --without-jars
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 --extra dev --no-emit-index-url \
		--no-emit-find-links --no-header --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	$(BIN)/python tools/lock_jars.py src/headgate/embedded/jars.lock
