//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// After each proposal is written, the same access is allowed. That holds for
// every kind of refusal, under settings that list little, much, or are bound by
// others.
func TestOffer_IsTrueOnceItIsWritten(t *testing.T) {
	t.Parallel()
	denials := func(home, project string) []platform.Denial {
		in := func(names ...string) string { return filepath.Join(append([]string{home}, names...)...) }
		list := []platform.Denial{
			{Access: "read", Target: in("notes", "a")},
			{Access: "read", Target: in("notes")},
			{Access: "read", Target: in(".ssh", "id_rsa")},
			{Access: "read", Target: in("gone")},
			{Access: "write", Target: in("notes", "a")},
			{Access: "write", Target: in(".bashrc")},
			{Access: "write", Target: filepath.Join(project, ".git", "config")},
			{Access: "create", Target: in("notes", "new")},
			{Access: "create", Target: in(".npm", "x"), Process: "npm"},
			{Access: "create", Target: in("go", "pkg", "x"), Process: "go"},
			{Access: "create", Target: "/usr/share/x"},
			{Access: "remove", Target: in("notes", "a")},
			{Access: "execute", Target: in("tools", "run")},
			{Access: "execute", Target: in("notes", "a")},
			{Access: "connect_unix", Target: "/run/docker.sock"},
			{Access: "connect_unix", Target: in("s")},
			{Access: "connect_unix", Target: "abstract:x"},
			{Access: "connect", Target: "example.com:443"},
			{Access: "connect", Target: "example.com:22"},
			{Access: "connect", Target: "example.com:53", Datagram: true},
			{Access: "connect", Target: "192.0.2.1:80"},
			{Access: "connect", Target: "localhost:5432"},
			{Access: "connect", Target: "169.254.169.254:80"},
			{Access: "bind", Target: "0.0.0.0:8080"},
			{Access: "sign", Target: "SHA256:x"},
			{Access: "signal", Target: "1"},
			{Access: "agent", Target: "list"},
			{Access: "write", Target: "x", Detail: "core.hooksPath"},
		}
		return list
	}
	written := map[string]int{} // by the key, over all settings
	for name, test := range map[string]struct{ user, project, command, more string }{
		"standard": {user: `"enabled": true`},
		"strict":   {user: `"mode": "strict"`},
		"relaxed":  {user: `"mode": "relaxed"`},
		"hosts":    {user: `"enabled": true, "allow_network": false, "allowed_hosts": ["example.org"]`},
		"no network, with lists": {
			user: `"enabled": true, "allow_network": false, "additional_read_only_paths": ["/srv"], ` +
				`"tool": {"additional_read_write_paths": ["/srv/w"]}`,
		},
		"an untrusted project restricts": {
			user:    `"enabled": true`,
			project: `"enabled": true, "additional_read_only_paths": [], "allow_network": false`,
			more:    `additional_read_only_paths ("`,
		},
		"the command line counts more": {
			user: `"enabled": true`, command: `"mode": "strict", "additional_read_only_paths": []`,
			more: "the command line decides",
		},
	} {
		block := func(text string) string {
			return `{"terminal": {"sandbox": {"system_paths": {"read_write": []}, ` + text + `}}}`
		}
		for i := range denials("", "") {
			kind := settings.KindTerminal
			if i%2 == 0 {
				kind = settings.KindTool
			}
			home := t.TempDir()
			project := filepath.Join(home, "project")
			own := filepath.Join(home, ".config", "sandbox-sidecar", "settings.json")
			for path, text := range map[string]string{
				own: block(test.user), filepath.Join(home, "notes", "a"): "", filepath.Join(home, ".ssh", "id_rsa"): "",
				filepath.Join(home, ".bashrc"): "", filepath.Join(project, ".git", "config"): "",
				filepath.Join(project, ".git", "HEAD"): "ref: refs/heads/main\n",
			} {
				writeText(t, path, text, 0o644)
			}
			writeText(t, filepath.Join(home, "tools", "run"), "#!/bin/sh\n", 0o755)
			if test.project != "" {
				writeText(t, filepath.Join(project, ".zed", "settings.json"), block(test.project), 0o644)
			}
			options := settings.Options{Home: home, Env: []string{"HOME=" + home}, Once: true}
			if test.command != "" {
				options.Command = []byte(`{"terminal": {"sandbox": {` + test.command + `}}}`)
			}
			store, err := settings.Open(options)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			denial := spawn.Denial{Denial: denials(home, project)[i]}
			what := fmt.Sprintf("%s, %s: %s", name, kind, presentation.DenialLine(denial))
			o := offerFor(store, store.Snapshot(project), wish{scope: settings.ScopeUser, kind: kind, denial: denial})
			if o.unhelpful && (test.more == "" || !strings.Contains(o.why, test.more)) {
				t.Errorf("%s: %q does not say that %q counts more", what, o.why, test.more)
			}
			if o.proposal == nil {
				continue
			}
			if err := store.Confirm(o.proposal); err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			written[o.suggestion.Setting()]++
			if now, err := presentation.Suggest(store.Snapshot(project), kind, denial); err != nil || !now.Allowed {
				t.Errorf("%s: %s is written, and it stays refused: %+v, %v", what, o.suggestion.Instruction(), now, err)
			}
		}
	}
	for _, key := range []string{
		"additional_read_only_paths", "additional_read_write_paths", "additional_executable_paths", "allowed_hosts",
		"toolchains",
	} {
		if written[key] == 0 {
			t.Errorf("nothing was written into %s: %v", key, written)
		}
	}
	for _, key := range []string{"allow_network", "allowed_unix_sockets", "protected_paths"} {
		if written[key] > 0 {
			t.Errorf("%s was written: %v", key, written)
		}
	}
}

func writeText(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
