package denials

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// maxCommandLine bounds what is read of a command line.
const maxCommandLine = 4096

// worktreeOf says what of "git worktree add" a process of git was refused. git
// checks the files out by another process of its own. The kernel names no command,
// so the command lines are read: only advice depends on it.
func (o *Observer) worktreeOf(pid int, target string) platform.Worktree {
	inRepository := func(dir string) bool { return policy.Contains(dir, target) }
	adds := addsWorktree(commandLine(pid))
	switch {
	case adds && !slices.ContainsFunc(o.options.Policy.GitDirs, inRepository):
		return platform.WorktreePlace
	case adds || addsWorktree(commandLine(parentOf(pid))):
		return platform.WorktreeContent
	}
	return ""
}

// addsWorktree reports whether a command line is one of "git worktree add", with
// options of git before it.
func addsWorktree(argv [][]byte) bool {
	for i, arg := range argv {
		switch {
		case i == 0:
			if filepath.Base(string(arg)) != "git" {
				return false
			}
		case string(arg) == "worktree":
			return i+1 < len(argv) && string(argv[i+1]) == "add"
		}
	}
	return false
}

// commandLine is the beginning of a process's command line; nil if it cannot be
// read.
func commandLine(pid int) [][]byte {
	file, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCommandLine))
	if err != nil || len(text) == 0 {
		return nil
	}
	return bytes.Split(text, []byte{0})
}

// parentOf is the process id of a process's parent; 0 if nobody knows.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, field 2, is in parentheses and may hold some itself.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return parent
}
