# Commands for development: `make help` lists them. Every target does its own set-up, on a bare
# machine too.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Hundreds of processes import the same modules: without their bytecode in __pycache__ the tests take
# half as much CPU again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK_FOR := --python-version 3.11 --no-header --quiet
# Of the GPU image: the newest that has run on GPUs with this worker.
VLLM := 0.26.0
COMPOSE := docker compose --file deploy/compose.yaml
# Links are cut in network namespaces: Linux, and root with its rights. Elsewhere that test is left
# out, and pytest says so ("deselected").
NETNS = ip netns add dragoman-$$$$ && ip netns del dragoman-$$$$
NO_LINKS = $(shell ($(NETNS)) 2>/dev/null || echo "and not netns")
# Likewise limits of memory, by a control group of version 1 or 2.
MEMCG = PYTHONPATH=tests $(BIN)/python -m support.processes.memory_limit
NO_LIMITS = $(shell $(MEMCG) 2>/dev/null || echo "and not memcg")

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- the two commands of the README ---------------------------------------------------------------

demo: install ## Translate the samples on this machine: embedded Kafka and Redis, vLLM on the CPU
	@rm -rf build/demo
	@$(BIN)/dragoman-demo --out build/demo $(ARGS)

test: install services ## Run every test, on a real Kafka, Redis and vLLM; a skipped test is a failure
	DRAGOMAN_NO_SKIPS=1 $(BIN)/pytest -n 5 --durations=15 -m "not gpu $(NO_LINKS) $(NO_LIMITS)" $(ARGS)

# --- development ----------------------------------------------------------------------------------

install: $(VENV)/.installed ## Make .venv: the project, the development tools and vLLM for CPUs

# Stamps make these no-ops until the lock, or the project's metadata, changes.
$(VENV)/.synced: requirements/cpu.lock
	@requirements/check-python.sh "$(PYTHON)"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@echo "Installing what requirements/cpu.lock lists (6 GB, mostly torch; once, 1-4 minutes) ..."
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements/cpu.lock
	@echo "Installed $$(grep -c '^[a-z].*==' requirements/cpu.lock) packages into $(VENV)."
	@touch $@

$(VENV)/.installed: $(VENV)/.synced pyproject.toml
	@$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --editable .
	@touch $@

services: ## Install redis-server, Java, Maven, kcat, gettext, promtool and Go where they are missing (Debian, as root), or say how
	@tests/support/system-packages.sh

check: install ## Format, lint, types, import contracts: what a commit must pass
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target style pyright mypy imports

style: install
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/rumdl check --quiet $$(git ls-files '*.md' ':!tests/data')

mypy pyright: install
	$(BIN)/$@

imports: install
	$(BIN)/lint-imports

docs: install ## Build the site into build/site; a dead link is a failure. Uses no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

unit: install ## Run the unit tests alone, without services
	$(BIN)/pytest -q -n 2 tests/unit $(ARGS)

chaos: install services ## Many seeded storms with odd records and poison (ARGS="--seeds 1-30 --jobs 4500")
	PYTHONPATH=tests $(BIN)/python tests/chaos/run.py $(ARGS)

odd: install services ## Every kind of odd record beside bystanders, and the table (ARGS="--out odd.md")
	PYTHONPATH=tests $(BIN)/python tests/chaos/run_odd.py $(ARGS)

fuzz: install services ## Random records beside bystanders (ARGS="--minutes 60 --seed 7 --out fuzz.md")
	PYTHONPATH=tests $(BIN)/python tests/chaos/run_fuzz.py $(ARGS)

soak: install services ## One storm of an hour, and what grows meanwhile (ARGS="--minutes 60")
	PYTHONPATH=tests $(BIN)/python tests/chaos/run.py --minutes 60 --rate 40 --latency 2 $(ARGS)

fmt: install ## Format and fix what ruff and rumdl can fix; write the reference tables
	$(BIN)/python .ci/reference.py
	$(BIN)/python .ci/dashboards.py
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/rumdl check --fix $$(git ls-files '*.md' ':!tests/data')

lock: install ## Resolve requirements/*.lock from pyproject.toml (ARGS=--upgrade: newest versions)
	$(BIN)/uv pip compile $(LOCK_FOR) pyproject.toml --extra echo --extra openai --extra box --extra documents --extra parquet --extra serve --extra otel --extra msk \
		--group dev --group deploy --group cpu-engine $(ARGS) -o requirements/cpu.lock >/dev/null
	@# What users install, in the versions that the tests ran with, and with hashes.
	$(BIN)/uv pip compile $(LOCK_FOR) --generate-hashes pyproject.toml \
		--constraint requirements/cpu.lock -o requirements/client.lock >/dev/null
	@for extra in echo openai documents parquet serve otel msk box; do \
		$(BIN)/uv pip compile $(LOCK_FOR) --generate-hashes pyproject.toml --extra $$extra \
			--constraint requirements/cpu.lock -o requirements/$$extra.lock >/dev/null; \
	done
	@# The GPU image: its Python, the vLLM that has run on GPUs, and CUDA's torch, which [tool.uv] replaces for CPUs.
	@echo "vllm==$(VLLM)" | $(BIN)/uv pip compile --no-config --no-header --quiet --generate-hashes --python-version 3.12 \
		--python-platform x86_64-manylinux_2_28 pyproject.toml --extra worker --extra otel --extra msk \
		--constraint - -o requirements/worker.lock >/dev/null

release: install ## Build what a release publishes into dist/; uploads nothing
	@.ci/release

law: install ## An answer that changes nothing changes no byte, over checkouts (PROJECTS=DIR ARGS="--refused 9")
	@test -n "$(PROJECTS)" || { echo "name a folder of checkouts: make law PROJECTS=DIR" >&2; exit 2; }
	@$(BIN)/python benchmarks/documents/law.py $(PROJECTS) $(ARGS)

gateway-suites: install services ## Others' test suites against the gateway (DEEPL_PYTHON=DIR DEEPL_NODE=DIR LIBRETRANSLATE=DIR: checkouts; DEEPL_OPENAPI=FILE)
	@test -n "$(DEEPL_PYTHON)$(DEEPL_NODE)$(LIBRETRANSLATE)$(DEEPL_OPENAPI)" || { echo "name checkouts: make gateway-suites DEEPL_PYTHON=DIR DEEPL_NODE=DIR LIBRETRANSLATE=DIR DEEPL_OPENAPI=FILE" >&2; exit 2; }
	PYTHONPATH=tests $(BIN)/python tests/gateway/run_suites.py $(if $(DEEPL_PYTHON),--python $(DEEPL_PYTHON)) $(if $(DEEPL_NODE),--node $(DEEPL_NODE)) $(if $(LIBRETRANSLATE),--libretranslate $(LIBRETRANSLATE)) $(if $(DEEPL_OPENAPI),--openapi $(DEEPL_OPENAPI))

pages-suites: install services ## Build and run the programs of the pages for Java and Node (needs Maven, Node and their registries)
	PYTHONPATH=tests $(BIN)/python tests/pages/run.py

pictures: install ## Draw the README's pictures anew, light and dark (needs chromium for the review's; ARGS="--only demo")
	@$(BIN)/python .ci/pictures.py $(ARGS)

mutants: install services ## Break the code in small ways: a test must turn red for each (ARGS="--jobs 2")
	PYTHONPATH=tests $(BIN)/python tests/mutants/run.py $(ARGS)

speed-beside: install services ## Speed of this tree to that of a commit, as ratios (COMMIT=sha ROUNDS=3 JOBS=30000 ARGS="--json")
	@test -n "$(COMMIT)" || { echo "name the commit to compare with: make speed-beside COMMIT=sha" >&2; exit 2; }
	@$(BIN)/python benchmarks/beside/run.py "$(COMMIT)" $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JOBS),--jobs $(JOBS)) $(ARGS)

vllm-names: install ## List the names of vLLM that the worker's patches need (WHEELS="vllm-0.34.0-*.whl"; none: the installed)
	@$(BIN)/python .ci/vllm_names.py $(WHEELS)

clean: ## Remove caches and build outputs; .venv stays
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

# --- containers -----------------------------------------------------------------------------------

compose-up: ## Start Kafka, Redis, Prometheus, Grafana and a worker without GPU in containers (deploy/compose.yaml)
	@$(COMPOSE) version >/dev/null 2>&1 || { echo "make compose-up needs Docker with its plugin compose" >&2; exit 1; }
	$(COMPOSE) --profile echo up --build --detach

compose-down: ## Stop the containers of `make compose-up`; their volumes stay
	$(COMPOSE) --profile echo --profile gpu down

.PHONY: help demo test install services check style mypy pyright imports docs unit chaos odd fuzz soak fmt lock release gateway-suites pages-suites pictures mutants speed-beside vllm-names clean compose-up compose-down
