// Package credentials lets sessions use secrets that they do not have.
//
// A session has a placeholder in the place of each secret. Another program,
// sandbox-sidecar-credentials, has the secrets: it makes the placeholders, opens the
// TLS of the session's connections to a credential's hosts, and puts the secrets in.
// [Open] starts it for one session, or for those that share a sandbox, and a
// [Room] is what the sidecar has of it. The program that confines reads neither
// secrets nor TLS. See docs/design/credentials.md.
package credentials

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

// Program is the name of the program, which is installed beside the sidecar.
const Program = "sandbox-sidecar-credentials"

// TrustVariables name files of certificates that programs trust. Those that a
// user has set hold certificates that no other file does.
var TrustVariables = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT",
	"AWS_CA_BUNDLE", "DENO_CERT", "CARGO_HTTP_CAINFO",
}

// Wanted is a credential as settings ask for it. One of Variable, File and Command
// is set.
type Wanted struct {
	// Name is its key in the settings.
	Name string `json:"name"`
	// Hosts are where the secret is sent, in the form of hosts.ParseCredential. If
	// there are none, the secret is only kept away.
	Hosts []string `json:"hosts"`
	// Variable is one of the sidecar's environment, and Value what it holds.
	Variable string `json:"variable,omitempty"`
	Value    string `json:"value,omitempty"`
	// File is the real path of a file, and Format the path that says what it holds.
	File   string `json:"file,omitempty"`
	Format string `json:"format,omitempty"`
	// Command prints the secret on its first line. As is the variable that names its
	// placeholder.
	Command []string `json:"command,omitempty"`
	As      string   `json:"as,omitempty"`
}

// Order is what a session needs.
type Order struct {
	Wanted []Wanted `json:"wanted"`
	// Dir is an empty directory that the session may read and not write. The program
	// puts files into it.
	Dir string `json:"dir"`
	// Trusted are variables of the session that name files of certificates, with
	// their values.
	Trusted map[string]string `json:"trusted,omitempty"`
	// Env is the environment of commands.
	Env []string `json:"env,omitempty"`
}

// Given is what a session has in the place of secrets.
type Given struct {
	// Variables are set to placeholders, and to files of certificates.
	Variables map[string]string `json:"variables,omitempty"`
	// Hosts are those whose TLS is opened, as in Wanted: those of secrets that there
	// are.
	Hosts []string `json:"hosts,omitempty"`
	// Files have something else in their place inside.
	Files []File `json:"files,omitempty"`
	// Withheld are what the session has neither as it is nor as a placeholder.
	Withheld []Withheld `json:"withheld,omitempty"`
}

// File is a path that has another file or directory in its place inside.
type File struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// Withheld is a credential that cannot be used. Variable or File is what sessions
// must not have of it.
type Withheld struct {
	Name     string `json:"name"`
	Variable string `json:"variable,omitempty"`
	File     string `json:"file,omitempty"`
	Why      string `json:"why"`
}

// Event is something that the user learns of a session's credentials.
type Event struct {
	Kind EventKind `json:"kind"`
	// Credential is the name of what was sent; "" if the event is about no one.
	Credential string `json:"credential,omitempty"`
	// Host is "name:port".
	Host string `json:"host"`
	// Why says in words what was wrong; "" for Used.
	Why string `json:"why,omitempty"`
}

// EventKind says what has happened.
type EventKind string

const (
	// Used: a request with the secret went to its host.
	Used EventKind = "used"
	// Elsewhere: a placeholder was sent to another host than its own.
	Elsewhere EventKind = "elsewhere"
	// Misplaced: a placeholder was sent to its host where it does not belong.
	Misplaced EventKind = "misplaced"
	// Malformed: a request is refused that could be read in two ways.
	Malformed EventKind = "malformed"
	// Distrusted: the client does not trust the session's certificate.
	Distrusted EventKind = "distrusted"
	// Unavailable: there is no secret to send, as its command has failed.
	Unavailable EventKind = "unavailable"
	// Unreachable: the host's certificate does not hold, or it speaks no TLS.
	Unreachable EventKind = "unreachable"
)

// String is what the program and the user read.
func (e Event) String() string {
	switch e.Kind {
	case Used:
		return fmt.Sprintf("%s was used at %s", e.Credential, e.Host)
	case Elsewhere:
		return fmt.Sprintf("refused: an attempt to send %s to %s: %s", e.Credential, e.Host, e.Why)
	case Misplaced:
		return fmt.Sprintf("refused: %s for %s was %s", e.Credential, e.Host, e.Why)
	case Unavailable:
		return fmt.Sprintf("there is no %s for %s: %s", e.Credential, e.Host, e.Why)
	}
	return fmt.Sprintf("%s: %s", e.Host, e.Why)
}

// ParseHosts reads the hosts of a credential, and returns what decides about a name
// and a port.
func ParseHosts(texts []string) ([]hosts.Pattern, *hosts.Rules, error) {
	var list []hosts.Pattern
	for _, text := range texts {
		pattern, err := hosts.ParseCredential(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", text, err)
		}
		list = append(list, pattern)
	}
	return list, hosts.New(list, nil), nil
}
