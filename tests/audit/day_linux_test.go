package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	trail "github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// day is what two editors, an agent and a shell do in a day, and what the trail
// must say about it.
type day struct {
	*scene
	ports [2]string // of servers that sessions may reach

	mu   sync.Mutex // guards what follows
	jobs []*done
	// during is a moment at which the job "long" runs.
	during time.Time
}

// job is one thing that is run.
type job struct {
	line      string
	exit      int
	killed    bool
	connected map[string]int
	refused   []string
	// asked are the questions and their answers, where somebody can be asked.
	asked map[string]string
	check string // a file for the review
}

// done is a job that was run.
type done struct {
	job
	mark, via, dir string
	answered       bool // somebody can be asked
}

var mark = regexp.MustCompile(`: (job-[0-9]+);`)

// mix is what is run in turns. Most of it is refused nothing.
func (d *day) mix(n int) job {
	server := func(i int) string { return "host.sandbox.internal:" + d.ports[i] }
	get := func(i int) string {
		return "curl -sS -m 60 -H 'Authorization: Bearer hunter2hunter2' http://" + server(i) + "/"
	}
	outside := d.w.OutsidePath
	const commit = "git add -A; git -c user.name=x -c user.email=x@example.org commit -qm x --allow-empty"
	list := []job{
		{line: "git status --short"},
		{line: "make -s"},
		{line: "make -s test"},
		{line: "grep -rn main ."},
		{line: "ls -l"},
		{line: "git --no-pager log --oneline"},
		{line: "echo '// more' >> main.c; make -s"},
		{line: "make -s test"},
		{line: commit},
		{line: "git --no-pager diff HEAD~1 --stat || true"},
		{line: get(0), connected: map[string]int{server(0): 1}},
		{line: get(0) + "; " + get(1) + "; " + get(1), connected: map[string]int{server(0): 1, server(1): 2}},
		{line: "make -s no-such-target", exit: 2},
		{line: "git status --short"},
		{line: "sed -n 1,20p main.c"},
		{line: "make -s test"},
		{line: "find . -name '*.c' | xargs wc -l"},
		{line: "kill -9 $$", killed: true},
		{line: "curl -sS -m 60 http://refused.example/ || exit 7", exit: 7, refused: []string{"refused.example:80"}},
		{line: "cat " + outside("never"), exit: 1, refused: []string{outside("never")}},
		{line: "echo >> Makefile", check: "Makefile"},
	}
	return list[n%len(list)]
}

// begin notes a job that is about to be run, and returns its command line.
func (d *day) begin(via, dir string, j job, answered bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := fmt.Sprintf("job-%d", len(d.jobs))
	d.jobs = append(d.jobs, &done{job: j, mark: name, via: via, dir: dir, answered: answered})
	return ": " + name + "; " + j.line
}

// project makes a repository with a program in it.
func (d *day) project(name string) string {
	d.t.Helper()
	dir := filepath.Join(d.w.Home, "work", name)
	harness.Write(d.t, filepath.Join(dir, "main.c"), "int main(void) { return 0; }\n")
	harness.Write(d.t, filepath.Join(dir, ".gitignore"), "main\n")
	harness.Write(d.t, filepath.Join(dir, "Makefile"), "main: main.c\n\tgcc -o main main.c\ntest: main\n\t./main\n")
	for _, line := range []string{"init -q", "add -A", "-c user.name=x -c user.email=x@example.org commit -qm x"} {
		git := exec.Command("git", strings.Fields(line)...)
		git.Dir, git.Env = dir, harness.Environ(d.w)
		if out, err := git.CombinedOutput(); err != nil {
			d.t.Fatalf("git: %v: %s", err, out)
		}
	}
	return dir
}

// editor starts one whose user answers as the name of what is asked about says.
func (d *day) editor(t *testing.T, settings string) *harness.Editor {
	t.Helper()
	e := harness.Start(t, d.w, harness.Options{
		Settings:   settings,
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
	})
	client.OnRequest(e.Client, protocol.RequestAccess, func(
		p protocol.RequestAccessParams,
	) protocol.RequestAccessResult {
		switch filepath.Base(p.Target) {
		case "once":
			return protocol.RequestAccessResult{Decision: protocol.DecisionOnce}
		case "session":
			return protocol.RequestAccessResult{Decision: protocol.DecisionSession}
		}
		return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
	})
	return e
}

// edits runs an editor's jobs, and the questions that only an editor asks.
func (d *day) edits(t *testing.T, e *harness.Editor, dir string, jobs int) {
	t.Helper()
	for n := range jobs {
		j := d.mix(n)
		if n%10 == 9 {
			j = job{line: "cat " + d.w.OutsidePath("once") + " " + d.w.OutsidePath("session"), asked: map[string]string{
				d.w.OutsidePath("once"): "once", d.w.OutsidePath("session"): "session",
			}}
		}
		params := protocol.SpawnParams{Kind: protocol.Tool, Cwd: dir, Command: d.begin("serve", dir, j, true)}
		if n%5 == 0 {
			params.Kind = protocol.Terminal
		}
		s := e.Spawn(params)
		if exit := s.Exit(); j.killed != (exit.ExitCode == nil) || !j.killed && *exit.ExitCode != j.exit {
			t.Errorf("%s: %+v: %s", j.line, exit, s.Output())
		}
	}
}

// agent runs jobs as an agent does that knows the tools of MCP alone.
func (d *day) agent(t *testing.T, dir string, jobs int) {
	t.Helper()
	server := exec.Command(harness.Binary(t), "mcp")
	server.Dir, server.Env, server.Stderr = dir, harness.Environ(d.w), t.Output()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).
		Connect(t.Context(), &mcp.CommandTransport{Command: server}, nil)
	harness.Must(t, err)
	defer session.Close()
	for n := range jobs {
		line := d.begin("serve", dir, d.mix(n), false)
		call := &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"command": line}}
		got, err := session.CallTool(t.Context(), call)
		if err != nil || got.IsError {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
}

// shell runs jobs in a terminal, and trusts and untrusts the project meanwhile.
func (d *day) shell(t *testing.T, dir string, jobs int) {
	t.Helper()
	harness.Write(t, filepath.Join(dir, ".zed/settings.json"),
		harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{"/usr/games"}}))
	for n := range jobs {
		switch n {
		case jobs / 3:
			d.runIn(dir, "trust", "--digest", harness.Digest(t, filepath.Join(dir, ".zed/settings.json")), dir)
		case jobs * 2 / 3:
			d.runIn(dir, "untrust", dir)
		}
		j := d.mix(n)
		out, ok := d.runIn(dir, "exec", "--", "sh", "-c", d.begin("exec", dir, j, false))
		if ok != (j.exit == 0 && !j.killed) {
			t.Errorf("%s: %s", j.line, out)
		}
	}
}

// TestAudit_ADayOfWork: what was run, refused, asked, allowed and reached is in
// the trail, and at a collector. The trail's sizes are logged.
// SIDECAR_AUDIT_SESSIONS makes the day longer.
func TestAudit_ADayOfWork(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	harness.RequirePrograms(t, "git", "make", "gcc", "curl", "jq")
	jobs := 22 // each of the mix once
	if given := os.Getenv("SIDECAR_AUDIT_SESSIONS"); given != "" {
		all, err := strconv.Atoi(given)
		harness.Must(t, err)
		jobs = all / 4
	}
	harness.BinaryWithMCP(t) // a program that appears later is in the review
	d := &day{scene: newScene(t, nil)}
	settings := d.prepare()
	collector := startRsyslog(t, d.scene)
	begun := time.Now()
	t.Run("work", func(t *testing.T) {
		d.work(t, settings, jobs)
	})
	t.Logf("%d sessions in %s", len(d.jobs), time.Since(begun).Round(time.Second))
	raw := collector.hasAll(d.scene)
	if strings.Contains(raw, "hunter2") {
		t.Error("a secret is in the trail")
	}
	d.compare()
	d.answers()
	lines, sessions := strings.Count(raw, "\n"), len(d.jobs)
	const kept = 10 * 10 << 20 // see docs/audit.md
	t.Logf("%d sessions: %d lines, %d bytes, %d bytes a session; %d MB keep %d sessions", sessions, lines, len(raw),
		len(raw)/sessions, kept>>20, kept/(len(raw)/sessions))
}

// prepare makes what the jobs need, and returns the user's settings.
func (d *day) prepare() string {
	d.t.Helper()
	for i := range d.ports {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "served")
		}))
		d.t.Cleanup(server.Close)
		_, port, err := net.SplitHostPort(server.Listener.Addr().String())
		harness.Must(d.t, err)
		d.ports[i] = port
	}
	for _, name := range []string{"never", "once", "session"} {
		harness.Write(d.t, d.w.OutsidePath(name), name)
	}
	settings := harness.Defaults(harness.Sandbox{
		"audit": "file", "allow_network": false, "on_denied": "ask",
		"allowed_hosts": []string{"localhost:" + d.ports[0], "localhost:" + d.ports[1]},
	})
	harness.Write(d.t, d.w.UserSettings(), settings)
	return settings
}

// work lets all of them work at once. They are done when it returns.
func (d *day) work(t *testing.T, settings string, jobs int) {
	t.Helper()
	dirs := map[string]string{}
	for _, name := range []string{"first", "second", "agent", "shell", "long"} {
		dirs[name] = d.project(name)
	}
	first, second := d.editor(t, settings), d.editor(t, settings)
	long := first.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: dirs["long"],
		Command: d.begin("serve", dirs["long"], job{line: "echo on; read line; exit 5", exit: 5}, true),
	})
	long.Await("on")
	d.during = time.Now().UTC()
	var working sync.WaitGroup
	working.Go(func() { d.edits(t, first, dirs["first"], jobs) })
	working.Go(func() { d.edits(t, second, dirs["second"], jobs) })
	working.Go(func() { d.agent(t, dirs["agent"], jobs) })
	working.Go(func() { d.shell(t, dirs["shell"], jobs) })
	working.Wait()
	long.Type("\n")
	long.Exit()
	harness.Call(first, protocol.SettingsAllow, protocol.SettingsAllowParams{
		ProjectDir: dirs["first"], Scope: "user",
		Suggestion: protocol.Suggestion{Setting: "additional_read_only_paths", Value: []byte(`"/usr/games"`)},
	})
	harness.Eventually(t, "both editors note the change", func() bool {
		return len(of(d.events(), trail.SettingsChanged)) >= 2
	})
	_, _ = first.HangUp(), second.HangUp()
}

// compare holds the trail to what was done, session by session.
func (d *day) compare() {
	d.t.Helper()
	sessions := map[string][]trail.Event{}
	jobs := map[string]string{}
	for _, e := range d.events() {
		if e.Lost > 0 {
			harness.Breach(d.t, "%d lines are lost", e.Lost)
		}
		if e.Session == "" {
			continue
		}
		sessions[e.Session] = append(sessions[e.Session], e)
		if e.Event == trail.Spawn {
			if found := mark.FindStringSubmatch(e.Argv[len(e.Argv)-1]); found != nil {
				jobs[found[1]] = e.Session
			}
		}
	}
	if len(sessions) != len(d.jobs) {
		d.t.Errorf("%d sessions are noted, %d were run", len(sessions), len(d.jobs))
	}
	for _, done := range d.jobs {
		if problem := done.check(sessions[jobs[done.mark]]); problem != "" {
			d.t.Errorf("%s by %s: %s: %s: %+v", done.mark, done.via, done.line, problem, sessions[jobs[done.mark]])
		}
	}
}

// check says how the lines of a session differ from what was done.
func (d *done) check(events []trail.Event) string {
	if len(events) < 3 {
		return "lines are missing"
	}
	begin, end := events[0], events[len(events)-1]
	refused, connected, asked, review := map[string]bool{}, map[string]int{}, map[string]string{}, ""
	for _, e := range events {
		switch e.Event {
		case trail.Refused:
			refused[e.Target] = true
		case trail.Connected:
			connected[e.Target] += e.Count
		case trail.Asked:
			asked[e.Target] = e.Answer
		case trail.Review:
			review = filepath.Base(e.Changed[0].Path)
		}
	}
	wanted := maps.Clone(d.asked)
	if d.answered && len(d.refused) > 0 {
		wanted = map[string]string{d.refused[0]: "deny"}
	}
	// The program may do something before its start is noted.
	started := of(events, trail.Started)
	switch {
	case begin.Event != trail.Spawn || begin.Via != d.via || begin.Project != d.dir || begin.Dir != d.dir:
		return "it begins otherwise"
	case len(started) != 1 || started[0].Confined == nil || !*started[0].Confined:
		return "it is not said to be confined"
	case end.Event != trail.Ended || d.killed != (end.Signal == "SIGKILL") || !d.killed && *end.ExitCode != d.exit:
		return "it ends otherwise"
	case len(refused) != len(d.refused) || len(refused) > 0 && !refused[d.refused[0]]:
		return fmt.Sprintf("refused %v", refused)
	case !maps.Equal(connected, d.connected):
		return fmt.Sprintf("connected %v", connected)
	case !maps.Equal(asked, wanted):
		return fmt.Sprintf("asked %v", asked)
	case review != d.job.check:
		return "the review has " + review
	}
	return ""
}

// answers asks the questions of docs/team.md by the commands that stand there.
func (d *day) answers() {
	d.t.Helper()
	_, section, _ := strings.Cut(harness.Read(d.t, "../../docs/team.md"), "## See afterwards")
	_, section, _ = strings.Cut(section, "```sh\n")
	section, _, _ = strings.Cut(section, "\n```")
	commands := map[string]string{}
	for block := range strings.SplitSeq(section, "\n\n") {
		question, command, _ := strings.Cut(block, "\n")
		commands[strings.TrimPrefix(question, "# ")] = command
	}
	ask := func(question, from, to string) string {
		d.t.Helper()
		line := commands[question]
		if line == "" || !strings.Contains(line, from) {
			d.t.Fatalf("docs/team.md has no answer to %q: %q", question, section)
		}
		shell := exec.Command("/bin/sh", "-ec", strings.ReplaceAll(line, from, to))
		shell.Dir = filepath.Join(d.w.Home, "work/agent")
		shell.Env = append(harness.Environ(d.w), "PATH="+filepath.Dir(harness.Binary(d.t))+":"+harness.SearchPath)
		out, err := shell.Output()
		if err != nil {
			d.t.Errorf("%s: %v: %s", line, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	ran := ask("What ran in this project this week?", "", "")
	if len(mark.FindAllString(harness.Unfold(ran), -1)) != d.count("agent") {
		d.t.Errorf("what ran: %s", ran)
	}
	if hosts := ask("Which hosts were reached, and how often?", "", ""); hosts != d.reached() {
		d.t.Errorf("hosts: %s", hosts)
	}
	refused := ask("What was refused, and how often?", "", "")
	for _, target := range []string{"read " + d.w.OutsidePath("never"), "connect refused.example:80"} {
		if !strings.Contains(refused, target) {
			d.t.Errorf("refused, without %s: %s", target, refused)
		}
	}
	var allowed []trail.Event
	for line := range strings.Lines(ask("Who allowed what?", "", "")) {
		var e trail.Event
		harness.Must(d.t, json.Unmarshal([]byte(line), &e))
		allowed = append(allowed, e)
		if e.User == "" || e.Time.IsZero() {
			d.t.Errorf("nobody, or never: %s", line)
		}
	}
	once := func(e trail.Event) bool { return e.Answer != "once" }
	if list := slices.DeleteFunc(slices.Clone(allowed), once); len(list) != len(d.asking()) || len(list) == 0 {
		d.t.Errorf("%d answers are noted, %d were given", len(list), len(d.asking()))
	}
	for _, kind := range []string{trail.Trusted, trail.Untrusted, trail.Allowed} {
		if len(of(allowed, kind)) != 1 {
			d.t.Errorf("not one line is %s: %q", kind, kinds(allowed))
		}
	}
	if open := ask("What ran without a sandbox?", "", ""); open != "" {
		d.t.Errorf("without a sandbox: %s", open)
	}
	at := ask("What ran at 14:00 UTC?", "2026-01-31T14:00", d.during.Format("2006-01-02T15:04:05.000000000"))
	if !strings.Contains(at, "read line; exit 5") || strings.Count(at, "\n") > 0 {
		d.t.Errorf("what ran at %s: %s", d.during, at)
	}
}

// count is how many jobs ran in a project.
func (d *day) count(name string) (n int) {
	for _, job := range d.jobs {
		if filepath.Base(job.dir) == name {
			n++
		}
	}
	return n
}

// asking are the jobs that asked.
func (d *day) asking() []*done {
	return slices.DeleteFunc(slices.Clone(d.jobs), func(j *done) bool { return j.asked == nil })
}

// reached are the hosts that jobs reached, as the command of docs/team.md prints
// them.
func (d *day) reached() string {
	sum := map[string]int{}
	for _, job := range d.jobs {
		for target, count := range job.connected {
			sum[target] += count
		}
	}
	var list []string
	for _, target := range slices.Sorted(maps.Keys(sum)) {
		list = append(list, fmt.Sprintf("%d %s", sum[target], target))
	}
	return strings.Join(list, "\n")
}
