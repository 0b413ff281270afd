package compile

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// An evaluation calls run up to four times. What a file or a directory holds is
// asked once for all of them.
func TestEvaluation_ReadsEachFileOnce(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/.git/HEAD": "", "/home/u/project/.git/config": "[core]\n\thooksPath = hooks\n",
		"/home/u/project/.git/objects/": "", "/home/u/project/.git/refs/": "", "/home/u/project/sub/": "",
		"/home/u/.bashrc":  ". ~/.aliases\nfor rc in ~/rc/*; do\n\t. \"$rc\"\ndone\n",
		"/home/u/.aliases": "alias a=b\n", "/home/u/rc/one": "x=1\n",
		"/home/u/.gitconfig": "[include]\n\tpath = ~/git.inc\n[http]\n\tsslCAInfo = ~/ca.pem\n",
		"/home/u/git.inc":    "", "/home/u/ca.pem": testCertificate, "/home/u/more.pem": testCertificate,
		"/home/u/.npmrc": "cafile=/home/u/more.pem\n", "/home/u/.ssh/config": "Host x\n\tUser u\n",
		"/home/u/.config/a/b": "", "/etc/hosts": "127.0.0.1 x\n", "/tmp/": "", "/usr/bin/": "",
	})
	const user = `{"enabled": true, "localhost": "own", "toolchains": ["ssh", "node"]}`
	const asking = `{"additional_read_only_paths": ["~/other"], "allow_network": false}`
	for name, snapshot := range map[string]func(f resolve.FS) *Snapshot{
		"without a file": func(f resolve.FS) *Snapshot {
			s := snapshotOf(t, f, user, "")
			s.ProjectState = &source.State{File: projectFile}
			return s
		},
		"untrusted":  func(f resolve.FS) *Snapshot { return snapshotOf(t, f, user, asking) },
		"trusted":    func(f resolve.FS) *Snapshot { return trusting(t, f, user, asking) },
		"remembered": func(f resolve.FS) *Snapshot { return remembering(snapshotOf(t, f, user, asking)) },
	} {
		asked := map[string]int{}
		s := snapshot(resolvetest.Counted(tree, asked))
		s.Host.Env["HTTPS_PROXY"], s.Host.Env["HTTP_PROXY"] = "http://x:3128", "http://y:3128"
		e := s.evaluation(document.KindTool)
		for question, times := range asked {
			if times != 1 {
				t.Errorf("%s: %s: %d times", name, question, times)
			}
		}
		for _, question := range []string{
			"ReadFile /home/u/.bashrc", "ReadFile /home/u/.aliases", "ReadFile /home/u/.gitconfig",
			"ReadFile /home/u/more.pem", "ReadFile /home/u/.ssh/config", "ReadFile /home/u/project/.git/config",
			"ReadFile /etc/hosts", "ReadDir /home/u/rc", "Modes /home/u/.config",
		} {
			if asked[question] == 0 {
				t.Errorf("control: %s: %s: never", name, question)
			}
		}
		asks := name != "without a file"
		if e.alone == nil || len(e.asks) > 0 != asks || e.trusted != (name == "trusted") {
			t.Errorf("control: %s: it asks for %v, trusted: %t", name, e.asks, e.trusted)
		}
	}
}

// Certificates that settings of programs name are read only if sessions could not
// read them anyway: in /etc they are hundreds of kilobytes.
func TestCertificates_ThatAreOpenAreNotRead(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]int{"/etc/ssl/certs/ca-certificates.crt": 0, "/home/u/ca.pem": 1} {
		asked := map[string]int{}
		tree := resolvetest.InMemory(map[string]string{
			"/home/u/project/": "", file: testCertificate,
			"/home/u/.config/pip/pip.conf": "[global]\ncert = " + file + "\n",
			"/home/u/.gitconfig":           "[http]\n\tsslCAInfo = " + file + "\n",
		})
		c := snapshotOf(t, resolvetest.Counted(tree, asked), `{"enabled": true}`, "").Compile(document.KindTool)
		if got := accessOf(c, file); got != "read" || asked["ReadFile "+file] != want {
			t.Errorf("%s: access %s, read %d times, want %d", file, got, asked["ReadFile "+file], want)
		}
	}
}

// A file that changes during an evaluation has one content for all parts of it.
func TestEvaluation_SeesOneContent(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/.gitconfig": "", "/home/u/one.inc": "", "/home/u/two.inc": "",
	})
	texts := []string{"[include]\n\tpath = ~/one.inc\n", "[include]\n\tpath = ~/two.inc\n"}
	reads, read := 0, tree.ReadFile
	tree.ReadFile = func(path string) ([]byte, error) {
		if path != "/home/u/.gitconfig" {
			return read(path)
		}
		reads++
		return []byte(texts[(reads-1)%len(texts)]), nil
	}
	access := func() [2]string {
		c := snapshotOf(t, tree, `{"enabled": true}`, `{"allow_network": false}`).Compile(document.KindTool)
		return [2]string{accessOf(c, "/home/u/one.inc"), accessOf(c, "/home/u/two.inc")}
	}
	if got := access(); got != [2]string{"read", "none"} {
		t.Errorf("the first content grants %v", got)
	}
	if got := access(); got != [2]string{"none", "read"} {
		t.Errorf("control: the content after it grants %v", got)
	}
}
