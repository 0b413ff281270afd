package printed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestJudge_ReportsOnlyWhatThePolicyRefuses(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{
		"project/file": 0o600, "out/file": 0o600, "out/tool": 0o700, "read/file": 0o600, "read/tool": 0o700,
		"project/.envrc": 0o600, "out/it's a: name": 0o600,
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root+"/out/file", root+"/project/link"); err != nil {
		t.Fatal(err)
	}
	judge := &Judge{Home: root + "/out", Policy: &policy.Policy{Restricted: true, Rules: []policy.Rule{
		{Path: root + "/project", Access: policy.ReadWrite}, {Path: root + "/read", Access: policy.Read},
	}, Protected: []policy.Protected{{Path: root + "/project/.envrc"}, {Path: root + "/project/.claude"}}}}
	for line, want := range map[string]string{
		"cat: ROOT/out/file: Permission denied":                                          "read ROOT/out/file",
		"cat: ROOT/project/link: Permission denied":                                      "read ROOT/out/file",
		"cat: ~/file: Permission denied":                                                 "read ROOT/out/file",
		"cat: ../out/file: Permission denied":                                            "read ROOT/out/file",
		"cat: ROOT/out/it's a: name: Permission denied":                                  "read ROOT/out/it's a: name",
		"tar: ROOT/out/file: Cannot open: Permission denied":                             "read ROOT/out/file",
		"ls: cannot open directory 'ROOT/out': Permission denied":                        "read ROOT/out",
		"touch: cannot touch 'ROOT/out/new': Permission denied":                          "create ROOT/out/new",
		"touch: cannot touch 'ROOT/read/new': Read-only file system":                     "create ROOT/read/new",
		"bash: ROOT/read/file: Read-only file system":                                    "write ROOT/read/file",
		"bash: ROOT/read/tool: Permission denied":                                        "execute ROOT/read/tool",
		"bash: ROOT/project/.envrc: Read-only file system":                               "write ROOT/project/.envrc",
		"mkdir: cannot create directory 'ROOT/project/.claude': Operation not permitted": "create ROOT/project/.claude",
		"dial tcp 192.0.2.1:443: connect: network is unreachable":                        "connect 192.0.2.1:443",

		"cat: file: Permission denied":                                              "", // the project's
		"cat: ROOT/project/file: Permission denied":                                 "",
		"cat: ROOT/read/file: Permission denied":                                    "",
		"bash: ROOT/read/file: Permission denied":                                   "", // no program
		"cat: ROOT/nowhere/file: Permission denied":                                 "",
		"cat: ROOT/out/nothing here: Permission denied":                             "",
		"mkdir: cannot create directory 'ROOT/out/nothing here': Permission denied": "create ROOT/out/nothing here",
		"open ROOT/out/nothing here: permission denied":                             "",
		"cat: /proc/self/mem: Permission denied":                                    "",
		"cat: /dev/mem: Permission denied":                                          "",
		"ls: cannot open directory '/': Permission denied":                          "",
		"fatal: repository 'ROOT/out' does not exist":                               "read ROOT/out",
		"fatal: 'ROOT/out' does not appear to be a git repository":                  "read ROOT/out",
		"fatal: repository 'ROOT/out/none' does not exist":                          "",
		"fatal: repository 'ROOT/project' does not exist":                           "",
		"OSError: [Errno 101] Network is unreachable":                               "",
		"touch: ROOT/out/fi\u0085le: Permission denied":                             "create ROOT/out/fi\u0085le",
	} {
		said := Parse([]byte(replace(line, root)))
		got := ""
		if denial, refused := judge.Judge(said, root+"/project"); refused {
			got = string(denial.Access) + " " + denial.Target
			if denial.Source != platform.SourceOutput || denial.Count != 1 || denial.PID != 0 {
				t.Errorf("%s: %+v", line, denial)
			}
		}
		if got != replace(want, root) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	judge.Policy.Network.Allowed = true
	said := Parse([]byte("dial tcp 192.0.2.1:443: connect: network is unreachable"))
	if denial, refused := judge.Judge(said, ""); refused {
		t.Errorf("the network is on: %+v", denial)
	}
}

func replace(text, root string) string {
	for i := 0; i+4 <= len(text); i++ {
		if text[i:i+4] == "ROOT" {
			return text[:i] + root + text[i+4:]
		}
	}
	return text
}
