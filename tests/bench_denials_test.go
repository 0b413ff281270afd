//go:build linux

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// denialWork is everyday work of programs, each several times in one session,
// so that the session's start hardly counts.
var denialWork = []struct {
	name, program string
	line          string
	prepare       func(b *testing.B, dir string)
}{
	{"compile", "gcc", "for i in 1 2 3 4 5 6 7 8; do gcc -c -o x.o x.c || exit; done", func(b *testing.B, dir string) {
		text := ""
		for _, header := range []string{
			"stdio", "stdlib", "string", "math", "time", "errno", "unistd", "pthread", "signal",
			"sys/socket", "netdb",
		} {
			text += "#include <" + header + ".h>\n"
		}
		harness.Write(b, filepath.Join(dir, "x.c"), text+"int main(void) { return puts(\"x\"); }\n")
	}},
	{"git-status", "git", "for i in 1 2 3 4 5; do git status >/dev/null || exit; done", func(b *testing.B, dir string) {
		manyFiles(b, dir, 50, 100)
		for _, args := range [][]string{
			{"init", "-q"},
			{"add", "."},
			{"-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x"},
		} {
			command := exec.Command("git", args...)
			command.Dir = dir
			if out, err := command.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	}},
	{"grep", "grep", "for i in 1 2 3; do grep -r nowhere . ; done; true", func(b *testing.B, dir string) {
		manyFiles(b, dir, 120, 100)
	}},
	{"files", "sh", "for i in 1 2 3; do mkdir t && cp -r s t/ && rm -r t || exit; done", func(b *testing.B,
		dir string,
	) {
		manyFiles(b, filepath.Join(dir, "s"), 10, 100)
	}},
}

func manyFiles(b *testing.B, dir string, dirs, files int) {
	text := make([]byte, 2000)
	for i := range text {
		text[i] = "some text\n"[i%10]
	}
	for i := range dirs {
		sub := filepath.Join(dir, fmt.Sprint("d", i))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			b.Fatal(err)
		}
		for k := range files {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(k)), text, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkDenials measures the cost of reports: the time of work under each
// value of on_denied over that under "ignore". They take turns, and each figure
// is the median.
func BenchmarkDenials(b *testing.B) {
	for _, work := range denialWork {
		b.Run(work.name, func(b *testing.B) {
			if _, err := exec.LookPath(work.program); err != nil {
				harness.Skip(b, work.program, err.Error())
			}
			values := []string{"ignore", "report", "ask"}
			editors := map[string]*harness.Editor{}
			took := map[string][]time.Duration{}
			for _, value := range values {
				w := harness.NewWorld(b)
				work.prepare(b, w.Project)
				editors[value] = harness.Start(
					b, w, harness.Options{Settings: harness.Defaults(harness.Sandbox{"on_denied": value})})
				runWork(b, editors[value], work.line) // warms caches
			}
			for b.Loop() {
				for _, value := range values {
					took[value] = append(took[value], runWork(b, editors[value], work.line))
				}
			}
			median := func(value string) float64 {
				slices.Sort(took[value])
				return took[value][len(took[value])/2].Seconds()
			}
			for _, value := range values[1:] {
				b.ReportMetric(median(value)/median("ignore"), "×ignore-"+value)
			}
			b.ReportMetric(median("ignore")*1000, "ms-ignore")
			b.ReportMetric(0, "ns/op") // meaningless here
		})
	}
}

func runWork(b *testing.B, e *harness.Editor, line string) time.Duration {
	b.Helper()
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
	begun := time.Now()
	if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 {
		b.Fatalf("%s: %+v\n%s", line, exit, session.Output())
	}
	took := time.Since(begun)
	session.Close(0)
	return took
}
