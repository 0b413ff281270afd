package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDaemons_NameSockets(t *testing.T) {
	t.Parallel()
	env := func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": "/run/user/1000"}[name] }
	for _, test := range []struct{ name, value, want string }{
		{"SSH_AUTH_SOCK", "/tmp/ssh-x/agent.1", "/tmp/ssh-x/agent.1"},
		{"SSH_AUTH_SOCK", "/tmp//ssh-x/../agent.1", "/tmp/agent.1"},
		{"SSH_AUTH_SOCK", "", "nothing"},
		{"DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus", "/run/user/1000/bus"},
		{"DBUS_SESSION_BUS_ADDRESS", "unix:path=/a%20b,guid=00;unix:abstract=/tmp/c", "/a b @/tmp/c"},
		{"DBUS_SESSION_BUS_ADDRESS", "unix:runtime=yes", ""},
		{"DBUS_SESSION_BUS_ADDRESS", "autolaunch:", ""},
		{"DBUS_SESSION_BUS_ADDRESS", "tcp:host=localhost,port=1", "nothing"},
		{"DBUS_SESSION_BUS_ADDRESS", "tcp:host=localhost,port=1;unix:path=/b", "/b"},
		{"TMUX", "/tmp/tmux-1000/default,123,0", "/tmp/tmux-1000/default"},
		{"GPG_AGENT_INFO", "/run/g/S.gpg-agent:0:1", "/run/g/S.gpg-agent"},
		{"DISPLAY", ":0", "/tmp/.X11-unix/X0 @/tmp/.X11-unix/X0"},
		{"DISPLAY", "unix:12.0", "/tmp/.X11-unix/X12 @/tmp/.X11-unix/X12"},
		{"DISPLAY", "host/unix:1", "/tmp/.X11-unix/X1 @/tmp/.X11-unix/X1"},
		{"DISPLAY", "localhost:10.0", "nothing"},
		{"DISPLAY", "nonsense", ""},
		{"WAYLAND_DISPLAY", "wayland-0", "/run/user/1000/wayland-0"},
		{"WAYLAND_DISPLAY", "/elsewhere/w", "/elsewhere/w"},
		{"DOCKER_HOST", "unix:///var/run/docker.sock", "/var/run/docker.sock"},
		{"DOCKER_HOST", "tcp://10.0.0.1:2375", "nothing"},
		{"DOCKER_HOST", "ssh://user@host", "nothing"},
		{"DOCKER_HOST", "://", ""},
		{"KITTY_LISTEN_ON", "unix:/tmp/kitty", "/tmp/kitty"},
		{"KITTY_LISTEN_ON", "unix:@kitty", "@kitty"},
		{"KITTY_LISTEN_ON", "tcp:localhost:1", "nothing"},
		{"PULSE_SERVER", "{f00}unix:/run/pulse/native", "/run/pulse/native"},
		{"PULSE_SERVER", "there", "nothing"},
		{"NVIM", "/run/user/1000/nvim.1.0", "/run/user/1000/nvim.1.0"},
		{"NVIM_LISTEN_ADDRESS", "127.0.0.1:6666", "nothing"},
		{"NVIM_LISTEN_ADDRESS", "name", ""},
		{"NOTIFY_SOCKET", "@/org/x", "@/org/x"},
		{"GNOME_KEYRING_CONTROL", "/run/user/1000/keyring", "/run/user/1000/keyring/control"},
		{"STY", "1234.pts-0.host", ""},
		{"ZELLIJ", "0", ""},
	} {
		at := slices.IndexFunc(Daemons, func(d Daemon) bool { return d.Name == test.name })
		if at < 0 {
			t.Errorf("%s is not in the table", test.name)
			continue
		}
		sockets, known := Daemons[at].Sockets(test.value, env)
		var named []string
		for _, s := range sockets {
			if s.Abstract != "" {
				s.Path = "@" + s.Abstract
			}
			named = append(named, s.Path)
		}
		got := strings.Join(named, " ")
		if !known {
			got = fmt.Sprintf("nothing%s", got)
		}
		if got != test.want {
			t.Errorf("%s=%s names %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

func TestDaemons_AreInOrderAndHaveReasons(t *testing.T) {
	t.Parallel()
	if !slices.IsSortedFunc(Daemons, func(a, b Daemon) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted")
	}
	for i, d := range Daemons {
		if d.Why == "" || i > 0 && Daemons[i-1].Name == d.Name {
			t.Errorf("%s has no reason, or is listed twice", d.Name)
		}
	}
}
