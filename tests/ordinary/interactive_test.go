//go:build linux

package ordinary

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// shells are started as an editor starts them for a user, with start-up files
// of their own and their line editor.
var shells = map[string]struct {
	file, content string
	args          []string
	stopped       string // the shell's message about a stopped job
}{
	"bash": {".bashrc", "PS1='$ '\nHISTFILE=\n", []string{"-i"}, `Stopped`},
	"zsh":  {".zshrc", "PROMPT='$ '\nRPROMPT=\nsetopt nopromptsp\n", []string{"-i"}, `suspended`},
}

// complaints are messages of shells and programs about an imperfect terminal.
var complaints = []string{
	"no job control", "cannot set terminal process group", "can't access tty", "Inappropriate ioctl", "not a tty",
	"can't set tty pgrp",
	"no access to tty", "Permission denied", "Operation not permitted", "permission denied", "operation not permitted",
}

// Everything that a sandbox can enforce is on, and the network is off: other
// strict sandboxes lose job control or the controlling terminal. Without a
// sandbox the result must be the same.
func TestAnInteractiveShellIsOne(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name := range shells {
		for under, settings := range map[string]string{
			"without a sandbox": harness.Off(),
			"everything on":     harness.Defaults(harness.Sandbox{"allow_network": false}),
		} {
			t.Run(name+", "+under, func(t *testing.T) {
				t.Parallel()
				needProgram(t, name)
				live(t, name, settings)
			})
		}
	}
}

// live uses a shell for a while. Input is always written so that its echo does
// not match an answer.
func live(t *testing.T, name, settings string) {
	shell := shells[name]
	root := harness.OutsideDefaults(t)
	w := &harness.World{Home: root, Project: filepath.Join(root, "project"), Outside: filepath.Join(root, "outside")}
	harness.Write(t, filepath.Join(root, shell.file), shell.content)
	harness.Write(t, filepath.Join(w.Project, "directory", "file"), "")
	e := harness.Start(t, w, harness.Options{Settings: settings})
	s := e.Spawn(protocol.SpawnParams{Shell: &protocol.Shell{Program: name, Args: shell.args}, Cols: 90, Rows: 30})
	// A step only waits for its own answer, because output never disappears.
	step := func(typed, answer string) {
		t.Helper()
		s.Type(typed)
		s.Await(answer)
	}
	s.Await(`\$ `)
	step("echo con''trolling >/dev/tty\n", `controlling\r\n`)
	step("tty; stty size | sed s/^/size=/\n", `(?s)/dev/pts/\d+\r\n.*size=30 90\r\n`)

	// Ctrl-C ends only the foreground.
	step("sleep 1000 &\n", `\[1\] \d+`)
	step("sh -c 'echo run''ning-1; exec sleep 1001'\n", `running-1\r\n`)
	s.Type("\x03")
	step("echo stat''us=$?; kill -0 %1 && echo al''ive\n", `(?s)status=130\r\n.*alive\r\n`)

	// Ctrl-Z stops the job, fg continues it, and it still reads the terminal.
	// The job itself prints that it continues: input before that belongs to the
	// shell. Only then does it read, without a timeout, which could lose input.
	// Until then it sleeps for a moment at a time, because bash runs a trap
	// between two commands.
	const job = `trap "echo go''es-on; on=1" CONT; echo run''ning-2; until [ "$on" ]; do sleep 0.1; done; ` +
		`read -r line; echo "got=$line"; exec cat`
	step("bash -c '"+job+"'\n", `running-2\r\n`)
	step("\x1a", shell.stopped)
	step("jobs | sed s/^/jo''b:/\n", `job:\[2\]`)
	step("fg %2; echo st''ill=$?\n", `goes-on\r\n`)
	step("to the job\n", `\r\ngot=to the job\r\n`)
	step("\x04", `still=\d+\r\n`)
	step("kill %1; wait %1; echo gone''=$?\n", `gone=\d+\r\n`)

	// The shell's children see a new size, and a program in the foreground gets
	// SIGWINCH.
	step("sh -c 'trap \"stty size | sed s/^/now=/; exit\" WINCH; echo wait''ing; while :; do sleep 0.05; done'\n",
		`waiting\r\n`)
	harness.Notify(e, protocol.Resize, protocol.ResizeParams{SessionID: s.SessionID, Cols: 111, Rows: 33})
	s.Await(`now=33 111\r\n`)
	step("stty size | sed s/^/and=/\n", `and=33 111\r\n`)

	// Colours, and the shell's own line editor: Ctrl-A goes to the beginning of
	// the line, the arrow recalls the last line.
	step("ls --color=auto; echo lis''ted; tput colors | sed s/^/colours=/\n",
		`(?s)\x1b\[[0-9;]*mdirectory.*listed\r\n.*colours=256\r\n`)
	step("o fron''t\x01ech\n", `front\r\n`)
	s.Type("\x1b[A")
	s.Await(`(?s)front\r\n.*echo fron''t`)
	step("; echo aga''in\n", `(?s)front\r\n.*front\r\nagain\r\n`)

	step("exit 7\n", `exit`)
	if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 7 {
		t.Errorf("exit: %+v", exit)
	}
	for _, complaint := range complaints {
		if strings.Contains(s.Output(), complaint) {
			t.Errorf("%q in:\n%s", complaint, s.Output())
		}
	}
}
