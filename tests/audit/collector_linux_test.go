package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	trail "github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// rsyslogd is where tests/prerequisites unpacks it, with its libraries.
const rsyslogd = "/var/cache/sandbox-sidecar-tests/rsyslog"

// TestAudit_ACollectorGetsEachLineOnce runs collectors with the configurations
// that docs/team.md shows, while sessions start and files are renamed.
// SIDECAR_OTELCOL names a collector of OpenTelemetry's, which no package has; see
// docs/team.md for what it must consist of.
func TestAudit_ACollectorGetsEachLineOnce(t *testing.T) {
	t.Parallel()
	collectors := map[string]func(*testing.T, *scene) *collected{"rsyslog": startRsyslog}
	if program := os.Getenv("SIDECAR_OTELCOL"); program != "" {
		collectors["OpenTelemetry"] = func(t *testing.T, s *scene) *collected {
			return startOpenTelemetry(t, s, program)
		}
	}
	for name, start := range collectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, file)
			c := start(t, s)
			const sessions = 4
			for i := range sessions {
				out, ok := s.run("exec", "--", "sh", "-c", "cat /etc/shadow; exit 0", strings.Repeat("long", 1000))
				if !ok {
					t.Fatal(out)
				}
				if i < sessions-1 { // as a writer does
					harness.Must(t, os.Rename(filepath.Join(s.dir(), "audit.jsonl"),
						filepath.Join(s.dir(), "audit-"+string(rune('a'+i))+".jsonl")))
				}
			}
			if starts := strings.Count(c.hasAll(s), `"event":"spawn"`); starts != sessions {
				t.Errorf("%d sessions", starts)
			}
		})
	}
}

// configuration is an example of docs/team.md, with other addresses.
func configuration(t *testing.T, language string, addresses map[string]string) string {
	t.Helper()
	_, config, found := strings.Cut(harness.Read(t, "../../docs/team.md"), "```"+language+"\n")
	config, _, ends := strings.Cut(config, "\n```")
	if !found || !ends {
		t.Fatalf("docs/team.md has no configuration in %s", language)
	}
	for from, to := range addresses {
		if !strings.Contains(config, from) {
			t.Fatalf("the configuration has no %s", from)
		}
		config = strings.ReplaceAll(config, from, to)
	}
	return config
}

// runCollector starts a collector that runs until the test ends.
func runCollector(t *testing.T, command *exec.Cmd) {
	t.Helper()
	log := &harness.Buffer{}
	command.Stdout, command.Stderr = log, log
	harness.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(unix.SIGTERM)
		_ = command.Wait()
		if t.Failed() {
			t.Logf("%s: %s", command.Path, log)
		}
	})
}

func startRsyslog(t *testing.T, s *scene) *collected {
	t.Helper()
	program := filepath.Join(rsyslogd, "usr/sbin/rsyslogd")
	if _, err := os.Stat(program); err != nil {
		harness.Skip(t, "rsyslog", err.Error())
	}
	libraries, err := filepath.Glob(filepath.Join(rsyslogd, "usr/lib/*/rsyslog"))
	if err != nil || len(libraries) != 1 {
		t.Fatalf("the modules of rsyslog: %q, %v", libraries, err)
	}
	c := listen(t)
	_, port, err := net.SplitHostPort(c.address)
	harness.Must(t, err)
	work := t.TempDir()
	harness.Write(t, filepath.Join(work, "conf"), `global(workDirectory="`+work+`" maxMessageSize="64k")`+"\n"+
		configuration(t, "rsyslog", map[string]string{
			"/home/*/": filepath.Dir(s.w.Home) + "/*/", "logs.example.org": "127.0.0.1", `"6514"`: `"` + port + `"`,
		})+"\n")
	command := exec.Command(program, "-n", "-f", filepath.Join(work, "conf"), "-i", filepath.Join(work, "pid"),
		"-M", libraries[0])
	command.Env = []string{"LD_LIBRARY_PATH=" + filepath.Dir(libraries[0])}
	runCollector(t, command)
	return c
}

// startOpenTelemetry starts a collector that sends what it reads by OTLP.
func startOpenTelemetry(t *testing.T, s *scene, program string) *collected {
	t.Helper()
	c := &collected{t: t}
	server := httptest.NewServer(http.HandlerFunc(c.takeOTLP))
	t.Cleanup(server.Close)
	work := t.TempDir()
	harness.Write(t, filepath.Join(work, "conf.yaml"), configuration(t, "yaml", map[string]string{
		"/home/*/": filepath.Dir(s.w.Home) + "/*/", "https://logs.example.org:4318": server.URL,
		"/var/lib/otelcol": work,
	})+"\n")
	// What is sent is readable here, and no port is opened for metrics.
	harness.Write(t, filepath.Join(work, "test.yaml"), `{
		exporters: {otlphttp: {encoding: json, compression: none}}, service: {telemetry: {metrics: {level: none}}}}`)
	runCollector(t, exec.Command(program, "--config", "file:"+filepath.Join(work, "conf.yaml"),
		"--config", "file:"+filepath.Join(work, "test.yaml")))
	return c
}

// collected is what a collector has sent.
type collected struct {
	t       *testing.T
	address string
	mu      sync.Mutex // guards lines
	lines   []string
}

// listen collects the lines that arrive at a port.
func listen(t *testing.T) *collected {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	c := &collected{t: t, address: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				lines.Buffer(nil, 1<<20)
				for lines.Scan() {
					c.add(lines.Text())
				}
			}()
		}
	}()
	return c
}

func (c *collected) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
}

func (c *collected) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// takeOTLP takes logs as OTLP has them in JSON. Their time is that of the line.
func (c *collected) takeOTLP(w http.ResponseWriter, r *http.Request) {
	var logs struct {
		ResourceLogs []struct {
			ScopeLogs []struct {
				LogRecords []struct {
					TimeUnixNano string
					Body         struct{ StringValue string }
				}
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&logs); err != nil {
		c.t.Errorf("%s: %v", r.URL, err)
	}
	for _, resource := range logs.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				var event trail.Event
				err := json.Unmarshal([]byte(record.Body.StringValue), &event)
				if got := fmt.Sprint(event.Time.UnixNano()); err != nil || got != record.TimeUnixNano {
					c.t.Errorf("%s has the time %s: %v", record.Body.StringValue, record.TimeUnixNano, err)
				}
				c.add(record.Body.StringValue)
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, "{}")
}

// hasAll waits until every line of a trail has arrived. None has come twice, and
// none has changed. It returns the trail.
func (c *collected) hasAll(s *scene) string {
	c.t.Helper()
	raw := s.raw()
	written := strings.Split(strings.TrimSuffix(raw, "\n"), "\n")
	harness.Eventually(c.t, "each line has arrived", func() bool { return len(c.all()) >= len(written) })
	arrived := c.all()
	slices.Sort(written)
	slices.Sort(arrived)
	if !slices.Equal(arrived, written) {
		harness.Breach(c.t, "%d lines were written, and %d have arrived", len(written), len(arrived))
	}
	return raw
}

// TestAudit_TheRealJournald stores the lines, says who wrote each, and gives them
// to the command.
func TestAudit_TheRealJournald(t *testing.T) {
	t.Parallel()
	const journald = "/lib/systemd/systemd-journald"
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "journald runs as root")
	}
	for _, program := range []string{journald, "journalctl", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			harness.Skip(t, "systemd", err.Error())
		}
	}
	if _, err := os.Stat("/etc/machine-id"); err != nil {
		harness.Skip(t, "systemd", err.Error())
	}
	s := newScene(t, harness.Sandbox{"audit": "journal", "audit_required": true})
	command := s.command("audit")
	sidecar := command.Path
	command.Path, command.Args = "/bin/sh", []string{"sh", "-ec", `
		mount -t tmpfs tmpfs /run
		echo 0123456789abcdef0123456789abcdef > /run/machine-id
		mount --bind /run/machine-id /etc/machine-id
		mkdir -p /run/systemd/journal /run/log/journal/0123456789abcdef0123456789abcdef
		"$1" & journald=$!
		n=0; until [ -S /run/systemd/journal/socket ] || [ $n = 1200 ]; do sleep 0.1; n=$((n+1)); done
		"$2" exec -- sh -c 'exit 0' --token hunter2hunter2
		logger --journald <<-END
			MESSAGE={"v":1,"time":"2026-01-01T00:00:00Z","event":"forged"}
			SYSLOG_IDENTIFIER=sandbox-sidecar-audit
		END
		journalctl --sync
		echo all; "$2" audit --json
		echo ours; journalctl -q -o cat -t sandbox-sidecar-audit _EXE="$2"
		kill $journald`, "sh", journald, sidecar}
	wrapped := exec.Command("unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc"},
		append([]string{command.Path}, command.Args[1:]...)...)...)
	wrapped.Dir, wrapped.Env = command.Dir, command.Env
	out, err := wrapped.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, printed, _ := strings.Cut(string(out), "all\n")
	all, ours, _ := strings.Cut(printed, "ours\n")
	for _, kind := range []string{trail.Spawn, trail.Started, trail.Ended} {
		if !strings.Contains(all, `"event":"`+kind+`"`) || !strings.Contains(ours, `"event":"`+kind+`"`) {
			t.Errorf("no line of %s: %s", kind, out)
		}
	}
	if !strings.Contains(all, "forged") || strings.Contains(ours, "forged") {
		t.Errorf("the journal does not say who wrote a line: %s", out)
	}
	if strings.Contains(printed, "hunter2") {
		t.Errorf("a secret: %s", printed)
	}
}

// TestAudit_HostsAndAnswers: the hosts that a session has reached, and what was
// answered to its questions.
func TestAudit_HostsAndAnswers(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]string{"alone": "", "in a group": "agent"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testHostsAndAnswers(t, group)
		})
	}
}

func testHostsAndAnswers(t *testing.T, group string) {
	t.Helper()
	harness.Require(t, "network_hosts")
	harness.RequirePrograms(t, "curl")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "served")
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	harness.Must(t, err)
	s := newScene(t, nil)
	secret, refused := s.w.OutsidePath("secret"), s.w.OutsidePath("refused")
	harness.Write(t, secret, "the secret")
	harness.Write(t, refused, "the other")
	e := harness.Start(t, s.w, harness.Options{
		Settings: harness.Settings(harness.Sandbox{
			"audit": "file", "allow_network": false, "allowed_hosts": []string{"localhost:" + port}, "on_denied": "ask",
		}),
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
	})
	client.OnRequest(e.Client, protocol.RequestAccess, func(
		p protocol.RequestAccessParams,
	) protocol.RequestAccessResult {
		if p.Target == secret {
			return protocol.RequestAccessResult{Decision: protocol.DecisionSession}
		}
		return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
	})
	session, _ := e.Run(protocol.SpawnParams{
		Group: group, Command: "for i in 1 2 3; do curl -sS http://host.sandbox.internal:" + port + "/; done; cat " +
			secret + " " + refused,
	})
	out := session.Output()
	if strings.Count(out, "served") != 3 || !strings.Contains(out, "the secret") || strings.Contains(out, "the other") {
		t.Fatalf("control: %s", out)
	}
	_ = e.HangUp()
	events := s.events()
	times := 0
	for _, c := range of(events, trail.Connected) {
		if c.Target != "host.sandbox.internal:"+port || c.Process != "curl" {
			t.Errorf("%+v", c)
		}
		times += c.Count
	}
	if times != 3 {
		t.Errorf("%d connections are noted", times)
	}
	answers := map[string]string{}
	for _, a := range of(events, trail.Asked) {
		answers[a.Target] = a.Answer
	}
	if len(answers) != 2 || answers[secret] != "session" || answers[refused] != "deny" {
		t.Errorf("%v", answers)
	}
}
