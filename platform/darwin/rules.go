package darwin

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// The sections of a profile that depend on the policy.

// The operations to deny: the wildcard, and those below it that some grant
// names.
const (
	allReads    = "file-read* file-read-data file-read-metadata file-test-existence"
	allWrites   = "file-write* file-write-create file-write-data file-write-unlink file-link file-clone file-ioctl"
	allSockets  = "network-outbound network-bind"
	allExecutes = "process-exec* file-map-executable"
	// What opens again what these have closed, device calls aside.
	ownReads  = "file-read* file-read-data file-read-metadata file-test-existence"
	ownWrites = "file-write* file-write-create file-write-data file-write-unlink file-link file-clone"
)

// grants writes the grants, which add up along a path in any order. Reading
// does not include executing. Writing a directory includes creating sockets in
// it, but not connecting to other processes' sockets there.
func grants(w *writer, s *Scene) {
	for _, grant := range s.Grants {
		below := w.below("GRANT", grant.Real)
		var operations []string
		for _, pair := range []struct {
			access     policy.Access
			operations string
		}{
			{policy.Read, "file-read* file-test-existence"},
			{policy.Write, "file-write* file-link file-clone"},
			{policy.Execute, allExecutes},
			{policy.Device, "file-ioctl"},
		} {
			if grant.Access.Has(pair.access) {
				operations = append(operations, pair.operations)
			}
		}
		w.line("(allow %s %s)", strings.Join(operations, " "), below)
		if grant.Access.Has(policy.Write) {
			w.line("(allow network-bind (local unix-socket %s))", below)
		}
	}
}

// protectedPaths denies changes of protected paths and of the directories above
// them.
func protectedPaths(w *writer, s *Scene) {
	for _, name := range slices.Concat(s.Protected, s.Fixed) {
		key := w.parameter("PROTECTED", name.Path)
		w.line("(deny "+allWrites+" (subpath %s)%s)", key, s.tagged())
		w.line("(deny network-bind (local unix-socket (subpath %s))%s)", key, s.tagged())
		if name.Absent() {
			missing := w.parameter("PROTECTED", anyCase(name, "(/.*)?$"))
			w.line("(deny "+allWrites+" (regex %s)%s)", missing, s.tagged())
			w.line("(deny network-bind (local unix-socket (regex %s))%s)", missing, s.tagged())
		}
	}
	for _, name := range s.Pinned {
		if !name.Absent() {
			w.line("(deny file-write-unlink (literal %s)%s)", w.parameter("PINNED", name.Path), s.tagged())
			continue
		}
		w.line("(deny file-write-create file-write-unlink (regex %s)%s)", w.parameter("PINNED", anyCase(name, "$")),
			s.tagged())
	}
}

// anyCase returns a pattern for a missing path: most disks take .GIT for .git, and
// a long s (U+017F) for an s: APFS folds as Unicode's CaseFolding.txt says. So a
// letter of which that has other forms may be any characters that are not ASCII. For
// such a one the pattern accepts any sequence, because it has many forms and Apple's
// compiler accepts only ASCII.
func anyCase(name Name, end string) string {
	var b strings.Builder
	b.WriteString("^")
	put := func(text string, letter func(r rune) string) {
		for _, r := range text {
			switch {
			case r >= 0x80:
				b.WriteString("[^/]*")
			case r < 0x20 || r == 0x7f:
				b.WriteString("[^/]")
			default:
				b.WriteString(letter(r))
			}
		}
	}
	exists := strings.TrimSuffix(name.Exists, "/") // empty for the root
	put(exists, func(r rune) string { return regexp.QuoteMeta(string(r)) })
	put(strings.TrimPrefix(name.Path, exists), func(r rune) string {
		lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r))
		if lower == upper {
			return regexp.QuoteMeta(lower)
		}
		if strings.Contains(foldedLetters, lower) {
			return "([" + lower + upper + "]|[^ -~]+)"
		}
		return "[" + lower + upper + "]"
	})
	b.WriteString(end)
	return b.String()
}

// foldedLetters are those that a character which is not ASCII folds to: K for the
// kelvin sign, s for the long s, and f, i, l, s and t for ligatures and the sharp s
// (CaseFolding.txt, C and F).
const foldedLetters = "fiklst"

// network opens IP only, because a rule without a filter would open every Unix
// socket too. mDNSResponder resolves names.
func network(w *writer, s *Scene) {
	if !s.Network {
		if s.Proxy != 0 {
			w.line(`(allow network-outbound (remote ip "localhost:%d"))`, s.Proxy)
		}
		return
	}
	w.line("(allow network-outbound (remote ip))")
	w.line("(allow network-bind (local ip))")
	w.line("(allow network-inbound (local ip))") // listen(2)
	w.line("(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))")
	w.line(`(allow network-outbound (remote unix-socket (path-literal "/private/var/run/mDNSResponder")))`)
}

// sockets opens the granted sockets and the session's own.
func sockets(w *writer, s *Scene) {
	for _, socket := range s.Sockets {
		w.line("(allow network-outbound (remote unix-socket (path-literal %s)))", w.parameter("SOCKET", socket))
	}
	for _, grant := range s.Grants {
		if grant.Private && grant.Access.Has(policy.Write) {
			w.line("(allow network-outbound (remote unix-socket %s))", w.below("PRIVATE", grant.Real))
		}
	}
}

// ownState closes the sidecar's directories, so that a session cannot command
// the sidecar or see other sessions. The session's own part is opened again.
func ownState(w *writer, s *Scene) {
	for _, dir := range s.Closed {
		key := w.parameter("CLOSED", dir.Path)
		w.line("(deny "+allReads+" "+allWrites+" "+allExecutes+" (subpath %s)%s)", key, s.tagged())
		w.line("(deny network-outbound (remote unix-socket (subpath %s))%s)", key, s.tagged())
		w.line("(deny network-bind (local unix-socket (subpath %s))%s)", key, s.tagged())
		for _, grant := range s.Grants {
			if !grant.Private || !policy.Contains(dir.Path, grant.Path) {
				continue
			}
			for above := path.Dir(grant.Path); policy.Contains(dir.Path, above); above = path.Dir(above) {
				w.line("(allow file-read-metadata file-test-existence (literal %s))", w.parameter("OWN", above))
			}
			own := w.below("OWN", grant.Real)
			var operations []string
			for _, pair := range []struct {
				access     policy.Access
				operations string
			}{{policy.Read, ownReads}, {policy.Write, ownWrites}, {policy.Execute, allExecutes}} {
				if grant.Access.Has(pair.access) {
					operations = append(operations, pair.operations)
				}
			}
			w.line("(allow %s %s)", strings.Join(operations, " "), own)
			if grant.Access.Has(policy.Write) {
				w.line("(allow network-outbound (remote unix-socket %s))", own)
				w.line("(allow network-bind (local unix-socket %s))", own)
			}
			w.line("(deny file-write-unlink (literal %s))", w.parameter("OWN", grant.Path))
		}
		// Where the sidecar answers in the place of an agent of keys.
		for _, socket := range s.Sockets {
			if !policy.Contains(dir.Path, socket) {
				continue
			}
			for name := socket; policy.Contains(dir.Path, name); name = path.Dir(name) {
				w.line("(allow file-read-metadata file-test-existence (literal %s))", w.parameter("OWN", name))
			}
			w.line("(allow network-outbound (remote unix-socket (path-literal %s)))", w.parameter("OWN", socket))
		}
	}
}

// fingerprint writes the marks. In an open profile the allowed sides need no
// rule; they are written so that both profiles end alike. The directory is
// denied, so that a session cannot make itself unrecognisable.
func fingerprint(w *writer, s *Scene) {
	if dir := s.Fingerprint.Dir; dir != "" {
		w.line("(deny "+allReads+" "+allWrites+" (subpath %s))", w.parameter("MARK", dir))
	}
	for _, mark := range s.Fingerprint.Marks() {
		operations, filter := "mach-lookup", "global-name"
		if mark.Medium == lifecycle.ByPath {
			operations, filter = "file-read* file-read-data file-read-metadata file-test-existence", "subpath"
		}
		w.line("(deny %s (%s %s))", operations, filter, w.parameter("MARK", mark.Denied))
		w.line("(allow %s (%s %s))", operations, filter, w.parameter("MARK", mark.Allowed))
	}
}

// ancestors returns the directories above everything that is granted or
// connected to, and the working directory with those above it, each once.
func (s *Scene) ancestors() []string {
	seen := map[string]bool{}
	add := func(name string) {
		for dir := path.Dir(name); dir != "/" && dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	for _, grant := range s.Grants {
		add(grant.Path)
	}
	for _, socket := range s.Sockets {
		add(socket)
	}
	if s.WorkDir != "" {
		add(path.Join(s.WorkDir, "x")) // getcwd(3), even if the directory itself is closed
	}
	var list []string
	for dir := range seen {
		list = append(list, dir)
	}
	slices.Sort(list)
	return list
}
