# nbspam: `make` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MAILS := corpora/mail

.DEFAULT_GOAL := help
.PHONY: help install demo test check pythons bench scripts chinese accuracy fuzz manual golden clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

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

test: $(VENV)/developing ## the fast tests, three to four minutes on two cores
	$(BIN)/python -m pytest -q -n 2 -m 'not slow' --hypothesis-profile quick

check: $(VENV)/developing ## all tests, formatting, types, an installation as users have it
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	sh tests/plain_install.sh $(PYTHON)
	$(BIN)/python -m pytest -q -n 2

pythons: ## the fast tests on the other supported Pythons of this machine
	sh tests/pythons.sh $(PYTHON) $(VERSIONS)

bench: $(VENV)/developing ## compare speed and memory with other programs; CORPUS=folder of ham/ and spam/
	$(BIN)/python benchmarks/speed.py $(CORPUS)
	$(BIN)/python benchmarks/serving_speed.py $(CORPUS)
	$(BIN)/python benchmarks/remote.py $(CORPUS)
	$(BIN)/python benchmarks/shards.py $(or $(CORPUS),corpora/mail)
	$(BIN)/python benchmarks/engines.py $(or $(CORPUS),corpora/mail) --size 200
	$(BIN)/python benchmarks/merging.py

scripts: $(VENV)/developing ## compare how fast mail in fourteen scripts and their charsets is read
	$(BIN)/python benchmarks/scripts.py $(HOW)

chinese: $(VENV)/developing ## compare speed with other programs on Chinese mail; REVIEWS=table of texts
	$(BIN)/python benchmarks/chinese.py $(REVIEWS) $(HOW)

accuracy: $(VENV)/developing ## compare errors with other programs; CORPUS=folder of ham/ and spam/ HOW=--online
	$(BIN)/python benchmarks/accuracy.py $(CORPUS) $(HOW)

fuzz: $(VENV)/developing ## throw a million hostile messages and tables at the program, in half an hour
	$(BIN)/python benchmarks/fuzz.py --jobs 2

attacks: $(VENV)/developing ## count the spams that pass when they are disguised; CORPUS=folder of ham/ and spam/
	$(BIN)/python benchmarks/attacks.py $(CORPUS) $(HOW)

manual: $(VENV)/developing ## write the man pages and the completions of shells anew
	$(BIN)/python tools/manual.py

golden: $(VENV)/developing ## rewrite the golden files and show what changed
	$(BIN)/python -m pytest -q tests/test_golden.py --rewrite-golden || true
	git diff --stat -- tests/golden

clean: ## remove everything that was built
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
