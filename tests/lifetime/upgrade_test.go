//go:build linux

package lifetime

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// earlier is the version with which this one is compared: the last release, or
// until there is one a commit before journals said what another version left.
const earlier = "4fc98809c857e3c21bedc9479f519b2c81868c43"

// A sidecar and its watchdog are killed, and the next sidecar is of a later or of
// an earlier version. It ends what the dead one has left, sessions start, and
// what users keep is as it was. If variants take turns, each change has one sandbox
// with each way of tracking.
func TestAnotherVersionStartsAfterACrash(t *testing.T) {
	t.Parallel()
	harness.Once(t, "the lines of a journal are the same for each user")
	before, now := earlierBinary(t), harness.Binary(t)
	for i, change := range []struct{ name, crashed, next string }{
		{"upgrade", before, now}, {"downgrade", now, before},
	} {
		for j, mode := range trackingModes(t) {
			for k, sandbox := range sandboxes {
				if !harness.Turn(t, i+j+k, len(sandboxes)) {
					continue
				}
				t.Run(change.name+" "+mode.name+" "+sandbox.name, func(t *testing.T) {
					t.Parallel()
					wrap := mode.wrap(t)
					of := func(binary string) harness.Options {
						return harness.Options{Settings: sandbox.settings, Wrap: func(command *exec.Cmd) {
							command.Path, command.Args[0] = binary, binary
							wrap(command)
						}}
					}
					startAfterACrash(t, of(change.crashed), of(change.next), change.crashed,
						sandbox.name == "unsandboxed")
				})
			}
		}
	}
}

func startAfterACrash(t *testing.T, crashed, later harness.Options, binary string, unsandboxed bool) {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t) // or the list of trusted projects would be a session's
	trusted := filepath.Join(w.Outside, "trusted")
	file := filepath.Join(trusted, ".zed", "settings.json")
	harness.Write(t, file, harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{w.Project}}))
	harness.Write(t, w.UserSettings(), crashed.Settings)
	trust := exec.Command(binary, "trust", "--digest", harness.Digest(t, file), trusted)
	trust.Env, trust.Dir = harness.Environ(w), trusted
	if out, err := trust.CombinedOutput(); err != nil {
		t.Fatalf("trust: %v, %s", err, out)
	}
	dead := harness.Start(t, w, crashed)
	left := harness.StartEscapees(t, dead, protocol.Tool)
	journal := onlyJournal(t, w)
	killWithWatchdog(t, dead)
	if unsandboxed && len(left.Alive()) == 0 {
		t.Fatal("the escapees have ended by themselves: this test shows nothing")
	}
	kept := keptState(t, w)
	if kept["trust.json"] == "" {
		t.Fatalf("no list of trusted projects among %d files: this test shows nothing", len(kept))
	}
	next := harness.Start(t, w, later)
	left.AwaitPromisedDeath(t)
	harness.MustEnd(t, "the dead sidecar's cgroups are gone", func() bool {
		return len(w.Cgroups(t, dead.Process())) == 0
	})
	awaitRecovery(t, journal)
	if output, status := next.Tool("echo on"); status != 0 || !strings.HasPrefix(output, "on") {
		t.Errorf("a session of the other version: status %d, %q", status, output)
	}
	_ = next.HangUp()
	harness.NoTrace(t, w, next.Process())
	after := keptState(t, w)
	for name := range kept {
		if _, there := after[name]; !there {
			t.Errorf("%s is lost", name)
		}
	}
	if after["trust.json"] != kept["trust.json"] {
		t.Errorf("the list of trusted projects was %s, and is %s", kept["trust.json"], after["trust.json"])
	}
}

// keptState are the files that outlive sidecars, by their paths in the state
// directory, with their contents.
func keptState(t *testing.T, w *harness.World) map[string]string {
	t.Helper()
	files, dir := map[string]string{}, filepath.Dir(w.State())
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case path == w.State():
			return fs.SkipDir
		case entry.Type().IsRegular():
			name, err := filepath.Rel(dir, path)
			files[name] = harness.Read(t, path)
			return err
		}
		return nil
	})
	harness.Must(t, err)
	return files
}

// earlierBinary builds the sidecar of the earlier version, and keeps it in the
// user's cache directory.
func earlierBinary(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	harness.Must(t, err)
	kept := filepath.Join(cache, "sandbox-sidecar-tests", earlier)
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	if _, err := exec.LookPath("go"); err != nil {
		harness.Skip(t, "go", err.Error())
	}
	// The checkout may be another user's.
	git := func(args ...string) *exec.Cmd {
		return exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	}
	root, err := git("rev-parse", "--show-toplevel").Output()
	if err != nil {
		harness.Skip(t, "git_history", err.Error())
	}
	top := strings.TrimSuffix(string(root), "\n")
	if out, err := git("-C", top, "cat-file", "-e", earlier+"^{commit}").CombinedOutput(); err != nil {
		harness.Skip(t, "git_history", err.Error()+": "+string(out))
	}
	sources, archive := t.TempDir(), filepath.Join(t.TempDir(), "sources.tar")
	harness.Must(t, os.MkdirAll(filepath.Dir(kept), 0o755))
	dir, err := os.MkdirTemp(filepath.Dir(kept), "new-") // other test processes may build it, too
	harness.Must(t, err)
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, "sandbox-sidecar")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", built, "./cmd/sandbox-sidecar")
	build.Dir, build.Env = sources, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	for _, command := range []*exec.Cmd{
		git("-C", top, "archive", "--output", archive, earlier),
		exec.Command("tar", "--extract", "--file", archive, "--directory", sources),
		build,
	} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v, %s", command.Args, err, out)
		}
	}
	harness.Must(t, os.Rename(built, kept))
	return kept
}
