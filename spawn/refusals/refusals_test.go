package refusals

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

func newBook(t *testing.T) *Book {
	return &Book{Dir: filepath.Join(t.TempDir(), "refusals"), Log: slog.New(slog.DiscardHandler)}
}

func denied(target string) platform.Denial {
	return platform.Denial{Access: "read", Target: target, Process: "cat", PID: 7, Count: 1}
}

// list is what is kept of a project, each as "NUMBER TARGET COUNT", newest first.
func list(t *testing.T, b *Book, project string) string {
	t.Helper()
	kept, err := Read(b.Dir, project)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range kept {
		lines = append(lines, fmt.Sprintf("%d %s %d", r.Number, r.Target, r.Count))
	}
	return strings.Join(lines, ", ")
}

func TestSession_KeepsRefusalsUnderNumbersThatStay(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	first := b.Begin("/p", "terminal", "/bin/sh")
	first.Started(os.Getpid())
	first.Add(denied("/a"), "")
	first.Add(denied("/b\xff\x1b[31m\n"), "")
	first.Add(denied("/a"), "")
	first.Flush()
	second := b.Begin("/p", "terminal", "/bin/sh")
	second.Add(denied("/c"), "")
	second.Add(denied("/a"), "")
	second.Flush()
	if got, want := list(t, b, "/p"), "1 /a 3, 3 /c 1, 2 /b\xff\x1b[31m\n 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := second.Number(denied("/c")); got != 3 {
		t.Errorf("number %d", got)
	}
	if got := list(t, b, "/another"); got != "" {
		t.Errorf("of another project: %q", got)
	}
	kept, _ := Read(b.Dir, "/p")
	if kept[2].Leader.Program != "/bin/sh" || !kept[2].Leader.Running() || kept[0].Leader.Running() {
		t.Errorf("leaders: %+v, %+v", kept[0].Leader, kept[2].Leader)
	}
	path := fileOf(b.Dir, "/p")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if text, _ := os.ReadFile(path); strings.Contains(string(text), "\x1b") || strings.Contains(string(text), "\xff") {
		t.Errorf("not escaped: %q", text)
	}
}

// The same access under another command line is another refusal.
func TestSession_KeepsWhatItRunsUnder(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	agent := Under{Mode: "strict", Agent: "a\xff", Network: true}
	for _, under := range []Under{{}, agent, {}} {
		book := &Book{Dir: b.Dir, Log: b.Log, Under: under}
		s := book.Begin("/p", "tool", "/bin/sh")
		s.Add(denied("/a"), "")
		s.Flush()
	}
	if got := list(t, b, "/p"); got != "1 /a 2, 2 /a 1" {
		t.Errorf("kept: %q", got)
	}
	kept, _ := Read(b.Dir, "/p")
	if kept[1].Under != agent || kept[0].Under != (Under{}) {
		t.Errorf("under %+v and %+v", kept[0].Under, kept[1].Under)
	}
}

// What a running session is refused is on disk soon, without its end.
func TestSession_WritesWhileItRuns(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	s := b.Begin("/p", "terminal", "/bin/sh")
	s.Add(denied("/a"), "")
	if !deadline.Until(20*time.Second, func() bool { return list(t, b, "/p") != "" }) {
		t.Fatal("nothing was written")
	}
}

func TestFile_IsBounded(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	s := b.Begin("/p", "tool", "/bin/sh")
	for i := range 2 * maxKept {
		s.Add(denied(fmt.Sprintf("/%d", i)), "")
	}
	s.Add(denied("/"+strings.Repeat("x", maxText)), "")
	s.Flush()
	kept, err := Read(b.Dir, "/p")
	if err != nil || len(kept) != maxKept || kept[0].Target != fmt.Sprintf("/%d", 2*maxKept-1) {
		t.Errorf("%d kept, %v", len(kept), err)
	}
	for i := range maxKept {
		s.Add(denied(fmt.Sprintf("/%d%s", i, strings.Repeat("\x01", maxText-10))), "")
	}
	s.Flush()
	info, err := os.Stat(fileOf(b.Dir, "/p"))
	if kept, _ := Read(b.Dir, "/p"); err != nil || info.Size() > maxSize || len(kept) == 0 {
		t.Errorf("%v, %v, %d kept", info, err, len(kept))
	}
}

func TestFile_ForgetsWhatIsOld(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	s := b.Begin("/p", "tool", "/bin/sh")
	s.Add(denied("/a"), "")
	s.pending[0].Last = time.Now().Add(-maxAge - time.Hour)
	s.Flush()
	if got := list(t, b, "/p"); got != "" {
		t.Errorf("kept: %q", got)
	}
	old := fileOf(b.Dir, "/p")
	past := time.Now().Add(-maxAge - time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	other := b.Begin("/q", "tool", "/bin/sh")
	other.Add(denied("/b"), "")
	other.Flush()
	if _, err := os.Stat(old); err == nil {
		t.Error("an old file stays")
	}
	if got := list(t, b, "/q"); got != "1 /b 1" {
		t.Errorf("control: %q", got)
	}
}

func TestFile_OfOthersContentIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	s := b.Begin("/p", "tool", "/bin/sh")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(b.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fileOf(b.Dir, "/p"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{broken")
	if got := list(t, b, "/p"); got != "" {
		t.Errorf("broken: %q", got)
	}
	s.Add(denied("/a"), "")
	s.Flush()
	if got := list(t, b, "/p"); got != "1 /a 1" {
		t.Errorf("after a broken file: %q", got)
	}
	const newer = `{"version": 2, "list": []}`
	write(newer)
	s.Add(denied("/b"), "")
	s.Flush()
	if _, err := Read(b.Dir, "/p"); err == nil {
		t.Error("a newer version's file was read")
	}
	if text, _ := os.ReadFile(fileOf(b.Dir, "/p")); string(text) != newer {
		t.Errorf("a newer version's file was replaced: %q", text)
	}
}

func TestWrite_SeveralSessionsAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	var all sync.WaitGroup
	const sessions = 8
	for i := range sessions {
		all.Go(func() {
			s := b.Begin("/p", "tool", "/bin/sh")
			s.Add(denied(fmt.Sprintf("/%d", i)), "")
			s.Flush()
		})
	}
	all.Wait()
	kept, err := Read(b.Dir, "/p")
	if err != nil || len(kept) != sessions || kept[0].Number != sessions {
		t.Errorf("%d kept, %v", len(kept), err)
	}
}

func TestBook_NilKeepsNothing(t *testing.T) {
	t.Parallel()
	for _, b := range []*Book{nil, {}} {
		s := b.Begin("/p", "tool", "/bin/sh")
		s.Started(os.Getpid())
		s.Add(denied("/a"), "")
		s.Flush()
		if s != nil || s.Number(denied("/a")) != 0 {
			t.Error("kept")
		}
	}
}
