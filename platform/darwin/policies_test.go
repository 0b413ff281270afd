package darwin

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	paths "github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// policyOf compiles the settings of a user: one "terminal.sandbox" block.
func policyOf(t testing.TB, files paths.FS, home, project, block string) *policy.Policy {
	t.Helper()
	env := map[string]string{"HOME": home, "SSH_AUTH_SOCK": "/private/tmp/com.apple.launchd.x/Listeners"}
	s := compile.New(compile.Input{
		Host: paths.Host{Platform: "darwin", Home: home, Env: env}, FS: files, ProjectDir: project,
		UserStates: []source.State{settingstest.State(t, home+"/.config/zed/settings.json", block)},
	}, nil, nil)
	compiled := s.Compile(document.KindTerminal).Policy
	return &compiled
}

// session is what every session gets beside its policy.
func session(p *policy.Policy, runtimeDir string) *policy.Policy {
	p.Rules = append(p.Rules, sessionRule(runtimeDir))
	return p
}

// developers is the Mac of a developer who has installed everything.
func developers() disk {
	d := mac()
	for dir, names := range map[string]string{
		"/": `bin sbin usr/sbin usr/libexec usr/share System/Library/dyld System/Cryptexes System/Library/Keychains
			Library/Apple/usr/bin Library/Preferences/SystemConfiguration private/var/tmp private/var/db nix/store
			Library/Developer/CommandLineTools/usr/bin Applications/Xcode_16.4.app/Contents/Developer/usr/bin
			Library/Frameworks/Python.framework/Versions Library/Java/JavaVirtualMachines private/var/select
			usr/local/go private/var/folders/xy/abc/T private/var/folders/xy/abc/C private/var/folders/zz/other/C`,
		"/opt/homebrew/": "bin sbin lib opt Cellar Caskroom Frameworks Library share etc include var/postgresql@17",
		"/usr/local/":    "bin sbin lib libexec opt Cellar Caskroom Frameworks Homebrew share etc include var/mysql",
		"/opt/local/":    "bin sbin lib libexec Library share etc include var",
		"/Users/u/": `go/bin go/pkg Library/Caches/go-build .cargo/bin .cargo/registry .cargo/git .rustup .nvm .npm
			.pyenv .cache Library/Caches/pip Library/Python .m2/repository .gradle/caches .rbenv .bun/bin .deno/bin
			Library/Keychains Library/LaunchAgents Library/Preferences Library/Caches/other .aws .config/gh`,
	} {
		for name := range strings.FieldsSeq(names) {
			d.add("dir", dir+name)
		}
	}
	d.add("file", "/private/var/run/mDNSResponder", "/private/var/run/resolv.conf",
		"/Library/Preferences/.GlobalPreferences.plist", "/Library/Preferences/com.apple.dt.Xcode.plist",
		"/private/tmp/com.apple.launchd.x/Listeners", "/Users/u/.gitconfig", "/Users/u/.config/gh/config.yml",
		"/Users/u/.npmrc")
	for _, name := range []string{"zero", "random", "urandom", "tty", "ptmx", "dtracehelper"} {
		d.add("file", "/dev/"+name)
	}
	d.add("dir", "/dev/fd")
	d.add("-> /Applications/Xcode_16.4.app/Contents/Developer", "/private/var/db/xcode_select_link")
	d.add("-> ../var/run/resolv.conf", "/private/etc/resolv.conf")
	return d
}

// files are those of the disk, for settings.
func (d disk) files() paths.FS {
	entries := map[string]string{}
	for name, kind := range d {
		switch kind {
		case "dir":
			entries[strings.TrimSuffix(name, "/")+"/"] = ""
		case "file":
			entries[name] = ""
		default:
			entries[name] = kind
		}
	}
	return resolvetest.InMemory(entries)
}
