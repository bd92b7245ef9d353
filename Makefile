# Every target works on a fresh clone: Go fetches what it needs by itself, PostgreSQL is found or fetched by the
# program (see README, "PostgreSQL"). CI calls the same targets.
SHELL := /bin/sh
GO    ?= go
TOOL  := $(GO) tool -modfile=tools/go.mod

# make run ONCE=1 ends after the demo; make run ARGS="--no-faults" passes flags on.
ONCE  ?=
ARGS  ?=
# make test RACE=1 adds the race detector (CI does); make test PKG=./internal/invoice/... runs a part.
RACE  ?=
PKG   ?= ./...

.DEFAULT_GOAL := help
.PHONY: help run build test screenshots pictures lint generate verify-generate verify chaos bench fuzz vulncheck licences fmt clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start everything on an embedded PostgreSQL, carry the example orders over, stay up (ONCE=1: end after it)
	@exec bin/bridge $(if $(ONCE),--once) $(ARGS)

build: ## build the programs into bin/
	@$(GO) build -o bin/ ./cmd/...

# The minute of chaos runs after the others: two cores are few for it beside them. CHAOS_SEED=off leaves it out, a number has
# it run as it did with that one.
test: ## run all tests on one temporary PostgreSQL (RACE=1, PKG=./internal/...), and then a minute of chaos
	$(GO) build -o bin/withpg ./internal/testdb/cmd/withpg
	CHAOS_SEED=off bin/withpg $(GO) test $(if $(RACE),-race) -timeout 20m $(PKG)
	$(if $(filter ./... ./internal/chaos ./internal/chaos/...,$(PKG)),$(GO) test -count=1 -timeout 20m -run '^TestAMinuteOfAnything' ./internal/chaos)

screenshots: ## keep a picture of every page, light and dark, in artefacts/screenshots
	$(GO) build -o bin/withpg ./internal/testdb/cmd/withpg
	SCREENSHOTS=$(CURDIR)/artefacts/screenshots bin/withpg $(GO) test -count=1 -run 'TestEveryPage|InRiverUI' ./internal/browsertest

pictures: ## make the pictures of docs/operations.md anew
	$(GO) build -o bin/withpg ./internal/testdb/cmd/withpg
	bin/withpg $(GO) test -count=1 -run TestPicturesForTheManual ./internal/browsertest -pictures $(CURDIR)/docs/pictures

lint: ## golangci-lint, with the architecture's import rules in it
	$(TOOL) golangci-lint run ./...

# make verify ERP_URL=https://... TOKEN=... holds another implementation to the contract.
verify: build ## may this be put to work? eight checks against the built programs, with kill -9 and cut connections
	@bin/verify

# make chaos DURATION=10m SEED=4711 runs for as long, with that schedule. A second build, and one whose clock is wrong by ten
# minutes, take their turns in it. (What begins with _ is no package of ours.)
export DURATION SEED CLOCK_SKEW_SECONDS
DURATION           ?= 1m
SEED               ?= 0
CLOCK_SKEW_SECONDS ?= 600
PROGRAMS           := ./cmd/erp-api ./cmd/crm-worker ./cmd/targetsim
chaos: build ## anything at any time for DURATION: kill -9, frozen processes, a crashed database, cut connections; then check
	@$(GO) build -ldflags=-buildid=other -o bin/other/ $(PROGRAMS)
	@bin/chaos overlay bin/_skew && $(GO) build -overlay bin/_skew/overlay.json -o bin/skewed/ $(PROGRAMS)
	@bin/chaos

# make bench BENCH=create,replay measures a part; ARGS="--profiles DIR --markdown docs/performance.md" and more: bin/bench --help.
# With pgbouncer installed (apt-get install pgbouncer) it is measured, too.
export BENCH
BENCH ?=
bench: build ## how fast is it, against what the database underneath allows? takes the whole machine for up to 25 minutes
	@bin/bench $(ARGS)

FUZZTIME ?= 10s
fuzz: ## every fuzz target, one after the other, for FUZZTIME each
	@for file in $$(grep -rlE --include='*_test.go' '^func Fuzz' internal | sort); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z]+).*/\1/p' $$file); do \
			echo "$$(dirname $$file) $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -parallel 1 ./$$(dirname $$file) || exit 1; \
		done; \
	done

vulncheck: ## known vulnerabilities in what is really called (needs https://vuln.go.dev)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

licences: ## write docs/licences.md anew
	$(GO) test -count=1 ./internal/licences -update

generate: ## generate internal/crmdb and internal/erpdb from db/queries
	$(TOOL) sqlc generate

verify-generate: ## fail if the committed generated code is not what the queries give
	$(TOOL) sqlc diff

fmt: ## format the Go code
	$(TOOL) golangci-lint fmt ./...

clean: ## remove the programs and the demo's data
	rm -rf bin .data
