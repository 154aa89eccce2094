# The commands of daily work. Each first installs what is missing (see ./bootstrap).

CARGO ?= cargo
# What `make run` compiles, for which sizes, and what else it passes to tc-run.
EXAMPLE ?= examples/tc/mlp3.tc
SIZES ?= B=128,N=128,O=64,P=32,Q=2
ARGS ?=
# How many random programs `make random` compares.
PROGRAMS ?= 10000
# How many random index maps `make random-maps` checks.
MAPS ?= 1000000
# How many random systems of equations between shapes `make random-systems` solves, of each kind.
SYSTEMS ?= 100000
# What `make fuzz` fuzzes (map, constraints), and for how many seconds.
TARGET ?= map
SECONDS ?= 60

.PHONY: help setup run test random random-maps random-systems fuzz math-accuracy lint docs bench bench-index bench-hlo

help:
	@echo 'make run      infer ranges, compile and run an example, check and time it (EXAMPLE=, SIZES=, ARGS=)'
	@echo 'make run FUSED=1   print the fused IR of the example too'
	@echo 'make test     all tests: units, properties, FileCheck, conformance'
	@echo 'make random   compiled random programs, TC, HLO and TML, against interpreters, 10000 of each (PROGRAMS=)'
	@echo 'make random-maps   random index maps against enumeration of their domains, a million of them (MAPS=)'
	@echo 'make random-systems   random equations between the shapes of Axon, 100000 of each kind (SYSTEMS=)'
	@echo 'make fuzz     texts of index maps or of constraints for the parsers, by libFuzzer (TARGET=, SECONDS=)'
	@echo 'make math-accuracy   the built-ins in single precision, for all floats'
	@echo 'make lint     formatting, clippy and rustdoc, warnings denied'
	@echo 'make docs     write the generated pages of docs/ again; HTML as far as mdbook is there'
	@echo 'make bench    the benchmarks'
	@echo 'make bench-index   the index algebra against affine maps of MLIR'
	@echo 'make bench-hlo   HLO text of training steps against the parser of XLA, which PyPI provides'

setup:
	@./bootstrap

run: setup
	@$(CARGO) run --quiet --bin tc-run -- $(EXAMPLE) --size $(SIZES) \
		--explain-ranges --check --bench $(if $(FUSED),--print-ir) $(ARGS)

test: setup
	$(CARGO) test --workspace

random: setup
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test random_programs -- --nocapture
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test hlo random_modules
	TC_RANDOM_PROGRAMS=$(PROGRAMS) $(CARGO) test --package tc-backends --test tml

# These need no LLVM, and so no setup.
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
	$(CARGO) bench --package tc-benches

bench-index: setup
	$(CARGO) bench --package tc-bench-index-algebra

bench-hlo: setup
	benches/hlo/prepare
	$(CARGO) bench --package tc-benches --bench hlo-text
