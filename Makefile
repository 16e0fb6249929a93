# Every target works from a clean clone, as root or not: it makes .venv first where it needs it.
# All packages come from the lock by pip; programs of the local cluster are built on first use.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Name one to use it: make PYTHON=/opt/python3.13/bin/python3 test
PYTHON :=
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)
BIN := .venv/bin
UV := 0.13.9
# Further arguments of the command: make demo ARGS=--help
ARGS :=
# Where this is set, each of the hundreds of processes that tests start would compile all modules.
unexport PYTHONDONTWRITEBYTECODE
STAGES := $(wildcard tests/unit tests/native tests/scenarios tests/integration)
BENCHMARKS := openb_130 free_nodes scheduler_throughput decision_core gang_decision queue_sizes preemption_cost kube_client interference vgpu_start vgpu_launch vgpu_memory vgpu_accuracy vgpu_server real_node_start eta stragglers cycles iteration_time gpu_sampling gpu_collectors profiler_cost history history_memory worker_room rebalancing_round agent_cost elastic_operator elastic_scaling

.PHONY: help
help: ## Show the targets
	@echo "make TARGET, with one of:"; echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r name text; do printf '  %-15s %s\n' "$$name" "$$text"; done

.PHONY: install
install: ## Make the virtual environment .venv from the lock; at once when nothing has changed
	@for python in $(PYTHONS); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
			exec "$$python" requirements/install.py; \
		fi; \
	done; \
	echo "Alnair needs Python 3.11 or newer and it was not found (tried: $(PYTHONS)):" \
		"install it (Debian 12, Ubuntu 24.04: apt-get install python3 python3-venv)," \
		"or say where it is: make PYTHON=/path/to/python3" >&2; exit 1

.PHONY: demo
demo: install ## Start a real cluster and place 2,000 pods of a production trace on it
	@$(BIN)/alnair demo $(ARGS)

# For two cores: tests of clusters wait for most of their time.
PROCESSES := 4
.PHONY: test
# In a fresh clone each process would compile all tests by itself: one does it, beside lint, where
# nothing is kept of another clone (.ci/run). One that dies ends the run, and its test is named:
# xdist would replace it, and then wait for ever.
test: install ## Lint, then all tests, in PROCESSES=4 at a time; stops after a stage that failed
	@test -d tests/__pycache__ -o -n "$$PYTHONPYCACHEPREFIX" || $(BIN)/python -m pytest --collect-only -qq $(STAGES) >/dev/null 2>&1 & \
		$(MAKE) -s lint programs && wait && \
		$(BIN)/python -m pytest -n $(PROCESSES) --max-worker-restart=0 --durations=10 $(STAGES) $(ARGS)

.PHONY: test-unit
test-unit: install ## Unit tests only: no processes, under 30 seconds
	@$(BIN)/python -m pytest tests/unit $(ARGS)

# Seconds for each fuzzer.
SECONDS := 60
.PHONY: test-native
test-native: install ## Native tests with ASan, UBSan, TSan, valgrind; fuzzers (SECONDS=60 each); 10^6 calls; an hour of lies
	@$(BIN)/python tests/native/thorough.py --seconds $(SECONDS) $(ARGS)

.PHONY: coverage-native
coverage-native: install ## Which lines of the C library the native tests reach; fails below 90 %
	@$(BIN)/python tests/native/lines_reached.py $(ARGS)

# Whether there is a GPU needs no packages; without network, take the bundle.
.PHONY: test-gpu
test-gpu: ## Sixteen tests on a real GPU, as a table; without one it says so and succeeds
	@if test -z "$$FAKEGPU_STATE" && python3 -B tests/gpu/run.py --look | grep '^skipped: '; then \
		exit 0; \
	fi; \
	$(MAKE) -s install && $(BIN)/python tests/gpu/run.py $(ARGS)

.PHONY: gpu-bundle
gpu-bundle: install ## The same tests as one folder for a machine with a GPU and no network
	@$(BIN)/python deploy/gpu_bundle.py $(ARGS)

C_FILES := find native tests/native/clients -name '*.[ch]' -print0
.PHONY: lint
lint: install ## Style (ruff, clang-format), types (mypy), layers (import-linter)
	@$(BIN)/mypy & types=$$!; \
		$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports && \
		$(C_FILES) | xargs -0 $(BIN)/clang-format --dry-run --Werror; rest=$$?; \
		wait $$types && exit $$rest

.PHONY: format
format: install ## Format the code and repair what ruff can repair
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(C_FILES) | xargs -0 $(BIN)/clang-format -i

.PHONY: coverage
coverage: install ## Which lines the unit tests and scenarios reach
	@$(BIN)/coverage run -m pytest $(filter-out tests/integration,$(STAGES)) $(ARGS)
	@$(BIN)/coverage report

.PHONY: programs
programs: install ## Build the programs of the local cluster, once (about 6 minutes; as root 11)
	@$(BIN)/python requirements/debian.py
	@$(BIN)/python -c 'from alnair.cli.progress import Display; from alnair.local import every_program; \
		every_program.prepare(Display())'

.PHONY: bench
bench: install ## Run all benchmarks, one after the other; each ends with a line of JSON
	@.venv/bin/python requirements/install.py bench
	@for name in $(BENCHMARKS); do \
		echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py || exit 1; \
	done

.PHONY: bench-placement
bench-placement: install ## Measure placement whole, and write docs/concepts/placement.md anew (20 minutes on two quiet cores)
	@.venv/bin/python requirements/install.py bench
	@$(BIN)/python benchmarks/placement_suite.py --out build/placement $(ARGS)

.PHONY: generate
generate: install ## Write generated files anew: CRD manifests, the CLI reference
	@$(BIN)/python docs/generate.py

.PHONY: wheel
wheel: install ## Build the wheels into dist/: the pure one, and with the C library for both processors
	@$(BIN)/python deploy/wheels.py

.PHONY: images
images: install ## Build the container images, once per commit (as root, 2 minutes); prints their names and sizes
	@$(BIN)/python deploy/images/build.py $(ARGS)

.PHONY: torch-image
torch-image: install ## Build the image for trainings with PyTorch, once (1 minute); CLUSTER=NAME: for its real node
	@$(BIN)/python deploy/images/training.py torch $(if $(CLUSTER),--cluster $(CLUSTER)) $(ARGS)

.PHONY: horovod-image
horovod-image: install ## Build the image for trainings with Horovod, once (as root, 2 minutes); CLUSTER=NAME: for its real node
	@$(BIN)/python deploy/images/training.py horovod $(if $(CLUSTER),--cluster $(CLUSTER)) $(ARGS)

# Some of those of tests/record_requests.py; empty: all, anew.
PARTS :=
.PHONY: record-requests
record-requests: install ## Note anew what components ask the API server for, to which rights are held (20 min)
	@PYTHONPATH=tests $(BIN)/python tests/record_requests.py $(PARTS)

PROTOS := src/alnair/node/kubelet/api
.PHONY: protos
protos: install ## Generate the messages of the kubelet from their descriptions
	@$(BIN)/python -m grpc_tools.protoc -I $(PROTOS) --python_out=$(PROTOS) --pyi_out=$(PROTOS) $(PROTOS)/*.proto

.PHONY: lock
lock: install ## Resolve the dependencies anew; the locks name no index
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
	@lock() { \
		name=$$1; shift; \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-annotate --no-emit-index-url --no-emit-find-links \
			--custom-compile-command "make lock" --output-file requirements/$$name.txt "$$@"; \
	}; \
	lock dev --extra all --group dev pyproject.toml && \
	lock bench --extra all --group bench pyproject.toml && \
	lock build --group build && \
	lock image-alnair --extra history --constraints requirements/dev.txt pyproject.toml && \
	lock image-alnair-agent --extra agent --constraints requirements/dev.txt pyproject.toml

.PHONY: clean
clean: ## Remove the virtual environment and all caches of this folder
	@rm -rf .venv dist build .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "clean; clusters go on running (alnair status, alnair down), and built programs and"
	@echo "wheels stay in the cache folder (make clean-cache removes them)"

.PHONY: clean-cache
clean-cache: ## Remove built programs and wheels from the cache folder
	@cache="$${ALNAIR_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/alnair}"; \
		for name in bin build go images logs native own-images tools training-images wheels zig; do \
			rm -rf "$$cache/$$name"; \
		done; \
		echo "removed from $$cache"
