package linux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// realTempDir is t.TempDir without symlinks.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConfine_CanSwitchTheNetworkOff(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	confinement, err := Backend{}.Confine(&policy.Policy{Restricted: true}, platform.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	enforcement, err := platform.ProbeStage(t.Context(), Backend{}, confinement)
	if err != nil {
		t.Fatal(err)
	}
	if got := enforcement.Protections[platform.Network]; got.Status != platform.Enforced || got.NotRequested {
		t.Errorf("%+v", got)
	}
}

func TestProbe_RequestsEveryProtection(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	for name, protection := range (Backend{}).Probe(context.Background()) {
		// Without a client nobody can make overlays.
		if protection.NotRequested && name != platform.ToolchainCaches {
			t.Errorf("the probe does not request %s", name)
		}
	}
}

func TestProbe_ReportsIfItCannotTry(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, protection := range (Backend{}).Probe(ctx) {
		if protection.Status != platform.Absent || protection.Detail == "" {
			t.Errorf("%s is %s (%s) although nothing was tried", name, protection.Status, protection.Detail)
		}
	}
}

func TestStage_ProcessCannotGainPrivileges(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	p := platformtest.Policy(t, rule("/proc", policy.Read, "f"))
	acts := []platformtest.Act{{Verb: platformtest.Read, Path: "/proc/self/status"}}
	results, _ := platformtest.Perform(t, Backend{}, platformtest.Confined(t, Backend{}, p, acts...))
	status := statusFields(results[0].Value)
	if status["NoNewPrivs"] != "1" {
		t.Errorf("NoNewPrivs is %q: %s", status["NoNewPrivs"], results[0].Error)
	}
	if status["CapInh"] != "0000000000000000" || status["CapAmb"] != "0000000000000000" {
		t.Errorf("inheritable %s, ambient %s", status["CapInh"], status["CapAmb"])
	}
	results, _ = platformtest.Perform(t, Backend{}, platformtest.Order(t, acts...))
	if got := statusFields(results[0].Value)["NoNewPrivs"]; got != "0" {
		t.Errorf("NoNewPrivs is %q in an unconfined session, where sudo must work", got)
	}
}

func TestStage_DropsCapabilitiesThatCouldUndoASandbox(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root has capabilities to drop")
	}
	p := platformtest.Policy(t, rule("/proc", policy.Read, "f"))
	results, _ := platformtest.Perform(t, Backend{},
		platformtest.Confined(t, Backend{}, p, platformtest.Act{Verb: platformtest.Read, Path: "/proc/self/status"}))
	status := statusFields(results[0].Value)
	for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
		for name, bit := range map[string]uint{
			"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE, "CAP_MKNOD": unix.CAP_MKNOD,
			"CAP_SYS_MODULE": unix.CAP_SYS_MODULE, "CAP_SYS_RAWIO": unix.CAP_SYS_RAWIO,
			"CAP_DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH,
			"CAP_BPF":             unix.CAP_BPF, "CAP_PERFMON": unix.CAP_PERFMON, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN,
			"CAP_CHECKPOINT_RESTORE": unix.CAP_CHECKPOINT_RESTORE, "CAP_SETFCAP": unix.CAP_SETFCAP,
		} {
			if hasBit(t, status[set], bit) {
				t.Errorf("%s (%s) holds %s", set, status[set], name)
			}
		}
		if !hasBit(t, status[set], unix.CAP_CHOWN) {
			t.Errorf("%s (%s) has lost CAP_CHOWN, which package managers need", set, status[set])
		}
	}
}

func TestStage_CannotMakeDeviceNodes(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root may make device nodes")
	}
	dir := realTempDir(t)
	p := platformtest.Policy(t, rule(dir, policy.ReadWrite|policy.Device, "f"))
	acts := []platformtest.Act{
		{Verb: platformtest.MakeNode, Path: dir + "/node"},
		{Verb: platformtest.Create, Path: dir + "/file"},
	}
	results, _ := platformtest.Perform(t, Backend{}, platformtest.Confined(t, Backend{}, p, acts...))
	if !results[0].Refused() {
		t.Errorf("%s: %+v", acts[0], results[0])
	}
	if !results[1].OK() {
		t.Errorf("%s: %s", acts[1], results[1].Error)
	}
}

func TestStage_GrantThatHasBecomeASymlinkIsMissing(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	dir := realTempDir(t)
	if err := os.Mkdir(dir+"/real", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/real/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	order := platformtest.Confined(t, Backend{}, platformtest.Policy(t, rule(dir+"/granted", policy.Read, "f")),
		platformtest.Act{Verb: platformtest.Read, Path: dir + "/real/file"})
	if err := os.Symlink("real", dir+"/granted"); err != nil {
		t.Fatal(err)
	}
	results, enforcement := platformtest.Perform(t, Backend{}, order)
	if !results[0].Refused() {
		t.Errorf("a symlink moved the grant: %+v", results[0])
	}
	if len(enforcement.Missing) == 0 || enforcement.Missing[len(enforcement.Missing)-1].Path != dir+"/granted" {
		t.Errorf("the grant without effect is not reported: %v", enforcement.Missing)
	}
}

func TestStage_GrantsHoldForNamesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	project := filepath.Join(realTempDir(t), "\xe9t\xe9\n\"")
	if err := os.Mkdir(project, 0o700); err != nil {
		harness.Skip(t, "byte_names", err.Error())
	}
	order := platformtest.Confined(t, Backend{},
		platformtest.Policy(t, rule(project, policy.ReadWrite, policy.OriginSession)),
		platformtest.Act{Verb: platformtest.Create, Path: "file"})
	order.Dir = project
	results, _ := platformtest.Perform(t, Backend{}, order)
	if !results[0].OK() {
		t.Error(results[0].Error)
	}
}

func TestStage_AbstractSocketsFollowTheScope(t *testing.T) {
	t.Parallel()
	abi := requireLandlock(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	name := "@" + t.TempDir()
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 8); err != nil {
		t.Fatal(err)
	}
	act := platformtest.Act{Verb: platformtest.Connect, Path: name}
	results, _ := platformtest.Perform(t, Backend{}, platformtest.Order(t, act))
	if !results[0].OK() {
		t.Fatalf("the control fails: %s", results[0].Error)
	}
	results, _ = platformtest.Perform(t, Backend{}, platformtest.Confined(t, Backend{}, platformtest.Policy(t), act))
	// Below ABI 6 the sidecar connects or refuses. If it cannot do that, the
	// report says so.
	if results[0].Refused() != (abi >= 6 || mediationAvailable() == nil) {
		t.Errorf("ABI %d: %+v", abi, results[0])
	}
}

func TestAbsent_NamesTheCauseAndTheFix(t *testing.T) {
	t.Parallel()
	got := absent(errors.New("switched off"))
	for _, name := range platform.Protections {
		p, ok := got[name]
		if ok == (name == platform.ProcessTracking) {
			t.Errorf("%s: reported is %t", name, ok)
		}
		if ok && (p.Status != platform.Absent || p.Detail != "switched off" || p.Fix == "" || p.Mechanism != "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// statusFields parses /proc/PID/status.
func statusFields(status []byte) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

func hasBit(t *testing.T, hex string, bit uint) bool {
	t.Helper()
	var set uint64
	for _, digit := range hex {
		value := strings.IndexRune("0123456789abcdef", digit)
		if value < 0 {
			t.Fatalf("not a set of capabilities: %q", hex)
		}
		set = set<<4 | uint64(value)
	}
	if hex == "" {
		t.Fatal("no set of capabilities")
	}
	return set&(1<<bit) != 0
}

func rule(path string, access policy.Access, file string) policy.Rule {
	return policy.Rule{Path: path, Access: access, Origin: policy.Origin{File: file, Key: "test"}}
}
