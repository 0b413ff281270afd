package main

import (
	"fmt"
	"strings"
)

// The labels of machines that GitHub lends for nothing, by the images' README and
// announcements of actions/runner-images. A label of Intel's that ends in "large"
// costs money, and there is no other for macOS 14.
var (
	machines = []string{"macos-15", "macos-26", "macos-15-intel", "macos-26-intel"}
	// ending are machines that GitHub has announced to take away: macOS 14 on 2
	// November 2026 (issue 13518 there). A job waits a day for a machine that does
	// not exist, and fails. So nothing waits for these.
	ending = []string{"macos-14"}
	// tools are what xcode-select selects: without Xcode, a Mac has the other.
	tools = []string{"Xcode", "CommandLineTools"}
)

// lacks are the features of Linux and Debian, and programs that differ on a Mac.
// Nothing else is skipped.
const lacks = "landlock seccomp cgroups mount_namespaces user_namespaces systemd procfs debian root ps script setsid " +
	"terminals bash-completion fish"

// notCancelled is the condition of steps that find something: they run whatever
// became of the others. A run that is cancelled still has to upload.
const (
	notCancelled = "${{ !cancelled() }}"
	always       = "${{ always() }}"
)

// workflow is .github/workflows/macos.yml.
func workflow() string {
	var b strings.Builder
	b.WriteString(`# Written from tests/macos/workflow.go by "go test ./tests/macos -update".
# docs/design/evidence-on-macos.md says why.
name: macos
on:
  workflow_call:
    inputs:
      machines:
        description: labels of machines, as JSON
        type: string
        required: true
  workflow_dispatch:
    inputs:
      machines:
        description: labels of machines, as JSON
        type: string
        required: true
        default: '` + list(machines) + `'
permissions:
  contents: read
jobs:
  evidence:
    strategy:
      fail-fast: false
      matrix:
        os: ${{ fromJSON(inputs.machines) }}
        tools: [` + strings.Join(tools, ", ") + `]
    name: ${{ matrix.os }}, ${{ matrix.tools }}
    runs-on: ${{ matrix.os }}
    timeout-minutes: ` + fmt.Sprint(jobMinutes) + `
    env:
      SIDECAR_EVIDENCE: bin/evidence
      SIDECAR_MISSING: >-
        ` + lacks + `
      TOOLS: ${{ matrix.tools }}
      HOMEBREW_NO_AUTO_UPDATE: "1"
    steps:
`)
	for _, p := range preparations {
		b.WriteString(p)
	}
	for _, s := range steps {
		condition := notCancelled
		if s.name == "records" {
			condition = always
		}
		fmt.Fprintf(&b, "      # %s finds %s.\n", s.name, s.finds)
		fmt.Fprintf(&b, "      - name: %s\n        if: %s\n        timeout-minutes: %d\n", s.name, condition, s.minutes)
		fmt.Fprintf(&b, "        run: bin/macos step %s\n", s.name)
	}
	b.WriteString(`      - name: upload
        if: ${{ always() }}
        uses: actions/upload-artifact@v4
        with:
          name: macos-${{ matrix.os }}-${{ matrix.tools }}
          path: bin/evidence
          if-no-files-found: error
`)
	return b.String()
}

// jobMinutes is the most that GitHub allows a job.
const jobMinutes = 360

// preparations are the steps before those that find something.
var preparations = []string{
	`      - name: check out
        if: ` + notCancelled + `
        uses: actions/checkout@v4
        with:
          fetch-depth: 0
`,
	`      - name: set up go
        if: ` + notCancelled + `
        uses: actions/setup-go@v5
        with:
          go-version-file: go.mod
`,
	`      - name: build
        if: ` + notCancelled + `
        run: CGO_ENABLED=0 go build -o bin/ ./cmd/sandbox-sidecar ./cmd/sandbox-sidecar-mcp ./cmd/sandbox-sidecar-credentials ./tests/macos ./tests/macos/victim
`,
	`      - name: choose tools
        if: ` + notCancelled + `
        run: '[ "$TOOLS" = Xcode ] || sudo xcode-select --switch "/Library/Developer/$TOOLS"'
`,
	`      - name: install programs
        if: ` + notCancelled + `
        timeout-minutes: 20
        run: brew install tmux fish coreutils gnupg neovim node@24
`,
	`      - name: build fsevents
        if: ` + notCancelled + `
        run: clang -o bin/fsevents tests/macos/testdata/fsevents.c -framework CoreServices
`,
}

// callers are the jobs of .github/workflows/ci.yml that call it.
func callers() string {
	return `  macos:
    uses: ./.github/workflows/macos.yml
    with:
      machines: '` + list(machines) + `'
  # GitHub has announced to take these machines away, so no release waits for them.
  macos-ending:
    uses: ./.github/workflows/macos.yml
    with:
      machines: '` + list(ending) + `'
`
}

// list is a list of words as JSON.
func list(words []string) string { return `["` + strings.Join(words, `", "`) + `"]` }
