package proxy

import (
	"fmt"
	"strings"
)

// user is the name in the proxy's credentials. It says nothing.
const user = "session"

// Command is the argument with which this binary connects its standard streams
// to a host through the proxy; see Connect.
const Command = "connect-by-proxy"

// Environ are the variables by which programs find the proxy at a port, with the
// token of their session. The loopback interface needs none: a session cannot
// reach it.
// executable is this binary's path, for ssh.
func Environ(port uint16, token, executable string) []string {
	at := fmt.Sprintf("%s:%s@127.0.0.1:%d", user, token, port)
	var env []string
	for name, value := range map[string]string{
		"HTTP_PROXY": "http://" + at, "HTTPS_PROXY": "http://" + at, "ALL_PROXY": "socks5h://" + at, "NO_PROXY": "",
	} {
		env = append(env, name+"="+value, strings.ToLower(name)+"="+value)
	}
	ssh := "ssh -o ProxyCommand=" + quote(quote(executable)+" "+Command+" %h %p")
	return append(env, "NODE_USE_ENV_PROXY=1", "GIT_SSH_COMMAND="+ssh)
}

// quote makes one word of a text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
