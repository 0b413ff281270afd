//go:build unix

package audit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
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
