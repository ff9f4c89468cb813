# crudd: `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.ONESHELL:
# With .ONESHELL a recipe that names MAKE itself is executed as a whole even by `make -n`.
SUBMAKE = $(MAKE)

# The build for `demo` and `install`: release or debug.
CONFIGURATION ?= release
# Whether a debug build optimises what the tests execute (see CONTRIBUTING.md): 1 or nothing.
export CRUDD_OPTIMISED ?= 1
BUILD = .build/$(CONFIGURATION)

# Where `install` puts files. systemd reads units from /usr/lib and /usr/local/lib; with another PREFIX they go to /etc.
# The configuration is in /etc regardless of PREFIX, because crudd reads it there.
DESTDIR ?=
PREFIX ?= /usr
SYSCONFDIR ?= /etc
BINDIR = $(PREFIX)/bin
SBINDIR = $(PREFIX)/sbin
LIBDIR = $(PREFIX)/lib/crudd
PLUGINDIR = $(LIBDIR)/plugins
DOCDIR = $(PREFIX)/share/doc/crudd
BASH_COMPLETION = $(PREFIX)/share/bash-completion/completions/crudctl
ZSH_COMPLETION = $(PREFIX)/share/zsh/site-functions/_crudctl
FISH_COMPLETION = $(PREFIX)/share/fish/vendor_completions.d/crudctl.fish
MANDIR = $(PREFIX)/share/man
SYSTEMDDIR = $(if $(filter /usr /usr/local,$(PREFIX)),$(PREFIX)/lib,$(SYSCONFDIR))

# Each folder of Plugins with an Entry.swift is an adapter; its name in the configuration is the folder's in lower case.
PLUGINS = $(shell ls Plugins/*/Entry.swift | cut -d / -f 2 | tr '[:upper:]' '[:lower:]')

SWIFT_NEEDED = 6.3
PACKAGES = python3 libpq-dev libsqlite3-dev libyaml-dev pkg-config patchelf binutils git ca-certificates
PACKAGE_TEST_PACKAGES = etcd-server iproute2 lintian man-db mandoc patroni postgresql python3-etcd sqlite3 systemd \
	systemd-container
TEST_PACKAGES = etcd-server haproxy iproute2 less patroni pgbouncer postgresql procps python3-etcd \
	python3-prometheus-client sqlite3 tmux util-linux
BENCH_PACKAGES = redis-server postgresql

# Sizes of the bench; a quick one: `make bench RECORDS=10000 SECONDS=1 ROUNDS=1`.
RECORDS ?= 1000000
SECONDS ?= 5
ROUNDS ?= 3

# The results that `make bench-compare` compares.
BEFORE ?= bench-results.before.json
AFTER ?= bench-results.json
FALL ?= 10

DOCUMENTS = README.md CHANGELOG.md LICENSE $(wildcard etc/*.md) etc/crudd.yaml systemd/README.md \
	Sources/clients/python/README.md Sources/clients/python/crudd.py \
	Sources/CRUDWire/PROTOCOL.md Sources/CRUDPluginABI/CHILD-PROTOCOL.md Plugins/Examples/memory.c \
	Plugins/Examples/entries.h Plugins/Examples/removals.h Plugins/Examples/store.py Tests/Bench/README.md \
	Sources/CRUDPluginABI/include/crudd_plugin.h $(wildcard Sources/CRUDClient/CRUDClient.docc/*.md) \
	$(wildcard Sources/*/README.md Plugins/*/README.md systemd/examples/*)

.PHONY: help toolchain deps deps-test deps-bench build demo docs man test test-quick test-allocations test-asan \
	test-litestream \
	test-cluster test-fail-over test-package test-bare fuzz check lint bench bench-compare install deb uninstall clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

toolchain:
	@found=$$({ swift --version 2>/dev/null || true; } | sed -nE 's/.*Swift version ([0-9]+\.[0-9]+).*/\1/p' | head -n 1)
	oldest=$$(printf '%s\n' "$(SWIFT_NEEDED)" "$${found:-0}" | sort -V | head -n 1)
	if [ "$$oldest" != "$(SWIFT_NEEDED)" ]; then
	    echo "crudd needs Swift $(SWIFT_NEEDED) or newer (found: $${found:-none}): https://www.swift.org/install/linux" >&2
	    exit 1
	fi

deps: toolchain ## Install the Debian packages for build and test
	@$(call apt_install,$(PACKAGES))

deps-test: deps ## Install the servers and programs that tests use
	@$(call apt_install,$(TEST_PACKAGES))

deps-bench: deps ## Install the servers with which `make bench` compares crudd
	@$(call apt_install,$(BENCH_PACKAGES))

build: deps ## Build everything, optimised
	swift build -c $(CONFIGURATION)

demo: build ## Start a daemon, run the demo application, show what it has stored, move that to another database
	@Sources/demo-app/run $(BUILD)

docs: build ## Build the documentation of the Swift client and CRUDInMemory into .build/docs
	@rm -rf .build/docs && mkdir -p .build/docs/graphs
	maps=()
	for map in $(BUILD)/*.build/module.modulemap .build/checkouts/*/Sources/*/include/module.modulemap; do
	    maps+=(-Xcc "-fmodule-map-file=$$PWD/$$map")
	done
	# CRUDClient re-exports CRUDModel: errors, filters and the like belong to its documentation.
	for module in "CRUDClient -experimental-allowed-reexported-modules=CRUDModel" CRUDInMemory; do
	    swift symbolgraph-extract -module-name $$module \
	        -target "$$(swiftc -print-target-info | sed -nE 's/.*"unversionedTriple": "(.*)".*/\1/p')" \
	        -I $(BUILD)/Modules "$${maps[@]}" -skip-synthesized-members -output-dir .build/docs/graphs
	done
	docc convert Sources/CRUDClient/CRUDClient.docc --additional-symbol-graph-dir .build/docs/graphs \
	    --fallback-display-name CRUDClient --fallback-bundle-identifier CRUDClient \
	    --transform-for-static-hosting --warnings-as-errors --output-path .build/docs/CRUDClient
	echo 'python3 -m http.server -d .build/docs/CRUDClient serves it at http://localhost:8000/documentation/crudclient'

man: build ## Write the manual pages to .build/man
	etc/man/generate $(BUILD) .build/man

test: deps-test ## Run all tests, or those whose name matches FILTER: make test FILTER=SystemTests.PatchTests
	swift build --build-tests
	@FILTER='$(FILTER)' Tests/run

test-quick: deps ## Run the tests that need no daemon, from a build of what they need, as FILTER says
	CRUDD_QUICK=1 CRUDD_OPTIMISED= swift build --build-tests --scratch-path .build/quick
	@FILTER='$(FILTER)' Tests/run quick

test-cluster: deps-test ## Run the daemon on a PostgreSQL cluster that Patroni keeps, while servers are lost (as root)
	swift build --build-tests
	@Tests/run cluster

test-fail-over: deps-test ## Of these tests those that CI runs: a switch-over and a lost leader (as root)
	swift build --build-tests
	@Tests/run fail-over

test-allocations: deps ## Count the heap allocations of reads in an optimised build
	swift build --build-tests
	Tests/Allocations/run

test-litestream: deps ## Kill a daemon beside Litestream, which is downloaded, and compare what that restores
	@$(call apt_install,python3-pip)
	swift build --build-tests
	Tests/Litestream/run .build/debug

test-asan: deps ## Run system tests on a build with AddressSanitizer
	swift build --build-tests
	Tests/Sanitizer/run

test-package: deb ## Check packages and manual pages, and what is installed on a real systemd in a container
	@$(call apt_install,$(PACKAGE_TEST_PACKAGES))
	Tests/Manual/run $(BUILD)
	Tests/Manual/mutants $(BUILD)
	lintian --fail-on error .build/deb/*.deb
	Tests/Systemd/run .build/deb

test-bare: deb ## Check the packages on a bare Debian 12, which is downloaded
	@$(call apt_install,debootstrap systemd-container)
	Tests/Systemd/bare .build/deb

fuzz: deps ## Fuzz the parsers for a minute
	@Tests/Fuzz/run

check: export CRUDD_STRICT = 1
check: deps lint ## Lint, build with warnings as errors, check documentation, linkage, installed tree and units
	swift build --build-tests
	$(SUBMAKE) --no-print-directory docs CONFIGURATION=debug
	Tests/Linkage/run .build/debug
	Tests/Linkage/mutants .build/debug
	Tests/Installation/run debug
	Tests/Consumer/run .build/debug
	Tests/Platforms/run .build/debug

lint:
	@git ls-files -z '*.swift' | xargs -0 swift format lint --strict --configuration .swift-format
	for script in .ci/run {Sources,Tests}/*/run Tests/Bench/*.sh Tests/Systemd/{checks,documents,cluster,mutants,bare} \
	    Tests/{Documents,Linkage,Manual}/mutants; do
	    bash -n "$$script"
	done
	Tests/Documents/check
	git ls-files -z '*.md' | xargs -0 Tests/Documents/links
	Tests/Documents/mutants
	Tests/Structure/check
	# swift format does not check comments. Columns are characters, not bytes.
	long=$$(git ls-files -z '*.swift' '*.c' '*.h' '*.py' '*.sh' '*/run' Makefile \
	    Tests/{Documents,Linkage,Manual,Structure,Systemd} systemd/examples |
	    LC_ALL=C.UTF-8 xargs -0 grep -snHE '^.{121}' | cut -c 1-160) || true
	if [ -n "$$long" ]; then printf 'Lines of more than 120 columns:\n%s\n' "$$long" >&2; exit 1; fi

bench: deps-bench build ## Compare crudd with Redis and PostgreSQL (RECORDS, SECONDS, ROUNDS)
	@Tests/Bench/run RECORDS=$(RECORDS) SECONDS=$(SECONDS) ROUNDS=$(ROUNDS) BUILD=$(BUILD)

bench-compare: ## Compare two results of the bench; fails if a row falls by more than FALL percent (BEFORE, AFTER, FALL)
	@$(BUILD)/crudd-bench compare --fall $(FALL) "$(BEFORE)" "$(AFTER)"

install: ## Install what was built (DESTDIR, PREFIX)
	@if [ ! -x $(BUILD)/crudd ]; then echo 'There is no build: run "make build" first.' >&2; exit 1; fi
	$(call install_binary,$(BUILD)/crudctl,$(BINDIR)/crudctl,$$ORIGIN/../lib/crudd,755)
	$(call install_binary,$(BUILD)/crudd,$(SBINDIR)/crudd,$$ORIGIN/../lib/crudd,755)
	for program in crudd-plugin-check crudd-plugin-host; do
	    $(call install_binary,$(BUILD)/$$program,$(LIBDIR)/$$program,$$ORIGIN,755)
	done
	for plugin in $(PLUGINS); do
	    $(call install_binary,$(BUILD)/lib$$plugin.so,$(PLUGINDIR)/$$plugin.so,$$ORIGIN/..,644)
	done
	# The Swift runtime: only the libraries of the toolchain that the files above load, directly or indirectly.
	ldd $(BUILD)/crudctl $(BUILD)/crudd $(BUILD)/crudd-plugin-{check,host} $(PLUGINS:%=$(BUILD)/lib%.so) |
	awk '$$3 ~ /\/swift\/linux\// { print $$3 }' | sort -u | while read -r library; do
	    $(call install_binary,$$library,$(LIBDIR)/$${library##*/},$$ORIGIN,644)
	done
	for unit in crudd.socket crudd.service; do
	    $(call install_text,systemd/$$unit,$(SYSTEMDDIR)/systemd/system/$$unit)
	done
	$(call install_text,systemd/sysusers.conf,$(SYSTEMDDIR)/sysusers.d/crudd.conf)
	$(call install_text,systemd/tmpfiles.conf,$(SYSTEMDDIR)/tmpfiles.d/crudd.conf)
	if [ ! -e "$(DESTDIR)$(SYSCONFDIR)/crudd/crudd.yaml" ]; then
	    $(call install_text,etc/crudd.yaml,$(SYSCONFDIR)/crudd/crudd.yaml)
	fi
	$(call install_text,Sources/CRUDPluginABI/include/crudd_plugin.h,$(PREFIX)/include/crudd_plugin.h)
	for document in $(DOCUMENTS); do
	    $(call install_text,$$document,$(DOCDIR)/$$document)
	done
	pages=$$(mktemp -d)
	etc/man/generate $(BUILD) "$$pages"
	for page in "$$pages"/*; do
	    $(call install_text,$$page,$(MANDIR)/man$${page##*.}/$${page##*/})
	done
	rm -r "$$pages"
	completion() {
	    $(BUILD)/crudctl --generate-completion-script "$$1" | sed '1{/^#!/d}' |
	        install -D -m 644 /dev/stdin "$(DESTDIR)$$2"
	}
	completion bash $(BASH_COMPLETION)
	completion zsh $(ZSH_COMPLETION)
	completion fish $(FISH_COMPLETION)
	echo 'crudd is installed under $(DESTDIR)$(PREFIX); $(DOCDIR)/systemd/README.md explains how to start it.'

deb: build ## Build Debian packages into .build/deb
	@$(call apt_install,dpkg-dev)
	$(SUBMAKE) --no-print-directory -f etc/debian/rules binary CONFIGURATION=$(CONFIGURATION) OUTPUT=$(CURDIR)/.build/deb

uninstall: ## Remove the installed files; configuration and data stay
	@cd "$(DESTDIR)/"
	rm -f ./$(BINDIR)/crudctl ./$(SBINDIR)/crudd ./$(PREFIX)/include/crudd_plugin.h
	rm -f $(PLUGINS:%=./$(PLUGINDIR)/%.so) ./$(LIBDIR)/lib*.so ./$(LIBDIR)/crudd-plugin-{check,host}
	rm -f ./$(SYSTEMDDIR)/{systemd/system/crudd.socket,systemd/system/crudd.service}
	rm -f ./$(SYSTEMDDIR)/{sysusers.d,tmpfiles.d}/crudd.conf
	rm -f ./$(BASH_COMPLETION) ./$(ZSH_COMPLETION) ./$(FISH_COMPLETION)
	rm -f ./$(MANDIR)/man1/crudctl.1 ./$(MANDIR)/man8/crudd.8 ./$(MANDIR)/man5/crudd.yaml.5
	rm -f ./$(MANDIR)/man7/crudd-plugin.7
	rm -rf ./$(DOCDIR)
	rmdir --ignore-fail-on-non-empty ./$(PLUGINDIR) ./$(LIBDIR)

clean: ## Remove all build products
	rm -rf .build

# $(call apt_install,packages): installs missing packages, as root or through sudo; silent if there are none.
define apt_install
command -v apt-get >/dev/null || { echo 'apt-get not found; these packages are needed: $(1)' >&2; exit 0; }
missing=()
for package in $(1); do
    dpkg-query -W -f '$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$$package")
done
if [ $${#missing[@]} -gt 0 ]; then
    as_root=(); [ "$$(id -u)" = 0 ] || as_root=(sudo)
    echo "Installing $${missing[*]}"
    "$${as_root[@]}" apt-get update -qq
    "$${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${missing[@]}"
fi
endef

# $(call install_binary,from,to,runpath,mode): a program or library that finds the Swift runtime relative to itself. It
# is written under another name and then renamed, so that a running daemon is not affected.
define install_binary
install -D -m $(4) "$(1)" "$(DESTDIR)$(2).new"
strip --strip-unneeded --remove-section=.comment "$(DESTDIR)$(2).new"
patchelf --set-rpath '$(3)' "$(DESTDIR)$(2).new"
mv -f "$(DESTDIR)$(2).new" "$(DESTDIR)$(2)"
endef

# $(call install_text,from,to): a text, in which paths in /usr are replaced by those in PREFIX.
define install_text
sed -E 's,/usr/(s?bin|lib|share/doc)/crud,$(PREFIX)/\1/crud,g' "$(1)" | install -D -m 644 /dev/stdin "$(DESTDIR)$(2)"
endef
