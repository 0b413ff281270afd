//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// launcher runs a command under a sandbox, or none.
type launcher struct {
	name string
	// argv is the command line for a command.
	argv func(command ...string) []string
	env  []string
	// absent says why it cannot be run; empty if it can.
	absent string
	// noSockets is true if sessions can make no socket.
	noSockets bool
}

// peers are the programs for comparison that were found.
type peers struct {
	dir      string
	versions []string
	// codex and nodePTY are paths; empty if they are absent.
	codex, nodePTY string
	launchers      []launcher
}

// equal is the launcher that the sidecar's exec must beat: bubblewrap with the
// namespaces that a session has.
const equal = "bubblewrap, equal protection"

func findPeers(dir string, w *world) *peers {
	p := &peers{dir: dir}
	prefixed := func(prefix ...string) func(...string) []string {
		return func(command ...string) []string { return append(append([]string{}, prefix...), command...) }
	}
	// shell is for peers that take a line for a shell.
	shell := func(prefix ...string) func(...string) []string {
		return func(command ...string) []string {
			return append(append([]string{}, prefix...), "exec '"+strings.Join(command, "' '")+"'")
		}
	}
	add := func(name, program, version string, argv func(...string) []string, env ...string) {
		l := launcher{
			name: name, argv: argv, noSockets: program != "" && (program == p.codex || name == "sandbox-runtime"),
			env: append(append([]string{}, w.env...), env...),
		}
		if program == "" {
			l.absent = "not installed"
		} else if version != "" {
			program, _, _ := strings.Cut(name, ",")
			fields := strings.Fields(version) // some print their name before
			p.versions = append(p.versions, program+" "+fields[len(fields)-1])
		}
		p.launchers = append(p.launchers, l)
	}
	bwrap, firejail := look("bwrap"), look("firejail")
	rooted := []string{bwrap, "--ro-bind", "/", "/", "--bind", w.project, w.project, "--dev", "/dev", "--proc", "/proc"}
	add("bubblewrap, least", bwrap, "", prefixed(append(rooted, "--unshare-pid", "--die-with-parent")...))
	add(equal, bwrap, says(bwrap, "--version"),
		prefixed(append(rooted, "--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-pid",
			"--die-with-parent")...))
	add("firejail", firejail, firstLine(says(firejail, "--version")),
		prefixed(firejail, "--quiet", "--noprofile", "--net=none", "--caps.drop=all", "--nonewprivs", "--seccomp",
			"--read-only=/", "--read-write="+w.project, "--"))
	landlock := p.built("landlock-restrict")
	add("landlock-restrict", landlock, goVersion(landlock), func(command ...string) []string {
		return append([]string{
			landlock, "-ro", "/", "-rw", "+refer", w.project, "-rwfiles", "+ioctl_dev", "/dev/null",
			"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "--",
		}, command...)
	})
	codexHome := filepath.Join(w.root, "codex")
	_ = os.MkdirAll(codexHome, 0o700)
	p.codex = p.npm("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
	if p.codex == "" {
		p.codex = p.npm("@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex")
	}
	add("codex sandbox", p.codex, p.npmVersion("@openai/codex"), prefixed(p.codex, "sandbox", "-P", ":workspace", "--"),
		"CODEX_HOME="+codexHome)
	policy := filepath.Join(w.root, "peers.json")
	_ = os.WriteFile(policy, []byte(`{"filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]},`+
		`"network":{"allowedDomains":[],"deniedDomains":[]}}`), 0o600)
	runtime := p.npm("@anthropic-ai/sandbox-runtime/dist/cli.js")
	add("sandbox-runtime", runtime, p.npmVersion("@anthropic-ai/sandbox-runtime"),
		shell(look("node"), runtime, "-s", policy, "-c"))
	fence := p.built("fence")
	add("fence", fence, goVersion(fence), shell(fence, "-s", policy, "-c"))
	p.nodePTY = p.npm("node-pty")
	if p.nodePTY != "" {
		p.versions = append(p.versions, "node-pty "+p.npmVersion("node-pty")+" in node "+strings.TrimPrefix(says("node",
			"--version"), "v"))
	}
	return p
}

// codexEnv is the environment of the app-server.
func (p *peers) codexEnv(w *world) []string {
	return append(append([]string{}, w.env...), "CODEX_HOME="+filepath.Join(w.root, "codex"))
}

func look(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}

func (p *peers) built(name string) string { return existing(filepath.Join(p.dir, "bin", name)) }

func (p *peers) npm(path string) string {
	return existing(filepath.Join(p.dir, "npm", "node_modules", filepath.FromSlash(path)))
}

func (p *peers) npmVersion(name string) string {
	data, err := os.ReadFile(filepath.Join(p.dir, "npm", "node_modules", filepath.FromSlash(name), "package.json"))
	var description struct{ Version string }
	if err != nil || json.Unmarshal(data, &description) != nil {
		return ""
	}
	return description.Version
}

func existing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// says is a program's output, or "" if it fails.
func says(program string, args ...string) string {
	out, _ := exec.Command(program, args...).Output()
	return strings.TrimSpace(string(out))
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// goVersion is the version of the module that a program was built from.
func goVersion(program string) string {
	for line := range strings.Lines(says("go", "version", "-m", program)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "mod" {
			return fields[2]
		}
	}
	return ""
}
