package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Two panes of one tmux: the left one edits the settings, the right one shows
// an editor's notifications. A grant makes the running session stale. A typing
// error is reported with its place and changes nothing. Correcting it clears
// the report.
func TestLiveReload_InTwoPanes(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	viewer := filepath.Join(t.TempDir(), "tty")
	build := exec.Command("go", "build", "-trimpath", "-o", viewer,
		"github.com/sandbox-sidecar/sandbox-sidecar/clients/tty")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build viewer: %v\n%s", err, output)
	}
	panes := newPanes(t, w)
	panes.tmux("new-session", "-d", "-x", "200", "-y", "60", "PS1='$ ' exec /bin/sh -i")
	panes.tmux("split-window", "-h", fmt.Sprintf("exec %s --watch --sidecar %s --project %s", viewer, harness.Binary(t),
		w.Project))
	policies := panes.await(`session ([0-9a-f]{8}) runs under policy ([0-9a-f]{8})`)
	session, before := policies[1], policies[2]

	panes.edit(harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{w.Outside}}))
	stale := panes.await(`session ` + session + ` is stale: policy ` + before + ` then, ([0-9a-f]{8}) now`)
	panes.await(`a new session may read \S*/outside`)
	if stale[1] == before {
		t.Errorf("the policy is %s as before", before)
	}

	panes.edit(`{"terminal": {"sandbox": {"enabled": true, "oops"`)
	panes.await(`settings.json:\d+:\d+: error: not valid JSON`)

	panes.edit(harness.Settings(nil))
	panes.await(`settings.json: no diagnostics`)
	panes.await(`a new session may not use \S*/outside`)
	t.Logf("right pane:\n%s", panes.capture("1"))
}

// panes are a tmux server of the test's own.
type panes struct {
	t      *testing.T
	socket string
	world  *harness.World
	edits  int
}

func newPanes(t *testing.T, w *harness.World) *panes {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		harness.Skip(t, "tmux", err.Error())
	}
	// A socket's path is at most 107 bytes long.
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	p := &panes{t: t, socket: filepath.Join(dir, "s"), world: w}
	t.Cleanup(func() {
		_ = p.command("kill-server").Run()
		os.RemoveAll(dir)
	})
	return p
}

func (p *panes) command(args ...string) *exec.Cmd {
	command := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", p.socket}, args...)...)
	command.Env = append(harness.Environ(p.world), "TERM=xterm-256color")
	return command
}

func (p *panes) tmux(args ...string) string {
	p.t.Helper()
	output, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v\n%s", args, err, output)
	}
	return string(output)
}

// edit saves the user's settings from the left pane, by a rename as editors do.
func (p *panes) edit(content string) {
	p.t.Helper()
	p.edits++
	draft := filepath.Join(p.world.Home, fmt.Sprintf("draft%d.json", p.edits))
	harness.Write(p.t, draft, content)
	p.tmux("send-keys", "-t", "0", "-l", fmt.Sprintf("cp ~/%s ~/x && mv ~/x ~/.config/sandbox-sidecar/settings.json",
		filepath.Base(draft)))
	p.tmux("send-keys", "-t", "0", "Enter")
}

func (p *panes) capture(pane string) string {
	p.t.Helper()
	return strings.TrimRight(p.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane), "\n ")
}

// await waits until the right pane shows what matches, and returns the groups
// of the last match.
func (p *panes) await(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	var matches [][]string
	met := harness.Within(func() bool {
		matches = re.FindAllStringSubmatch(p.capture("1"), -1)
		return len(matches) > 0
	})
	if !met {
		p.t.Fatalf("the right pane does not show %s:\n%s", pattern, p.capture("1"))
	}
	return matches[len(matches)-1]
}
