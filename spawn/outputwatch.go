package spawn

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/printed"
)

// maxLines bounds the lines of output that wait to be judged. More are dropped:
// the next ones most likely say the same.
const maxLines = 32

// judgeTimeout bounds how long the end of a session waits for the last lines. A
// file system that has just fallen silent may hold them up.
const judgeTimeout = time.Second

// outputWatch reports refusals that only a session's output tells of; see
// docs/design/printed-refusals.md. Judging a path can wait for a file system, so
// that a goroutine of its own does it, once there is something to judge. A nil
// outputWatch watches nothing.
type outputWatch struct {
	scanner *printed.Scanner
	stderr  *printed.Scanner // of a session that has its standard error apart
	judge   *printed.Judge
	dir     func() string
	report  *running

	judging sync.Once        // starts judgeLines
	lines   chan printedLine // nil before that
	judged  chan struct{}    // closed once all lines are judged

	mu    sync.Mutex // guards heard
	heard Heard
}

// Heard is what a session's output said about why something failed.
type Heard struct {
	// Refusal: it had the words of a refusal.
	Refusal bool
	// Exhausted: a process or a thread could not be started.
	Exhausted bool
	// Variables are those that the session does not get and that the output
	// asked for.
	Variables []string
}

// printedLine is a line with the directory of the process that has probably
// printed it, which may soon be gone.
type printedLine struct {
	text []byte
	dir  string
}

// newOutputWatch watches the output of a session, unless nobody is to be told
// of denials. dir returns the directory of the foreground process.
func newOutputWatch(p *policy.Policy, r *running, env []string, dir func() string) *outputWatch {
	if r.denials == nil || !r.outcome.Confined {
		return nil
	}
	w := &outputWatch{
		judge: &printed.Judge{Policy: p, Home: lookUp(env, "HOME")}, dir: dir,
		report: r,
	}
	w.scanner, w.stderr = printed.NewScanner(w.line), printed.NewScanner(w.line)
	return w
}

// scan takes bytes of the output. It is only called by the goroutine that reads
// them.
func (w *outputWatch) scan(data []byte) {
	if w != nil {
		w.scanner.Scan(data)
	}
}

// scanStderr is scan for a standard error that is apart.
func (w *outputWatch) scanStderr(data []byte) {
	if w != nil {
		w.stderr.Scan(data)
	}
}

// line hands a line to the goroutine that judges.
func (w *outputWatch) line(line []byte) {
	w.judging.Do(func() {
		w.lines = make(chan printedLine, maxLines)
		w.judged = make(chan struct{})
		go w.judgeLines()
	})
	select {
	case w.lines <- printedLine{text: bytes.Clone(line), dir: w.dir()}:
	default:
	}
}

// end takes the end of the output, after the last scan, and waits until everything
// is judged, or for judgeTimeout.
func (w *outputWatch) end() {
	if w == nil {
		return
	}
	w.scanner.End()
	w.stderr.End()
	if w.lines != nil {
		close(w.lines)
		timer := time.NewTimer(judgeTimeout)
		defer timer.Stop()
		select {
		case <-w.judged:
		case <-timer.C:
		}
	}
}

func (w *outputWatch) judgeLines() {
	defer close(w.judged)
	for line := range w.lines {
		said := printed.Parse(line.text)
		switch said.Word {
		case 0:
			continue
		case printed.Unset:
			w.note(Heard{Variables: w.mentioned(string(line.text))})
			continue
		case printed.Exhausted:
			w.note(Heard{Exhausted: true})
			w.report.heardExhausted()
			continue
		}
		w.note(Heard{Refusal: said.Word != printed.Missing})
		if denial, refused := w.judge.Judge(said, line.dir); refused {
			w.report.denials.put(denial)
		}
	}
}

func (w *outputWatch) note(more Heard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard.Refusal = w.heard.Refusal || more.Refusal
	w.heard.Exhausted = w.heard.Exhausted || more.Exhausted
	for _, name := range more.Variables {
		if !slices.Contains(w.heard.Variables, name) {
			w.heard.Variables = append(w.heard.Variables, name)
		}
	}
}

// mentioned lists the dropped variables that a line names.
func (w *outputWatch) mentioned(line string) []string {
	words := strings.FieldsFunc(line, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	return slices.DeleteFunc(words, func(word string) bool { return !slices.Contains(w.report.outcome.Dropped, word) })
}

// Heard is what the session's output said so far about why something failed.
func (s *Session) Heard() Heard {
	if s.watch == nil {
		return Heard{}
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	heard := s.watch.heard
	heard.Variables = slices.Clone(heard.Variables)
	return heard
}

// Reported reports whether a denial of the session was or will be reported.
func (s *Session) Reported() bool { return s.running.denials.any() }
