# SPDX-License-Identifier: GPL-2.0
#
# make          everything, into bin/
# make demo     nginx on one node, curl on another; installs what is missing first
# make test     every test; the last line is the sum
# make bench    every measurement beside the host's kernel, into bench/REPORT.md
# make help     the rest
#
# What is built lands in bin/ and build/, both ignored by git. The kernel image is
# cached by content in $XDG_CACHE_HOME/ring3 (~/.cache/ring3); `make RING3_CACHE=` does without.

export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin

.PHONY: all package install uninstall deb wheel archive reproducible image profile kunit smp sim debug test-debug test-inject gate command demo test test-long models storm fuzz soak coverage mutate bench bench-quick fmt lint man compat pages clean help setup

all: image gate command ## build image, gate and command into bin/
	@echo "ring3 is built: bin/ring3 --help"

setup: ## install what is missing (as root), or say what is
	@tools/setup

image: ## bin/ring3-up.image: Linux as one relocatable object
	@tools/setup build
	@kernel/build up

profile: command gate ## let the bench's loads teach the compiler how the kernel is used; a faster image, in some 15 minutes
	@tools/setup build bench
	@tools/profile
	@kernel/build up

kunit: command gate ## bin/ring3-kunit.image: the kernel with its own unit tests, for `ring3 kunit`
	@tools/setup build
	@kernel/build kunit

smp: command gate ## bin/ring3-smp.image: for nodes with several vCPUs (--cpus)
	@tools/setup build
	@kernel/build smp

sim: command gate ## bin/ring3-sim.image: virtual time, for `ring3 sim`
	@tools/setup build
	@kernel/build sim

debug: command gate ## bin/ring3-debug.image: the kernel that checks itself (locks, sleeps, memory, undefined behaviour)
	@tools/setup build
	@kernel/build debug

test-inject: debug ## allocations and copies fail within such kernels, one after the other and at random; nothing else may
	@tools/setup
	@tests/inject/run

test-debug: debug ## oracle and real programs on such kernels; a complaint of one fails
	@tests/debug

gate: ## bin/ring3-gate: what runs in front of a program
	@tools/setup build
	@mkdir -p bin
	@$(MAKE) --no-print-directory -C gate

command: ## bin/ring3: the command
	@tools/setup build
	@mkdir -p bin
	@# On a terminal cargo shows how far it is.
	@[ -t 2 ] || [ -f bin/ring3 ] || echo "building the command: 5 minutes of a processor, the first time"
	@cd ring3 && cargo build --release $$([ -t 2 ] || echo --quiet) -p ring3
	@install -m 755 build/cargo/release/ring3 bin/ring3.new && mv bin/ring3.new bin/ring3
	@install -m 755 tools/ring3-test tools/ring3-extcap bin/

PREFIX ?= /usr/local
package: gate image ## build/package/ring3: the command as one static file, and the images smp and sim, for install and deb
	@tools/setup build package
	@kernel/build smp
	@kernel/build sim
	@tools/package command

install: package ## install below PREFIX=/usr/local (DESTDIR= in front of it); make uninstall removes that
	@tools/package tree $(PREFIX) "$(DESTDIR)"

uninstall: ## remove what make install has installed
	@tools/package remove $(PREFIX) "$(DESTDIR)"

deb: package ## build/package/*.deb: a Debian package
	@tools/package deb

wheel: package ## build/package/*.whl: a Python wheel with the command, and the Python package
	@tools/package wheel

archive: package ## build/package/*.tar.xz: a folder for any x86-64 distribution, to be unpacked by any user
	@tools/package archive

reproducible: ## everything that is shipped, built twice in two folders, and compared; some 25 minutes and 4 GB below TMPDIR
	@tools/setup build package
	@tools/reproducible

demo: ## the demonstration
	@tools/setup build demo
	@$(MAKE) --no-print-directory all
	@tools/demo

test: ## every test; ends with one line, N passed, N failed
	@tools/setup
	@$(MAKE) --no-print-directory all
	@tools/test

models: ## what threads agree on by shared words, as models tried in all interleavings
	@tests/models

storm: ## 1,000 SIGKILLs at random instants under checksummed traffic; some ten minutes
	@$(MAKE) --no-print-directory all
	@tests/run --long --exact apps::storm

bench: ## every measurement beside the host's kernel and its peers, into bench/REPORT.md; as root, under 30 minutes (the first time more: two images, the peers)
	@tools/setup build bench
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory smp
	@bench/peers/build || true # it has said what is left out
	@bench/run all

bench-quick: ## the promised ratios only, in 3 minutes
	@tools/setup build bench
	@$(MAKE) --no-print-directory all
	@bench/run quick

soak: ## mixed traffic on two nodes for MINUTES=60; nothing may grow; build/tests/soak.json
	@$(MAKE) --no-print-directory all
	@RING3_SOAK_MINUTES=$(or $(MINUTES),60) tests/run --long --exact apps::soak

test-long: ## every test there is, for nights; a line for each part and the sum
	@tools/setup
	@$(MAKE) --no-print-directory all
	@tools/test-long

coverage: ## which lines of the ports do tests run; fails below tests/coverage
	@tools/coverage

mutate: ## do the tests find the faults of tests/mutants/list? as root, hours
	@$(MAKE) --no-print-directory all
	@tools/mutate

fuzz: ## every fuzzer for MINUTES=10 each: ports, protocols, configurations, random system calls
	@$(MAKE) --no-print-directory all
	@tools/fuzz $(or $(MINUTES),10)

fmt: ## format the Rust code
	@cd ring3 && cargo fmt --all
	@cd tests && cargo fmt --all
	@cd bench && cargo fmt --all
	@cd bench/peers/smoltcp && cargo fmt

lint: gate ## rustfmt, clippy, shell syntax, and who calls whom in the gate; warnings are errors
	@tools/shape --check
	@cd ring3 && cargo fmt --all --check
	@cd tests && cargo fmt --all --check
	@cd bench && cargo fmt --all --check
	@cd bench/peers/smoltcp && cargo fmt --check
	@cd ring3 && cargo clippy --quiet --workspace --all-targets -- -D warnings
	@# Packages have the command linked with musl, whose types of constants are others.
	@if [ -d "$$(rustc --print target-libdir --target x86_64-unknown-linux-musl 2>/dev/null)" ]; then \
		cd ring3 && cargo check --quiet --locked -p ring3 --target x86_64-unknown-linux-musl --target-dir ../build/cargo; \
	else echo "lint: not checked for musl, which packages need: rustup target add x86_64-unknown-linux-musl"; fi
	@cd tests && cargo clippy --quiet --all-targets --target-dir ../build/tests/cargo -- -D warnings
	@cd bench && cargo clippy --quiet --all-targets --target-dir ../build/bench/cargo -- -D warnings
	@git ls-files -s | awk '/^100755/ || /\.sh$$/ {print $$4}' | while read -r script; do case $$(head -n 1 $$script) in \
		*bash) bash -n $$script ;; *sh) sh -n $$script ;; esac || exit 1; done

compat: ## write docs/compatibility.md anew
	@tests/run --page

man: command ## write docs/ring3.1 anew
	@bin/ring3 man >docs/ring3.1

pages: compat man ## write every page anew that is made from something: docs/compatibility.md, ring3.1, host-calls.md
	@cd ring3 && RING3_BLESS=1 cargo test --quiet -p ring3-sandbox --test attacks the_page >/dev/null

clean: ## remove bin/ and build/; the cache of kernel images stays
	@rm -rf bin build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 16
