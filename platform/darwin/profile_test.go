package darwin

import (
	"flag"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/golden"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func grantRule(path string, access policy.Access) policy.Rule {
	return policy.Rule{Path: path, Access: access, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: "test"}}
}

func sessionRule(path string) policy.Rule {
	return policy.Rule{
		Path: path, Access: policy.ReadWrite,
		Origin: policy.Origin{File: policy.OriginSession, Key: "test"},
	}
}

const stateDir = "/Users/u/.local/state/sandbox-sidecar"

// host is the sidecar of the golden files.
var host = Host{
	Tag: "sandbox-sidecar-1", Closed: []string{stateDir}, Fixed: []string{"/Users/u/bin/sandbox-sidecar"},
	Fingerprint: lifecycle.SessionFingerprint{ID: "1", Dir: stateDir + "/run/s2"},
}

// everyday is the policy of an editor's terminal.
func everyday() *policy.Policy {
	return &policy.Policy{
		Restricted: true, Project: "/Users/u/p", Network: policy.Network{Allowed: true}, OnDenied: policy.Report,
		Rules: []policy.Rule{
			grantRule("/Users/u/.zshrc", policy.Read),
			sessionRule(stateDir + "/run/s1"),
			sessionRule("/Users/u/p"),
			grantRule("/opt/homebrew/bin", policy.Read|policy.Execute),
			grantRule("/private/etc", policy.Read),
			grantRule("/private/tmp", policy.ReadWrite),
			grantRule("/usr/bin", policy.Read|policy.Execute),
			grantRule("/usr/lib", policy.Read|policy.Execute),
		},
		Protected: []policy.Protected{
			{Path: "/Users/u/p/.git/config"},
			{Path: "/Users/u/p/.git/hooks"},
			{Path: "/Users/u/p/.vscode"},
			{Path: "/Users/u/p/a/b.json"},
			{Path: "/Users/u/p/c/settings.json", Decides: true},
		},
	}
}

// samples are the plans of the golden files.
func samples() map[string]Plan {
	offline := everyday()
	offline.Network.Allowed = false
	sockets := everyday()
	sockets.UnixSockets = []policy.UnixSocket{{Path: "/private/var/run/docker.sock"}, {Abstract: "@none"}}
	single := &policy.Policy{Restricted: true, Rules: []policy.Rule{
		grantRule("/dev/null", policy.Device), grantRule("/Users/u/tools", policy.Read),
		grantRule("/Users/u/tools/bin/tool", policy.Execute),
		grantRule("/private/tmp", policy.Write), grantRule("/private/etc/hosts", 0),
	}}
	return map[string]Plan{
		"nothing":         Translate(&policy.Policy{Restricted: true}, Host{}),
		"terminal":        Translate(everyday(), host),
		"offline":         Translate(offline, host),
		"sockets":         Translate(sockets, host),
		"single-accesses": Translate(single, host),
		"tracking-only":   TrackOnly(host.Fingerprint, host.Tag),
	}
}

func TestProfile_Golden(t *testing.T) {
	t.Parallel()
	for name, plan := range samples() {
		got := profileOf(t, plan, mac()).String()
		golden.Compare(t, *update, filepath.Join("testdata", name+".golden"), got)
	}
}

// operations are the ones that profiles use. The compiler rejects a whole
// profile for an unknown name.
var operations = strings.Fields(`default file-clone file-ioctl file-link file-map-executable file-read* file-read-data
	file-read-metadata file-test-existence file-write* file-write-create file-write-data file-write-unlink
	iokit-open ipc-posix-sem ipc-posix-shm-read* ipc-posix-shm-write-create ipc-posix-shm-write-data
	ipc-posix-shm-write-unlink mach-lookup network-bind network-inbound network-outbound nvram*
	process-exec* process-fork process-info* pseudo-tty signal sysctl-read sysctl-write system-fsctl system-mac-syscall
	system-socket user-preference-read`)

// wholly are the operations that a restricted profile opens without a filter.
var wholly = strings.Fields("process-fork sysctl-read ipc-posix-sem pseudo-tty")

// unsound lists the faults of a restricted profile, for the compiler and for an
// attacker.
func unsound(p Profile) []string {
	var faults []string
	for _, char := range []byte(p.Text) {
		if char != '\n' && (char < ' ' || char > '~') {
			faults = append(faults, "the text is not ASCII")
			break
		}
	}
	for i := 1; i < len(p.Parameters); i += 2 {
		value := p.Parameters[i]
		if strings.HasPrefix(value, "^") || strings.HasPrefix(value, "sandbox-sidecar.session.") {
			continue
		}
		switch {
		case !strings.HasPrefix(value, "/"), len(value) > 1 && strings.HasSuffix(value, "/"),
			filepath.Clean(value) != value:
			faults = append(faults, value+" is no clean path: a rule on it matches nothing")
		}
		for _, link := range []string{"/tmp", "/var", "/etc"} {
			if policy.Contains(link, value) {
				faults = append(faults, value+" leads through a symlink: a rule on it matches nothing")
			}
		}
	}
	rules, err := readProfile(p)
	if err != nil {
		return append(faults, err.Error())
	}
	for _, rule := range rules {
		for _, operation := range rule.operations {
			if !slices.Contains(operations, operation) {
				faults = append(faults, operation+" is not known")
			}
			if rule.allow && len(rule.filters) == 0 && !slices.Contains(wholly, operation) {
				faults = append(faults, operation+" is open without a filter")
			}
		}
	}
	return faults
}

func TestProfile_IsSound(t *testing.T) {
	t.Parallel()
	for name, plan := range samples() {
		if plan.TrackOnly {
			continue
		}
		if faults := unsound(profileOf(t, plan, mac())); faults != nil {
			t.Errorf("%s: %s", name, strings.Join(faults, "; "))
		}
	}
}

// Names of services that would act for a session outside the sandbox.
func TestServices_NoneActsForItsCallers(t *testing.T) {
	t.Parallel()
	acting := regexp.MustCompile(
		`launchservices|\.lsd\b|coreservicesd|appleevents|authtrampoline|windowserver|pasteboard|pboard|xpc\.loginitem|` +
			`SecurityServer|securityd|secd|sharedfilelist|backgroundtask|launchd|screensaver|tccd|sysmond`)
	seen := map[string]bool{}
	for _, service := range slices.Concat(baseServices, networkServices, nameServices) {
		if acting.MatchString(service.name) {
			t.Errorf("%s acts for its clients, or reveals secrets", service.name)
		}
		if seen[service.name] || service.reason == "" || strings.ContainsAny(service.name, `"\ `) {
			t.Errorf("%q is listed twice, has no reason, or breaks the text", service.name)
		}
		seen[service.name] = true
	}
	for _, name := range []string{
		"com.apple.coreservices.launchservicesd", "com.apple.coreservices.appleevents",
		"com.apple.lsd.mapdb",
	} {
		if !acting.MatchString(name) {
			t.Errorf("the pattern misses %s", name)
		}
	}
}

// What a session of an editor's terminal can and cannot do.
func TestProfile_Everyday(t *testing.T) {
	t.Parallel()
	profile := profileOf(t, samples()["terminal"], mac())
	const home, p = "/Users/u", "/Users/u/p"
	for _, yes := range []question{
		file("file-read-data", p+"/main.go"), file("file-write-data", p+"/main.go"),
		file("file-write-create", p+"/new"),
		file("file-write-unlink", p+"/main.go"), file("file-link", p+"/main.go"), file("process-exec", p+"/a.out"),
		file("file-read-data", "/"), file("file-read-metadata", home), file("file-read-metadata", "/Users"),
		link("file-read-metadata", home+"/link"), file("file-read-data", home+"/.zshrc"), file("process-exec",
			"/usr/bin/git"),
		file("process-exec-interpreter", "/usr/bin/git"), file("file-map-executable", "/usr/lib/libobjc.dylib"),
		file("file-read-data", "/private/etc/hosts"), file("file-write-create", "/private/tmp/x"),
		file("file-ioctl", "/dev/ttys003"), file("file-read-data", "/dev/tty"), file("file-write-data", "/dev/null"),
		file("file-read-data", stateDir+"/run/s1/x"), file("file-write-create", stateDir+"/run/s1/x"),
		file("file-read-data", stateDir+"/run/s2/allow"), file("file-read-metadata",
			stateDir+"/run"), file("file-read-metadata", stateDir),
		unixSocket("network-outbound", stateDir+"/run/s1/socket"),
		unixSocket("network-bind", stateDir+"/run/s1/socket"),
		unixSocket("network-bind", p+"/socket"), unixSocket("network-outbound", "/private/var/run/mDNSResponder"),
		ip("network-outbound", "1.1.1.1:443"), ip("network-inbound", "*:8080"), ip("network-bind", "*:8080"),
		with("signal", "target", "self"), with("signal", "target", "same-sandbox"),
		with("process-info-pidinfo", "target", "same-sandbox"),
		with("mach-lookup", "global-name", "com.apple.trustd.agent"), with("sysctl-read", "sysctl-name", "hw.ncpu"),
		with("mach-lookup", "global-name", "sandbox-sidecar.session.1.allow"),
		file("file-write-create", p+"/a"), file("file-write-create", p+"/a/b.json"), // see Scene.Unkept
		{"pseudo-tty", nil},
		{"process-fork", nil},
		{"file-ioctl", map[string]string{"path": "/dev/ttys009", "extension": "com.apple.sandbox.pty"}},
	} {
		if !ask(t, profile, yes) {
			t.Errorf("denied: %s", yes)
		}
	}
	for _, no := range []question{
		file("file-read-data", home+"/.ssh/id_rsa"), file("file-read-data", home),
		file("file-write-create", home+"/.zshenv"),
		file("file-write-data", home+"/.zshrc"), file("process-exec", home+"/.zshrc"), file("process-exec",
			"/private/etc/hosts"),
		file("process-exec", home+"/tools/bin/tool"), file("file-write-data", "/usr/bin/git"), file("file-link",
			home+"/.zshrc"),
		file("file-write-unlink", p), file("file-write-create", p+"/.git/hooks/pre-commit"), file("file-write-data",
			p+"/.git/config"),
		file("file-write-unlink", p+"/.git/config"), file("file-write-unlink", p+"/.git"), file("file-link",
			p+"/.git/config"),
		file("file-write-create", p+"/.vscode"), file("file-write-create",
			p+"/.vscode/tasks.json"), file("file-write-create", p+"/.VSCODE/tasks.json"),
		file("file-write-create", p+"/.VsCode"), file("file-write-create", p+"/c"), file("file-write-create", p+"/C"),
		file("file-write-create", p+"/c/Settings.json"), unixSocket("network-bind", p+"/.git/hooks/s"),
		file("file-read-data", "/dev/ttys009"), file("file-ioctl", "/dev/ttys009"),
		file("file-write-data", "/dev/ttys009"),
		{"file-ioctl", map[string]string{"path": "/dev/ttys003", "ioctl-command": "2147578994"}},
		file("file-read-data", stateDir+"/run/s3/x"), file("file-read-data", stateDir+"/run"),
		file("file-read-metadata", stateDir+"/run/s3"),
		file("file-read-data", stateDir+"/trust.json"), file("file-write-create", stateDir+"/run/s3"),
		file("file-write-unlink", stateDir+"/run/s1"), file("file-read-data",
			stateDir+"/run/s2/deny"), file("file-write-create", stateDir+"/run/s2/deny"),
		file("file-write-unlink", stateDir+"/run/s2/allow"), file("file-write-data", home+"/bin/sandbox-sidecar"),
		unixSocket("network-outbound", "/private/var/run/docker.sock"), unixSocket("network-outbound",
			"/private/tmp/tmux-501/default"),
		unixSocket("network-outbound", p+"/socket"), unixSocket("network-outbound", stateDir+"/run/s3/socket"),
		unixSocket("network-bind", "/private/var/run/x"), unixSocket("network-bind", stateDir+"/x"),
		with("signal", "target", "others"), with("process-info-pidinfo", "target", "others"),
		with("mach-lookup", "global-name", "com.apple.coreservices.launchservicesd"), with("mach-lookup", "global-name",
			"com.apple.SecurityServer"),
		with("mach-lookup", "global-name", "sandbox-sidecar.session.1.deny"), with("mach-lookup", "global-name",
			"sandbox-sidecar.session.2.allow"),
		{"sysctl-write", nil},
		{"appleevent-send", nil},
		{"lsopen", nil},
		{"job-creation", nil},
		{"file-mount", nil},
		{"mach-priv-task-port", nil},
		{"system-privilege", nil},
		{"authorization-right-obtain", nil},
	} {
		if ask(t, profile, no) {
			t.Errorf("allowed: %s", no)
		}
	}
}

// In a project without a repository, "git init" works, and so does what git
// creates in it.
func TestProfile_GitInit(t *testing.T) {
	t.Parallel()
	disk := disk{}
	disk.add("dir", "/Users/u/p")
	p := &policy.Policy{
		Restricted: true, Project: "/Users/u/p", Rules: []policy.Rule{sessionRule("/Users/u/p")},
		Protected: []policy.Protected{
			{Path: "/Users/u/p/.git/config"},
			{Path: "/Users/u/p/.git/hooks"},
			{Path: "/Users/u/p/.vscode"},
		},
	}
	made := []string{
		"/.git", "/.git/config.lock", "/.git/config", "/.git/hooks", "/.git/hooks/pre-commit.sample",
		"/.git/HEAD",
	}
	for _, name := range made {
		if !ask(t, profileOf(t, Translate(p, Host{}), disk), file("file-write-create", "/Users/u/p"+name)) {
			t.Errorf("%s cannot be created", name)
		}
	}
	scene := resolve(t, Translate(p, Host{}), disk)
	if want := []string{"/Users/u/p/.git/config", "/Users/u/p/.git/hooks"}; !slices.Equal(scene.Unkept, want) {
		t.Errorf("not protected: %v", scene.Unkept)
	}
	// The next session finds a repository and protects it, including hooks that
	// do not exist.
	disk.add("file", "/Users/u/p/.git/config")
	for _, name := range []string{"/.git/config", "/.git/hooks", "/.git/Hooks", "/.git/hooks/pre-commit", "/.vscode"} {
		if ask(t, profileOf(t, Translate(p, Host{}), disk), file("file-write-create", "/Users/u/p"+name)) {
			t.Errorf("%s can be created although there is a repository", name)
		}
	}
	if ask(t, profileOf(t, Translate(p, Host{}), disk), file("file-write-unlink", "/Users/u/p/.git")) {
		t.Error("the repository can be moved")
	}
}

func TestProfile_NetworkOff(t *testing.T) {
	t.Parallel()
	offline := profileOf(t, samples()["offline"], mac())
	for _, no := range []question{
		ip("network-outbound", "localhost:22"), ip("network-outbound", "1.1.1.1:443"), ip("network-outbound", "*:443"),
		ip("network-bind", "*:8080"), ip("network-inbound", "*:8080"), unixSocket("network-outbound",
			"/private/var/run/mDNSResponder"),
		with("mach-lookup", "global-name", "com.apple.trustd"),
		with("mach-lookup", "global-name", "com.apple.dnssd.service"),
	} {
		if ask(t, offline, no) {
			t.Errorf("allowed: %s", no)
		}
	}
}

// With allowed hosts the sidecar's proxy alone can be reached. Services that look
// up names or fetch certificates stay closed: they would carry data out.
func TestProfile_OpensTheProxysPortAlone(t *testing.T) {
	t.Parallel()
	plan := samples()["offline"]
	plan.Proxy = 50123
	profile := profileOf(t, plan, mac())
	if !ask(t, profile, ip("network-outbound", "localhost:50123")) {
		t.Error("the proxy cannot be reached")
	}
	for _, no := range []question{
		ip("network-outbound", "localhost:50124"), ip("network-outbound", "1.1.1.1:50123"),
		ip("network-outbound", "*:443"),
		ip("network-bind", "*:50123"), ip("network-inbound", "*:50123"), unixSocket("network-outbound",
			"/private/var/run/mDNSResponder"),
		with("mach-lookup", "global-name", "com.apple.trustd"),
		with("mach-lookup", "global-name", "com.apple.dnssd.service"),
	} {
		if ask(t, profile, no) {
			t.Errorf("allowed: %s", no)
		}
	}
}

func TestProfile_GrantedSocket(t *testing.T) {
	t.Parallel()
	profile := profileOf(t, samples()["sockets"], mac())
	if !ask(t, profile, unixSocket("network-outbound", "/private/var/run/docker.sock")) {
		t.Error("the granted socket is denied")
	}
	for _, other := range []string{
		"/private/var/run/docker.sock2", "/private/var/run/other",
		"/private/tmp/tmux-501/default",
	} {
		if ask(t, profile, unixSocket("network-outbound", other)) {
			t.Errorf("%s is allowed", other)
		}
	}
}

func TestProfile_TrackingRestrictsNothing(t *testing.T) {
	t.Parallel()
	profile := profileOf(t, samples()["tracking-only"], mac())
	for _, yes := range []question{
		file("file-read-data", "/Users/u/.ssh/id_rsa"), file("file-write-create", "/Users/u/x"), file("process-exec",
			"/usr/bin/sudo"),
		unixSocket("network-outbound", "/private/var/run/docker.sock"), ip("network-outbound", "1.1.1.1:1"),
		with("signal", "target", "others"),
		with("mach-lookup", "global-name", "com.apple.coreservices.launchservicesd"),
		with("mach-lookup", "global-name", "sandbox-sidecar.session.1.allow"), file("file-read-data",
			stateDir+"/run/s2/allow"),
	} {
		if !ask(t, profile, yes) {
			t.Errorf("denied: %s", yes)
		}
	}
	for _, no := range []question{
		with("mach-lookup", "global-name", "sandbox-sidecar.session.1.deny"),
		file("file-read-data", stateDir+"/run/s2/deny"),
		file("file-write-unlink", stateDir+"/run/s2/allow"), file("file-write-unlink", stateDir+"/run/s2"),
	} {
		if ask(t, profile, no) {
			t.Errorf("allowed: %s", no)
		}
	}
}
