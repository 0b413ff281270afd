package compile

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func TestGPG_GrantsWhatIsPublic(t *testing.T) {
	t.Parallel()
	for home, env := range map[string]string{"/home/u/.gnupg": "", "/home/u/keys": "/home/u/keys"} {
		tree := resolvetest.Tree(t, map[string]string{
			"/home/u/project/": "", home + "/pubring.kbx": "keys", home + "/trustdb.gpg": "trust",
			home + "/S.gpg-agent": "",
			home + "/gpg.conf":    "default-key A\npassphrase-repeat 1\n", home + "/private-keys-v1.d/a.key": "secret",
			home + "/pubring.gpg": "-----BEGIN PGP PRIVATE KEY BLOCK-----", home + "/common.conf": "passphrase x\n",
			home + "/secring.gpg": "secret", home + "/random_seed": "x",
		})
		for name, test := range map[string]struct {
			user, project string
			granted       bool
		}{
			"the user's":      {`{"enabled": true, "toolchains": ["gpg"]}`, "", true},
			"none":            {`{"enabled": true}`, "", false},
			"a project asks":  {`{"enabled": true}`, `{"toolchains": ["gpg"]}`, false},
			"a project drops": {`{"enabled": true, "toolchains": ["gpg"]}`, `{"toolchains": []}`, false},
		} {
			s := snapshotOf(t, tree, test.user, test.project)
			s.Host.Env["GNUPGHOME"] = env
			c := s.Compile(document.KindTool)
			for path, want := range map[string]string{
				"": "none", "/pubring.kbx": "read", "/trustdb.gpg": "read", "/gpg.conf": "read",
				"/private-keys-v1.d/a.key": "none", "/secring.gpg": "none", "/pubring.gpg": "none",
				"/common.conf": "none", "/random_seed": "none",
			} {
				if !test.granted {
					want = "none"
				}
				if got := accessOf(c, home+path); got != want {
					t.Errorf("%s: %s%s: granted %s, want %s", name, home, path, got, want)
				}
			}
			sockets := c.Policy.UnixSockets
			has := len(sockets) == 1 && sockets[0].Path == home+"/S.gpg-agent" && sockets[0].Agent == policy.GPGAgent
			if has != test.granted || !has && len(sockets) > 0 {
				t.Errorf("%s: sockets: %+v", name, sockets)
			}
		}
	}
}
