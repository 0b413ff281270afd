//go:build !linux

package main

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestSuites_NeedLinux(t *testing.T) {
	harness.Skip(t, "debian", "the test suites are those of Debian packages")
}
