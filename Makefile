# nbspam: `make` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MAILS := corpora/mail
# Tests keep their bytecode here: without it pytest would rewrite their assertions at every start.
PYTEST := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/.cache/pyc \
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help install demo test check tier stress pythons bench serving accuracy attacks \
	manual reference golden clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/developing: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

install: $(VENV)/installed ## make a virtual environment and install nbspam in it

demo: $(VENV)/installed ## train on embedded mail, evaluate on held-out mail, explain a verdict
	@sh benchmarks/demo.sh $(BIN)/nbspam $(MAILS)

test: $(VENV)/developing ## the fast tests, less than a minute on two cores
	$(PYTEST) -m 'not slow' --hypothesis-profile quick

check: $(VENV)/developing ## all tests, formatting, types, an installation as users have it
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	sh tests/plain_install.sh $(PYTHON)
	@# Half of the time of all tests is waiting for servers and clients.
	$(PYTEST) -n 4

tier: $(VENV)/developing ## measure all tests and rewrite tests/slow.txt, the list of slow ones
	$(PYTEST) --rewrite-tier --hypothesis-profile quick
	git diff --stat -- tests/slow.txt

stress: $(VENV)/developing ## hostile input, kills, damage, attacks and faults by the thousand, in an hour or two
	$(PYTEST) -o python_files='*.py' -o timeout=3600 tests/stress

pythons: ## the fast tests on the other supported Pythons of this machine
	sh tests/pythons.sh $(PYTHON) $(VERSIONS)

bench: $(VENV)/developing ## compare speed with other programs; CORPUS=folder of ham/ and spam/ HOW="--other CHECKOUT"
	$(BIN)/python benchmarks/speed.py $(CORPUS) $(HOW)

serving: $(VENV)/developing ## compare the server with spamd and rspamd; CORPUS=folder of ham/ and spam/
	$(BIN)/python benchmarks/serving_speed.py $(CORPUS) $(HOW)

accuracy: $(VENV)/developing ## compare errors with other programs; CORPUS=folder of ham/ and spam/ HOW="--online"
	$(BIN)/python benchmarks/accuracy.py $(CORPUS) $(HOW)

attacks: $(VENV)/developing ## count the spams that pass when they are disguised; CORPUS=folder of ham/ and spam/
	$(BIN)/python benchmarks/attacks.py $(CORPUS) $(HOW)

manual: $(VENV)/developing ## write the man pages and the completions of shells
	$(BIN)/python tools/manual.py

reference: $(VENV)/developing ## write the help of all commands into build/commands.md
	@mkdir -p build
	$(BIN)/python tools/manual.py --reference > build/commands.md

golden: $(VENV)/developing ## rewrite the golden files and show what changed
	$(BIN)/python -m pytest -q tests/test_golden.py --rewrite-golden || true
	git diff --stat -- tests/golden

clean: ## remove everything that was built
	rm -rf $(VENV) build .cache/pyc .hypothesis .pytest_cache .mypy_cache .ruff_cache
