//go:build linux

package tests

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// release serves a release whose program prints a word, with the given checksum
// or the right one.
func release(t *testing.T, version, sum string) *httptest.Server {
	t.Helper()
	name := "sandbox-sidecar_" + version + "_linux_" + runtime.GOARCH
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	files := tar.NewWriter(compressed)
	for path, text := range map[string]string{
		"sandbox-sidecar": "#!/bin/sh\necho installed\n", "sandbox-sidecar-mcp": "#!/bin/sh\necho installed\n",
		"sandbox-sidecar-credentials":    "#!/bin/sh\necho installed\n",
		"share/sandbox-sidecar/apparmor": "profile\n",
	} {
		harness.Must(t, files.WriteHeader(&tar.Header{Name: name + "/" + path, Mode: 0o755, Size: int64(len(text))}))
		_, err := files.Write([]byte(text))
		harness.Must(t, err)
	}
	harness.Must(t, files.Close())
	harness.Must(t, compressed.Close())
	if sum == "" {
		sum = fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/" + version + "/" + name + ".tar.gz":
			_, _ = w.Write(archive.Bytes())
		case "/" + version + "/checksums.txt":
			fmt.Fprintf(w, "%s  %s.tar.gz\n", sum, name)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// The feature installs a release into a dev container, and nothing if the release
// is another than its checksum says.
func TestDevContainer_InstallsARelease(t *testing.T) {
	t.Parallel()
	const script = "../.ci/packages/devcontainer/install.sh"
	for name, test := range map[string]struct{ version, sum, fails string }{
		"a release":           {"v1.2.3", "", ""},
		"a pre-release":       {"v1.2.3-rc.1", "", ""},
		"another checksum":    {"v1.2.3", strings.Repeat("0", 64), "is not what checksums.txt says"},
		"no version":          {"", "", `set the option "version"`},
		"a path as a version": {"v1.2.3/../..", "", `set the option "version"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, root := release(t, test.version, test.sum), t.TempDir()
			install := exec.Command("sh", script)
			install.Env = append(os.Environ(), "VERSION="+test.version, "FROM="+server.URL, "DESTDIR="+root,
				"TMPDIR="+t.TempDir(), "no_proxy=127.0.0.1",
				"_REMOTE_USER_HOME=/home/dev", fmt.Sprintf("_REMOTE_USER=%d", os.Getuid()))
			out, err := install.CombinedOutput()
			program := filepath.Join(root, "usr/local/bin/sandbox-sidecar")
			if test.fails != "" {
				if err == nil || !strings.Contains(string(out), test.fails) {
					t.Errorf("%v: %s", err, out)
				}
				if _, err := os.Stat(program); err == nil {
					t.Error("a program is installed")
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, program := range []string{program, program + "-mcp", program + "-credentials"} {
				if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != "installed\n" {
					t.Errorf("%s: %v: %s", program, err, out)
				}
			}
			if _, err := os.Stat(filepath.Join(root, "usr/local/share/sandbox-sidecar/apparmor")); err != nil {
				t.Error(err)
			}
			// A volume for private caches gets the mode of the directory below it.
			caches, err := os.Stat(filepath.Join(root, "home/dev/.cache/sandbox-sidecar"))
			if err != nil || caches.Mode() != os.ModeDir|0o700 {
				t.Errorf("the directory of private caches: %v, %v", caches, err)
			}
		})
	}
}

// The feature's description is what dev containers read, with the options that
// its script knows, and with what makes the sidecar's namespaces possible.
func TestDevContainer_IsDescribed(t *testing.T) {
	t.Parallel()
	var feature struct {
		ID          string
		Options     map[string]struct{ Default string }
		SecurityOpt []string
	}
	const dir = "../.ci/packages/devcontainer/"
	harness.Must(t, json.Unmarshal([]byte(harness.Read(t, dir+"devcontainer-feature.json")), &feature))
	script := harness.Read(t, dir+"install.sh")
	for name, option := range feature.Options {
		if variable := strings.ToUpper(name); !strings.Contains(script, "${"+variable+":-"+option.Default+"}") {
			t.Errorf("the script has another default for %s than %q", variable, option.Default)
		}
	}
	if options := strings.Join(feature.SecurityOpt, " "); feature.ID != "sandbox-sidecar" ||
		options != "seccomp=unconfined apparmor=unconfined" {
		t.Errorf("feature: %+v", feature)
	}
}

// The AppArmor profile is only for programs that root alone can replace.
func TestAppArmorProfile_IsForRootsProgramsAlone(t *testing.T) {
	t.Parallel()
	profile := harness.Read(t, "../.ci/packages/apparmor")
	const head = "profile sandbox-sidecar /usr/{,local/}bin/sandbox-sidecar flags=(unconfined) {\n  userns,\n"
	if _, rest, found := strings.Cut(profile, "\n"+head); !found || strings.Contains(rest, "profile ") {
		t.Errorf("profile:\n%s", profile)
	}
}
