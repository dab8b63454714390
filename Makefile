# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
#
# make demo    set up, build, run the main job and show what it measured
# make check   set up, build, run all tests
# make build   the programs, in build/
# make deb     Debian packages, in build-deb/, which is a repository for apt
# make image   an image for containers from them, localhost/convoy, with podman
# make docs    the manual as a site, build-docs/site/index.html
# make help    everything else

VENV := .venv/bin
# Each test that starts a command would compile all of its modules.
unexport PYTHONDONTWRITEBYTECODE
# Warnings are errors in this wrapper only: a newer compiler must not break a user's build.
WERROR := -Dwerror=true
# Tests beside each other. What fails gets a second try by itself, but not what an attack broke or
# a sanitizer said: those of HOSTILE.
BESIDE := $(VENV)/pytest -n 4 --dist worksteal -m 'not alone'
AGAIN := echo 'these again, by themselves:'; $(VENV)/pytest --last-failed --last-failed-no-failures none
HOSTILE := $(addprefix tests/python/,hostile node/test_sandbox.py tester/test_preload_sanitized.py)
# Those marked alone that wait most of the time: three at a time. Their folders have short names, for
# sockets.
WAITING := $(addprefix tests/python/,campaign hybrid node network vpn tester/test_vhost_user.py docs)
# Files that have such tests: to read all of them takes seconds.
ALONE := $(sort $(shell grep -rl --include='test_*.py' 'mark\.alone' tests/python))
ALONE_WAITING := $(filter $(addsuffix %,$(WAITING)),$(ALONE))
ALONE_BUSY := $(filter-out $(ALONE_WAITING),$(ALONE))
# Some tests in C wait as well.
MESON_TEST := CONVOY_PRIORITY=normal meson test --no-rebuild --print-errorlogs \
	--num-processes $(shell expr 2 '*' $$(nproc))

.PHONY: help setup build build-asan build-tsan idle-build-asan demo check check-c check-asan \
	check-tsan check-fuzz idle-check-fuzz fuzz campaign soak check-python check-beside check-emulated \
	check-alone check-beside-and-build-asan check-emulated-and-fuzz check-hostile check-packages \
	check-release check-here deb audit docs image lint lint-types lint-rest format generated clean

help:
	@sed -n 's/^# make/make/p' Makefile
	@echo 'make lint, make format, make generated, make check-packages (minutes)'
	@echo 'make check-release RELEASE=trixie: all tests under another Debian, in a root (root; 30 min)'
	@echo 'parts of check: check-c check-python check-hostile check-asan check-fuzz'
	@echo 'make audit: known vulnerabilities of the locked Python packages (asks their index)'
	@echo 'make campaign HOURS=n: faults injected into a node and those around it (root)'
	@echo 'make soak HOURS=n: one node under load, whose memory must not grow'
	@echo 'make fuzz HOURS=n: all fuzz targets; their corpora grow in fuzz-corpora/'

setup:
	@tools/setup.sh

build/build.ninja: | setup
	@CC_LD=lld CXX_LD=lld meson setup build $(WERROR) >/dev/null
build: setup build/build.ninja
	@ninja -C build --quiet

# Only what a test runs, and the fuzz targets. All of it counts the branches it takes, for these. -g1:
# the lines of a backtrace are all that is wanted of it.
SANITIZED := meson-test-prereq fuzz daemon/convoyd preload/ethdev/libconvoy_ethdev.so \
	preload/vhost/libconvoy_vhost.so
build-asan/build.ninja: | setup
	@CC=clang CXX=clang++ CC_LD=lld CXX_LD=lld meson setup build-asan \
		--buildtype=debugoptimized -Doptimization=1 -Dfuzz=true -Dc_args=-g1 -Dcpp_args=-g1 \
		-Db_lundef=false >/dev/null
build-asan: setup build-asan/build.ninja
	@ninja -C build-asan --quiet $(SANITIZED)

# What has threads. Two warnings are off that this sanitizer raises: that it does not know fences
# (CV_UNSURE_BEGIN, where they are), and values that it makes look uninitialized.
THREADED := bench-workers convoy_test_next_hop ethdev-queues-auto ethdev-queues-copy \
	ethdev-queues-view gen-vhost_memory memif-session openflow socket-endpoint test_bridge \
	test_flow_foreign test_ring test_worker vring-call
build-tsan/build.ninja: | setup
	@meson setup build-tsan $(WERROR) --buildtype=debugoptimized -Doptimization=1 \
		-Dc_args='-g1 -Wno-tsan -Wno-maybe-uninitialized' -Dcpp_args='-g1 -O0' \
		-Db_sanitize=thread -Db_lundef=false >/dev/null
build-tsan: setup build-tsan/build.ninja
	@ninja -C build-tsan --quiet daemon/convoyd

demo: build
	@$(VENV)/convoy bench quick --sizes 64,256,1500,imix

check: lint check-c check-beside-and-build-asan check-emulated-and-fuzz check-alone check-hostile \
	check-asan
# Tests that wait leave enough of the cores to compile with. Those that are alone take three times as
# long beside a compiler.
check-beside-and-build-asan:
	@$(MAKE) --no-print-directory -j 2 check-beside idle-build-asan
idle-build-asan: setup
	@tools/idle $(MAKE) --no-print-directory build-asan
# An emulated guest is one thread: the other core is a fuzzer's.
check-emulated-and-fuzz:
	@$(MAKE) --no-print-directory -j 2 check-emulated idle-check-fuzz
idle-check-fuzz: setup
	@tools/idle $(MAKE) --no-print-directory check-fuzz

check-c: build
	@$(MESON_TEST) -C build -t 4
check-asan: build-asan
	@$(MESON_TEST) -C build-asan -t 10
# Threads of the node, and control against its workers. Not the tests in which a thread plays a guest
# that rewrites what was read, or DPDK's drivers are the peers: these race, and that is their point.
check-tsan: build-tsan
	@meson test -C build-tsan -t 10 --print-errorlogs $(THREADED)
	@$(VENV)/pytest tests/python/races
check-fuzz: build-asan
	@tests/fuzz/run.sh build-asan
# Time for all targets together; the next run goes on from what this one found.
fuzz: build-asan
	@FUZZ_HOURS=$${HOURS:?say how long: make fuzz HOURS=8} \
		FUZZ_CORPUS=$${FUZZ_CORPUS:-fuzz-corpora} tests/fuzz/run.sh build-asan
# Faults at random moments, with bystanders who must notice nothing; SEED repeats an earlier one.
campaign: build
	@PYTHONPATH=.:tests/python $(VENV)/python -m campaign \
		--hours $${HOURS:?say how long: make campaign HOURS=0.2} $(if $(SEED),--seed $(SEED)) \
		--record build/campaign
# One node under load for so long; nothing of it may grow.
soak: build
	@PYTHONPATH=.:tests/python $(VENV)/python -m campaign.soak \
		--hours $${HOURS:?say how long: make soak HOURS=1} --record build/soak
check-python: check-beside check-emulated check-alone
check-beside: build
	@$(BESIDE) $(HOSTILE:%=--ignore %) || { $(AGAIN) -m 'not alone' $(HOSTILE:%=--ignore %); }
	@short=$$(mktemp -d /tmp/cv-XXXX); trap "rm -rf $$short" EXIT; \
		$(VENV)/pytest -n 3 --dist worksteal --basetemp $$short -m 'alone and not emulated' \
		$(ALONE_WAITING) || { $(AGAIN) -m 'alone and not emulated' $(ALONE_WAITING); }
check-emulated: build
	@$(VENV)/pytest -m emulated $(ALONE_WAITING) || { $(AGAIN) -m emulated $(ALONE_WAITING); }
check-alone: build
	@$(VENV)/pytest -m alone $(ALONE_BUSY) || { $(AGAIN) -m alone $(ALONE_BUSY); }
check-hostile: build build-asan
	@$(BESIDE) $(HOSTILE)

# An environment of its own: the tests need none of it.
build-docs/venv/requirements.lock: requirements-docs.lock
	@python3 -m venv build-docs/venv
	@build-docs/venv/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@cp $< $@
docs: build-docs/venv/requirements.lock
	@build-docs/venv/bin/python tools/site build-docs

build-audit/venv/requirements.lock: requirements-audit.lock
	@python3 -m venv build-audit/venv
	@build-audit/venv/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@cp $< $@
# Not a part of check: it says something else each day.
audit: build-audit/venv/requirements.lock
	@build-audit/venv/bin/python tools/audit build-audit/venv/bin/pip-audit requirements*.lock

deb:
	@tools/deb build-deb
image:
	@tools/image
# Not a part of check: it takes minutes, and the registry of the release.
check-packages: setup deb
	@CONVOY_PACKAGES=build-deb $(VENV)/pytest -s --timeout 1200 tests/python/packages

# The same and `make check` under another release of Debian, in a root of its own.
RELEASE_ROOT ?= /var/tmp/convoy-$(RELEASE)
check-release:
	@tools/in-release $${RELEASE:?say which: make check-release RELEASE=trixie} $(RELEASE_ROOT) \
		make check-here
check-here:
	@apt-get update -qq # the root may be of an earlier day
	@apt-get build-dep -y -qq --no-install-recommends ./packaging >/dev/null
	@apt-get install -y -qq --no-install-recommends dpkg-dev help2man lintian mmdebstrap python3-pip \
		>/dev/null
	@$(MAKE) -k check check-packages

# Beside each other: mypy takes as long as all the rest.
lint: setup
	@$(MAKE) --no-print-directory -j 2 lint-types lint-rest
lint-types:
	@$(VENV)/mypy
lint-rest:
	@$(VENV)/ruff check -q . && $(VENV)/ruff format -q --check .
	@tools/check-includes
	@tools/check-words
	@git ls-files '*.c' '*.h' '*.cc' '*.hh' | xargs -r $(VENV)/clang-format --dry-run -Werror

format: setup
	@$(VENV)/ruff check -q --fix . ; $(VENV)/ruff format -q .
	@git ls-files '*.c' '*.h' '*.cc' '*.hh' | xargs -r $(VENV)/clang-format -i

# What nf/ has of its functions' parameters, for Python and docs/; tests say whether it is current.
generated: build
	@$(VENV)/python tools/generate

clean:
	rm -rf build build-asan build-coverage build-deb build-docs build-audit
