//go:build linux

package temporary

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// withOwn runs a command line in mounts of its own, as a user who may mount
// there. If the machine does not allow that, the test is skipped.
func withOwn(t *testing.T, w *harness.World, line string) string {
	t.Helper()
	harness.RequirePrograms(t, "unshare", "mount")
	args := []string{"--mount"}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--map-current-user", "--keep-caps")
	}
	if out, err := exec.Command("unshare", append(args, "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, "mount_namespace", string(out))
	}
	binary := w.Outside + "/sandbox-sidecar" // the one in /tmp is not seen there
	harness.CopyProgram(t, harness.Binary(t), binary)
	command := exec.Command("unshare", append(args, "bash", "-c", line, binary)...)
	command.Env, command.Dir = harness.Environ(w), w.Project
	out, _ := command.CombinedOutput()
	return strings.Join(strings.Fields(string(out)), " ") // long lines are folded
}

// A home in /tmp is not open to sessions that have a /tmp of their own: no
// warning says so, and what a session writes there stays inside.
func TestTemporaryFiles_AHomeInTmp(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, machine := range harness.Machines(t) {
		dir := harness.ShortDir(t)
		w := &harness.World{Home: dir + "/home", Project: dir + "/home/project", Outside: dir + "/outside"}
		for _, d := range []string{w.Home, w.Project, w.Outside} {
			harness.MakeDir(t, d)
		}
		e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: machine.Wrap})
		s, status := e.Run(protocol.SpawnParams{Command: "echo x >~/.profile.d; true"})
		open := harness.Read(t, w.Home+"/.profile.d") != ""
		warned := strings.Contains(strings.Join(s.Sandbox.Warnings, " "),
			w.Home+"/.local/state/sandbox-sidecar/trust.json")
		if status != 0 || open != warned || open == machine.Namespaces {
			t.Errorf("%s: status %d, written %t, warnings %q", machine.Name, status, open, s.Sandbox.Warnings)
		}
	}
}

// If no directory can be made in a full /tmp, the session has none. The warning
// and the refused write say so, and no setting is suggested. Other temporary
// directories work, and nothing of the real /tmp is opened.
func TestTemporaryFiles_OnAFullDisk(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files", "filesystem")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	const fill = `mount -t tmpfs -o size=64k,nr_inodes=3 tmpfs /tmp &&
		echo secret >/tmp/full && echo x >/tmp/more || exit 99; `
	out := withOwn(t, w, fill+`"$0" exec -- sh -c '
cat /tmp/full; echo x >/tmp/f; echo x >/var/tmp/f && echo works'`)
	for _, want := range []string{
		"warning: /tmp cannot be used: no directory of the project's own could be made there: no space left on device",
		"works", `create "/tmp/f" by "sh"`, "note: /tmp cannot be used",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	for _, unwanted := range []string{"secret", "by now"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("%q is in:\n%s", unwanted, out)
		}
	}
}

// Where a directory above is granted, a full /var/tmp is hidden: otherwise the
// session would have that of all programs. A file of theirs, in turn, is seen if
// the user shares the directory.
func TestTemporaryFiles_OnAFullDiskBelowAGrant(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files", "filesystem", "hidden_paths")
	const fill = `mount -t tmpfs -o size=64k,nr_inodes=3 tmpfs /var/tmp &&
		echo secret >/var/tmp/full && echo x >/var/tmp/second || exit 99; `
	const attack = `"$0" exec -- sh -c 'echo "it reads $(cat /var/tmp/full)"
		echo changed >/var/tmp/full; ls /var/tmp; echo works'; echo "it left $(cat /var/tmp/full)"`
	system := map[string]any{"read_write": []string{"/dev/null"}}
	for name, sandbox := range map[string]harness.Sandbox{
		"relaxed":  {"mode": "relaxed"},
		"readable": {"additional_read_only_paths": []string{"/"}, "system_paths": system},
		"writable": {"system_paths": map[string]any{"read_write": []string{"/var", "/dev/null"}}},
		"shared": {
			"additional_read_only_paths": []string{"/"}, "system_paths": system, "temporary_files": "shared",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			harness.Write(t, w.UserSettings(), harness.Defaults(sandbox))
			out := withOwn(t, w, fill+attack)
			if reads := strings.Contains(out, "it reads secret"); reads != (name == "shared") ||
				strings.Contains(out, "second") != reads {
				t.Errorf("it reads files of other programs: %t\n%s", reads, out)
			}
			if !strings.Contains(out, "works") || !strings.Contains(out, "it left secret") {
				t.Errorf("%s", out)
			}
			warned := strings.Contains(out, "warning: /var/tmp cannot be used")
			if warned == (name == "shared") {
				t.Errorf("warned: %t\n%s", warned, out)
			}
		})
	}
}

// A session that fills its /tmp is told so by the kernel, as any program is.
// Nothing of that is called a denial.
func TestTemporaryFiles_AreFull(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	const small = `mount -t tmpfs -o size=64k tmpfs /tmp || exit 99; `
	out := withOwn(t, w, small+`"$0" exec -- sh -c '
		head -c 100000 /dev/zero >/tmp/f; echo x >/tmp/g; rm /tmp/f && echo x >/tmp/g && echo works'`)
	if !strings.Contains(out, "No space left on device") || !strings.Contains(out, "works") {
		t.Errorf("%s", out)
	}
	for _, unwanted := range []string{"refused by the sandbox", "by now", "to allow it", "warning:"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("%q is in:\n%s", unwanted, out)
		}
	}
}
