//go:build unix

package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestMain lets this binary be a writer that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_TEST_WRITER"); dir != "" {
		writeUntilKilled(dir, os.Getenv("AUDIT_TEST_NAME"))
	}
	os.Exit(m.Run())
}

const (
	smallFile = 4 << 10
	enough    = 60 // lines; they fill several files
)

// writeUntilKilled writes lines, and prints the number of each one that is
// acknowledged.
func writeUntilKilled(dir, name string) {
	trail := &Trail{maxFile: smallFile}
	for i := 0; ; i++ {
		err := trail.Record(policy.Audit{Dir: dir, Required: true}, Event{
			Event: Spawn, Session: fmt.Sprintf("%s-%d", name, i), Argv: []string{"true", strings.Repeat("x", 200)},
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// trailDir is a directory that does not exist yet.
func trailDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "audit")
}

// sessions are the sessions of a trail, in its order.
func sessions(t *testing.T, dir string) (list []string, torn int) {
	t.Helper()
	torn, err := Read(dir, Filter{}, func(e Event, _ []byte) error {
		list = append(list, e.Session)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, torn
}

// TestTrail_KilledAtAnyStep kills a writer after each system call of its own in
// turn. What it has acknowledged is there, and no line is torn.
func TestTrail_KilledAtAnyStep(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		harness.Skip(t, "strace", err.Error())
	}
	steps, killed := 0, 0
	for _, call := range []string{
		"openat", "flock", "fstat", "newfstatat", "pread64", "write", "renameat", "renameat2", "unlinkat",
	} {
		dir := trailDir(t)
		for n := 1; n <= 40; n += 1 + n/6 {
			name := fmt.Sprintf("%s%d", call, n)
			writer := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "-P", dir,
				"-P", filepath.Join(dir, current), "-P", filepath.Join(dir, lockName),
				"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n), os.Args[0])
			writer.Env = append(os.Environ(), "AUDIT_TEST_WRITER="+dir, "AUDIT_TEST_NAME="+name)
			acknowledged := runUntil(t, writer, enough)
			if steps++; acknowledged < enough {
				killed++
			}
			list, torn := sessions(t, dir)
			if torn > 0 {
				t.Fatalf("%s: %d torn lines", name, torn)
			}
			for i := range acknowledged {
				// Old files are removed, so only the last ones must be there.
				if wanted := fmt.Sprintf("%s-%d", name, i); acknowledged-i < 20 && !slices.Contains(list, wanted) {
					t.Fatalf("%s was acknowledged and is lost", wanted)
				}
			}
		}
	}
	if killed < steps/2 {
		t.Errorf("of %d writers only %d were killed on the way", steps, killed)
	}
	t.Logf("%d writers, of which %d were killed on the way", steps, killed)
}

// runUntil runs a writer until it is dead, or has written so many lines; then it
// is killed with its tracer. It returns how many were acknowledged.
func runUntil(t *testing.T, writer *exec.Cmd, most int) int {
	t.Helper()
	writer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := writer.StdoutPipe()
	if err == nil {
		err = writer.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, acknowledged := bufio.NewScanner(out), 0
	for lines.Scan() {
		if lines.Text() != fmt.Sprint(acknowledged) {
			t.Errorf("the writer says %q", lines.Text())
			break
		}
		if acknowledged++; acknowledged == most {
			_ = syscall.Kill(-writer.Process.Pid, syscall.SIGKILL) // the rest of its lines still come
		}
	}
	_ = syscall.Kill(-writer.Process.Pid, syscall.SIGKILL)
	_ = writer.Wait()
	return acknowledged
}

// TestTrail_ManyWriters: two hundred sessions of ten sidecars write at once, and
// files are renamed meanwhile. A reader of that moment finds no torn line.
func TestTrail_ManyWriters(t *testing.T) {
	t.Parallel()
	const sidecars, writers, each = 10, 20, 10
	dir := trailDir(t)
	var trails [sidecars]*Trail
	var writing sync.WaitGroup
	for i := range trails {
		// Files large enough that none is removed.
		trails[i] = &Trail{maxFile: 80 << 10}
		for w := range writers {
			writing.Go(func() {
				for n := range each {
					err := trails[i].Record(policy.Audit{Dir: dir, Required: n == 0},
						Event{
							Event: Spawn, Session: fmt.Sprintf("%d-%d-%d", i, w, n),
							Argv: []string{strings.Repeat("y", n*10)},
						})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		writing.Wait()
		for _, trail := range trails {
			trail.Close(time.Minute)
		}
	}()
	reads := 0
	for reading := true; reading; reads++ {
		select {
		case <-done:
			reading = false
		default:
		}
		list, torn := sessions(t, dir)
		if torn > 0 {
			t.Fatalf("%d torn lines", torn)
		}
		if reading {
			continue
		}
		slices.Sort(list)
		if got := len(slices.Compact(list)); got != sidecars*writers*each {
			t.Errorf("%d lines, expected %d", got, sidecars*writers*each)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "audit*"))
	if err != nil || len(files) < 3 {
		t.Errorf("nothing was renamed: %q", files)
	}
	t.Logf("%d files, read %d times", len(files), reads)
}

func TestTrail_IsBounded(t *testing.T) {
	t.Parallel()
	dir := trailDir(t)
	trail := &Trail{maxFile: smallFile}
	for i := range 500 {
		if err := trail.Record(policy.Audit{Dir: dir, Required: true}, Event{
			Event: Spawn, Session: fmt.Sprint(i), Argv: []string{strings.Repeat("x", 200)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	trail.Close(time.Minute)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() > smallFile {
			t.Errorf("%s: %v, %d bytes", file.Name(), info.Mode(), info.Size())
		}
	}
	if len(files) != maxOlder+2 { // with the current one and the lock
		t.Errorf("%d files", len(files))
	}
	list, _ := sessions(t, dir)
	if len(list) == 0 || list[len(list)-1] != "499" || !slices.IsSortedFunc(list, func(a, b string) int {
		return len(a) - len(b)
	}) {
		t.Errorf("%q", list)
	}
}

// A line that a writer could not finish stays alone. Read reports it.
func TestTrail_ATornLineSpoilsNoOther(t *testing.T) {
	t.Parallel()
	dir := trailDir(t)
	record(t, dir, "before")
	file, err := os.OpenFile(filepath.Join(dir, current), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = file.WriteString(`{"v":1,"event":"spawn","session":"to`)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if list, torn := sessions(t, dir); torn != 1 || !slices.Equal(list, []string{"before"}) {
		t.Errorf("at the end: %q, %d torn", list, torn)
	}
	record(t, dir, "after")
	if list, torn := sessions(t, dir); torn != 1 || !slices.Equal(list, []string{"before", "after"}) {
		t.Errorf("in the middle: %q, %d torn", list, torn)
	}
}

func record(t *testing.T, dir, session string) {
	t.Helper()
	trail := &Trail{}
	defer trail.Close(time.Minute)
	if err := trail.Record(policy.Audit{Dir: dir, Required: true}, Event{Event: Spawn, Session: session}); err != nil {
		t.Fatal(err)
	}
}

// TestTrail_FollowsNothing tries what may be in the place of the file and of its
// directory.
func TestTrail_FollowsNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir, elsewhere string) error{
		"symlink": func(dir, elsewhere string) error { return os.Symlink(elsewhere, filepath.Join(dir, current)) },
		"hard link": func(dir, elsewhere string) error {
			return errors.Join(os.WriteFile(elsewhere, nil, 0o600), os.Link(elsewhere, filepath.Join(dir, current)))
		},
		"readable by others": func(dir, _ string) error {
			path := filepath.Join(dir, current)
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Chmod(path, 0o644)) // whatever the umask
		},
		"FIFO": func(dir, _ string) error {
			return exec.Command("mkfifo", "-m", "600", filepath.Join(dir, current)).Run()
		},
		"symlink as lock": func(dir, elsewhere string) error {
			return os.Symlink(elsewhere, filepath.Join(dir, lockName))
		},
		"symlink as directory": func(dir, elsewhere string) error {
			return errors.Join(os.Remove(dir), os.Mkdir(elsewhere, 0o700), os.Symlink(elsewhere, dir))
		},
		"directory of others": func(dir, _ string) error { return os.Chmod(dir, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, elsewhere := trailDir(t), filepath.Join(t.TempDir(), "elsewhere")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir, elsewhere); err != nil {
				t.Fatal(err)
			}
			trail := &Trail{}
			defer trail.Close(time.Minute)
			err := trail.Record(policy.Audit{Dir: dir, Required: true}, Event{Event: Spawn, Session: "x"})
			if !errors.Is(err, ErrLost) {
				t.Errorf("it is written: %v", err)
			}
			if data, err := os.ReadFile(elsewhere); err == nil && len(data) > 0 {
				t.Errorf("elsewhere: %q", data)
			}
		})
	}
}

// What is lost is counted, and the next line says so.
func TestTrail_CountsWhatIsLost(t *testing.T) {
	t.Parallel()
	dir, failures := trailDir(t), 0
	trail := &Trail{Failed: func(error) { failures++ }}
	to := policy.Audit{Dir: dir}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no directory can be made here
		t.Fatal(err)
	}
	for range 3 {
		if err := trail.Record(to, Event{Event: Ended}); err != nil {
			t.Errorf("it is required: %v", err)
		}
	}
	required := to
	required.Required = true
	if err := trail.Record(required, Event{Event: Spawn}); !errors.Is(err, ErrLost) { // after the others
		t.Errorf("%v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := trail.Record(to, Event{Event: Ended}); err != nil {
		t.Error(err)
	}
	trail.Close(time.Minute)
	var lost []int
	count := func(e Event, _ []byte) error {
		lost = append(lost, e.Lost)
		return nil
	}
	if _, err := Read(dir, Filter{}, count); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lost, []int{3}) || failures != 1 {
		t.Errorf("lost %v, told %d times", lost, failures)
	}
}

// TestTrail_TheJournal gets the same line.
func TestTrail_TheJournal(t *testing.T) {
	t.Parallel()
	var got [][]byte
	trail := &Trail{Via: "exec", journal: func(_ Event, line []byte) error { got = append(got, line); return nil }}
	if err := trail.Record(policy.Audit{Journal: true}, Event{Event: Trusted, Project: "/p"}); err != nil {
		t.Fatal(err)
	}
	trail.Close(time.Minute)
	var event Event
	if len(got) != 1 || json.Unmarshal(got[0], &event) != nil || event.Project != "/p" || event.UID != os.Getuid() {
		t.Errorf("%s", got)
	}
}

// TestSchema_DescribesEveryField holds the schema and the type to each other,
// and a full line to the schema.
// TestTrail_AStartWaits shows that a Started line waits for a moment, is written
// without another one too, and that no line overtakes it.
func TestTrail_AStartWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var written []string
		took := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(written, want) {
				t.Errorf("written are %q, want %q", written, want)
			}
			written = nil
		}
		trail := &Trail{journal: func(e Event, _ []byte) error {
			mu.Lock()
			defer mu.Unlock()
			written = append(written, e.Session+" "+e.Event)
			return nil
		}}
		record := func(session, event string) {
			_ = trail.Record(policy.Audit{Journal: true}, Event{Session: session, Event: event})
		}
		record("a", Spawn)
		record("a", Started)
		took("a spawn")
		time.Sleep(startedDelay)
		took("a started")
		record("b", Started)
		record("c", Started)
		record("d", Spawn)
		took("b started", "c started", "d spawn")
		record("d", Started)
		trail.Close(time.Second)
		took("d started")
	})
}

func TestSchema_DescribesEveryField(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	properties := document.(map[string]any)["properties"].(map[string]any)
	var names []string
	for field := range reflect.TypeFor[Event]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		if properties[name] == nil {
			t.Errorf("the schema has no %s", name)
		}
	}
	if len(names) != len(properties) {
		t.Errorf("the schema has %d fields, a line has %d", len(properties), len(names))
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	line, err := encode(Event{
		Version: Version, Time: now, Event: Spawn, Lost: 2, Kind: "tool",
		Argv:       []string{"a\x1b[31m\u202e\u0085", "--token=x"},
		Restricted: new(bool), Protections: map[string]string{"network": "enforced"}, First: &now, Last: &now, Count: 1,
		Answer: "deny", Changed: []Change{{Path: "/x", How: "created"}}, ExitCode: new(int),
	})
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err == nil {
		err = compiled.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	if bytes.ContainsAny(line, "\x1b\u202e\u0085") {
		t.Errorf("control characters are not escaped: %q", line)
	}
}

func TestEncode_IsBounded(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{
		{strings.Repeat("x", 1<<20)},
		slices.Repeat([]string{"word"}, 1<<18),
		{strings.Repeat("\x01", 1<<16), strings.Repeat("\x02", 1<<16)},
	} {
		given := slices.Clone(argv)
		line, err := encode(Event{
			Event: Spawn, Argv: argv, Target: strings.Repeat("ü", 1<<16), Error: strings.Repeat("\x00", 1<<16),
		})
		if err != nil || len(line) > 2*maxLine || !json.Valid(line) {
			t.Errorf("%d bytes: %v", len(line), err)
		}
		if !slices.Equal(argv, given) {
			t.Error("the caller's arguments were changed")
		}
	}
}

// A session that makes many lines leaves the others room. Its recorder learns
// that there is none left for it, and holds its lines. The control is another
// session, and the line of its end.
func TestTrail_ASessionHasAShare(t *testing.T) {
	t.Parallel()
	release, written := make(chan struct{}), make(map[string]int)
	trail := &Trail{journal: func(e Event, _ []byte) error {
		<-release
		written[e.Session]++
		return nil
	}}
	to := policy.Audit{Journal: true}
	taken := 0
	for range maxQueued {
		if err := trail.Record(to, Event{Event: Refused, Session: "many", Target: "x"}); err == nil {
			taken++
		} else if !errors.Is(err, ErrShare) {
			t.Fatal(err)
		}
	}
	if taken != maxShare {
		t.Errorf("%d lines wait, want %d", taken, maxShare)
	}
	for _, e := range []Event{{Event: Ended, Session: "many"}, {Event: Refused, Session: "other", Target: "x"}} {
		if err := trail.Record(to, e); err != nil {
			t.Errorf("%s of %s: %v", e.Event, e.Session, err)
		}
	}
	close(release)
	trail.Close(time.Minute)
	if written["many"] != maxShare+1 || written["other"] != 1 {
		t.Errorf("written: %v", written)
	}
	if len(trail.queued) != 0 {
		t.Errorf("still counted: %v", trail.queued)
	}
}
