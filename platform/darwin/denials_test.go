package darwin

import (
	"encoding/json"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// recorded returns a line of the log with a message.
func recorded(t testing.TB, message string) []byte {
	t.Helper()
	line, err := json.Marshal(map[string]any{
		"timestamp": "2026-03-01 10:00:00.123456+0100", "eventMessage": message, "eventType": "logEvent",
		"messageType": "Error", "processID": 0,
		"processImagePath": "/kernel",
		"senderImagePath":  "/System/Library/Extensions/Sandbox.kext/Contents/MacOS/Sandbox",
		"subsystem":        "com.apple.sandbox.reporting", "category": "violation",
	})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestParseDenial(t *testing.T) {
	t.Parallel()
	const tag = "sandbox-sidecar-1"
	for message, want := range map[string]Denial{
		"Sandbox: cat(4242) deny(1) file-read-data /Users/u/.ssh/id_rsa\n" +
			tag: {tag, "cat", 4242, "file-read-data", "/Users/u/.ssh/id_rsa", 1},
		"Sandbox: touch(41575) deny(1) file-write-create /Users/u/a b\n" +
			tag: {tag, "touch", 41575, "file-write-create", "/Users/u/a b", 1},
		"5 duplicate reports for Sandbox: java(77) deny(1) mach-lookup com.apple.FontServer\n" +
			tag: {tag, "java", 77, "mach-lookup", "com.apple.FontServer", 5},
		"1 duplicate report for Sandbox: sh(5) deny(1) file-write-data /dev/dtracehelper\n" +
			tag: {tag, "sh", 5, "file-write-data", "/dev/dtracehelper", 1},
		"Sandbox: python3.12(9) deny(1) network-outbound 1.1.1.1:443\n" +
			tag: {tag, "python3.12", 9, "network-outbound", "1.1.1.1:443", 1},
		"Sandbox: Google Chrome H(12) deny(1) process-fork\n" +
			tag: {tag, "Google Chrome H", 12, "process-fork", "", 1},
		"Sandbox: sh(3) deny(1) process-exec* /Users/u/x\n" +
			tag: {tag, "sh", 3, "process-exec*", "/Users/u/x", 1},
		// A name with a line break and another session's tag: the kernel's own
		// tag is the last line.
		"Sandbox: cat(1) deny(1) file-read-data /tmp/x\nsandbox-sidecar-2\n" +
			tag: {tag, "cat", 1, "file-read-data", "/tmp/x\nsandbox-sidecar-2", 1},
	} {
		if got, ok := ParseDenial(recorded(t, message)); !ok || got != want {
			t.Errorf("%q: %+v, %t; want %+v", message, got, ok, want)
		}
	}
}

func TestParseDenial_WhatIsNone(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"", "\n", "Sandbox: cat(4242) deny(1) file-read-data /x", "Sandbox: cat(4242) allow file-read-data /x\ntag",
		"Sandbox: (1) deny(1) x\ntag",
		"Sandbox: cat(99999999999999999999) deny(1) x\ntag", "System Policy: ls(1) deny(1) file-read-data /x\ntag",
		"duplicate reports for Sandbox: a(1) deny(1) x\ntag",
		"Sandbox: cat(1) deny(1) FILE /x\ntag", "Sandbox: cat(1) deny(x) file-read-data /x\ntag",
	} {
		if got, ok := ParseDenial(recorded(t, message)); ok {
			t.Errorf("%q: %+v", message, got)
		}
	}
	const good = `"eventMessage":"Sandbox: cat(1) deny(1) file-read-data /x\ntag"`
	const kext = `"senderImagePath":"/System/Library/Extensions/Sandbox.kext/Contents/MacOS/Sandbox"`
	for _, line := range []string{
		`Filtering the log data using "processID == 0"`, `{"count":3,"finished":1}`, `{`, `[]`, `null`, ``,
		// A message that a process of a session writes itself.
		`{` + good + `,"processID":4242,` + kext + `}`,
		`{` + good + `,` + kext + `}`,
		`{` + good + `,"processID":0,"senderImagePath":"/Users/u/p/evil"}`,
	} {
		if got, ok := ParseDenial([]byte(line)); ok {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if _, ok := ParseDenial([]byte(`{` + good + `,"processID":0,` + kext + `}`)); !ok {
		t.Error("the control is not read")
	}
}

func FuzzParseDenial(f *testing.F) {
	f.Add(recorded(f, "Sandbox: cat(4242) deny(1) file-read-data /x\ntag"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if d, ok := ParseDenial(line); ok && (d.Process == "" || d.Operation == "" || d.PID < 0 || d.Count < 0) {
			t.Errorf("%q: %+v", line, d)
		}
	})
}

func TestDenial_Report(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		operation, target string
		want              platform.Refused
	}{
		{"file-read-data", "/x", platform.RefusedRead},
		{"file-write-data", "/x", platform.RefusedWrite},
		{"file-write-create", "/x", platform.RefusedCreate},
		{"file-write-unlink", "/x", platform.RefusedRemove},
		{"process-exec*", "/x", platform.RefusedExecute},
		{"process-exec-interpreter", "/x", platform.RefusedExecute},
		{"network-outbound", "1.1.1.1:443", platform.RefusedConnect},
		{"network-outbound", "/private/var/run/mDNSResponder", platform.RefusedConnectUnix},
		{"network-bind", "*:80", platform.RefusedBind},
		{"signal", "launchd", platform.RefusedSignal},
		{"file-read-metadata", "/x", ""},
		{"mach-lookup", "com.apple.FontServer", ""},
		{"file-read-data", "", ""},
	} {
		reported, ok := Denial{Operation: test.operation, Target: test.target, Process: "p", PID: 7, Count: 3}.Report()
		want := platform.Denial{Access: test.want, Target: test.target, Process: "p", PID: 7, Count: 3}
		if ok != (test.want != "") || ok && reported != want {
			t.Errorf("%s %q: %+v, %t", test.operation, test.target, reported, ok)
		}
	}
}
