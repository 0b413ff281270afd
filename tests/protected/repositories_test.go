//go:build linux

package protected

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/pem"
	"io/fs"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// repository makes a repository with one commit.
func (s *scene) repository(dir string) {
	s.T.Helper()
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		s.firstCommit(dir) // of what is there too
		return
	}
	s.copied("repository", dir, s.firstCommit)
}

// firstCommit has git make a repository, and commit what is there and a file.
func (s *scene) firstCommit(dir string) {
	s.T.Helper()
	s.git(filepath.Dir(dir), "init", "-q", dir)
	harness.Write(s.T, filepath.Join(dir, "file"), "content\n")
	s.git(dir, "add", ".")
	s.git(dir, "commit", "-q", "-m", "first")
}

// bare makes a repository without a working tree, to which all may push.
func (s *scene) bare(dir string) {
	s.T.Helper()
	s.copied("bare", dir, func(dir string) {
		s.git(filepath.Dir(dir), "init", "-q", "--bare", dir)
		s.append(filepath.Join(dir, "config"), "[http]\n\treceivepack = true\n")
	})
}

// monorepo makes a repository with two packages. The project is one of them.
func (s *scene) monorepo(top string) {
	s.T.Helper()
	s.copied("monorepo", top, func(top string) {
		s.firstCommit(top)
		harness.Write(s.T, filepath.Join(top, "packages/app/file"), "content\n")
		harness.Write(s.T, filepath.Join(top, "packages/other/source"), "sibling\n")
		s.git(top, "add", ".")
		s.git(top, "commit", "-q", "--amend", "--no-edit")
	})
	s.Project = filepath.Join(top, "packages/app")
}

// withOrigin gives the project's repository a remote with two branches, and a
// submodule that is not registered. It returns the remote's directory.
func (s *scene) withOrigin() (origin string) {
	s.T.Helper()
	origin = filepath.Join(s.Outside, "shared.git")
	s.bare(origin)
	harness.Write(s.T, s.ProjectPath(".gitmodules"),
		"[submodule \"dep\"]\n\tpath = dep\n\turl = https://example.com/dep.git\n")
	s.git(s.Project, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",dep", ".gitmodules")
	s.git(s.Project, "commit", "-q", "-m", "module")
	if strings.Contains(s.git(s.Project, "remote"), "origin") {
		s.git(s.Project, "remote", "remove", "origin")
	}
	s.git(s.Project, "remote", "add", "origin", origin)
	s.git(s.Project, "push", "-q", "origin", "HEAD:refs/heads/trunk", "HEAD:refs/heads/main")
	s.git(s.Project, "fetch", "-q", "origin")
	return origin
}

// served serves a repository over HTTP, with TLS or without. It returns the
// address and the file of the certificate.
func (s *scene) served(origin string, encrypted bool) (address, certificate string) {
	s.T.Helper()
	backend := strings.TrimSpace(s.git(s.Project, "--exec-path")) + "/git-http-backend"
	handler := &cgi.Handler{
		Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + s.Outside, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + s.Home},
	}
	server := httptest.NewUnstartedServer(handler)
	if encrypted {
		server.StartTLS()
	} else {
		server.Start()
	}
	s.T.Cleanup(server.Close)
	if encrypted {
		certificate = s.ProjectPath("certificate.pem")
		block := pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
		harness.Write(s.T, certificate, string(pem.EncodeToMemory(&block)))
	}
	return server.URL + "/" + filepath.Base(origin), certificate
}

// servedOverSSH serves a repository over ssh. It returns the address, and the
// command with the key.
func (s *scene) servedOverSSH(origin string) (address, command string) {
	s.T.Helper()
	harness.RequirePrograms(s.T, "ssh")
	key, private := harness.NewSSHKey(s.T)
	host, port := harness.ServeSSH(s.T, key.PublicKey(), harness.Environ(s.World))
	// What the set ssh grants has tests of its own.
	dir := filepath.Join(s.Outside, "ssh")
	harness.WritePrivate(s.T, filepath.Join(dir, "key"), private)
	harness.Write(s.T, filepath.Join(dir, "known_hosts"), "[127.0.0.1]:"+port+" "+host)
	return "ssh://me@127.0.0.1:" + port + origin, "ssh -F none -o BatchMode=yes -o UserKnownHostsFile=" +
		filepath.Join(dir, "known_hosts") + " -i " + filepath.Join(dir, "key")
}

// copied puts a copy of what fill makes at a path, where at most an empty directory
// is. fill is called once in a test process, because each git command that it starts
// takes longer than the copy. What it makes does not name its own path.
func (s *scene) copied(name, dir string, fill func(dir string)) {
	s.T.Helper()
	template := harness.Template(s.T, name, fill)
	var trees []string
	harness.Must(s.T, filepath.WalkDir(template, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, template))
		switch {
		case entry.IsDir():
			return os.MkdirAll(to, info.Mode().Perm())
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		}
		if tree, is := strings.CutSuffix(to, "/.git/index"); is {
			trees = append(trees, tree)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, info.Mode().Perm())
	}))
	for _, tree := range trees {
		refreshIndex(s.T, tree)
	}
}

// refreshIndex does what "git update-index --refresh" does in the copy of a working
// tree: the index holds the times and the numbers of files, which a copy has of its
// own. Without it, git would take all of them for changed ones at first. The format
// is version 2 of gitformat-index(5).
func refreshIndex(t testing.TB, tree string) {
	t.Helper()
	const header, fixed = 12, 62 // of the file, and of an entry before its name
	file := filepath.Join(tree, ".git/index")
	index := []byte(harness.Read(t, file))
	if binary.BigEndian.Uint32(index[4:]) != 2 {
		t.Fatalf("%s: not version 2", file)
	}
	at := header
	for range binary.BigEndian.Uint32(index[8:]) {
		name, _, _ := strings.Cut(string(index[at+fixed:]), "\x00")
		var is unix.Stat_t
		harness.Must(t, unix.Lstat(filepath.Join(tree, name), &is))
		changed, changedNs := is.Ctim.Unix()
		written, writtenNs := is.Mtim.Unix()
		for i, number := range []int64{changed, changedNs, written, writtenNs, int64(is.Dev), int64(is.Ino)} {
			binary.BigEndian.PutUint32(index[at+4*i:], uint32(number))
		}
		at += (fixed + len(name) + 8) &^ 7 // ends with one to eight NULs
	}
	body := index[:len(index)-sha1.Size]
	sum := sha1.Sum(body)
	harness.Must(t, os.WriteFile(file, append(body, sum[:]...), 0o644))
}
