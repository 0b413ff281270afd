package sources

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The road is rpc → session → spawn → platform → lifecycle. This table is all of
// it: what each package may import of this module. A package must be in the
// table.
var mayImport = map[string][]string{
	"audit":   {"display", "fsguard", "platform/policy"},
	"display": {},
	// The sidecar's side of what has secrets, and then that, which is a
	// program of its own.
	"credentials":             {"platform/hosts"},
	"credentials/authority":   {},
	"credentials/formats":     {},
	"credentials/placeholder": {},
	"credentials/opener":      {"credentials", "credentials/authority"},
	"credentials/service": {
		"credentials", "credentials/authority", "credentials/formats", "credentials/opener", "credentials/placeholder",
	},
	"cmd/sandbox-sidecar-credentials": {"credentials", "credentials/service"},
	"platform/gitconfig":              {},
	"platform/gitchange":              {"display", "platform/gitconfig"},
	"platform/policy":                 {},
	"places":                          {},
	"platform/protected":              {},
	"platform/hosts":                  {"platform/policy"},
	"platform/hosts/loopback":         {},
	"platform/outbound":               {"platform/hosts", "platform/route"},
	"platform/route":                  {},
	"platform/proxy":                  {"platform/hosts", "platform/outbound"},
	"fsguard":                         {},
	"usersocket":                      {"fsguard"},
	"rpc/protocol":                    {},
	"lifecycle": {
		"lifecycle/libsystem", "lifecycle/proc", "lifecycle/journal", "lifecycle/session", "lifecycle/cgroup",
		"lifecycle/subreaper", "lifecycle/signaldomain", "lifecycle/reserve", "fsguard",
		"places",
	},
	"lifecycle/proc":          {"lifecycle/reserve"},
	"lifecycle/proc/proctest": {"tests/deadline"},
	"lifecycle/journal":       {"lifecycle/proc"},
	"lifecycle/session":       {"lifecycle/proc", "lifecycle/journal"},
	"lifecycle/cgroup":        {"lifecycle/proc", "lifecycle/journal"},
	"lifecycle/reserve":       {},
	"lifecycle/signaldomain":  {"lifecycle/reserve"},
	"lifecycle/subreaper": {
		"lifecycle/proc", "lifecycle/journal", "lifecycle/reserve", "lifecycle/session", "lifecycle/signaldomain",
	},
	"lifecycle/libsystem": {},
	"platform":            {"platform/handshake", "platform/policy", "lifecycle", "lifecycle/reserve", "fsguard"},
	"platform/handshake":  {"lifecycle/reserve"},
	"platform/linux": {
		"platform", "platform/handshake", "platform/policy", "platform/linux/stage", "platform/linux/notify",
		"platform/linux/sockets",
		"platform/linux/denials", "platform/linux/tripwire", "platform/linux/seccomp",
		"platform/linux/canary", "platform/linux/namespace", "platform/linux/overlay", "platform/linux/network",
		"platform/linux/localhost",
		"platform/hosts", "platform/hosts/loopback", "lifecycle", "lifecycle/proc", "fsguard",
	},
	"platform/linux/localhost": {
		"platform", "platform/linux/notify", "platform/linux/sockets", "platform/route", "fsguard",
	},
	"platform/linux/network": {
		"platform", "platform/hosts", "platform/hosts/loopback", "platform/outbound", "platform/linux/notify",
		"platform/linux/sockets",
	},
	// The wall: TestWall holds what this reaches.
	"platform/linux/stage": {
		"platform/handshake", "platform/policy", "platform/linux/canary", "platform/linux/namespace",
		"platform/linux/seccomp", "lifecycle/signaldomain",
	},
	"platform/linux/denials": {
		"platform", "platform/gitchange", "platform/gitconfig", "platform/policy", "platform/linux/gitwrite",
		"platform/linux/notify", "lifecycle/proc", "fsguard", "display",
	},
	"platform/linux/gitwrite": {"platform/gitchange", "platform/gitconfig", "lifecycle/proc", "fsguard"},
	"platform/linux/namespace": {
		"platform/handshake", "platform/policy", "platform/hosts/loopback", "platform/linux/canary",
		"platform/linux/overlay/message",
	},
	"platform/linux/groupinit":       {"platform/handshake", "platform/linux/namespace", "lifecycle/proc"},
	"platform/linux/canary":          {"platform/handshake", "platform/hosts/loopback"},
	"platform/linux/overlay":         {"platform/handshake", "platform/linux/overlay/message", "lifecycle", "fsguard"},
	"platform/linux/overlay/message": {"platform/handshake"},
	"platform/linux/notify":          {},
	"platform/linux/seccomp":         {},
	"platform/linux/tripwire":        {"fsguard"},
	"platform/review": {
		"places", "display", "platform/gitchange", "platform/policy", "platform/protected",
		"platform/review/effects", "fsguard",
	},
	"platform/review/effects": {"display", "platform/gitconfig", "platform/policy", "fsguard", "lifecycle/proc"},
	// sockets decides the requests about connecting that notify receives.
	"platform/linux/sockets":           {"platform/linux/canary", "platform/linux/notify", "fsguard"},
	"platform/linux/notify/notifytest": {},
	"platform/darwin": {
		"platform", "platform/handshake", "platform/hosts", "platform/policy", "platform/proxy", "lifecycle",
		"lifecycle/libsystem", "fsguard",
	},
	"platform/platformtest": {
		"platform", "platform/handshake", "platform/policy", "lifecycle", "tests/deadline",
	},
	"settings": {
		"audit", "places", "display", "platform/policy", "fsguard", "settings/agents", "settings/compile",
		"settings/document", "settings/toolchain",
		"settings/explain", "settings/git", "settings/managed", "settings/resolve", "settings/source",
		"settings/textfile", "settings/trust",
	},
	"settings/compile": {
		"places", "display", "platform/hosts", "platform/policy", "platform/protected", "fsguard",
		"settings/agents",
		"settings/document", "settings/git", "settings/gnupg", "settings/managed", "settings/resolve",
		"settings/risks", "settings/sensitive", "settings/source", "settings/sshconfig", "settings/startup",
		"settings/textfile", "settings/toolchain", "settings/trust",
	},
	"settings/explain": {
		"display", "platform/hosts", "platform/hosts/loopback", "platform/policy", "platform/route", "settings/compile",
		"settings/document", "settings/managed", "settings/resolve", "settings/risks", "settings/sensitive",
		"settings/textfile", "settings/toolchain",
	},
	"settings/settingstest": {"platform/policy", "settings/document", "settings/resolve", "settings/source"},
	"settings/document":     {"display"},
	"settings/git": {
		"platform/gitconfig", "platform/policy", "fsguard", "lifecycle/proc", "settings/resolve",
		"settings/textfile",
	},
	"settings/managed":             {"display", "fsguard", "settings/textfile"},
	"settings/resolve":             {"display", "fsguard", "places", "platform/policy", "settings/textfile"},
	"settings/resolve/resolvetest": {"fsguard", "settings/resolve"},
	"settings/risks":               {"platform/policy"},
	"settings/sensitive": {
		"display", "fsguard", "platform/policy", "platform/protected", "settings/document", "settings/git",
		"settings/risks", "settings/resolve", "settings/toolchain",
	},
	"settings/source": {
		"display", "fsguard", "settings/document", "settings/managed", "settings/resolve", "settings/textfile",
		"settings/trust",
	},
	"settings/agents": {
		"display", "fsguard", "platform/hosts", "platform/policy", "settings/document", "settings/resolve",
		"settings/risks", "settings/toolchain",
	},
	"settings/gnupg":     {},
	"settings/sshconfig": {},
	"settings/startup":   {},
	"settings/starter":   {"display", "fsguard", "settings/document", "settings/textfile"},
	"settings/textfile":  {"fsguard"},
	"settings/toolchain": {"platform/policy", "settings/resolve"},
	"settings/trust":     {"display", "fsguard", "settings/textfile"},
	"spawn": {
		"audit", "credentials", "display", "platform", "platform/policy", "platform/review", "lifecycle",
		"fsguard", "spawn/forward", "spawn/agent", "spawn/caller", "spawn/history", "spawn/printed", "spawn/prompt",
		"spawn/record", "spawn/refusals",
	},
	"session": {
		"platform/policy", "settings", "settings/compile", "settings/explain", "spawn", "spawn/history",
	},
	"spawn/agent":    {},
	"spawn/caller":   {"lifecycle/proc"},
	"spawn/refusals": {"fsguard", "lifecycle/proc", "platform"},
	"spawn/prompt":   {},
	"spawn/record":   {"audit", "platform", "platform/policy", "platform/review"},
	"spawn/history":  {"platform/policy", "fsguard", "places"},
	"spawn/forward":  {"platform/outbound"},
	"spawn/printed":  {"platform", "platform/policy", "fsguard", "lifecycle/libsystem"},
	"presentation": {
		"display", "fsguard", "platform/policy", "rpc/protocol", "settings", "settings/compile", "settings/explain",
		"settings/toolchain", "spawn",
	},
	"rpc": {
		"audit", "display", "presentation", "rpc/protocol", "rpc/window", "session", "settings", "settings/compile",
		"settings/explain", "spawn", "spawn/forward", "fsguard",
	},
	"rpc/client": {"rpc/protocol"},
	"rpc/window": {"rpc/protocol", "usersocket"},
	"control":    {"presentation", "rpc/protocol", "spawn", "usersocket"},
	"agents/runner": {
		"display", "fsguard", "platform/policy", "presentation", "rpc/protocol", "session", "settings", "spawn",
	},
	"agents/acp": {"agents/runner", "display", "presentation", "rpc/protocol", "spawn"},
	"agents/mcp": {"display", "rpc/client", "rpc/protocol"}, // nothing that confines
	"cmd/sandbox-sidecar": {
		"agents/acp", "agents/runner", "audit", "control", "credentials",
		"display", "presentation", "rpc", "rpc/protocol", "rpc/window", "session", "settings", "settings/compile",
		"settings/agents", "settings/explain", "settings/starter",
		"settings/toolchain", "spawn", "spawn/caller", "spawn/refusals", "platform",
		"platform/hosts", "platform/policy", "platform/linux", "platform/linux/localhost", "platform/linux/overlay",
		"platform/linux/seccomp",
		"platform/darwin", "lifecycle",
		"cmd/sandbox-sidecar/commandline", "cmd/sandbox-sidecar/ending", "cmd/sandbox-sidecar/logqueue",
		"cmd/sandbox-sidecar/meeting", "cmd/sandbox-sidecar/owner", "cmd/sandbox-sidecar/roles",
		"cmd/sandbox-sidecar/report", "cmd/sandbox-sidecar/shells",
		"cmd/sandbox-sidecar/trailview", "fsguard", "places",
	},
	"cmd/sandbox-sidecar-mcp": {
		"agents/mcp", "cmd/sandbox-sidecar/ending", "display", "rpc/client", "rpc/protocol",
	},
	"cmd/sandbox-sidecar/commandline": {"display"},
	"cmd/sandbox-sidecar/ending":      {},
	"cmd/sandbox-sidecar/logqueue":    {"fsguard"},
	"cmd/sandbox-sidecar/trailview":   {"audit", "display"},

	"cmd/sandbox-sidecar/meeting": {"fsguard"},
	"cmd/sandbox-sidecar/owner":   {"lifecycle/proc"},
	"cmd/sandbox-sidecar/shells":  {"fsguard"},
	"cmd/sandbox-sidecar/report": {
		"presentation", "rpc/protocol", "rpc/window", "settings", "settings/compile", "spawn",
	},
	"cmd/sandbox-sidecar/roles": {
		"platform/handshake", "platform/linux/groupinit", "platform/linux/overlay", "platform/linux/stage",
		"platform/darwin", "platform/proxy", "lifecycle", "fsguard",
	},
	"cmd/gen": {
		"rpc/protocol", "settings", "settings/compile", "settings/toolchain", "platform/protected",
	},
	"cmd/measure":           {},
	"cmd/sbom":              {},
	"clients/tty":           {"rpc/client", "rpc/protocol"},
	"tests/bench":           {"rpc/protocol"},
	"tests/machines":        {"tests/harness"},
	"tests/macos":           {},
	"tests/macos/victim":    {},
	"tests/messages":        {},
	"tests/sources":         {"tests/harness"},
	"tests/audit":           {"audit", "rpc/client", "rpc/protocol", "tests/harness"},
	"tests/managed":         {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests":                 {"rpc/client", "rpc/protocol", "tests/containers", "tests/harness"},
	"tests/containers":      {},
	"tests/golden":          {},
	"tests/ci":              {"tests/deadline"},
	"tests/deadline":        {},
	"tests/harness":         {"rpc/client", "rpc/protocol", "tests/deadline"},
	"tests/attack":          {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/doors":           {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/ordinary":        {"rpc/protocol", "tests/harness"},
	"tests/groups":          {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/lifetime":        {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/hung":            {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/protected":       {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/denials":         {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/kernels":         {"tests/kernels/result"},
	"tests/kernels/guest":   {"tests/containers", "tests/kernels/result"},
	"tests/kernels/result":  {},
	"tests/victim":          {},
	"tests/stopwatch":       {},
	"tests/systemd":         {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/toolchains":      {"rpc/protocol", "settings/toolchain", "tests/harness"},
	"tests/history":         {"rpc/protocol", "tests/harness"},
	"tests/explain":         {"rpc/protocol", "tests/harness"},
	"tests/explain/victim":  {},
	"tests/temporary":       {"rpc/protocol", "tests/harness"},
	"tests/stories":         {"tests/harness"},
	"tests/shells":          {"control", "rpc/client", "rpc/protocol", "spawn", "tests/harness"},
	"tests/agents":          {"rpc/protocol", "tests/harness"},
	"tests/agents/victim":   {},
	"tests/recording":       {"display", "tests/harness"},
	"tests/suites":          {},
	"tests/syscalls":        {"rpc/protocol", "tests/harness"},
	"tests/syscalls/victim": {},
	"tests/sockets":         {"rpc/protocol", "tests/harness"},
	"tests/sockets/victim":  {},
	"tests/hosts":           {"rpc/client", "rpc/protocol", "tests/harness"},
	"tests/hosts/victim":    {},
}

// testsMayImport are packages that every package's tests may import too: those
// that start a real stage, what it says, the harness, and the comparison with
// files.
var testsMayImport = []string{
	"platform/handshake", "platform/linux", "platform/linux/stage", "platform/platformtest", "tests/golden",
	"tests/harness", "tests/deadline", "lifecycle/proc/proctest",
}

// testsOfMayImport are packages that the tests of one package may import too,
// because they stand in for others.
var testsOfMayImport = map[string][]string{
	"presentation":           {"platform", "settings/document"},
	"cmd/sandbox-sidecar":    {"settings/managed"},
	"control":                {"platform"},
	"rpc":                    {"rpc/client", "platform", "platform/policy", "lifecycle", "settings/document"},
	"platform/linux/notify":  {"platform/linux/notify/notifytest"},
	"platform/linux/sockets": {"platform/linux/notify/notifytest"},
	"settings": {
		"settings/resolve/resolvetest", "settings/settingstest", "settings/sensitive", "settings/toolchain",
	},
	"settings/compile": {"settings/resolve/resolvetest", "settings/settingstest"},
	// The policies that its profiles are tried with are real ones.
	"platform/darwin": {
		"settings/compile", "settings/document", "settings/resolve", "settings/resolve/resolvetest",
		"settings/settingstest", "settings/source", "settings/toolchain",
	},
	"settings/explain": {
		"fsguard", "platform", "platform/protected", "settings/resolve/resolvetest", "settings/settingstest",
		"settings/source",
	},
	"settings/git":     {"settings/resolve/resolvetest", "platform/gitchange"},
	"settings/resolve": {"settings/resolve/resolvetest"},
	"settings/risks": { // what gives advice about its tables
		"platform", "presentation", "settings/compile", "settings/document", "settings/explain",
		"settings/resolve/resolvetest", "settings/settingstest", "settings/source", "settings/toolchain", "spawn",
	},
	"tests/macos":     {"settings/toolchain"},                   // its table of sets
	"tests/doors":     {"settings/risks"},                       // its table of places
	"tests/temporary": {"settings/risks", "settings/toolchain"}, // the tables of secrets and of sets
}

const module = "github.com/sandbox-sidecar/sandbox-sidecar/"

// root is read by this process itself, file by file, so that the test cache
// notices every change. A subprocess such as "go list" would leave a stale
// "ok".
var root = os.DirFS("../..")

// goFiles calls visit with each Go file of the repository, whatever system it
// is built for.
func goFiles(t *testing.T, visit func(file string)) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name()[0] == '.' || entry.Name() == "testdata" ||
			entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".go"):
			visit(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImports_FollowTheRoad(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	goFiles(t, func(file string) {
		dir := path.Dir(file)
		allowed, known := mayImport[dir]
		if !known {
			t.Errorf("%s: package %s is not in the table of imports", file, dir)
			return
		}
		if strings.HasSuffix(file, "_test.go") {
			allowed = slices.Concat(allowed, []string{dir}, testsMayImport, testsOfMayImport[dir])
		} else {
			seen[dir] = true
		}
		for _, imported := range importsOf(t, file) {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s, which the table does not allow", file, imported)
			}
		}
	})
	for _, dir := range []string{"lifecycle", "platform", "platform/linux", "spawn", "rpc", "settings"} {
		if !seen[dir] {
			t.Errorf("package %s was not found: this test looks in the wrong place", dir)
		}
	}
}

// mustNotLink are packages that the program which confines must not hold: what
// speaks to the network by itself, and what its libraries bring along. Starting
// it is part of every session's start.
var mustNotLink = []string{"net/http", "crypto/tls", "encoding/gob", "text/template", "html/template"}

// linked returns the packages of a program for a system, each with the packages
// that it imports.
func linked(t *testing.T, system, program string) map[string][]string {
	t.Helper()
	// Read here, so that the test cache notices every change.
	goFiles(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") {
			importsOf(t, file)
		}
	})
	for _, file := range []string{"go.mod", "go.sum"} {
		if _, err := fs.ReadFile(root, file); err != nil {
			t.Fatal(err)
		}
	}
	list := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./"+program)
	list.Dir, list.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
	list.Stderr = t.Output()
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %s for %s: %v", program, system, err)
	}
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		packages[names[0]] = names[1:]
	}
	return packages
}

func TestImports_TheProgramThatConfinesHoldsNoHTTP(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin"} {
		packages := linked(t, system, "cmd/sandbox-sidecar")
		for _, banned := range mustNotLink {
			if _, found := packages[banned]; found {
				t.Errorf("sandbox-sidecar for %s links %s: see go list -deps ./cmd/sandbox-sidecar", system, banned)
			}
		}
	}
	// The program beside it does: this test would see it.
	if _, found := linked(t, "linux", "cmd/sandbox-sidecar-mcp")["net/http"]; !found {
		t.Error("sandbox-sidecar-mcp links no net/http, so this test finds nothing")
	}
}

// mustImport are the packages that the sidecar is built on, with the systems
// for which it imports them. docs/design/dependencies.md says what each does.
var mustImport = map[string][]string{
	"github.com/creack/pty":                        {"linux", "darwin"},
	"github.com/fsnotify/fsnotify":                 {"linux", "darwin"},
	"github.com/google/uuid":                       {"linux", "darwin"},
	"github.com/landlock-lsm/go-landlock/landlock": {"linux"},
	"github.com/sourcegraph/jsonrpc2":              {"linux", "darwin"},
	"golang.org/x/sys/unix":                        {"linux", "darwin"},
}

func TestImports_TheSidecarIsBuiltOnItsPackages(t *testing.T) {
	t.Parallel()
	// importedByUs are the packages that a package of this module imports.
	importedByUs := func(system, program string) map[string]bool {
		found := map[string]bool{}
		for name, imports := range linked(t, system, program) {
			if strings.HasPrefix(name, module) {
				for _, imported := range imports {
					found[imported] = true
				}
			}
		}
		return found
	}
	for _, system := range []string{"linux", "darwin"} {
		found := importedByUs(system, "cmd/sandbox-sidecar")
		for name, systems := range mustImport {
			if slices.Contains(systems, system) && !found[name] {
				t.Errorf("no package of sandbox-sidecar for %s imports %s", system, name)
			}
		}
	}
	// The program beside it has no terminals: this test would see it.
	if importedByUs("linux", "cmd/sandbox-sidecar-mcp")["github.com/creack/pty"] {
		t.Error("sandbox-sidecar-mcp imports creack/pty, so this test would find everything")
	}
}

// importsOf lists the packages of this module that a file imports.
func importsOf(t *testing.T, file string) []string {
	t.Helper()
	source, err := fs.ReadFile(root, file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if imported == "C" {
			t.Errorf("%s uses cgo", file)
		}
		if name, ok := strings.CutPrefix(imported, module); ok {
			ours = append(ours, name)
		}
	}
	return ours
}

func TestImports_TableHasNoCycle(t *testing.T) {
	t.Parallel()
	var walk func(dir string, road []string)
	walk = func(dir string, road []string) {
		if slices.Contains(road, dir) {
			t.Fatalf("the table goes in a circle: %s", strings.Join(append(road, dir), " → "))
		}
		for _, next := range mayImport[dir] {
			if _, known := mayImport[next]; !known {
				t.Errorf("%s may import %s, which is not in the table", dir, next)
			}
			walk(next, append(slices.Clone(road), dir))
		}
	}
	for dir := range mayImport {
		walk(dir, nil)
	}
}
