//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// order is what the host wants this machine to do. It is on the kernel's
// command line, which exists before any file system.
type order struct {
	suites []suite
	// port is the serial port for results.
	port string
	// missing are, by context, the protections that are known not to be
	// enforced here.
	missing map[string]string
	// without are features that no context has on this kernel.
	without string
	// share of shares are the attacks that the first context carries out.
	share, shares int
	// hybrid is cgroup v1 with v2 next to it.
	hybrid bool
	// noSecurityFS leaves out the file system of security modules.
	noSecurityFS bool
}

// suite is a package whose tests run here.
type suite struct {
	pkg string
	// contexts are who runs them; none: all.
	contexts []string
	// tests are those that run; none: those of short.
	tests []string
}

func readOrder() order {
	o := order{missing: map[string]string{}}
	cmdline, _ := os.ReadFile("/proc/cmdline")
	for field := range strings.FieldsSeq(string(cmdline)) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "sidecar.port":
			o.port = filepath.Join("/dev", value)
		case "sidecar.suites":
			o.suites = parseSuites(value)
		case "sidecar.missing":
			for part := range strings.SplitSeq(value, ";") {
				context, list, _ := strings.Cut(part, ":")
				o.missing[context] = strings.ReplaceAll(list, ",", " ")
			}
		case "sidecar.without":
			o.without = strings.ReplaceAll(value, ",", " ")
		case "sidecar.share":
			if n, _ := fmt.Sscanf(value, "%d/%d", &o.share, &o.shares); n != 2 {
				o.shares = 1
			}
		case "sidecar.cgroup":
			o.hybrid = value == "hybrid"
		case "sidecar.securityfs":
			o.noSecurityFS = value == "off"
		}
	}
	return o
}

// parseSuites reads "package@context+context@test+test,package@…".
func parseSuites(value string) (suites []suite) {
	split := func(list, separator string) []string {
		return strings.FieldsFunc(list, func(r rune) bool { return string(r) == separator })
	}
	for _, part := range split(value, ",") {
		pkg, rest, _ := strings.Cut(part, "@")
		contexts, tests, _ := strings.Cut(rest, "@")
		suites = append(suites, suite{pkg: pkg, contexts: split(contexts, "+"), tests: split(tests, "+")})
	}
	return suites
}

func (o order) cgroups() string {
	if o.hybrid {
		return "/sys/fs/cgroup/unified"
	}
	return "/sys/fs/cgroup"
}
