// Package sample has tests that fail, for the tests of tests/ci.
package sample

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// first reports whether something is tried for the first time.
func first(name string) bool {
	file, err := os.OpenFile(filepath.Join(os.Getenv("SAMPLE"), name), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

func TestMain(m *testing.M) {
	if os.Getenv("SAMPLE_HELPER") != "" {
		race()
		os.Exit(0)
	}
	if os.Getenv("SAMPLE_NONE") != "" {
		os.Exit(0)
	}
	status := m.Run()
	if os.Getenv("SAMPLE_SURVIVOR") != "" && first("survivor") {
		fmt.Println("a process has survived")
		status = 1
	}
	os.Exit(status)
}

func TestPasses(*testing.T) {}

func TestSkipped(t *testing.T) { t.Skip("not here") }

func TestOnce(t *testing.T) {
	if first("once") {
		t.Error("the first time")
	}
}

func TestOnceBelow(t *testing.T) {
	for _, name := range []string{"a+b (c)", "d/e", "other"} {
		t.Run(name, func(t *testing.T) {
			if name != "other" && first(filepath.Base(name)) {
				t.Error("the first time")
			}
		})
	}
}

func TestAlways(t *testing.T) { t.Error("each time") }

func TestMany(t *testing.T) {
	for i := range 6 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { TestAlways(t) })
	}
}

func TestPanic(*testing.T) {
	if first("panic") {
		panic("once")
	}
}

func TestPanicsAlone(t *testing.T) {
	if !first("panics-alone") {
		panic("alone")
	}
	t.Error("the first time")
}

func TestHangs(*testing.T) {
	if first("hangs") {
		time.Sleep(time.Hour)
	}
}

// TestOnceAndEnds fails, and ends its process in a way in the next test.
func TestOnceAndEnds(t *testing.T) { TestOnce(t) }

func TestThenEnds(*testing.T) {
	switch os.Getenv("SAMPLE_ENDS") {
	case "fatal":
		log.Fatal("it ends")
	case "exit":
		os.Exit(1)
	case "success":
		os.Exit(0)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "panic":
		fmt.Print("among other text: ")
		go panic("it ends")
		time.Sleep(time.Hour)
	case "hang":
		fmt.Print("among other text: ")
		time.Sleep(time.Hour)
	case "close":
		_ = syscall.Close(1)
		_ = syscall.Close(2)
	}
}

// TestWhole fails itself and in a part, which passes alone.
func TestWhole(t *testing.T) {
	parts := 0
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			parts++
			if name == "a" {
				TestOnce(t)
			}
		})
	}
	if parts == 2 {
		t.Error("each time")
	}
}

func TestRaceOfAHelper(*testing.T) {
	helper := exec.Command(os.Args[0])
	helper.Env, helper.Stderr = append(os.Environ(), "SAMPLE_HELPER=1"), os.Stderr
	_ = helper.Run() // its exit status is not looked at
}

func TestRace(*testing.T) {
	if first("race") {
		race()
	}
}

func race() {
	n, done := 0, make(chan bool)
	go func() { n++; done <- true }()
	n++
	<-done
}
