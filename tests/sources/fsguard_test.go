package sources

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// direct are the directories and files that make such calls themselves, with why
// they may.
var direct = map[string]string{
	"clients":                      "not the sidecar",
	"cmd/gen":                      "not the sidecar",
	"cmd/measure":                  "not the sidecar",
	"cmd/sandbox-sidecar-mcp":      "not the sidecar, and ends with its client",
	"credentials/service":          "not the sidecar, which waits for its first answer for a limited time",
	"tests":                        "not the sidecar",
	"platform/platformtest":        "not the sidecar",
	"settings/resolve/resolvetest": "not the sidecar",

	"fsguard":   "makes the calls",
	"lifecycle": "control groups, /proc, and the state directory, which fsguard has made",
	"audit/file_unix.go": "is called on local file systems, else by the helper: see appendLine; and by " +
		"the command audit",
	"usersocket":                      "sockets in the state directory, which fsguard has made",
	"control":                         "sockets in the state directory, which fsguard has made",
	"spawn/agent/agent.go":            "a socket in the state directory",
	"spawn/agents.go":                 "a private directory in the state directory",
	"spawn/copies.go":                 "a private directory in the state directory",
	"spawn/prompt":                    "a private directory in the state directory",
	"spawn/temporary.go":              "a private directory in the state directory",
	"spawn/shell.go":                  "/etc/passwd",
	"settings/source/watch_linux.go":  "only if the mount table calls the file system local",
	"settings/source/watch_darwin.go": "only if the mount table calls the file system local",
	"settings/noted.go":               "a file in the state directory, which fsguard has made",

	"cmd/sandbox-sidecar/attempt.go":        "runs in a session of doctor",
	"cmd/sandbox-sidecar/attempt_linux.go":  "runs in a session of doctor",
	"cmd/sandbox-sidecar/targets.go":        "doctor's own temporary directory",
	"cmd/sandbox-sidecar/keys.go":           "the caller's terminal, by its descriptor",
	"cmd/sandbox-sidecar/meeting":           "a directory in the state directory, which fsguard makes",
	"cmd/sandbox-sidecar/owner":             "/proc",
	"cmd/sandbox-sidecar/learn.go":          "writes its file as the last thing, when no session is left",
	"cmd/sandbox-sidecar/shells/install.go": "a command that does nothing else",
	"cmd/sandbox-sidecar/shells/report.go":  "has a descriptor written to while the shell runs",
	"platform/handshake":                    "runs in the stage, which the sidecar gives up",
	"platform/direct_linux.go":              "only if the mount table calls the file system local",
	"platform/darwin":                       "temporary directories of its own",
	"platform/linux/canary":                 "runs in the stage",
	"platform/linux/groupinit":              "runs in a group, and GroupInit.Start does not wait for ever",
	"platform/linux/hosts_linux.go":         "files of the system",
	"platform/linux/localhost":              "a directory in the state directory, which fsguard makes",
	"platform/linux/notify":                 "/proc",
	"platform/linux/namespace":              "runs in the stage",
	"platform/linux/stage":                  "runs in the stage",
	"platform/linux/seccomp":                "runs in the stage, on a path that does not exist",
	"platform/linux/overlay":                "runs in the cache holder, or below a directory that fsguard has made",
	"platform/linux/sockets":                "/proc",
	"platform/linux/tripwire/hub_linux.go":  "a descriptor's path in /proc",
	"platform/linux/denials":                "descriptors' paths in /proc, and paths of mounts that are local",
}

// A call on a file system that does not answer blocks a thread, and a process
// with such a thread cannot end.
func TestPackages_LeaveUsersFilesToFsguard(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	goFiles(t, func(file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		calls := callsOnPaths(parse(t, file))
		for at := file; at != "."; at = path.Dir(at) {
			if direct[at] != "" {
				used[at] = used[at] || len(calls) > 0
				return
			}
		}
		for _, call := range calls {
			t.Errorf("%s calls %s on a path that may be anybody's: use fsguard", file, call)
		}
	})
	for at := range direct {
		if !used[at] {
			t.Errorf("nothing in %s makes such a call: take it off the table", at)
		}
	}
}

// onPaths are functions that may wait for a file system.
var onPaths = map[string][]string{
	"os": {
		"Chdir", "Chmod", "Chown", "Chtimes", "CopyFS", "Create", "CreateTemp", "DirFS", "Lchown", "Link", "Lstat",
		"Mkdir", "MkdirAll", "MkdirTemp", "Open", "OpenFile", "OpenInRoot", "OpenRoot", "ReadDir", "ReadFile",
		"Readlink", "Remove", "RemoveAll", "Rename", "Stat", "Symlink", "Truncate", "WriteFile",
	},
	"filepath": {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
}

// systemCalls are those of packages unix and syscall.
var systemCalls = []string{
	"Access", "Chdir", "Chmod", "Chown", "Creat", "Getxattr", "InotifyAddWatch", "Lchown", "Lgetxattr", "Link",
	"Lstat", "Mkdir", "Mkfifo", "Mknod", "Open", "Readlink", "Rename", "Rmdir", "Setxattr", "Stat", "Statfs",
	"Symlink", "Truncate", "Unlink",
}

// callsOnPaths lists the calls in a file on paths that it does not name itself,
// but for those in calls that fsguard makes.
func callsOnPaths(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := function.X.(*ast.Ident)
		if !ok {
			return true
		}
		if from.Name == "fsguard" && function.Sel.Name == "Define" {
			return false
		}
		names, at := onPaths[from.Name], 0
		if from.Name == "unix" || from.Name == "syscall" {
			names = systemCalls
			if isCurrentDirectory(call.Args[0]) { // then an openat(2) is an open(2)
				names, at = []string{strings.TrimSuffix(function.Sel.Name, "at")}, 1
				names = append(names, function.Sel.Name)
			}
		}
		if slices.Contains(names, function.Sel.Name) && at < len(call.Args) && !isOfSystem(call.Args[at]) {
			found = append(found, from.Name+"."+function.Sel.Name)
		}
		return true
	})
	return found
}

func isCurrentDirectory(argument ast.Expr) bool {
	name, ok := argument.(*ast.SelectorExpr)
	return ok && name.Sel.Name == "AT_FDCWD"
}

var ofSystem = []string{"/proc/", "/sys/", "/dev/", "/etc/", "/run/"}

// isOfSystem reports whether a path begins with one that the source names, and
// that every machine has on a local file system.
func isOfSystem(argument ast.Expr) bool {
	switch a := argument.(type) {
	case *ast.BasicLit:
		text := unquoted(a)
		return text == "/" || slices.ContainsFunc(ofSystem, func(dir string) bool {
			return strings.HasPrefix(text+"/", dir)
		})
	case *ast.BinaryExpr:
		return isOfSystem(a.X)
	case *ast.SelectorExpr:
		return a.Sel.Name == "DevNull"
	case *ast.CallExpr:
		function, ok := a.Fun.(*ast.SelectorExpr)
		joins := ok && (function.Sel.Name == "Sprintf" || function.Sel.Name == "Join")
		return joins && len(a.Args) > 0 && isOfSystem(a.Args[0])
	}
	return false
}

func TestPackages_CallsOnPathsAreSeen(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		`os.ReadFile(name)`:                        1,
		`os.ReadFile("/proc/self/maps")`:           0,
		`os.ReadFile("/proc/" + id + "/maps")`:     0,
		`os.ReadFile(fmt.Sprintf("/proc/%d", id))`: 0,
		`os.OpenFile(os.DevNull, os.O_RDWR, 0)`:    0,
		`os.Open("/home")`:                         1,
		`unix.Open(path, 0, 0)`:                    1,
		`unix.Openat2(unix.AT_FDCWD, path, &how)`:  1,
		`unix.Openat(fd, name, 0, 0)`:              0,
		`unix.Fstatat(unix.AT_FDCWD, path, &s, 0)`: 1,
		`filepath.EvalSymlinks(path)`:              1,
		`filepath.Join(dir, name)`:                 0,
		`fsguard.Define("x", func(path string, _ []byte) ([]byte, error) { return os.ReadFile(path) })`: 0,
		`fsguard.Stat(path)`:                          0,
		`root.Open(name)`:                             0, // of an os.Root
		`view.Resolve(path)`:                          0,
		`syscall.Statfs(dir, &stat)`:                  1,
		`os.Rename(filepath.Join(dir, name), "/etc")`: 1,
	} {
		if got := callsOnPaths(parseText(t, "package a\nvar _ = "+source)); len(got) != want {
			t.Errorf("%s: %q, want %d", source, got, want)
		}
	}
}
