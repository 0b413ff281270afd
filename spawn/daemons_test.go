package spawn

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestEnvironment_WithoutDaemons(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agent", "wayland-7"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	r := Request{
		Dir: "/", Env: []string{
			"TERM=x", "SSH_AUTH_SOCK=" + link + "/agent", "DISPLAY=:0", "TMUX=/tmp/tmux-1/default,1,0",
			"WAYLAND_DISPLAY=wayland-7",
			"XDG_RUNTIME_DIR=" + dir, "DOCKER_HOST=tcp://10.0.0.1:1", "NVIM=/gone/nvim", "HOME=/h",
			"STY=1.x", "HIDDEN=x",
		},
		Policy: policy.Policy{Restricted: true, Environment: policy.Environment{Allowed: []string{
			"DISPLAY", "DOCKER_HOST", "HOME", "NVIM", "SSH_AUTH_SOCK", "STY", "TMUX", "WAYLAND_DISPLAY",
			"XDG_RUNTIME_DIR",
		}}},
	}
	environment := func(sockets ...policy.UnixSocket) (env, dropped []string) {
		r.Policy.UnixSockets = sockets
		env, dropped = r.environment("/private")
		slices.Sort(env)
		return env, dropped
	}
	env, dropped := environment()
	if want := []string{
		"DOCKER_HOST=tcp://10.0.0.1:1", "HOME=/h", "PWD=/", "TERM=x",
		"XDG_RUNTIME_DIR=/private",
	}; !slices.Equal(env, want) {
		t.Errorf("without grants: %q, want %q", env, want)
	}
	if want := []string{
		"DISPLAY", "HIDDEN", "NVIM", "SSH_AUTH_SOCK", "STY", "TMUX",
		"WAYLAND_DISPLAY",
	}; !slices.Equal(dropped, want) {
		t.Errorf("without grants these are dropped: %q, want %q", dropped, want)
	}
	env, dropped = environment(policy.UnixSocket{Path: dir + "/agent"}, policy.UnixSocket{Path: dir + "/wayland-7"},
		policy.UnixSocket{Path: "/tmp/.X11-unix/X0"})
	if want := []string{
		"DISPLAY=:0", "DOCKER_HOST=tcp://10.0.0.1:1", "HOME=/h", "PWD=/", "SSH_AUTH_SOCK=" + link + "/agent", "TERM=x",
		"WAYLAND_DISPLAY=" + dir + "/wayland-7", "XDG_RUNTIME_DIR=/private",
	}; !slices.Equal(env, want) {
		t.Errorf("with grants: %q, want %q", env, want)
	}
	if want := []string{"HIDDEN", "NVIM", "STY", "TMUX"}; !slices.Equal(dropped, want) {
		t.Errorf("with grants these are dropped: %q, want %q", dropped, want)
	}
	r.Policy.Restricted = false
	if env, dropped = environment(); len(dropped) != 0 || !slices.Contains(env, "TMUX=/tmp/tmux-1/default,1,0") {
		t.Errorf("unrestricted: %q without %q", env, dropped)
	}
}
