//go:build linux

package stories

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A commit is signed by GnuPG, and the signature is good outside. No secret key
// leaves the agent, nothing is changed in it, and whoever tries is reported.
func TestSigningWithGPG(t *testing.T) {
	t.Parallel()
	t.Run("here", func(t *testing.T) {
		t.Parallel()
		signWithGPG(t, nil)
	})
	t.Run("without namespaces", func(t *testing.T) {
		t.Parallel()
		signWithGPG(t, harness.WithoutNamespaces(t))
	})
}

func signWithGPG(t *testing.T, wrap func(*exec.Cmd)) {
	t.Helper()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "git", "gpg", "gpg-agent", "gpg-connect-agent", "gpgconf")
	u := newUser(t, `{"toolchains": ["gpg"]}`)
	u.wrap = wrap
	gnupg := filepath.Join(harness.ShortDir(t), "g") // a socket's path is short
	harness.Must(t, os.Mkdir(gnupg, 0o700))
	u.env = append(u.env, "GNUPGHOME="+gnupg, "XDG_RUNTIME_DIR="+harness.ShortDir(t))
	t.Cleanup(func() { u.types(t, "gpgconf --kill all") })
	const prepare = `gpg --quiet --batch --passphrase '' --quick-gen-key t@example.com future-default default never
git init -q; git config --global user.name T; git config --global user.email t@example.com
git config --global user.signingkey t@example.com
echo secret | gpg --quiet --batch --trust-model always -r t@example.com -e -o letter
gpg --batch --pinentry-mode loopback --passphrase '' --export-secret-keys >outside.key
`
	if screen, status := u.types(t, prepare); status != "0" {
		t.Fatal(screen)
	}
	secrets := contents(t, filepath.Join(gnupg, "private-keys-v1.d"))
	if len(harness.Read(t, filepath.Join(u.Project, "outside.key"))) == 0 {
		t.Fatal("outside, no key is exported either")
	}
	screen, status := u.types(t, `grip=$(gpg -K --with-keygrip --with-colons | sed -n 's/^grp:::::::::\(.*\):/\1/p' | head -n 1)
rm outside.key
sandbox-sidecar exec -- sh -c '
git commit -q --allow-empty -S -m signed && git verify-commit HEAD 2>&1 | grep "Good signature"
gpg --batch --pinentry-mode loopback --passphrase "" --export-secret-keys >inside.key; wc -c <inside.key
gpg --batch -d letter
gpg --batch --yes --delete-secret-keys $(git log -1 --format=%GF)
cat "$2"/private-keys-v1.d/*
printf "EXPORT_KEY %s\nPASSWD %s\nKILLAGENT\nOPTION putenv=DISPLAY=:9\n" $1 $1 | gpg-connect-agent
true' - "$grip" "`+gnupg+`"
echo "== outside"; git verify-commit HEAD; gpg --batch -d letter`)
	sees(t, screen, `Good signature from "t@example.com"
0
ERR 67109115 Forbidden
ERR 67109115 Forbidden
ERR 67109115 Forbidden
agent "(export|decrypt)
== outside
Good signature from "t@example.com"
secret`)
	for _, what := range []string{
		"export or import a secret key", "export a secret key", "decrypt", "change a passphrase", "end",
	} {
		sees(t, screen, `agent "`+what+` \(gpg-agent\)"`)
	}
	if status != "0" {
		t.Errorf("exit status %s:\n%s", status, screen)
	}
	if now := contents(t, filepath.Join(gnupg, "private-keys-v1.d")); now != secrets {
		t.Errorf("the keys were\n%q\nand are\n%q", secrets, now)
	}
	// Nothing of it without the set.
	u.keys["toolchains"] = []any{}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	if screen, status = u.types(t, `sandbox-sidecar exec -- git commit -q --allow-empty -S -m signed`); status == "0" {
		t.Errorf("signed without the set:\n%s", screen)
	}
}

// contents are the files of a directory in one text.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	harness.Must(t, err)
	var text strings.Builder
	for _, entry := range entries {
		text.WriteString(entry.Name() + ":" + harness.Read(t, filepath.Join(dir, entry.Name())) + "\n")
	}
	return text.String()
}
