package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func TestSigningKeys_Explained(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/run/agent": "", "/home/u/.gnupg/S.gpg-agent": "",
	})
	on := func(keys string) string {
		return `{"enabled": true, "toolchains": ["ssh", "gpg"], "signing_keys": ` + keys + `}`
	}
	for _, test := range []struct{ user, project, key, want string }{
		{`{"enabled": true}`, "", aKey, `no no rule lets a session use your ssh-agent [toolchains=ssh]`},
		{`{"enabled": true}`, "", aGrip, `no no rule lets a session use your gpg-agent [toolchains=gpg]`},
		{
			`{"enabled": true, "allowed_unix_sockets": ["/run/agent"]}`, "", aKey,
			`yes the whole ssh-agent is granted by allowed_unix_sockets (` + userFile + `:1) [allowed_unix_sockets]`,
		},
		{on(`["*"]`), "", aKey, `yes the key "` + aKey + `" may be used by signing_keys (` + userFile +
			`:1) [signing_keys]`},
		{on(`["ask:` + aGrip + `"]`), "", strings.ToLower(aGrip), `yes the key "` + aGrip +
			`" may be used by signing_keys (` + userFile + `:1) [signing_keys] each use is a question`},
		{
			on(`["` + bKey + `"]`), "", aKey,
			`no no setting lets a session use the key "` + aKey + `" [signing_keys=` + aKey + `] whoever`,
		},
		{on(`["*"]`), `{"signing_keys": []}`, aKey, `no no setting lets a session use the key "` + aKey +
			`" [] your own settings allow it`},
	} {
		s := snapshotOf(t, tree, test.user, test.project)
		s.Host.Env["SSH_AUTH_SOCK"] = "/run/agent"
		x, err := Why(s, document.KindTool, Sign, test.key)
		if err != nil {
			t.Error(err)
			continue
		}
		answer, setting := map[bool]string{true: "yes", false: "no"}[x.Allowed], x.Key
		if x.Value != "" {
			setting += "=" + x.Value
		}
		if got := fmt.Sprintf("%s %s [%s] %s", answer, x.Reason, setting, x.Hint); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s\ngot  %s\nwant %s", test.user, got, test.want)
		}
	}
	s := snapshotOf(t, tree, on(`["ask:*"]`), "")
	for _, target := range []string{"", "*", "ask:" + aKey, "/run/agent", "id_ed25519"} {
		if x, err := Why(s, document.KindTool, Sign, target); err == nil {
			t.Errorf("%q is explained: %+v", target, x)
		}
	}
	got, err := Suggest(s, document.KindTool, "sign", aKey, "")
	if err != nil || got.Key != "" || !strings.Contains(got.Hint, "question") {
		t.Errorf("after a no: %+v, %v", got, err)
	}
}

const (
	aKey  = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
	bKey  = "SHA256:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0"
	aGrip = "5C9E027F6F534FF59047F3F6B7E676A7B9EF8BA6"
)
