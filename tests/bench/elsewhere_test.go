//go:build !linux

package main

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestBench_NeedLinux(t *testing.T) {
	harness.Skip(t, "debian", "the benchmark asks /proc what its processes cost, and its peers are for Linux")
}
