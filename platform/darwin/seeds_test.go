package darwin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// mistakes are ones that real profiles have been shipped with. Each is put into
// a good profile, and the matching check must find it.
var mistakes = map[string]struct {
	putBack func(Profile) Profile
	check   func(Profile) error
}{
	"everything may be executed": {
		adding("(allow process-exec)"),
		refuses(file("process-exec", "/Users/u/tools/bin/tool"), file("process-exec", "/private/etc/hosts")),
	},
	"the default is taken to close everything": {
		func(p Profile) Profile {
			return without(p, "(deny file-link)", "(deny file-clone)", "(deny process-info*)")
		},
		refuses(file("file-link", "/Users/u/.ssh/id_rsa"), file("file-clone", "/Users/u/.ssh/id_rsa"),
			with("process-info-pidinfo", "target", "others")),
	},
	"what may be written may not be executed": {
		replacing("process-exec* file-map-executable ", ""),
		grantsAll(file("process-exec", "/private/tmp/go-build1/b001/x.test"),
			file("file-map-executable", "/Users/u/p/target/build.dylib")),
	},
	"the mark's denied side is left to the default": {
		func(p Profile) Profile { return without(p, "(deny mach-lookup", "(deny file-read* file-read-data") },
		markedIn("/private/tmp/mark"),
	},
	"the mark does not come last": {
		func(p Profile) Profile {
			head, mark, _ := strings.Cut(p.Text, "\n; fingerprint\n")
			before, after, _ := strings.Cut(head, "\n; grants\n")
			p.Text = before + "\n; fingerprint\n" + mark + "\n; grants\n" + after
			return p
		},
		markedIn("/private/tmp/mark"),
	},
	"the mark's path leads through a symlink": {
		func(p Profile) Profile { return spelling(p, "/private/tmp/mark", "/tmp/mark") },
		markedIn("/private/tmp/mark"),
	},
	"the session may remove its own mark": {
		func(p Profile) Profile { return without(p, "file-ioctl (subpath (param \"MARK") },
		refuses(file("file-write-unlink", "/private/tmp/mark/allow"),
			file("file-write-create", "/private/tmp/mark/deny")),
	},
	"shells have no terminal": {
		func(p Profile) Profile {
			p = without(p, "(allow pseudo-tty)")
			return replacing(" file-ioctl", "")(p)
		},
		grantsAll(question{"pseudo-tty", nil}, file("file-ioctl", "/dev/ttys003"), file("file-ioctl", "/dev/tty")),
	},
	"the root itself cannot be read": {
		func(p Profile) Profile { return without(p, `(allow file-read* file-test-existence (literal "/"))`) },
		grantsAll(file("file-read-data", "/")),
	},
	"a grant's path leads through a symlink": {
		func(p Profile) Profile { return spelling(p, "/private/etc", "/etc") },
		grantsAll(file("file-read-data", "/private/etc/hosts")),
	},
	"every service may be asked": {
		adding("(allow mach-lookup)"),
		func(p Profile) error { return faultsOf(p) },
	},
	"the network includes sockets of daemons": {
		replacing("(allow network-outbound (remote ip))", "(allow network-outbound)"),
		refuses(unixSocket("network-outbound", "/private/var/run/docker.sock"),
			unixSocket("network-outbound", stateDir+"/run/s3/x")),
	},
	"only children may be signalled": {
		replacing("(target same-sandbox)", "(target children)"),
		grantsAll(with("signal", "target", "same-sandbox")),
	},
	"other processes may be inspected": {
		func(p Profile) Profile { return without(p, "(deny process-info*)") },
		refuses(with("process-info-pidinfo", "target", "others")),
	},
	"only the newer call for arguments is denied": {
		replacing(`(sysctl-name-prefix "kern.procargs")`, `(sysctl-name-prefix "kern.procargs2")`),
		refuses(with("sysctl-read", "sysctl-name", "kern.procargs.77")),
	},
	"all shared memory may be opened": {
		adding("(allow ipc-posix-shm*)"),
		func(p Profile) error { return faultsOf(p) },
	},
	"names of changed files anywhere arrive": {
		adding(`(allow mach-lookup (global-name "com.apple.FSEvents"))`),
		refuses(with("mach-lookup", "global-name", "com.apple.FSEvents")),
	},
	"all of /dev may be used": {
		adding(`(allow file-read* file-write* file-ioctl (subpath "/dev"))`),
		refuses(file("file-read-data", "/dev/ttys009"), file("file-ioctl", "/dev/ttys009")),
	},
	"the directory above a protected path may be moved": {
		func(p Profile) Profile { return without(p, "(deny file-write-unlink (literal (param \"PINNED") },
		refuses(file("file-write-unlink", "/Users/u/p/.git")),
	},
	"a protected path may be made in another case": {
		func(p Profile) Profile { return without(p, "(regex (param \"PROTECTED", "(regex (param \"PINNED") },
		refuses(file("file-write-create", "/Users/u/p/.VSCODE/tasks.json"), file("file-write-create", "/Users/u/p/C")),
	},
	"a path is in the text": {
		func(p Profile) Profile { return replacing(`"/private/etc/localtime"`, "\"/Users/Zo\u00eb\"")(p) },
		func(p Profile) error { return faultsOf(p) },
	},
}

func adding(line string) func(Profile) Profile {
	return func(p Profile) Profile { p.Text += line + "\n"; return p }
}

func replacing(old, by string) func(Profile) Profile {
	return func(p Profile) Profile { p.Text = strings.ReplaceAll(p.Text, old, by); return p }
}

// without removes the lines that contain one of the pieces.
func without(p Profile, pieces ...string) Profile {
	var text strings.Builder
	for line := range strings.Lines(p.Text) {
		if !slices.ContainsFunc(pieces, func(piece string) bool { return strings.Contains(line, piece) }) {
			text.WriteString(line)
		}
	}
	p.Text = text.String()
	return p
}

// spelling replaces the prefix of the parameters that have it.
func spelling(p Profile, old, by string) Profile {
	p.Parameters = slices.Clone(p.Parameters)
	for i := 1; i < len(p.Parameters); i += 2 {
		if rest, ok := strings.CutPrefix(p.Parameters[i], old); ok {
			p.Parameters[i] = by + rest
		}
	}
	return p
}

func refuses(list ...question) func(Profile) error   { return decides(false, list) }
func grantsAll(list ...question) func(Profile) error { return decides(true, list) }

// decides ignores parameters that a mistake has left unused.
func decides(want bool, list []question) func(Profile) error {
	return func(p Profile) error {
		for _, q := range list {
			allowed, err := verdict(used(p), q)
			if err != nil {
				return err
			}
			if allowed != want {
				return fmt.Errorf("%s: %t", q, allowed)
			}
		}
		return nil
	}
}

func used(p Profile) Profile {
	var parameters []string
	for i := 0; i+1 < len(p.Parameters); i += 2 {
		if strings.Contains(p.Text, fmt.Sprintf("(param %q)", p.Parameters[i])) {
			parameters = append(parameters, p.Parameters[i], p.Parameters[i+1])
		}
	}
	p.Parameters = parameters
	return p
}

func faultsOf(p Profile) error {
	if faults := unsound(p); faults != nil {
		return fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return nil
}

// recognised returns the marks of session 1 by which processes under a profile
// are recognised from outside.
func recognised(p Profile, dir string) []lifecycle.Medium {
	var by []lifecycle.Medium
	for _, mark := range (lifecycle.SessionFingerprint{ID: "1", Dir: dir}).Marks() {
		carried, err := mark.CarriedBy(func(medium lifecycle.Medium, argument string) lifecycle.Answer {
			q := with("mach-lookup", "global-name", argument)
			if medium == lifecycle.ByPath {
				q = file("file-read-data", argument)
			}
			allowed, err := verdict(used(p), q)
			switch {
			case err != nil:
				return lifecycle.Unknown
			case allowed:
				return lifecycle.Yes
			}
			return lifecycle.No
		})
		if err == nil && carried {
			by = append(by, mark.Medium)
		}
	}
	return by
}

// markedIn checks that both marks can be read from outside.
func markedIn(dir string) func(Profile) error {
	return func(p Profile) error {
		if by := recognised(p, dir); len(by) != 2 {
			return fmt.Errorf("recognised by %v alone", by)
		}
		return nil
	}
}

func TestProfile_MistakesAreFound(t *testing.T) {
	t.Parallel()
	// The mark is in a directory that sessions may write, as in an early plan
	// of this program.
	h := host
	h.Fingerprint.Dir = "/private/tmp/mark"
	good := profileOf(t, Translate(everyday(), h), mac())
	for name, mistake := range mistakes {
		if err := mistake.check(good); err != nil {
			t.Errorf("%s: the good profile: %v", name, err)
		}
		bad := mistake.putBack(good)
		if bad.Text == good.Text && slices.Equal(bad.Parameters, good.Parameters) {
			t.Errorf("%s: the mistake was not inserted", name)
		}
		if mistake.check(bad) == nil {
			t.Errorf("%s: no check finds the mistake", name)
		}
	}
}

// Processes of other sessions, of other programs' sandboxes and of none are not
// recognised.
func TestFingerprint_IsTheSessionsAlone(t *testing.T) {
	t.Parallel()
	profiles := map[string]Profile{
		"a blanket grant of the directory": {Text: `(version 1)(deny default)(allow file-read* (subpath "/Users"))(allow mach-lookup)`},
		"a blanket denial":                 {Text: `(version 1)(deny default)`},
		"no restriction":                   {Text: `(version 1)(allow default)`},
	}
	other := host
	other.Fingerprint = lifecycle.SessionFingerprint{ID: "2", Dir: stateDir + "/run/s9"}
	disk := mac()
	disk.add("dir", stateDir+"/run/s9")
	profiles["another session"] = profileOf(t, Translate(everyday(), other), disk)
	profiles["another session, tracked only"] = profileOf(t, TrackOnly(other.Fingerprint, "x"), disk)
	for name, p := range profiles {
		if by := recognised(p, host.Fingerprint.Dir); by != nil {
			t.Errorf("%s is taken for the session by %v", name, by)
		}
	}
	for name, plan := range map[string]Plan{
		"restricted":   Translate(everyday(), host),
		"tracked only": TrackOnly(host.Fingerprint, "x"),
	} {
		if by := recognised(profileOf(t, plan, mac()), host.Fingerprint.Dir); len(by) != 2 {
			t.Errorf("%s: the session is recognised by %v alone", name, by)
		}
	}
}

// Grants add up, so read-only below read-write means the same as on Linux.
func TestProfile_GrantsAddUp(t *testing.T) {
	t.Parallel()
	p := &policy.Policy{Restricted: true, Rules: []policy.Rule{
		grantRule("/Users/u/p", policy.ReadWrite), grantRule("/Users/u/p/src", policy.Read), grantRule("/Users/u",
			policy.Read),
	}}
	profile := profileOf(t, Translate(p, Host{}), mac())
	for path, want := range map[string]bool{"/Users/u/p/src/x": true, "/Users/u/p/x": true, "/Users/u/x": false} {
		if _, found := p.Find(policy.Write, path); found != want {
			t.Errorf("%s: the policy says %t", path, found)
		}
		if got := ask(t, profile, file("file-write-create", path)); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}
