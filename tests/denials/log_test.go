//go:build linux

package denials

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// logged reports whether the sidecar reads the kernel's audit log.
func logged(e *editor) bool {
	return strings.Contains(e.Hello.Capabilities.Enforcement["denials"].Mechanism, "audit log")
}

// If the kernel's audit log is readable, the sidecar also reports denials that
// the filter would miss or slow down, each once. With "ignore" nothing is
// reported, and the log gets no entry.
func TestTheKernelsAuditLogIsReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	s := newScene(t)
	file, odd, unwanted := s.OutsidePath("file"), s.OutsidePath("an odd \"name\""), s.OutsidePath("unwanted")
	for _, name := range []string{file, odd, unwanted} {
		harness.Write(t, name, "content\n")
	}
	short := harness.ShortDir(t)
	listen(t, filepath.Join(short, "s"))
	abstract := "sidecar-denials-" + strconv.Itoa(unix.Getpid())
	listen(t, "@"+abstract)
	pid := s.target()
	tries := map[string]attempt{
		"close-on-exec":      {access: "read", target: file, argv: []string{"python3", "-c", "open('" + file + "')"}},
		"grep":               {access: "read", target: file, argv: []string{"grep", "content", file}},
		"an odd name":        {access: "read", target: odd, argv: []string{"grep", "content", odd}},
		"a list":             {access: "read", target: s.Outside, argv: []string{"ls", s.Outside}},
		"what all would see": {access: "read", target: file, argv: []string{"cat", file}},
		"a change":           {access: "write", target: file, argv: []string{s.Victim, "open-often", file, "1"}},
		"a socket": {
			access: "connect_unix", target: filepath.Join(short, "s"),
			argv: []string{s.Victim, "connect", filepath.Join(short, "s")},
		},
		"an abstract socket": {
			access: "connect_unix", target: "abstract:" + abstract,
			argv: []string{s.Victim, "connect", "@" + abstract},
		},
		"a signal": {access: "signal", target: pid, argv: []string{s.Victim, "terminate", pid}},
	}
	report := s.start(harness.Settings(nil), nil)
	if !logged(report) {
		harness.Skip(t, "audit_log", report.Hello.Capabilities.Enforcement["denials"].Detail)
	}
	for name, test := range tries {
		if _, err := exec.LookPath(test.argv[0]); err != nil {
			harness.Skip(t, test.argv[0], err.Error())
		}
		session, status, denials := report.tool(test.argv...)
		denial, times := find(denials, test.access, test.target)
		if status == 0 || times != 1 || denial.Count != 1 || denial.Process == nil ||
			denial.Process.Name != filepath.Base(test.argv[0]) {
			t.Errorf("%s: status %d, denials %+v\n%s", name, status, denials, session.Output())
		}
		if p := session.Sandbox.Protections["denials"]; p.Status != protocol.Enforced ||
			!strings.Contains(p.Detail, "drops records") {
			t.Errorf("%s: the reply says %+v", name, p)
		}
	}
	if session, status, denials := report.tool("sh", "-c", "kill -0 "+pid); status == 0 || len(denials) > 0 {
		t.Errorf("a question whether a process is there: status %d, denials %+v\n%s", status, denials, session.Output())
	}
	lines := readLog(t)
	ignore := s.start(harness.Settings(harness.Sandbox{"on_denied": "ignore"}), nil)
	tries["what nobody wants to hear of"] = attempt{argv: []string{"cat", unwanted}}
	for name, test := range tries {
		if session, status, denials := ignore.tool(test.argv...); status == 0 || len(denials) > 0 {
			t.Errorf("%s: ignored: status %d, denials %+v\n%s", name, status, denials, session.Output())
		}
	}
	s.start(harness.Settings(nil), nil).tool("cat", file)
	if before := lines(file); strings.Contains(before, unwanted) {
		t.Errorf("logged although nobody reads it: %s", before)
	}
	open := s.start(harness.Off(), nil) // last, because the signal ends its target
	for name, test := range tries {
		if session, status, _ := open.tool(test.argv...); status != 0 {
			t.Errorf("%s: control: without a sandbox: status %d\n%s", name, status, session.Output())
		}
	}
}

// attempt is one refused operation.
type attempt struct {
	access, target string
	argv           []string
}

// readLog reads the kernel's log from now on. The returned function gives all
// lines before the first one that holds a text.
func readLog(t *testing.T) (before func(text string) string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	const wait = 10 * time.Second
	timeout := unix.NsecToTimeval(int64(wait))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		t.Fatal(err)
	}
	return func(text string) string {
		t.Helper()
		var all bytes.Buffer
		line := make([]byte, 16<<10)
		for end := time.Now().Add(wait); time.Now().Before(end); {
			n, _, err := unix.Recvfrom(fd, line, 0)
			if err != nil {
				t.Fatalf("%v, after: %s", err, all.Bytes())
			}
			if bytes.Contains(line[:n], []byte(strconv.Quote(text))) {
				return all.String()
			}
			all.Write(line[:n])
		}
		t.Fatalf("%q is not logged: %s", text, all.Bytes())
		return ""
	}
}
