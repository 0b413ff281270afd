package printed

import (
	"fmt"
	"testing"
)

// said is the first sure path of a line, or else the first with a "?".
func said(line string) string {
	s := Parse([]byte(line))
	switch {
	case s.Word == Unreachable:
		return s.Address
	case len(s.Paths) == 0:
		return ""
	}
	for _, path := range s.Paths {
		if path.Sure {
			return path.Name
		}
	}
	return s.Paths[0].Name + "?"
}

func TestParse_RealMessages(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		// Python 3.11
		`PermissionError: [Errno 13] Permission denied: '/root/a b'`:                "/root/a b",
		`PermissionError: [Errno 13] Permission denied: "/root/it's"`:               "/root/it's",
		`PermissionError: [Errno 1] Operation not permitted: '/root/a'`:             "/root/a",
		`OSError: [Errno 30] Read-only file system: '/usr/x'`:                       "/usr/x",
		`OSError: [Errno 101] Network is unreachable`:                               "",
		`PermissionError: [Errno 13] Permission denied: '/a' -> '/b'`:               "/a?",
		`ERROR: Could not install packages: [Errno 13] Permission denied: '/x'`:     "/x",
		`python3: can't open file '/root/x.py': [Errno 13] Permission denied`:       "/root/x.py",
		`PermissionError: [Errno 13] Permission denied: 'relative/name'`:            "relative/name?",
		`PermissionError: [Errno 13] Permission denied: '/root/tab\there'`:          `/root/tab\there?`,
		`FileNotFoundError: [Errno 2] No such file or directory: '/root/x'`:         "",
		`urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>`: "",
		// Node 20, npm 10
		`Error: EACCES: permission denied, open '/root/x'`:                  "/root/x",
		`    [Error: EACCES: permission denied, open '/root/a b'] {`:        "/root/a b",
		`npm error Error: EACCES: permission denied, mkdir '/root/.npm'`:    "/root/.npm",
		`npm ERR! Error: EROFS: read-only file system, mkdir '/usr/lib/x'`:  "/usr/lib/x",
		`Error: EPERM: operation not permitted, rename '/root/a' -> '/b/c'`: "/root/a?",
		`Error: connect ENETUNREACH 93.184.216.34:443 - Local (0.0.0.0:0)`:  "93.184.216.34:443",
		`Error: connect ENETUNREACH 2606:2800:220:1::1:443 - Local (:::0)`:  "",
		// Go
		`open /root/x: permission denied`:                                                   "/root/x",
		`open /root/a b: permission denied`:                                                 "/root/a b?",
		`panic: mkdir /usr/x: read-only file system`:                                        "/usr/x",
		`fork/exec /root/tool: permission denied`:                                           "/root/tool",
		`go: creating work dir: mkdir /root/tmp: permission denied`:                         "/root/tmp",
		`dial tcp 93.184.216.34:443: connect: network is unreachable`:                       "93.184.216.34:443",
		`dial tcp [2606:2800::1]:443: connect: network is unreachable`:                      "[2606:2800::1]:443",
		`Get "https://example.org/": dial tcp 1.2.3.4:443: connect: network is unreachable`: "1.2.3.4:443",
		// git, ssh
		`fatal: could not open '/root/x' for reading: Permission denied`:              "/root/x",
		`fatal: Unable to create '/usr/x/.git/index.lock': Read-only file system`:     "/usr/x/.git/index.lock",
		`error: could not lock config file /root/.gitconfig: Permission denied`:       "/root/.gitconfig",
		`warning: unable to access '/root/.config/git/attributes': Permission denied`: "/root/.config/git/attributes",
		`fatal: repository '/root/w/bare.git' does not exist`:                         "/root/w/bare.git?",
		`fatal: '/root/w' does not appear to be a git repository`:                     "/root/w?",
		`relation "users" does not exist`:                                             "users?",
		`fatal: cannot mkdir ~/x: Permission denied`:                                  "~/x",
		`Load key "/root/.ssh/id_rsa": Permission denied`:                             "/root/.ssh/id_rsa",
		`Could not create directory '/root/.ssh' (Permission denied).`:                "/root/.ssh",
		`git@github.com: Permission denied (publickey).`:                              "",
		`ssh: connect to host github.com port 22: Network is unreachable`:             "github.com:22",
		// shells
		`bash: /root/x: Permission denied`:                   "/root/x",
		`bash: line 1: /root/a b: Permission denied`:         "/root/a b",
		`-bash: ./tool: Permission denied`:                   "./tool",
		`sh: 1: cannot open /root/x: Permission denied`:      "/root/x",
		`sh: 1: cannot create /usr/x: Read-only file system`: "/usr/x",
		`zsh: permission denied: /root/x`:                    "/root/x?",
		`zsh: permission denied: x`:                          "",
		// coreutils and others
		`ls: cannot open directory '/root': Permission denied`:                        "/root",
		`ls: cannot open directory ‘/root’: Permission denied`:                        "/root",
		`ls: cannot open directory '/root/it'\''s': Permission denied`:                `/root/it'\''s?`,
		`cat: /root/x: Permission denied`:                                             "/root/x",
		`cat: '/root/a b': Permission denied`:                                         "/root/a b",
		`cat: name: Permission denied`:                                                "name?",
		`cp: cannot create regular file '/usr/x': Read-only file system`:              "/usr/x",
		`mv: cannot move '/a/b' to '/c/d': Permission denied`:                         "/c/d",
		`mkdir: cannot create directory ‘/usr/x’: Read-only file system`:              "/usr/x",
		`touch: cannot touch '/usr/x': Read-only file system`:                         "/usr/x",
		`tar: /root/x: Cannot open: Permission denied`:                                "/root/x: Cannot open?",
		`rsync: [sender] send_files failed to open "/root/x": Permission denied (13)`: "/root/x",
		`curl: (7) Failed to connect to example.org port 443: Network is unreachable`: "example.org:443",
		`make: /root/Makefile: Permission denied`:                                     "/root/Makefile",
		`make: *** /root/x: Permission denied.  Stop.`:                                "/root/x",
		`cc1: fatal error: /root/a.c: Permission denied`:                              "/root/a.c",
		`/usr/bin/ld: cannot open output file /usr/x: Read-only file system`:          "/usr/x",
		`Fatal error: can't create /usr/x.o: Read-only file system`:                   "/usr/x.o",
		`Error: Permission denied (os error 13)`:                                      "",
		`java.io.FileNotFoundException: /root/x (Permission denied)`:                  "/root/x",
		`error: failed to open "/root/x": Permission denied (os error 13)`:            "/root/x",
		// what is no message
		`see https://example.org/a: Permission denied`: "",
		`Permission denied`:                            "",
		`: Permission denied`:                          "",
	} {
		if got := said(line); got != want {
			t.Errorf("%s\n\tfound %q, want %q", line, got, want)
		}
	}
	// The path of tar comes second.
	tar := Parse([]byte("tar: /root/x: Cannot open: Permission denied"))
	if got := fmt.Sprint(tar.Paths); got != "[{/root/x: Cannot open false} {/root/x false}]" {
		t.Error(got)
	}
}

func TestParse_KindOfAccess(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]bool{ // execute, change
		"bash: /root/tool: Permission denied":                       {true, false},
		"sh: 1: ./tool: Permission denied":                          {true, false},
		"fork/exec /root/x: permission denied":                      {true, false},
		"cat: /root/x: Permission denied":                           {false, false},
		"sh: 1: cannot create /root/x: Permission denied":           {false, true},
		"touch: cannot touch '/root/x': Permission denied":          {false, true},
		"bash: /usr/x: Read-only file system":                       {false, true},
		"fatal: could not open '/x' for writing: Permission denied": {false, true},
	} {
		said := Parse([]byte(line))
		if said.Change != want[1] || said.Execute != want[0] && !want[1] {
			t.Errorf("%s: execute %t, change %t", line, said.Execute, said.Change)
		}
	}
}

func TestParse_SeesWhatATerminalShows(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"\x1b[31mcat: /root/x: Permission denied\x1b[0m\r":                     "/root/x",
		"\x1b[1;31mcat\x1b[0m: \x1b[38;5;4m'/root/x'\x1b[m: Permission denied": "/root/x",
		"\x1b]0;title: /root/evil\x07cat: /root/x: Permission denied":          "/root/x",
		"\x1b]8;;file:///root/x\x1b\\/root/x\x1b]8;;\x1b\\: Permission denied": "/root/x",
		"50%\r100% done\rcat: /root/x: Permission denied\r":                    "/root/x",
		"cat: /root/ä ö: Permission denied":                                    "/root/ä ö",
		"cat: /root/\xff: Permission denied":                                   "",
		"cat: /root/\x00x: Permission denied":                                  "/root/x",
		"\x1b[":                                                                "", "\x1b": "",
		"\x1b]Permission denied": "",
	} {
		if got := said(line); got != want {
			t.Errorf("%q: found %q, want %q", line, got, want)
		}
	}
}

// What programs print if no process or thread can be started. The same words are
// said of other calls.
func TestParse_ProcessesThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Word{
		"bash: fork: retry: Resource temporarily unavailable": Exhausted,
		"sh: 1: Cannot fork": Exhausted,
		"BlockingIOError: [Errno 11] Resource temporarily unavailable: fork":                     Exhausted,
		"RuntimeError: can't start new thread":                                                   Exhausted,
		"runtime: failed to create new OS thread (have 50 already; errno=11)":                    Exhausted,
		"java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory":     Exhausted,
		"failed to spawn thread: Os { code: 11, message: \"Resource temporarily unavailable\" }": Exhausted,
		"make: vfork: Resource temporarily unavailable":                                          Exhausted,
		"cat: -: Resource temporarily unavailable":                                               0,
		"write: Resource temporarily unavailable":                                                0,
	} {
		if got := Parse([]byte(line)).Word; got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
}
