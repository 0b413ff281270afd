package compile

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

func TestToolchainTable_IsSafeAndComplete(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`(?i)token|secret|passw|credential|_key$|auth`)
	needed := []string{
		"go", "rust", "node", "python", "java", "ruby", "dotnet", "php", "c", "nix", "ssh", "gpg",
		"claude", "codex", "gemini", "opencode", "aider", "copilot",
	}
	for _, name := range needed {
		if _, ok := toolchain.Find(name); !ok {
			t.Errorf("there is no %s", name)
		}
	}
	// Settings of npm that name what the set grants, or a file of settings.
	paths := regexp.MustCompile(`^(npm_config|NPM_CONFIG)_(?i:cache|prefix|userconfig|globalconfig)$`)
	// Files with tokens may be read only if nothing runs without them, and
	// never written.
	excepted := []string{"~/.nuget/NuGet", "~/.conda"} // conda's settings in the last are hidden, see risks.Place.Mixed
	for _, platform := range []string{"linux", "darwin"} {
		r := resolve.NewView(resolvetest.InMemory(nil))
		places := sensitive.Find(r, []string{"/home/u"}, false, func(string) string { return "" })
		for i := range places.All {
			places.All[i].Exists = true
		}
		h := resolve.Host{Platform: platform, Home: "/home/u"}
		for _, chain := range toolchain.All {
			// These go to the hosts that the user chooses, or to none.
			if len(chain.Registries()) == 0 && chain.Keys == "" && chain.Name != "aider" {
				t.Errorf("%s downloads from nowhere", chain.Name)
			}
			for _, r := range chain.Registries() {
				pattern, err := hosts.ParseAllowed(r.Host)
				if err != nil || pattern.String() != r.Host || !strings.HasSuffix(r.Host, ":443") ||
					strings.Contains(r.Host, "*") || r.Why == "" {
					t.Errorf("%s: %+v: %v", chain.Name, r, err)
				}
			}
			if chain.About == "" || !strings.HasSuffix(chain.About, ".") {
				t.Errorf("%s: about %q", chain.Name, chain.About)
			}
			for _, p := range chain.Places {
				if p.Why == "" || p.Access == 0 || p.At == "" && p.Variable == "" || p.Platform != "" &&
					p.Platform != "linux" &&
					p.Platform != "darwin" {
					t.Errorf("%s: incomplete: %+v", chain.Name, p)
				}
				if chain.Agent && p.Access.Has(policy.Write) && (!p.AlwaysPrivate || p.Shared != "") {
					t.Errorf("%s: what sessions write to %s could reach the agent outside", chain.Name, p.At)
				}
				if p.Create && !p.Access.Has(policy.Write) {
					t.Errorf("%s: %s is made and cannot be written", chain.Name, p.At)
				}
				if p.Access.Has(policy.Write) && p.Create == (p.OnlyIfThere != "") {
					t.Errorf("%s: the first use of %s %s would fail, or needs no reason", chain.Name, p.At, p.Below)
				}
				path, err := h.Expand(filepath.Join(p.At, p.Below), "")
				if p.At == "" {
					continue
				}
				if err != nil {
					t.Errorf("%s: %s: %v", chain.Name, p.At, err)
				}
				reads := !p.Access.Has(policy.Write) && (p.Public || slices.Contains(excepted, p.At))
				if what := places.Holds(path); what != "" && !reads {
					t.Errorf("%s: %s is %s", chain.Name, path, what)
				}
				// Programs that run outside without being built must not be
				// replaced from inside.
				if p.Access.Has(policy.Write) && (filepath.Base(path) == "bin" || path == "/home/u/.cargo" ||
					path == "/home/u/go") {
					t.Errorf("%s: %s can be written", chain.Name, path)
				}
			}
			for _, v := range chain.Variables {
				if err := checkPattern(v.Name); err != nil || strings.Contains(v.Name, "*") || v.Why == "" {
					t.Errorf("%s: %q: %v, why %q", chain.Name, v.Name, err, v.Why)
				}
				if policy.IsHook(v.Name) && !paths.MatchString(v.Name) || secret.MatchString(v.Name) &&
					(chain.Keys == "" || v.Name != "SSH_AUTH_SOCK") {
					t.Errorf("%s: the variable %s runs code or holds a secret", chain.Name, v.Name)
				}
			}
			// If a variable moves a place, the tools inside must get the
			// variable.
			for _, p := range chain.Places {
				if p.Variable != "" && !slices.ContainsFunc(chain.Variables, func(v toolchain.Variable) bool {
					return v.Name == p.Variable
				}) {
					t.Errorf("%s: the variable %s moves a place and does not arrive", chain.Name, p.Variable)
				}
			}
		}
	}
}

func TestToolchains_GrantWhatIsThere(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/go/bin/": "", "/home/u/go/pkg/": "", "/home/u/.cargo/bin/": "", "/home/u/.cargo/credentials.toml": "",
		"/home/u/.cargo/registry/": "",
		"/home/u/.rustup/":         "", "/opt/go/bin/": "", "/home/u/project/": "", "/data/mod/cache/download/": "",
		"/home/u/.ssh/id": "",
	})
	const user = `{"enabled": true, "toolchains": ["go", "rust", "gp", "go", "c"], ` +
		`"allowed_env_vars": ["PATH", "GOPATH"]}`
	s := snapshotOf(t, f, user, "")
	s.Host.Env["GOROOT"], s.Host.Env["GOMODCACHE"], s.Host.Env["GOBIN"], s.Host.Env["GOCACHE"] = "/opt/go",
		"/data/mod:relative", "/home", "off"
	s.Host.Env["CCACHE_DIR"] = "/proc/x"
	c := s.Compile(document.KindTool)
	for path, want := range map[string]string{
		"/opt/go/bin/go": "read,execute", "/home/u/go/bin/x": "read,execute",
		"/home/u/go/pkg/mod": "read,write,execute", "/home/u/go": "none",
		"/data/mod/x": "read,write,execute", "/home/u/.cargo/bin/cargo": "read,execute",
		"/home/u/.cargo/credentials.toml": "none",
		"/home/u/.cargo/registry/x":       "read,write,execute", "/home/u/.cargo/git": "read,write,execute",
		"/home/u/.ssh/id":         "none",
		"/home/u/.cache/go-build": "none", // the variable says off
	} {
		if got := accessOf(c, path); got != want {
			t.Errorf("%s: granted %s, want %s", path, got, want)
		}
	}
	for _, name := range []string{"PATH", "GOPATH", "GOROOT", "CARGO_HOME"} {
		if !c.Policy.Environment.Allows(name) {
			t.Errorf("%s does not arrive", name)
		}
	}
	if !slices.IsSorted(c.Policy.Environment.Allowed) || len(c.Variables) != len(c.Policy.Environment.Allowed) {
		t.Errorf("variables: %q from %v", c.Policy.Environment.Allowed, c.Variables)
	}
	for _, want := range []string{
		`"go": the variable GOBIN is "/home": not granted, because that is your home directory and much more`,
		`"c": the variable CCACHE_DIR is "/proc/x": not granted, ` +
			`because a session that writes there changes orders to the kernel`,
		`"gp": no such toolchain, did you mean "go"?`,
	} {
		if !strings.Contains(said(c, userFile), want) {
			t.Errorf("diagnostics lack %s:\n%s", want, said(c, userFile))
		}
	}
	i := slices.IndexFunc(c.Policy.Rules, func(r policy.Rule) bool { return r.Path == "/home/u/.rustup" })
	if got := c.Policy.Rules[i].Origin; got.String() != "toolchains: rust ("+userFile+":1)" ||
		got.Reason != "toolchains" {
		t.Errorf("origin: %+v", got)
	}
	if c := snapshotOf(t, f, `{"enabled": true, "toolchains": ["cobol"]}`,
		"").Compile(document.KindTool); !strings.Contains(said(c, userFile), "known are go, rust") {
		t.Errorf("diagnostics:\n%s", said(c, userFile))
	}
}

func TestToolchains_AProjectCanOnlyDropThem(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/go/pkg/": "", "/home/u/.rustup/": "", "/home/u/project/": ""})
	s := snapshotOf(t, f, `{"enabled": true, "toolchains": ["go"]}`, `{"toolchains": ["rust"]}`)
	c := s.Compile(document.KindTool)
	if accessOf(c, "/home/u/go/pkg") != "none" || accessOf(c, "/home/u/.rustup") != "none" ||
		c.Policy.Environment.Allows("GOROOT") {
		t.Errorf("rules: %v, variables: %q", c.Policy.Rules, c.Policy.Environment.Allowed)
	}
	if got := s.Merged().Toolchains; got == nil || len(got) != 0 {
		t.Errorf("merged: %q", got)
	}
	asks := describeAsks(s.Project().Asks)
	if !strings.HasPrefix(asks, `toolchains rust: sessions may read and execute "/home/u/.rustup", may read, `+
		`write and execute "/home/u/.cargo/registry"`) ||
		!strings.Contains(asks, "get your variables RUSTUP_TOOLCHAIN") {
		t.Errorf("asks: %s", asks)
	}
	if c := trusting(t, f, `{"enabled": true}`, `{"toolchains": ["rust"]}`).Compile(document.KindTool); accessOf(c,
		"/home/u/.rustup") != "read,execute" {
		t.Errorf("a trusted project's toolchain grants %s", accessOf(c, "/home/u/.rustup"))
	}
}
