//go:build linux

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// BenchmarkLinks measures a command of a link, from its start to its end: over the
// same in bubblewrap with the namespaces that a session has, and over the plain
// shell. A joined one has the sandbox that an earlier one of its agent has made, and
// one alone makes its own. All take turns, and each figure is the median of ratios.
func BenchmarkLinks(b *testing.B) {
	harness.RequirePrograms(b, "bwrap")
	w := harness.NewWorldOutsideDefaults(b)
	harness.Write(b, w.UserSettings(), harness.Defaults(harness.Sandbox{"allow_network": false}))
	dir := w.HomePath("shells")
	install := exec.Command(harness.Binary(b), "shell", "install", "--dir", dir)
	install.Env = harness.Environ(w)
	if out, err := install.CombinedOutput(); err != nil {
		b.Fatalf("shell install: %v: %s", err, out)
	}
	link := filepath.Join(dir, "bash")
	// As in tests/bench.
	bubblewrap := []string{
		"bwrap", "--ro-bind", "/", "/", "--bind", w.Project, w.Project, "--dev", "/dev", "--proc", "/proc",
		"--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-pid", "--die-with-parent", "/bin/bash",
	}
	if out, err := exec.Command(bubblewrap[0], append(bubblewrap[1:], "-c", "true")...).CombinedOutput(); err != nil {
		harness.Skip(b, "user_namespaces", fmt.Sprintf("bwrap: %v: %s", err, out))
	}
	took := func(owner string, argv ...string) float64 {
		command := exec.Command(argv[0], append(argv[1:], "-c", "true")...)
		command.Dir, command.Env = w.Project, append(harness.Environ(w), "SANDBOX_GROUP_OWNER="+owner)
		begun := time.Now()
		out, err := command.CombinedOutput()
		elapsed := time.Since(begun).Seconds()
		if err != nil {
			b.Fatalf("%q: %v: %s", argv, err, out)
		}
		return elapsed
	}
	self := fmt.Sprint(os.Getpid())
	took(self, link) // makes the sandbox that the next ones join
	ratios := map[string][]float64{}
	for b.Loop() {
		plain, boxed := took("", "/bin/bash"), took("", bubblewrap...)
		joined, alone := took(self, link), took("own", link)
		for name, ratio := range map[string]float64{
			"×bubblewrap-joined": joined / boxed, "×bash-joined": joined / plain,
			"×bubblewrap-alone": alone / boxed, "×bash-alone": alone / plain,
		} {
			ratios[name] = append(ratios[name], ratio)
		}
	}
	for name, list := range ratios {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name)
	}
	b.ReportMetric(0, "ns/op") // meaningless here
}
