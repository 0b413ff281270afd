//go:build unix

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A program that does not end is not waited for longer than is said. One that ends
// is waited for, and its error counts.
func TestRunFor(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	run := func(most time.Duration, script string) error {
		return runFor(most, "/bin/sh", []string{"sh", "-c", script}, null, null)
	}
	err = run(50*time.Millisecond, "exec sleep 1000")
	if err == nil || !strings.Contains(err.Error(), "does not start") {
		t.Errorf("a program that does not end: %v", err)
	}
	if err := run(time.Hour, "exit 0"); err != nil {
		t.Errorf("control: %v", err)
	}
	if err := run(time.Hour, "exit 3"); err == nil || strings.Contains(err.Error(), "does not start") {
		t.Errorf("a program that fails: %v", err)
	}
}

// A pipe that another process is to get is not closed because nobody reads at the
// other end: its number could be that of another file by then. One that was closed
// before is not handed over.
func TestPipeCopy_IsNotClosedWhileItIsHandedOver(t *testing.T) {
	t.Parallel()
	for _, handed := range []bool{true, false} {
		from, inside, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		defer inside.Close()
		reader, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		c := &pipeCopy{from: from, to: to}
		if handed && !c.handOver() {
			t.Error("a pipe that is open is not handed over")
		}
		reader.Close()
		c.endWithReader()
		if _, err := from.Stat(); (err == nil) != handed {
			t.Errorf("handed over: %v; the pipe: %v", handed, err)
		}
		if c.handOver() != handed {
			t.Errorf("handed over: %v, and then the opposite", handed)
		}
	}
}
