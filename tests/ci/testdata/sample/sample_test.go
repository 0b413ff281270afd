// Package sample has tests that fail, for the tests of tests/ci.
package sample

import (
	"fmt"
	"os"
	"path/filepath"
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

func TestHangs(*testing.T) {
	if first("hangs") {
		time.Sleep(time.Hour)
	}
}

func TestRace(*testing.T) {
	if !first("race") {
		return
	}
	n, done := 0, make(chan bool)
	go func() { n++; done <- true }()
	n++
	<-done
}
