# Everything here needs Go, bash, git and coreutils only. `make` alone lists the targets.

SHELL      := bash
GO         ?= go
# The oldest version that go.mod allows and .ci/run tests.
OLDEST_GO  ?= go1.25.5
FUZZTIME   ?= 30s
BENCH      ?= .
# How long the simulated day of `make day` is, in virtual time.
NACOS_DAY  ?= 24h

.DEFAULT_GOAL := help
.PHONY: help test race oldest lint fuzz bench quickstart day ci

help: ## list the targets
	@while IFS= read -r line; do \
		if [[ $$line =~ ^([a-z]+):.*'## '(.*) ]]; then printf '  make %-11s %s\n' "$${BASH_REMATCH[@]:1}"; fi; \
	done <Makefile

test: ## run all tests
	$(GO) test ./...

race: ## run all tests under the race detector
	$(GO) test -race ./...

oldest: ## run all tests on the oldest supported Go (OLDEST_GO)
	GOTOOLCHAIN=$(OLDEST_GO) $(GO) test ./...

lint: ## vet, gofmt, go mod tidy, house rules, staticcheck in every module
	.ci/run lint

fuzz: ## run every fuzz target for FUZZTIME (30s)
	FUZZTIME=$(FUZZTIME) .ci/run fuzz

bench: ## run the benchmarks that match BENCH (all)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

quickstart: ## run the example that tells the whole story
	$(GO) run ./examples/quickstart

day: ## simulate NACOS_DAY (24h) of a client's life in virtual time
	NACOS_DAY=$(NACOS_DAY) $(GO) test -run TestDay -timeout 60m -count=1 -v .

ci: ## run what CI runs: all stages of .ci/run
	.ci/run
