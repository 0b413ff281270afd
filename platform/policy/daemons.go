package policy

import (
	"net/url"
	"path"
	"strings"
)

// Daemon is an environment variable by which programs find the socket of a
// process outside the sandbox.
type Daemon struct {
	// Name is the variable's.
	Name string
	// Why says what the daemon does for its clients.
	Why string
	// names lists the sockets that a value names. known is false if it names
	// something other than a Unix socket.
	names func(value string, env func(string) string) (sockets []UnixSocket, known bool)
}

// Daemons are the known variables. A session that may not connect to any of a
// variable's sockets gets the session without the variable: programs then do
// without the daemon, start their own, or say that there is none.
var Daemons = []Daemon{
	{"ALACRITTY_SOCKET", "opens terminal windows", aPath},
	{"AT_SPI_BUS_ADDRESS", "reads and operates other programs' windows", busAddress},
	{"BUILDKIT_HOST", "builds and runs containers", aURL},
	{"CONTAINER_HOST", "runs containers with any directory in them", aURL},
	{"DBUS_SESSION_BUS_ADDRESS", "starts programs, unlocks keyrings, and whatever else the desktop does", busAddress},
	{"DBUS_STARTER_ADDRESS", "the bus that has started the editor", busAddress},
	{"DBUS_SYSTEM_BUS_ADDRESS", "asks the system's services", busAddress},
	{"DISPLAY", "sees every key and types into any window", display},
	{"DOCKER_HOST", "runs containers with any directory in them", aURL},
	{"EMACS_SOCKET_NAME", "evaluates Lisp in the user's editor", aPath},
	{"GNOME_KEYRING_CONTROL", "gives out stored passwords", inDirectory("control")},
	{"GPG_AGENT_INFO", "signs and decrypts", upTo(":")},
	{"HYPRLAND_INSTANCE_SIGNATURE", "starts programs", unknowable},
	{"I3SOCK", "starts programs", aPath},
	{"IBUS_ADDRESS", "sees what is typed", busAddress},
	{"KITTY_LISTEN_ON", "opens terminal windows and types into them", afterScheme("unix:")},
	{"MYSQL_UNIX_PORT", "the user's databases", aPath},
	{"NIRI_SOCKET", "starts programs", aPath},
	{"NOTIFY_SOCKET", "tells systemd about the editor", orAbstract},
	{"NVIM", "runs commands in the user's editor", aPath},
	{"NVIM_LISTEN_ADDRESS", "runs commands in the user's editor", aPath},
	{"PIPEWIRE_REMOTE", "listens to the microphone", inRuntimeDir},
	{"PULSE_SERVER", "listens to the microphone", afterScheme("unix:")},
	{"REMOTE_CONTAINERS_IPC", "runs commands in the user's editor", aPath},
	{"SESSION_MANAGER", "starts programs at the next login", unknowable},
	{"SSH_AUTH_SOCK", "logs in to other machines", aPath},
	{"STY", "types into the windows of screen", unknowable},
	{"SWAYSOCK", "starts programs", aPath},
	{"TMUX", "types into the windows of tmux", upTo(",")},
	{"VSCODE_GIT_IPC_HANDLE", "asks for the passwords that the editor keeps", aPath},
	{"VSCODE_IPC_HOOK", "runs commands in the user's editor", aPath},
	{"VSCODE_IPC_HOOK_CLI", "runs commands in the user's editor", aPath},
	{"WAYLAND_DISPLAY", "opens windows, and reads the clipboard", inRuntimeDir},
	{"WAYLAND_SOCKET", "a descriptor that no session inherits", unknowable},
	{"WEZTERM_UNIX_SOCKET", "opens terminal windows and types into them", aPath},
	{"ZELLIJ", "types into the windows of zellij", unknowable},
	{"ZELLIJ_SESSION_NAME", "types into the windows of zellij", unknowable},
}

// Sockets lists the sockets that a value names; env looks up other variables.
// known is false if the value names something other than a Unix socket, such as
// a host. If the value names a socket whose path it does not reveal, known is
// true and the list empty.
func (d Daemon) Sockets(value string, env func(string) string) (sockets []UnixSocket, known bool) {
	if value == "" {
		return nil, false
	}
	return d.names(value, env)
}

func atPath(name string) []UnixSocket { return []UnixSocket{{Path: path.Clean(name)}} }

// aPath accepts an absolute path.
func aPath(value string, _ func(string) string) ([]UnixSocket, bool) {
	if strings.HasPrefix(value, "/") {
		return atPath(value), true
	}
	return nil, !strings.Contains(value, ":") // a relative name, or HOST:PORT
}

// orAbstract accepts a path, or "@" and an abstract name.
func orAbstract(value string, env func(string) string) ([]UnixSocket, bool) {
	if name, ok := strings.CutPrefix(value, "@"); ok {
		return []UnixSocket{{Abstract: name}}, true
	}
	return aPath(value, env)
}

// upTo accepts a path that ends at a separator.
func upTo(separator string) func(string, func(string) string) ([]UnixSocket, bool) {
	return func(value string, env func(string) string) ([]UnixSocket, bool) {
		value, _, _ = strings.Cut(value, separator)
		return aPath(value, env)
	}
}

func inDirectory(name string) func(string, func(string) string) ([]UnixSocket, bool) {
	return func(value string, _ func(string) string) ([]UnixSocket, bool) {
		return atPath(value + "/" + name), true
	}
}

// inRuntimeDir accepts a path, absolute or relative to XDG_RUNTIME_DIR.
func inRuntimeDir(value string, env func(string) string) ([]UnixSocket, bool) {
	switch dir := env("XDG_RUNTIME_DIR"); {
	case strings.HasPrefix(value, "/"):
		return atPath(value), true
	case dir == "":
		return nil, true
	default:
		return atPath(dir + "/" + value), true
	}
}

// afterScheme accepts "unix:" and a path, perhaps after something in braces.
// Without the scheme the value is a host.
func afterScheme(scheme string) func(string, func(string) string) ([]UnixSocket, bool) {
	return func(value string, env func(string) string) ([]UnixSocket, bool) {
		if strings.HasPrefix(value, "{") {
			_, value, _ = strings.Cut(value, "}")
		}
		if name, ok := strings.CutPrefix(value, scheme); ok {
			return orAbstract(name, env)
		}
		return nil, strings.HasPrefix(value, "/")
	}
}

// aURL accepts unix:///PATH. Other schemes lead to hosts.
func aURL(value string, _ func(string) string) ([]UnixSocket, bool) {
	parsed, err := url.Parse(value)
	if err != nil || parsed.Scheme != "unix" {
		return nil, err != nil
	}
	return atPath(parsed.Path), true
}

// display accepts [HOST]:NUMBER[.SCREEN] (X(7)). Without a host, or with
// "unix", it is a socket with both a path and an abstract name.
func display(value string, _ func(string) string) ([]UnixSocket, bool) {
	at := strings.LastIndex(value, ":")
	if at < 0 {
		return nil, true
	}
	host, number := value[:at], value[at+1:]
	if host != "" && host != "unix" && !strings.HasSuffix(host, "/unix") {
		return nil, strings.HasPrefix(host, "/") // macOS has paths here
	}
	number, _, _ = strings.Cut(number, ".")
	name := "/tmp/.X11-unix/X" + number
	return []UnixSocket{{Path: name}, {Abstract: name}}, true
}

// busAddress accepts a list of addresses (D-Bus Specification, "Server
// Addresses").
func busAddress(value string, _ func(string) string) (sockets []UnixSocket, known bool) {
	for address := range strings.SplitSeq(value, ";") {
		transport, keys, _ := strings.Cut(address, ":")
		switch transport {
		case "unix":
		case "tcp", "nonce-tcp", "vsock":
			continue
		default: // autolaunch, launchd, unixexec: they find or start one
			known = true
			continue
		}
		known = true
		for pair := range strings.SplitSeq(keys, ",") {
			key, escaped, _ := strings.Cut(pair, "=")
			text, err := url.PathUnescape(escaped)
			switch {
			case err != nil:
			case key == "path":
				sockets = append(sockets, UnixSocket{Path: path.Clean(text)})
			case key == "abstract":
				sockets = append(sockets, UnixSocket{Abstract: text})
			}
		}
	}
	return sockets, known
}

// unknowable accepts a value that does not reveal the socket's path.
func unknowable(string, func(string) string) ([]UnixSocket, bool) { return nil, true }
