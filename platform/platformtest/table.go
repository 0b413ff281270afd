//go:build unix

package platformtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Case is one policy, and the expected outcome of several acts under it on
// every system. Paths are relative to the scene, unless they are absolute.
type Case struct {
	Name string
	// Files, Programs, Sockets and Dirs are created, with the directories above
	// them. Links are symlinks by name.
	Files, Programs, Sockets, Dirs []string
	Links                          map[string]string
	// Grants are the policy's rules, Connect its sockets, Protected its
	// protected paths.
	Grants    map[string]policy.Access
	Connect   []string
	Protected []string
	Tries     []Try
}

// Try is one act of a case.
type Try struct {
	Act     Act
	Allowed bool
	// Needs is a protection; if it is not enforced, the outcome may differ.
	// Empty: none.
	Needs string
	// Except lists systems on which the outcome is the opposite by design, with
	// the reason.
	Except map[string]string
	// AcrossGrants is true for a move or a link from one grant to another. If
	// each grant is a mount of its own, it fails.
	AcrossGrants bool
}

// Scene is a case on a disk.
type Scene struct {
	Policy *policy.Policy
	// Acts are those of the tries, with the scene's paths.
	Acts []Act
}

func may(verb Verb, path string, target ...string) Try {
	return Try{Act: Act{Verb: verb, Path: path, Target: strings.Join(target, "")}, Allowed: true}
}

func mayNot(verb Verb, path string, target ...string) Try {
	return Try{Act: Act{Verb: verb, Path: path, Target: strings.Join(target, "")}}
}

func (t Try) needing(protection string) Try { t.Needs = protection; return t }

func (t Try) except(system, reason string) Try {
	t.Except = map[string]string{system: reason}
	return t
}

func (t Try) acrossGrants() Try { t.AcrossGrants = true; return t }

// Table is the meaning of policies on every system. Each act uses a path of its
// own, so that none depends on another.
var Table = []Case{
	{
		Name:   "reading follows the grants",
		Files:  []string{"in/file", "in/sub/deep", "out/file", "mixed/granted", "mixed/granted-not", "program/file"},
		Grants: map[string]policy.Access{"in": policy.Read, "mixed/granted": policy.Read, "program": policy.Execute},
		Tries: []Try{
			may(Read, "in/file"), may(Read, "in/sub/deep"), may(List, "in"), may(List, "in/sub"),
			may(Read, "mixed/granted"), may(Read, "in/sub/../file"), may(Read, "out/../in/file"),
			mayNot(Read, "out/file"), mayNot(List, "out"), mayNot(Read, "mixed/granted-not"), mayNot(List,
				"mixed"), mayNot(List, ""),
			mayNot(Read, "in/../out/file"), mayNot(Read, "program/file"), mayNot(List, "program"),
			mayNot(Write, "in/file"),
		},
	},
	{
		Name: "writing follows the grants",
		Files: []string{
			"rw/written", "rw/truncated", "rw/removed", "ro/written", "ro/truncated", "ro/removed", "out/written",
			"out/truncated", "out/removed",
		},
		Dirs:   []string{"rw", "ro", "out"},
		Grants: map[string]policy.Access{"rw": policy.ReadWrite, "ro": policy.Read},
		Tries: []Try{
			may(Write, "rw/written"), may(Truncate, "rw/truncated").needing(platform.Filesystem), may(Create,
				"rw/new"), may(MakeDir, "rw/newdir"),
			may(Symlink, "rw/newlink", "/nowhere"), may(Remove, "rw/removed"), may(Read, "rw/written"), may(List, "rw"),
			mayNot(Write, "ro/written"), mayNot(Truncate, "ro/truncated"), mayNot(Create, "ro/new"), mayNot(MakeDir,
				"ro/newdir"),
			mayNot(Symlink, "ro/newlink", "/nowhere"), mayNot(Remove, "ro/removed"), may(Read, "ro/written"),
			mayNot(Write, "out/written"), mayNot(Truncate, "out/truncated"), mayNot(Create, "out/new"), mayNot(MakeDir,
				"out/newdir"),
			mayNot(Symlink, "out/newlink", "/nowhere"), mayNot(Remove, "out/removed"), mayNot(Create, "beside"),
		},
	},
	{
		Name:  "each access is its own",
		Files: []string{"write/file", "both/file", "single", "singles/granted", "singles/other"},
		Grants: map[string]policy.Access{
			"write": policy.Write, "both": policy.Read | policy.Write,
			"singles/granted": policy.ReadWrite,
		},
		Tries: []Try{
			may(Create, "write/new"), may(Write, "write/file"), mayNot(Read, "write/file"), mayNot(List, "write"),
			may(Read, "both/file"), may(Write, "both/file"),
			may(Write, "singles/granted"), may(Read, "singles/granted"), mayNot(Remove, "singles/granted"),
			mayNot(Write, "singles/other"),
			mayNot(Create, "singles/new"), mayNot(Rename, "singles/granted", "singles/renamed"),
			mayNot(Rename, "singles/other", "singles/granted"),
		},
	},
	{
		Name:     "executing follows the grants",
		Programs: []string{"x/true", "rw/true", "ro/true", "out/true"},
		Grants: map[string]policy.Access{
			"x": policy.Read | policy.Execute, "rw": policy.ReadWrite, "ro": policy.Read,
		},
		Tries: []Try{
			may(Execute, "x/true"), may(Execute, "rw/true"), mayNot(Execute, "ro/true"), may(Read, "ro/true"),
			mayNot(Execute, "out/true"),
		},
	},
	{
		Name:  "grants add up along a path",
		Files: []string{"rw/ro/file", "rw/ro/removed", "ro/rw/file", "ro/file", "ro/rw/sub/file"},
		Grants: map[string]policy.Access{
			"rw": policy.ReadWrite, "rw/ro": policy.Read, "ro": policy.Read,
			"ro/rw": policy.Write,
		},
		Tries: []Try{
			may(Write, "rw/ro/file"), may(Create, "rw/ro/new"), may(Remove, "rw/ro/removed"),
			may(Read, "ro/rw/sub/file"),
			may(Write, "ro/rw/file"), may(Create, "ro/rw/sub/new"), mayNot(Write, "ro/file"), mayNot(Create, "ro/new"),
		},
	},
	{
		Name:  "names that lead out are followed to their end",
		Files: []string{"in/file", "out/file"},
		Links: map[string]string{
			"in/to-file": "$/out/file", "in/to-dir": "$/out", "in/relative": "../out/file", "in/home": "$/in/file",
			"out/back": "$/in/file",
		},
		Grants: map[string]policy.Access{"in": policy.ReadWrite},
		Tries: []Try{
			may(Read, "in/home"), may(Read, "in/to-dir/../in/file"), may(Read, "out/back"), may(Write, "out/back"),
			mayNot(Read, "in/to-file"), mayNot(Read, "in/to-dir/file"), mayNot(List, "in/to-dir"),
			mayNot(Read, "in/relative"),
			mayNot(Read, "in/../out/file"), mayNot(Write, "in/to-file"), mayNot(Create, "in/to-dir/new"), mayNot(Remove,
				"in/to-dir/file"),
			may(Remove, "in/to-file"), mayNot(Remove, "out/back"),
		},
	},
	{
		Name: "moving and linking do not widen a grant",
		Files: []string{
			"rw/a/file", "rw/b/file", "rw/c/file", "rw/linked", "rw/moved", "rw2/file", "rw/victim",
			"ro/file", "ro/victim", "out/file", "rw/d/file",
		},
		Grants: map[string]policy.Access{"rw": policy.ReadWrite, "rw2": policy.ReadWrite, "ro": policy.Read},
		Tries: []Try{
			may(Rename, "rw/a/file", "rw/a/renamed"), may(Rename, "rw/b", "rw/e"),
			may(Rename, "rw/moved", "rw2/moved").acrossGrants(),
			may(Rename, "rw/c/file", "rw/victim"), may(Link, "rw/linked", "rw/a/linked"),
			may(Link, "rw2/file", "rw/from-rw2").acrossGrants(),
			mayNot(Rename, "ro/file", "rw/stolen"), mayNot(Link, "ro/file", "rw/linked-ro"), mayNot(Link, "out/file",
				"rw/linked-out"),
			mayNot(Rename, "out/file", "rw/stolen-out"), mayNot(Rename, "rw/d", "ro/d"), mayNot(Rename, "rw/d/file",
				"ro/victim"),
			mayNot(Rename, "rw2", "renamed"), mayNot(Rename, "rw2", "rw/rw2"), mayNot(Link, "rw/linked",
				"out/linked"), mayNot(Remove, "ro/victim"),
		},
	},
	{
		Name: "what everybody may read is not granted by itself",
		Tries: []Try{
			mayNot(List, "/etc"), mayNot(Read, "/etc/hosts"), mayNot(List, "/home"),
			mayNot(List, "/").except("darwin", "dyld reads the root directory itself at the start of every "+
				"program, and aborts if it cannot"),
		},
	},
	{
		Name:    "sockets of outside processes are a permission of their own",
		Sockets: []string{"s/granted", "s/other", "rw/other"},
		Grants:  map[string]policy.Access{"rw": policy.ReadWrite, "s": policy.Read},
		Connect: []string{"s/granted"},
		Tries: []Try{
			may(Connect, "s/granted"), mayNot(Connect, "s/other").needing(platform.UnixSockets), mayNot(Connect,
				"rw/other").needing(platform.UnixSockets),
		},
	},
	{
		Name:      "protected paths stay as they are",
		Files:     []string{"p/.git/config", "p/.git/hooks/sample", "p/.git/HEAD", "p/evil", "p/evil2"},
		Dirs:      []string{"p/.vscode"},
		Grants:    map[string]policy.Access{"p": policy.ReadWrite},
		Protected: []string{"p/.git/config", "p/.git/hooks", "p/.vscode"},
		Tries: []Try{
			may(Write, "p/.git/HEAD"), may(Create, "p/.git/index"), may(Read, "p/.git/config"),
			may(Create, "p/.vscode-not"), mayNot(Write, "p/.git/config").needing(platform.ProtectedPaths),
			mayNot(Create, "p/.git/hooks/pre-commit").needing(platform.ProtectedPaths),
			mayNot(Remove, "p/.git/hooks/sample").needing(platform.ProtectedPaths),
			mayNot(Rename, "p/evil", "p/.git/config").needing(platform.ProtectedPaths),
			mayNot(Link, "p/evil2", "p/.git/hooks/linked").needing(platform.ProtectedPaths),
			mayNot(Create, "p/.vscode/tasks.json").needing(platform.ProtectedPaths),
			mayNot(Rename, "p/.vscode", "p/moved").needing(platform.ProtectedPaths),
			mayNot(Rename, "p/.git", "p/moved").needing(platform.ProtectedPaths),
		},
	},
	{
		Name:      "the way to a protected path may be made",
		Dirs:      []string{"p"},
		Grants:    map[string]policy.Access{"p": policy.ReadWrite},
		Protected: []string{"p/.git/config", "p/.git/hooks"},
		Tries: []Try{
			may(MakeDir, "p/.git"), mayNot(MakeDir, "beside"),
		},
	},
	{
		Name:  "processes outside cannot be signalled",
		Tries: []Try{{Act: Act{Verb: Kill}, Needs: platform.Signals}},
	},
}

// Set creates a case in a directory, which must have a real and short path.
func (c Case) Set(t *testing.T, dir string) Scene {
	t.Helper()
	at := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		// Not filepath.Join, which would remove a ".." that the case is about.
		return strings.TrimSuffix(dir+"/"+name, "/")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range c.Dirs {
		must(os.MkdirAll(at(name), 0o700))
	}
	above := func(name string) string {
		must(os.MkdirAll(filepath.Dir(at(name)), 0o700))
		return at(name)
	}
	for _, name := range c.Files {
		must(os.WriteFile(above(name), []byte("content"), 0o600))
	}
	for _, name := range c.Programs {
		program, err := os.ReadFile("/bin/true")
		if err != nil {
			program, err = os.ReadFile("/usr/bin/true") // macOS
		}
		must(err)
		must(os.WriteFile(above(name), program, 0o700))
	}
	for _, name := range c.Sockets {
		listener, err := net.Listen("unix", above(name))
		must(err)
		t.Cleanup(func() { listener.Close() })
	}
	for name, target := range c.Links {
		must(os.Symlink(strings.Replace(target, "$", dir, 1), above(name)))
	}
	scene := Scene{Policy: Policy(t)}
	for name, access := range c.Grants {
		scene.Policy.Rules = append(scene.Policy.Rules, policy.Rule{
			Path: at(name), Access: access, Origin: policy.Origin{File: policy.OriginEditor, Key: "table"},
		})
	}
	for _, name := range c.Connect {
		scene.Policy.UnixSockets = append(scene.Policy.UnixSockets, policy.UnixSocket{Path: at(name)})
	}
	for _, name := range c.Protected {
		scene.Policy.Protected = append(scene.Policy.Protected, policy.Protected{Path: at(name)})
	}
	for _, try := range c.Tries {
		act := try.Act
		switch act.Verb {
		case Symlink:
			act.Path = at(act.Path)
		case Rename, Link:
			act.Path, act.Target = at(act.Path), at(act.Target)
		case Kill:
			act.PID = NewBystander(t).PID()
		default:
			act.Path = at(act.Path)
		}
		scene.Acts = append(scene.Acts, act)
	}
	return scene
}

// RunTable performs the table under a backend, and returns how many outcomes
// were as expected. A try whose protection is not reported as enforced is not
// counted.
func RunTable(t *testing.T, backend platform.Backend) (agreed int) {
	t.Helper()
	for _, c := range Table {
		scene := c.Set(t, shortDir(t))
		var errnos []unix.Errno
		for _, act := range scene.Acts {
			errnos = append(errnos, refusedAs(act, scene.Policy.Rules, true))
		}
		results, enforcement := Perform(t, backend, Confined(t, backend, scene.Policy, scene.Acts...))
		// On macOS the rules of the profile refuse the same, and nothing is mounted.
		fileTree := enforcement.Protections[platform.FileTree].Status == platform.Enforced && backend.Name() == "linux"
		for i, try := range c.Tries {
			if needs := try.Needs; needs != "" && enforcement.Protections[needs].Status != platform.Enforced {
				t.Logf("%s: %s: not compared, because %s is %s", c.Name, scene.Acts[i], needs,
					enforcement.Protections[needs].Status)
				continue
			}
			want := try.Allowed != (try.Except[backend.Name()] != "") && (!fileTree || !try.AcrossGrants)
			denied := results[i].Refused()
			switch {
			case try.Needs == platform.ProtectedPaths:
				denied = results[i].RefusedByMount()
			case fileTree:
				denied = refused(scene.Acts[i], results[i], errnos[i])
			}
			if fault := disagrees(results[i], want, denied); fault != "" {
				t.Errorf("%s: %s: %s", c.Name, scene.Acts[i], fault)
				continue
			}
			agreed++
		}
	}
	return agreed
}

// disagrees returns what is wrong about a result, or "". denied says that the
// act failed as it has to fail if it is denied.
func disagrees(result Result, want, denied bool) string {
	switch {
	case want && !result.OK():
		return "must succeed, but failed: " + result.Error
	case !want && result.OK():
		return fmt.Sprintf("must be denied, but succeeded: %.40q", result.Value)
	case !want && !denied:
		return "failed, but not as it must: " + result.Error
	}
	return ""
}

// shortDir returns a temporary directory whose real path leaves room for the
// name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "t-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
