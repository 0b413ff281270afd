package spawn

import (
	"bytes"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/printed"
)

// maxLines bounds the lines of output that wait to be judged. More are dropped:
// the next ones most likely say the same.
const maxLines = 32

// outputWatch reports refusals that only a session's output tells of; see
// docs/design/printed-refusals.md. Judging a path can wait for a file system, so
// that a goroutine of its own does it, once there is something to judge. A nil
// outputWatch watches nothing.
type outputWatch struct {
	scanner *printed.Scanner
	judge   *printed.Judge
	dir     func() string
	report  *running

	lines   chan printedLine
	judging sync.WaitGroup
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
	w.scanner = printed.NewScanner(w.line)
	return w
}

// scan takes bytes of the output. It is only called by the goroutine that reads
// them.
func (w *outputWatch) scan(data []byte) {
	if w != nil {
		w.scanner.Scan(data)
	}
}

// line hands a line to the goroutine that judges.
func (w *outputWatch) line(line []byte) {
	if w.lines == nil {
		w.lines = make(chan printedLine, maxLines)
		w.judging.Go(w.judgeLines)
	}
	select {
	case w.lines <- printedLine{text: bytes.Clone(line), dir: w.dir()}:
	default:
	}
}

// end takes the end of the output and waits until everything is judged.
func (w *outputWatch) end() {
	if w == nil {
		return
	}
	w.scanner.End()
	if w.lines != nil {
		close(w.lines)
		w.judging.Wait()
	}
}

func (w *outputWatch) judgeLines() {
	for line := range w.lines {
		said := printed.Parse(line.text)
		if denial, refused := w.judge.Judge(said, line.dir); refused {
			w.report.denials.put(denial)
		}
	}
}
