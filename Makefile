# The commands of daily work. Each first installs missing packages (see ./bootstrap).

CARGO ?= cargo
# The program of `make run`, its sizes, and further arguments of tc-run, or of `make bench BASE=..`.
EXAMPLE ?= examples/tc/mlp3.tc
SIZES ?= B=128,N=128,O=64,P=32,Q=2
ARGS ?=
# Number of random programs of `make random`.
PROGRAMS ?= 10000
# Number of random index maps of `make random-maps`.
MAPS ?= 1000000
# Number of random systems of shape equations of `make random-systems`, per kind.
SYSTEMS ?= 100000
# Target of `make fuzz` (map, constraints), and its time limit in seconds.
TARGET ?= map
SECONDS ?= 60

# Tests and benchmarks compile their programs.
test random ptxas bench bench-index bench-hlo temporaries: export TC_CACHE := off

.PHONY: help setup run test random random-maps random-systems fuzz math-accuracy ptxas lint docs bench bench-index bench-hlo temporaries

help:
	@echo 'make run      infer ranges, compile and run an example, check and time it (EXAMPLE=, SIZES=, ARGS=)'
	@echo 'make run FUSED=1   also print the fused IR of the example'
	@echo 'make test     all tests: units, properties, FileCheck, conformance'
	@echo 'make random   compare compiled random TC, imap, linalg, HLO and TML programs with interpreters, 10000 of each (PROGRAMS=)'
	@echo 'make random-maps   compare a million random index maps with enumeration of their domains (MAPS=)'
	@echo 'make random-systems   solve random equations between Axon shapes, 100000 of each kind (SYSTEMS=)'
	@echo 'make fuzz     fuzz the parsers of index maps or constraints with libFuzzer (TARGET=, SECONDS=)'
	@echo 'make math-accuracy   check the built-in functions in single precision, for all floats'
	@echo 'make ptxas    assemble the kernels of the corpus of HLO, the examples and the tests of linalg for every GPU'
	@echo 'make lint     check formatting, clippy and rustdoc; warnings are errors'
	@echo 'make docs     regenerate the pages of docs/; build HTML if mdbook is installed'
	@echo 'make bench    run the benchmarks'
	@echo 'make bench BASE=PATH   compare the release build of tc-run with another one, for about 10 minutes (ARGS=)'
	@echo 'make bench-index   compare the index algebra with affine maps of MLIR'
	@echo 'make bench-hlo   compare the HLO parser with the parser of XLA from PyPI, on training steps'
	@echo 'make temporaries   compare the memory for temporaries of the HLO corpus with XLA'

setup:
	@./bootstrap

run: setup
	@$(CARGO) run --quiet --bin tc-run -- $(EXAMPLE) --size $(SIZES) \
		--explain-ranges --check --bench $(if $(FUSED),--print-ir) $(ARGS)

test: setup
	$(CARGO) test --workspace

random: setup
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test random_programs -- --nocapture
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test imap
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test linalg random
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test hlo random_modules
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test tml
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test axon random_programs

# These need no LLVM, so no setup.
random-maps:
	TC_RANDOM_MAPS=$(MAPS) $(CARGO) test --release --package tc-ir --test random_maps -- --nocapture

random-systems:
	TC_SHAPE_SYSTEMS=$(SYSTEMS) $(CARGO) test --release --package tc-ir --lib shape::tests -- --nocapture

# As cargo-fuzz does, but with the stable compiler. Needs no LLVM either.
COVERAGE := --cfg fuzzing -C debug-assertions -C passes=sancov-module \
	-C llvm-args=-sanitizer-coverage-level=4 \
	-C llvm-args=-sanitizer-coverage-inline-8bit-counters \
	-C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares
FUZZ := target/fuzz
fuzz:
	mkdir -p $(FUZZ)/corpus/$(TARGET)
	RUSTFLAGS='$(COVERAGE)' $(CARGO) run --release --manifest-path crates/ir/fuzz/Cargo.toml \
		--target-dir $(FUZZ) --target $$(rustc -vV | sed -n 's/host: //p') --bin $(TARGET) -- \
		-max_total_time=$(SECONDS) -timeout=20 -artifact_prefix=$(FUZZ)/ $(FUZZ)/corpus/$(TARGET)

# About an hour on two processors.
math-accuracy: setup
	TC_MATH_ACCURACY=all $(CARGO) test --release --package tc-backends --test builtins -- --nocapture single_precision

ptxas: export PATH := $(CURDIR)/target/python/nvidia/cu13/bin:$(PATH)
ptxas: setup
	TC_PTXAS=all $(CARGO) test --package tc-tools --test ptxas -- --nocapture
	TC_PTXAS=all $(CARGO) test --package tc-backends --test linalg

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps

docs: setup
	UPDATE_DOCS=1 $(CARGO) test --package tc-tools --test docs
	$(CARGO) doc --workspace --no-deps
	docs/draw
	if command -v mdbook; then mdbook build docs; fi

bench: setup
ifdef BASE
	$(CARGO) bench --package tc-benches --bench compare -- '$(abspath $(BASE))' $(ARGS)
else
	$(CARGO) bench --package tc-benches
endif

bench-index: setup
	$(CARGO) bench --package tc-bench-index-algebra

bench-hlo: setup
	benches/hlo/prepare
	$(CARGO) bench --package tc-benches --bench hlo-text

temporaries: setup
	benches/hlo/prepare
	$(CARGO) build --release --package tc-tools --bin tc-compile
	target/hlo-bench/venv/bin/python benches/hlo/temporaries.py target/release/tc-compile \
		benches/hlo/programs/*.hlo target/hlo-bench/models/gpt12-adam.hlo \
		target/hlo-bench/models/resnet50-momentum.hlo tests/conformance/hlo/*/module.hlo
