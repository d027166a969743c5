# SPDX-License-Identifier: MIT
# Everything a newcomer types. `make demo` and `make check` install what they
# need (Debian; as root or with sudo) and build first.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
# Interpreters to build the Python extension for; empty: every one found.
PYTHONS ?=

.PHONY: all help deps build demo check check-peers check-free-threaded python-suite bench fuzz install clean

all: build

help:
	@echo 'make demo         profile examples/app.py, print the report, write tickmap-demo.html'
	@echo 'make check        build, run every test'
	@echo 'make build        build into $(BUILD)/'
	@echo 'make bench        benchmarks: ratios against peers'
	@echo 'make check-peers  tests that need large extra tools (newer perf and Pythons)'
	@echo 'make check-free-threaded  builds CPython 3.13 without a GIL, tests the extension in it'
	@echo "make python-suite CPython's own tests with our trampolines in every process (long)"
	@echo 'make fuzz         each parser under libFuzzer for a while (FUZZ_SECONDS=60)'
	@echo 'make install PREFIX=DIR'
	@echo 'make deps         install what all of this needs'

deps:
	@tools/deps

$(BUILD)/build.ninja:
	@$(MAKE) --no-print-directory deps
	meson setup $(BUILD) --prefix='$(abspath $(PREFIX))' -Dpythons='$(PYTHONS)'

build: $(BUILD)/build.ninja
	@tools/configured $(BUILD) '$(PYTHONS)'
	ninja -C $(BUILD)

demo: deps build
	@tools/demo $(BUILD)

check: deps build
	@tools/check $(BUILD)

# In a build folder of its own, whose extensions are those of newer Pythons.
check-peers: deps build
	@tools/deps peers
	@tools/check-peers $(BUILD)

# Compiles an interpreter first: five minutes of an idle machine.
check-free-threaded: deps build
	@tools/deps peers
	@tools/check-free-threaded $(BUILD)

# Ten minutes of an idle machine for each of 3.11, 3.12 and 3.13.
python-suite: deps build
	@tools/python-suite $(BUILD)

bench: deps build
	@tools/bench $(BUILD)

fuzz: deps
	@tools/fuzz

install: build
	meson configure $(BUILD) --prefix='$(abspath $(PREFIX))'
	DESTDIR='$(DESTDIR)' meson install -C $(BUILD) --quiet

clean:
	rm -rf $(BUILD) $(BUILD)-*
