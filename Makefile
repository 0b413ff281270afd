# "make help" lists what can be made.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run build test test-go test-clients test-neovim test-vscode test-user test-all test-vscode-user test-systemd test-kernels test-machines test-suites ci-list attack race check check-fast check-slow format vet measure lint lint-lua lint-vscode generate cross fuzz release check-release vsix screenshots recording bench bench-packages clean

# The program is pure Go: it must start on machines that have no C library of ours.
export CGO_ENABLED := 0

SIDECAR := bin/sandbox-sidecar
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Runs parts of tests/ci, which says what failed at the end.
PARTS = go build -o bin/ci ./tests/ci && bin/ci only
GOLANGCI_VERSION := v2.15.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)
# The version that this golangci-lint holds, or it would ask for another format.
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
FUZZTIME ?= 30s

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | column -t -s $$'\t'

run: build ## open a sandboxed shell here, through the real sidecar (without a terminal: show what is allowed and refused)
	@go build -o bin/tty ./clients/tty
	@bin/tty --sidecar $(CURDIR)/$(SIDECAR); status=$$?; \
	if [ -t 0 ] && [ -t 1 ]; then exit 0; else exit $$status; fi # a shell's own exit status is no failure of this

build: ## build bin/sandbox-sidecar, and the two programs beside it
	@go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(dir $(SIDECAR)) ./cmd/sandbox-sidecar ./cmd/sandbox-sidecar-mcp ./cmd/sandbox-sidecar-credentials

test: ## run every test; installs missing programs first (as root; otherwise prints how)
	@tests/prerequisites
	@$(PARTS) go vscode neovim neovim-oldest

test-all: ## run everything, as root, as an ordinary user and under the race detector, whatever has changed
	.ci/run all

test-go: ## run every test of the sidecar
	@tests/prerequisites
	@$(PARTS) go

test-clients: ## run every test of the editors' plugins
	@tests/prerequisites
	@$(PARTS) vscode neovim neovim-oldest

test-neovim: ## run the tests of the Neovim plugin, in the oldest Neovim that it supports and in the newest
	@tests/prerequisites
	@$(PARTS) neovim neovim-oldest

test-vscode: ## run the tests of the VS Code extension: its parts, and the whole in a real VS Code
	@tests/prerequisites
	@$(PARTS) vscode

test-user: ## run every test of the sidecar as an ordinary user (root only)
	@tests/prerequisites
	@$(PARTS) user

test-vscode-user: ## run the tests of the VS Code extension as an ordinary user (root only)
	@tests/prerequisites
	tests/as-user sh -c 'tests/prerequisites && clients/vscode/tests/run'

test-systemd: ## test the sidecar under the systemd of Debian bullseye, 247 (as root, on Debian; downloads 4.5 MB each time)
	@tests/prerequisites
	tests/systemd/under-bullseye

test-kernels: ## boot Debian's kernels, test the sidecar on each, write docs/kernels.md (as root; downloads 200 MB once)
	@tests/prerequisites kernels
	go run ./tests/kernels -write docs/kernels.md

test-machines: ## run everyday programs on machines of eight layouts, write docs/machines.md (as root)
	@tests/prerequisites
	go test -count=1 -timeout 60m ./tests/machines -update

test-suites: ## run the test suites of CPython and Go without a sandbox and in one, and print what differs (half an hour)
	@tests/prerequisites suites
	@$(if $(filter 0,$(shell id -u)),tests/as-user) sh -c 'make build && go run ./tests/suites $(if $(RUN),-run "$(RUN)")'

ci-list: ## list which tests .ci/run runs as root, as an ordinary user, and under the race detector
	@go run ./tests/ci list

attack: ## try every attack, without and with a sandbox, and print what happened, by docs/design/what-runs-outside.md, and by grant
	@tests/prerequisites
	@matrix=$$(mktemp); go test -count=1 -timeout 10m -run '^TestAttacks$$' ./tests/attack -matrix "$$matrix"; status=$$?; \
	cat "$$matrix"; \
	go test -count=1 -timeout 10m -run '^TestEveryWritableGrantIs' ./tests/protected -matrix "$$matrix" || status=$$?; \
	cat "$$matrix"; rm -f "$$matrix"; exit $$status

race: ## run the tests of the concurrent packages under the race detector (needs a C compiler)
	@$(PARTS) race

check: check-fast check-slow ## all checks

check-fast: format measure ## the checks that take seconds: formatting, lengths, and the tests of messages, generated files, imports and documents
	@go test -vet=off ./tests/messages ./tests/sources ./cmd/gen

check-slow: vet lint lint-lua lint-vscode cross ## vet, linters, and the builds for other systems

format:
	@unformatted=$$(go run $(GOFUMPT) -l $$(git ls-files '*.go')) || exit 1; \
	[ -z "$$unformatted" ] || { echo "not formatted (go run $(GOFUMPT) -w): $$unformatted"; exit 1; }

vet:
	go vet ./...

measure: ## check the lengths of lines and sentences
	go run ./cmd/measure

lint: $(GOLANGCI) ## run the linters of .golangci.yml
	$(GOLANGCI) run --allow-parallel-runners ./...

$(GOLANGCI):
	@mkdir -p bin && dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	GOBIN=$$dir go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) && mv "$$dir/golangci-lint" $@

lint-lua: ## run the linter and the formatter of the Lua code
	@tests/prerequisites
	@tests/on-debian sh -c 'cd clients/neovim && luacheck --quiet . && $$(tests/tools)/stylua --check .'

lint-vscode: ## check the types of the VS Code extension, and run its linter
	@tests/prerequisites
	@tests/on-debian sh -c 'cd clients/vscode && node_modules/.bin/tsc --noEmit -p . && node_modules/.bin/eslint .'

generate: ## write the generated files: schema, references, TypeScript and Lua types
	go run ./cmd/gen

cross: $(GOLANGCI) ## build and vet everything for the other systems, and lint it for a Mac
	@for target in darwin/arm64 darwin/amd64 linux/arm64; do \
		echo "build for $$target"; \
		export GOOS=$${target%/*} GOARCH=$${target#*/}; \
		go build -o /dev/null ./... || exit 1; \
		[ $$target = darwin/amd64 ] || go vet ./... || exit 1; \
	done
	@echo "build the commands for windows/amd64: they say that WSL2 is needed"; \
	GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/... ./clients/...
	@# What is another system's alone is vetted and linted for one processor: the other differs in no line of ours.
	@echo "lint for darwin/arm64"; GOOS=darwin GOARCH=arm64 $(GOLANGCI) run --allow-parallel-runners ./...

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$$file" | while read -r target; do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
		done || exit 1; \
	done

release: ## build the release files of VERSION: archives, packages, formula, checksums, lists of components; into dist
	.ci/release $(VERSION)

check-release: ## unpack the release files of VERSION in dist, and run them
	.ci/check-release $(VERSION)

vsix: ## package the VS Code extension with its sidecar, for each platform, into dist (needs Go and npm)
	@clients/vscode/tests/get-tools packages
	@mkdir -p dist
	@for target in linux-x64 linux-arm64 darwin-x64 darwin-arm64; do \
		VERSION=$(VERSION) clients/vscode/package $(CURDIR)/dist/sandbox-sidecar-$$target.vsix $$target && ls -l dist/sandbox-sidecar-$$target.vsix || exit 1; \
	done

screenshots: SHOTS := $(CURDIR)/build/screenshots
screenshots: ## take the pictures of the VS Code extension's README again, and one of every state into build/screenshots
	@tests/prerequisites
	rm -rf $(SHOTS)
	SHOTS=$(SHOTS) PICTURES=$(CURDIR)/clients/vscode/media clients/vscode/tests/run -g '^(pictures|a first hour|states), '
	SHOTS=$(SHOTS) clients/neovim/tests/run clients/neovim/tests/test_story.lua

recording: ## type README.md's commands again, and draw docs/recording.svg
	go test -count=1 ./tests/recording -run '^TestReadme' -update

bench: build ## compare the sidecar with its peers, and write docs/performance.md (QUICK=1: in two minutes, and print only)
	@tests/bench/install-peers build/bench
	go run ./tests/bench -sidecar $(SIDECAR) -peers build/bench $(if $(QUICK),-quick -out -)

bench-packages: ## print the benchmarks of the packages
	go test -run '^$$' -bench . -benchmem ./...

clean: ## remove what was built
	rm -rf bin dist clients/vscode/dist clients/vscode/dist-test clients/vscode/bin
