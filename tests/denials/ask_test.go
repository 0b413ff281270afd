//go:build linux

package denials

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// asked is an editor whose user answers.
type asked struct {
	*editor
	mu        sync.Mutex // guards the fields below
	questions []protocol.RequestAccessParams
	withdrawn []string // ids
}

// ask starts an editor whose user answers with answer, which may take its time.
// env is added to the sidecar's environment.
func (s *scene) ask(
	settings harness.Sandbox, answer func(protocol.RequestAccessParams) protocol.Decision, env ...string,
) *asked {
	s.T.Helper()
	block := harness.Sandbox{"on_denied": "ask"}
	for key, value := range settings {
		block[key] = value
	}
	e := harness.Start(s.T, s.World, harness.Options{
		Settings: harness.Settings(block), Env: env,
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
	})
	a := &asked{editor: &editor{e, harness.RecordDenials(e)}}
	client.OnRequest(
		a.Client, protocol.RequestAccess, func(p protocol.RequestAccessParams) protocol.RequestAccessResult {
			a.mu.Lock()
			a.questions = append(a.questions, p)
			a.mu.Unlock()
			return protocol.RequestAccessResult{Decision: answer(p)}
		})
	client.On(a.Client, protocol.CancelRequest, func(p protocol.CancelParams) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.withdrawn = append(a.withdrawn, string(p.ID))
	})
	observed(s.T, a.editor)
	return a
}

// awaitWithdrawn waits until the sidecar has withdrawn so many questions, each
// once.
func (a *asked) awaitWithdrawn(t *testing.T, count int) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d questions are withdrawn", count), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		slices.Sort(a.withdrawn)
		return len(a.withdrawn) == count && len(slices.Compact(slices.Clone(a.withdrawn))) == count
	})
}

func (a *asked) all() []protocol.RequestAccessParams {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.questions)
}

func always(decision protocol.Decision) func(protocol.RequestAccessParams) protocol.Decision {
	return func(protocol.RequestAccessParams) protocol.Decision { return decision }
}

// A program waits for the user, gets just what the user has allowed, and is
// refused the rest.
func TestAFileIsOpenedBecauseTheUserSaysSo(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("wanted"), "what is wanted\n")
	harness.Write(t, s.OutsidePath("other"), "what is not\n")
	e := s.ask(nil, func(p protocol.RequestAccessParams) protocol.Decision {
		if p.Target == s.OutsidePath("wanted") {
			return protocol.DecisionOnce
		}
		return protocol.DecisionDeny
	})
	session, status, denials := e.tool("cat", s.OutsidePath("wanted"), s.OutsidePath("other"))
	if status != 1 || !strings.Contains(session.Output(), "what is wanted") ||
		strings.Contains(session.Output(), "what is not") {
		t.Errorf("status %d: %s", status, session.Output())
	}
	if _, times := find(denials, "read", s.OutsidePath("other")); len(denials) != 1 || times != 1 {
		t.Errorf("denials %+v", denials)
	}
	q := e.all()
	want := []protocol.Decision{"deny", "once", "session", "directory", "project", "user"}
	if len(q) != 2 || q[0].SessionID != session.SessionID || q[0].Access != "read" ||
		q[0].Target != s.OutsidePath("wanted") ||
		q[0].Process == nil || q[0].Process.Name != "cat" || !slices.Equal(q[0].Choices, want) ||
		q[0].Suggestion == nil || plain(q[0].Suggestion.Value) != s.OutsidePath("wanted") {
		t.Errorf("asked %+v", q)
	}
	// "Once" allows one open.
	if _, status, _ := e.tool("cat", s.OutsidePath("other")); status != 1 || len(e.all()) != 3 {
		t.Errorf("status %d, asked %d times", status, len(e.all()))
	}
	// Without an editor that answers, it is refused as usual.
	if _, status, denials := s.start(harness.Settings(harness.Sandbox{"on_denied": "ask"}), nil).tool("cat",
		s.OutsidePath("wanted")); status != 1 || len(denials) != 1 {
		t.Errorf("control: status %d, denials %+v", status, denials)
	}
}

// A toolchain gives sessions a cache of their own. An answer would open the real
// one, so only the setting is offered, which later sessions start with.
func TestAnAnswerDoesNotOpenTheRealCacheOfAToolchain(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	cached := filepath.Join(s.Home, ".cargo", "registry", "cached")
	harness.Write(t, cached, "real\n")
	e := s.ask(nil, func(p protocol.RequestAccessParams) protocol.Decision {
		if p.Access == "read" {
			return protocol.DecisionSession
		}
		return protocol.DecisionUser
	})
	if session, status, _ := e.tool("cat", cached); status != 0 || session.Output() != "real\n" {
		t.Errorf("control: reading after a yes: status %d: %s", status, session.Output())
	}
	for access, file := range map[string]string{"write": cached, "create": filepath.Join(filepath.Dir(cached), "new")} {
		harness.Write(t, s.UserSettings(), harness.Settings(harness.Sandbox{"on_denied": "ask"}))
		session, status, _ := e.tool("sh", "-c", `echo changed >"$1"`, "sh", file)
		asked := e.all()
		last := asked[len(asked)-1]
		if status == 0 || last.Access != access || last.Suggestion == nil || last.Suggestion.Setting != "toolchains" ||
			!slices.Equal(last.Choices, []protocol.Decision{"deny", "project", "user"}) {
			t.Errorf("%s: status %d, asked %+v: %s", access, status, last, session.Output())
		}
	}
	if got := harness.Read(t, cached); got != "real\n" {
		harness.Breach(t, "an answer opened the real cache for writing: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(cached), "new")); err == nil {
		harness.Breach(t, "an answer created a file in the real cache")
	}
	if got := harness.Read(t, s.UserSettings()); !strings.Contains(got, "rust") {
		t.Errorf("the settings do not have the toolchain: %s", got)
	}
}

func TestAnAnswerForTheSessionIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("wanted"), "wanted\n")
	harness.Write(t, s.OutsidePath("denied"), "denied\n")
	e := s.ask(nil, func(p protocol.RequestAccessParams) protocol.Decision {
		if p.Target == s.OutsidePath("wanted") {
			return protocol.DecisionSession
		}
		return protocol.DecisionDeny
	})
	session, _, _ := e.tool("sh", "-c", fmt.Sprintf("for i in 1 2 3; do cat %s %s; done 2>/dev/null",
		s.OutsidePath("wanted"),
		s.OutsidePath("denied")))
	if session.Output() != strings.Repeat("wanted\n", 3) || len(e.all()) != 2 {
		t.Errorf("asked %d times: %q", len(e.all()), session.Output())
	}
	if _, status, _ := e.tool("cat", s.OutsidePath("wanted")); status != 0 || len(e.all()) != 3 {
		t.Errorf("another session: status %d, asked %d times", status, len(e.all()))
	}
}

// The program opens the file for writing as it asked: with its umask,
// appending, or creating it.
func TestAnAllowedFileIsOpenedWithTheProgramsOwnFlags(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("log"), "old\n")
	harness.Write(t, s.OutsidePath("cut"), "a long text\n")
	harness.Write(t, s.OutsidePath("dir/inside"), "")
	e := s.ask(nil, always(protocol.DecisionOnce))
	line := fmt.Sprintf("cd %s; umask 027; echo new >%s; echo more >>%s; echo x >%s; ls %s; stat -c %%a %s",
		s.Outside, s.OutsidePath("made"), s.OutsidePath("log"), s.OutsidePath("cut"), "dir", s.OutsidePath("made"))
	session, status, denials := e.tool("sh", "-c", line)
	if status != 0 || session.Output() != "inside\n640\n" || len(denials) > 0 {
		t.Errorf("status %d, denials %+v: %s", status, denials, session.Output())
	}
	for name, want := range map[string]string{"made": "new\n", "log": "old\nmore\n", "cut": "x\n"} {
		if got := harness.Read(t, s.OutsidePath(name)); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	if info, err := os.Stat(s.OutsidePath("made")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
}

// "Once" opens the file once, for the program that the question names. The
// others that wait are asked about next.
func TestOnceIsOneOpen(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("file"), "content\n")
	const twice = 2
	programs := shorter(20, 8)
	answers := make(chan protocol.Decision)
	e := s.ask(nil, func(protocol.RequestAccessParams) protocol.Decision { return <-answers })
	crowd := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool,
		Command: fmt.Sprintf("i=0; while [ $i -lt %d ]; do cat %s & i=$((i+1)); done; wait", programs,
			s.OutsidePath("file")),
	})
	for range twice {
		answers <- protocol.DecisionOnce
	}
	answers <- protocol.DecisionDeny
	crowd.Exit()
	opened, refused := strings.Count(crowd.Output(), "content"), strings.Count(crowd.Output(), "Permission denied")
	if opened != twice || opened+refused != programs {
		harness.Breach(t, "%d answers for once opened a file %d times, refused %d", twice, opened, refused)
	}
	// The control: "session" answers all that wait.
	crowd = e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool,
		Command: fmt.Sprintf("i=0; while [ $i -lt %d ]; do cat %s & i=$((i+1)); done; wait", programs,
			s.OutsidePath("file")),
	})
	answers <- protocol.DecisionOnce
	answers <- protocol.DecisionSession
	crowd.Exit()
	if got := strings.Count(crowd.Output(), "content"); got != programs {
		t.Errorf("control: opened %d times", got)
	}
}

func TestCredentialsAndProtectedPathsAreNotAskedAbout(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	key, hook := filepath.Join(s.Home, ".ssh", "id_rsa"), filepath.Join(s.Project, ".git", "hooks", "pre-commit")
	harness.Write(t, key, "secret key\n")
	harness.Write(t, hook, "hook\n")
	e := s.ask(nil, always(protocol.DecisionSession))
	lines := []string{"cat " + key, "echo >" + key, "echo >" + filepath.Join(s.Home, "new")}
	if harness.Namespaces(t) {
		lines = append(lines, "echo >>"+hook)
	}
	for _, line := range lines {
		if session, status, _ := e.tool("sh", "-c", line); status == 0 ||
			strings.Contains(session.Output(), "secret key") {
			t.Errorf("%s: status %d: %s", line, status, session.Output())
		}
	}
	if len(e.all()) > 0 {
		t.Errorf("asked %+v", e.all())
	}
	// The control: such an editor is asked about other files.
	harness.Write(t, s.OutsidePath("file"), "")
	if _, status, _ := e.tool("cat", s.OutsidePath("file")); status != 0 || len(e.all()) != 1 {
		t.Errorf("control: status %d", status)
	}
}

// The file that the user was shown is the one that is opened, whatever the
// program does to the names until the answer.
func TestTheShownFileIsTheOpenedFile(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	link := filepath.Join(s.Project, "link")
	harness.Write(t, s.OutsidePath("shown"), "shown\n")
	harness.Write(t, s.OutsidePath("hidden"), "hidden\n")
	if err := os.Symlink(s.OutsidePath("shown"), link); err != nil {
		t.Fatal(err)
	}
	e := s.ask(nil, func(p protocol.RequestAccessParams) protocol.Decision {
		// While the user thinks, the session changes a symlink of its own and
		// replaces the file itself.
		for _, turn := range []error{
			os.Remove(link), os.Symlink(s.OutsidePath("hidden"), link), os.Rename(s.OutsidePath("hidden"),
				s.OutsidePath("shown")), os.WriteFile(s.OutsidePath("hidden"), []byte("hidden\n"), 0o600),
		} {
			if turn != nil {
				t.Error(turn)
			}
		}
		return protocol.DecisionOnce
	})
	session, status, _ := e.tool("cat", link)
	q := e.all()
	if status != 0 || session.Output() != "shown\n" || len(q) != 1 || q[0].Target != s.OutsidePath("shown") {
		t.Errorf("status %d, asked %+v: %s", status, q, session.Output())
	}
	// A file that appears under a free name before the answer is not opened.
	e = s.ask(nil, func(protocol.RequestAccessParams) protocol.Decision {
		if err := os.Symlink(s.OutsidePath("hidden"), s.OutsidePath("free")); err != nil {
			t.Error(err)
		}
		return protocol.DecisionOnce
	})
	if session, status, _ := e.tool("sh", "-c", "echo changed >"+s.OutsidePath("free")); status == 0 ||
		harness.Read(t, s.OutsidePath("hidden")) != "hidden\n" {
		t.Errorf("status %d: %s", status, session.Output())
	}
}

// An allowed directory can be listed, but the files in it are not opened.
func TestAnAllowedDirectoryOpensNothingInIt(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("dir/file"), "content\n")
	e := s.ask(nil, func(p protocol.RequestAccessParams) protocol.Decision {
		if p.Target == s.OutsidePath("dir") {
			return protocol.DecisionSession
		}
		return protocol.DecisionDeny
	})
	session, _, _ := e.tool("sh", "-c", fmt.Sprintf("exec 3<%s; ls /proc/self/fd/3/; cat /proc/self/fd/3/file; cat %s",
		s.OutsidePath("dir"), s.OutsidePath("dir/file")))
	if out := session.Output(); strings.Contains(out, "content") {
		t.Error(out)
	}
}

// An editor that does not answer delays only the program that waits: the
// session can end, an interrupt ends the program, other sessions continue.
func TestNoOtherRequestWaitsForTheUser(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	files := shorter(300, 60)
	for i := range files {
		harness.Write(t, s.OutsidePath(fmt.Sprintf("%d/file", i)), "content\n")
	}
	never := make(chan struct{})
	e := s.ask(nil, func(protocol.RequestAccessParams) protocol.Decision {
		<-never
		return protocol.DecisionSession
	})
	defer close(never)
	crowd := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool,
		Command: fmt.Sprintf("cd %s; i=0; while [ $i -lt %d ]; do cat %s/$i/file & i=$((i+1)); done; wait", s.Project,
			files, s.Outside),
	})
	const mostQuestions = 8
	harness.Eventually(t, "all who may ask have asked, and the others are refused", func() bool {
		return strings.Count(crowd.Output(), "Permission denied") == files-mostQuestions
	})
	if n := len(e.all()); n != mostQuestions {
		t.Errorf("asked %d times", n)
	}
	if session, status, _ := e.tool("cat", "/etc/passwd"); status != 0 {
		t.Errorf("another session: status %d: %s", status, session.Output())
	}
	if end := crowd.Close(0); end.Remaining != 0 || end.Killed < mostQuestions {
		t.Errorf("%+v", end)
	}
	e.awaitWithdrawn(t, mostQuestions)
	terminal := e.Shell()
	terminal.Type("trap 'echo inter''rupted' INT; cat " + s.OutsidePath("0/file") + "\n")
	harness.Eventually(t, "it asks", func() bool { return len(e.all()) == mostQuestions+1 })
	terminal.Type("\x03")
	terminal.Await("interrupted")
	e.awaitWithdrawn(t, mostQuestions+1)
	terminal.Close(0)
}

// An editor that is gone has denied.
func TestAnEditorThatFailsToAnswerHasDenied(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("file"), "content\n")
	decisions := make(chan protocol.Decision, 1)
	e := s.ask(nil, func(protocol.RequestAccessParams) protocol.Decision { return <-decisions })
	for i, decision := range []protocol.Decision{"", "yes", "DENY"} {
		decisions <- decision
		if session, status, _ := e.tool("cat", s.OutsidePath("file")); status != 1 ||
			strings.Contains(session.Output(), "content") || len(e.all()) != i+1 {
			t.Errorf("%q: status %d: %s", decision, status, session.Output())
		}
	}
}

// A permanent answer is written to the settings file that the user chose, which
// keeps everything else. It applies from the next session on. Both files take turns
// with TestAPermanentAnswerReportsWhatWasWritten.
func TestAPermanentAnswerIsWrittenToSettings(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for i, scope := range []protocol.Decision{protocol.DecisionProject, protocol.DecisionUser} {
		if !harness.Turn(t, i, 2) {
			continue
		}
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			harness.Write(t, s.OutsidePath("wanted"), "wanted\n")
			harness.Write(t, s.OutsidePath("before"), "before\n")
			harness.Write(t, s.OutsidePath("other"), "other\n")
			e := s.ask(harness.Sandbox{"additional_read_only_paths": []string{s.OutsidePath("before")}}, always(scope))
			file := s.UserSettings()
			if scope == protocol.DecisionProject {
				file = filepath.Join(s.Project, ".zed", "settings.json")
				harness.Write(t, file, "{\n  // of the project\n  \"tab_size\": 2,\n}\n")
			} else {
				harness.Write(t, file, "// mine\n"+harness.Read(t, file))
			}
			old := harness.Read(t, file)
			if scope == protocol.DecisionProject {
				harness.Call(e.Editor, protocol.ProjectTrust, protocol.ProjectTrustParams{ProjectDir: s.Project})
			}
			if session, status, _ := e.tool("cat", s.OutsidePath("wanted")); status != 0 || len(e.all()) != 1 {
				t.Fatalf("status %d: %s", status, session.Output())
			}
			now := harness.Read(t, file)
			comment, _, _ := strings.Cut(old, "\n\"")
			if !strings.Contains(now, fmt.Sprintf("%q", s.OutsidePath("wanted"))) ||
				!strings.HasPrefix(now, comment[:min(len(comment), 8)]) || !strings.Contains(now, "//") {
				t.Errorf("was\n%s\nis\n%s", old, now)
			}
			for name, asks := range map[string]int{"wanted": 1, "before": 1} {
				if session, status, denials := e.tool("cat", s.OutsidePath(name)); status != 0 ||
					len(e.all()) != asks ||
					len(denials) > 0 {
					t.Errorf("%s: status %d, asked %d times, denials %+v: %s", name, status, len(e.all()), denials,
						session.Output())
				}
			}
			if x := harness.Call(e.Editor, protocol.PolicyExplain,
				protocol.PolicyExplainParams{
					ProjectDir: s.Project, Kind: protocol.Tool, Access: "read",
					Target: s.OutsidePath("other"),
				}); x.Allowed {
				t.Errorf("another file is open too: %+v", x)
			}
			if scope == protocol.DecisionProject {
				p := harness.Call(e.Editor, protocol.ProjectStatus, protocol.ProjectParams{ProjectDir: s.Project})
				if !p.Trusted {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

// An untrusted project's file cannot be trusted by way of a question: "project"
// is not among the choices.
func TestAnUntrustedProjectIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("wanted"), "wanted\n")
	block := map[string]any{"additional_read_write_paths": []string{s.Outside}}
	asks, err := json.Marshal(map[string]any{"terminal": map[string]any{"sandbox": block}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Project, ".zed", "settings.json")
	harness.Write(t, file, string(asks))
	e := s.ask(nil, always(protocol.DecisionProject))
	_, status, _ := e.tool("cat", s.OutsidePath("wanted"))
	if q := e.all(); status != 1 || len(q) != 1 || slices.Contains(q[0].Choices, protocol.DecisionProject) ||
		harness.Read(t, file) != string(asks) {
		t.Errorf("status %d, asked %+v", status, q)
	}
	if p := harness.Call(e.Editor, protocol.ProjectStatus, protocol.ProjectParams{ProjectDir: s.Project}); p.Trusted {
		t.Errorf("%+v", p)
	}
}

// What the sidecar keeps about sessions tells of other projects, and decides
// about later ones. Nobody is asked about it.
func TestTheSidecarsOwnStateIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	e := s.ask(harness.Sandbox{"audit": "file"}, always(protocol.DecisionSession))
	state, cache := filepath.Dir(s.State()), s.HomePath(".cache/sandbox-sidecar")
	for _, file := range []string{state + "/history/other", state + "/trust.json", cache + "/overlays/x"} {
		harness.Write(t, file, "of the sidecar\n")
	}
	if _, status, _ := e.tool("true"); status != 0 { // which the trail has
		t.Fatal(status)
	}
	for _, path := range []string{
		state, state + "/audit", state + "/audit/audit.jsonl", state + "/history/other", state + "/trust.json",
		s.State(), cache + "/overlays/x",
	} {
		if _, err := os.Lstat(path); err != nil {
			t.Fatal(err)
		}
		const tries = `ls "$1"/. && echo listed; cat "$1"; echo >>"$1" && echo written; echo >"$1/new" && echo created`
		session, _, _ := e.tool("sh", "-c", tries, "sh", path)
		for _, sign := range []string{"listed", "of the sidecar", "written", "created"} {
			if strings.Contains(session.Output(), sign) {
				harness.Breach(t, "%s: %s", path, session.Output())
			}
		}
	}
	if asked := e.all(); len(asked) > 0 {
		harness.Breach(t, "asked about the sidecar's own state: %+v", asked)
	}
	// The control: such an editor is asked about what lies beside it.
	beside := s.HomePath(".local/state/other/file")
	harness.Write(t, beside, "another's\n")
	if session, status, _ := e.tool("cat", beside); status != 0 || len(e.all()) != 1 {
		t.Errorf("control: status %d: %s", status, session.Output())
	}
}
