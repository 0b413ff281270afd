package risks

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// AbstractPrefix is before the name of a socket that is no file, in settings and
// in this table.
const AbstractPrefix = "abstract:"

// socket is a Unix socket at its usual place. In each of its names * stands for
// any characters.
type socket struct{ path, obeys string }

const (
	byContainers = "it starts containers that may use any file of this machine"
	byBus        = "services on the bus start programs outside"
	bySystemd    = "systemd starts programs outside for those who connect"
	byScreen     = "it shows what is on the screen and typed there, and types into other windows"
	byClipboard  = "its clients read your clipboard"
	byTerminals  = "it types into your other terminals"
	byEditors    = "your editor does what those who connect say"
	bySound      = "it records your microphone"
	byKeys       = "it uses your keys"
)

// sockets are those of programs that do more than a session may for those who
// connect.
var sockets = []socket{
	{"/run/docker.sock", byContainers},
	{"/run/docker/*", byContainers},
	{"/run/user/*/docker.sock", byContainers},
	{"~/.docker/run/docker.sock", byContainers},
	{"~/.docker/desktop/*", byContainers},
	{"~/.colima/*/docker.sock", byContainers},
	{"~/.orbstack/run/*", byContainers},
	{"~/.rd/docker.sock", byContainers},
	{"~/.lima/*/sock/*", byContainers},
	{"~/.local/share/containers/podman/machine/*", byContainers},
	{"~/.local/share/containers/podman/machine/*/*", byContainers},
	{"/run/user/*/buildkit/*", byContainers},
	{"/run/cri-dockerd.sock", byContainers},
	{"/run/multipass_socket", byContainers},
	{"/nix/var/nix/daemon-socket/socket", "it builds and installs programs"},
	{"/run/podman/podman.sock", byContainers},
	{"/run/user/*/podman/podman.sock", byContainers},
	{"/run/containerd/*", byContainers},
	{"/run/k3s/containerd/*", byContainers},
	{"/run/crio/crio.sock", byContainers},
	{"/run/buildkit/*", byContainers},
	{"/var/lib/lxd/unix.socket", byContainers},
	{"/var/lib/incus/unix.socket", byContainers},
	{"/var/snap/lxd/common/lxd/unix.socket", byContainers},
	{"/run/libvirt/*", "it starts machines that may use any file of this one"},
	{"/run/user/*/libvirt/*", "it starts machines that may use your files"},
	{"/run/snapd.socket", "it installs programs for the whole machine"},
	{"/run/user/*/bus", byBus},
	{"/run/dbus/*", byBus},
	{"/tmp/dbus-*", byBus},
	{"abstract:/tmp/dbus-*", byBus},
	{"/run/user/*/at-spi/*", byScreen},
	{"/run/systemd/private", bySystemd},
	{"/run/systemd/io.*", bySystemd},
	{"/run/user/*/systemd/*", bySystemd},
	{"/tmp/.X11-unix/*", byScreen},
	{"abstract:/tmp/.X11-unix/*", byScreen},
	{"/run/user/*/wayland-*", byClipboard},
	{"/run/user/*/sway-ipc.*", byScreen},
	{"/run/user/*/hypr/*/*", byScreen},
	{"/run/user/*/i3/*", byScreen},
	{"/run/user/*/pulse/*", bySound},
	{"/run/user/*/pipewire-*", bySound},
	{"/tmp/tmux-*/*", byTerminals},
	{"/run/tmux/*/*", byTerminals},
	{"/run/user/*/tmux-*/*", byTerminals},
	{"/tmp/zellij-*/*/*", byTerminals},
	{"~/.screen/*", byTerminals},
	{"/run/user/*/Alacritty-*", byTerminals},
	{"/run/user/*/foot-*", byTerminals},
	{"/run/user/*/niri.*", byScreen},
	{"/run/screen/*/*", byTerminals},
	{"/run/user/*/zellij/*/*", byTerminals},
	{"/run/user/*/wezterm/*", byTerminals},
	{"/tmp/kitty*", byTerminals},
	{"/run/user/*/kitty*", byTerminals},
	{"abstract:kitty*", byTerminals},
	{"/run/user/*/nvim.*", byEditors},
	{"/tmp/nvim.*/*/*", byEditors},
	{"/tmp/nvim*/0", byEditors},
	{"/run/user/*/vscode-*", byEditors},
	{"/tmp/vscode-*", byEditors},
	{"/run/user/*/emacs/*", byEditors},
	{"/tmp/emacs*/*", byEditors},
	{"~/.emacs.d/server/*", byEditors},
	{"~/.bitwarden-ssh-agent.sock", byKeys},
	{"/run/user/*/ssh-tpm-agent.sock", byKeys},
	{"/run/user/*/yubikey-agent/*", byKeys},
	{"~/.cache/keyring-*/*", byKeys},
	{"/run/user/*/keyring/*", byKeys},
	{"/run/user/*/gcr/*", byKeys},
	{"/run/user/*/ssh-agent*", byKeys},
	{"/run/user/*/openssh_agent", byKeys},
	{"/tmp/ssh-*/agent.*", byKeys},
	{"~/.ssh/agent/*", byKeys},
	{"~/.1password/agent.sock", byKeys},
	{"/run/user/*/gnupg/*", byKeys},
	{"~/.gnupg/S.*", byKeys},
	{"/run/pcscd/*", byKeys},
	{"/run/user/*/p11-kit/*", byKeys},
}

// nameServices are sockets of programs that look names of hosts up for those who
// connect.
var nameServices = []string{
	"/run/nscd/socket", "/var/run/nscd/socket", "/run/systemd/resolve/*", "/run/avahi-daemon/socket",
}

// LooksUpNames reports whether the program behind a Unix socket looks names of
// hosts up. The path is real.
func LooksUpNames(path string) bool {
	return slices.ContainsFunc(nameServices, func(one string) bool { return leads(one, path) })
}

// AtSocket is a clause that says what the program behind a Unix socket does for
// those who connect, such as "it uses your keys"; "" if that is not known. The
// path is real; an abstract name follows AbstractPrefix. homes are real, too.
func AtSocket(path string, homes []string) string {
	for _, one := range sockets {
		rest, below := strings.CutPrefix(one.path, "~/")
		if !below {
			if leads(one.path, path) {
				return one.obeys
			}
			continue
		}
		for _, home := range homes {
			if leads(filepath.Join(home, rest), path) {
				return one.obeys
			}
		}
	}
	return ""
}

// leads reports whether each name of a path fits that of a pattern. A home
// directory with a * in its name fits more, which is no harm.
func leads(pattern, path string) bool {
	names, rest := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(names) != len(rest) {
		return false
	}
	for i, name := range names {
		if !policy.MatchName(name, rest[i]) {
			return false
		}
	}
	return true
}
