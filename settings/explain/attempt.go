package explain

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
)

// Attempt is something a session may try.
type Attempt string

const (
	// Read opens a file for reading, or lists a directory.
	Read Attempt = "read"
	// Write opens a file for writing, creates a missing one, or changes
	// the entries of a directory.
	Write Attempt = "write"
	// Execute runs a program.
	Execute Attempt = "execute"
	// ConnectUnix connects to a Unix socket of a process outside of the
	// session.
	ConnectUnix Attempt = "connect_unix"
	// Connect connects to an address in the network.
	Connect Attempt = "connect"
	// Bind waits for connections at an address of this machine.
	Bind Attempt = "bind"
	// Sign uses a key of an ssh-agent or a gpg-agent, to sign or to log
	// in.
	Sign Attempt = "sign"
)

// attemptKind is what Why needs to know of an attempt on a path.
type attemptKind struct {
	access policy.Access
	key    string // the list that grants it
	verb   string
}

var pathAttempts = map[Attempt]attemptKind{
	Read:    {policy.Read, "additional_read_only_paths", "read"},
	Write:   {policy.Write, "additional_read_write_paths", "write"},
	Execute: {policy.Execute, "additional_executable_paths", "execute"},
}

// Attempts lists every attempt, in the order in which to show them.
func Attempts() []Attempt {
	return []Attempt{
		Read, Write, Execute, ConnectUnix, Connect, Bind, Sign,
	}
}

// ParseAttempt returns the attempt of that name; the error lists the names.
func ParseAttempt(name string) (Attempt, error) {
	if slices.Contains(Attempts(), Attempt(name)) {
		return Attempt(name), nil
	}
	var names []string
	for _, a := range Attempts() {
		names = append(names, string(a))
	}
	return "", fmt.Errorf("expected one of %s, found %s", strings.Join(names, ", "), display.Quote(name))
}

// ParseTarget checks what a user asks about, and returns it as Why takes it:
// a host without a port is asked about at that of HTTPS. Paths are not checked.
func ParseTarget(attempt Attempt, target string) (string, error) {
	const https = 443
	switch {
	case target == "":
		return "", errors.New("it is empty")
	case attempt == Connect:
		host, err := hosts.ParseTargetAt(target, https)
		if err != nil {
			return "", fmt.Errorf("%s: %w", display.Quote(target), err)
		}
		return host.String(), nil
	case attempt == Bind:
		address, port, err := net.SplitHostPort(target)
		if _, notAddress := netip.ParseAddr(address); notAddress != nil && address != "" && address != "localhost" {
			err = notAddress
		}
		if _, notPort := strconv.ParseUint(port, 10, 16); err != nil || notPort != nil {
			return "", fmt.Errorf("%s: expected ADDRESS:PORT, such as 127.0.0.1:8080", display.Quote(target))
		}
	}
	return target, nil
}

// byOrganisation takes a suggestion back that the organisation's settings would
// make void.
func (x *explainer) byOrganisation() {
	if x.Allowed || x.Key == "" && x.List == "" {
		return
	}
	var from *policy.Origin
	switch a, isPath := pathAttempts[x.attempt]; {
	case x.Rule != nil && managed.Holds(x.Rule.Origin.File):
		from = &x.Rule.Origin
	case isPath:
		from = x.ForbidsPath(a.access, x.end.Path)
	case x.attempt == ConnectUnix:
		from = x.ForbidsSockets()
	case x.attempt == Sign:
		from = x.ForbidsKeys()
	default:
		from = x.ForbidsNetwork()
	}
	if from != nil {
		x.Key, x.Value, x.List = "", "", ""
		x.Hint = "it is set by your organisation, so no setting of yours changes it: " + from.String()
	}
}

// unrestricted explains a session without a sandbox. ownFile is where the user
// could turn the sandbox on, or "". doubt is about a file that may ask for it.
func (x *explainer) unrestricted(ownFile string, doubt *compile.Doubt) {
	key := enabledKey
	if *x.Settings().Enabled {
		key = applyToKey
	}
	origin := x.SetBy(key)
	why := "no settings file turns the sandbox on"
	switch {
	case origin.File == policy.OriginBuiltIn && doubt != nil && doubt.File != x.ProjectFile():
		why = "the settings file that may turn the sandbox on is wrong"
		x.Hint = fmt.Sprintf("fix line %d of %s; until then only editors' terminals start, with a warning",
			doubt.Line, display.Quote(doubt.File))
	case origin.File == policy.OriginBuiltIn:
		if ownFile != "" {
			x.Hint = fmt.Sprintf("sandbox-sidecar init writes %s, which turns it on", display.Quote(ownFile))
		}
	case key == enabledKey:
		why = origin.String() + " turns the sandbox off"
	default:
		why = origin.String() + " leaves it out"
	}
	x.allow(&DecidingRule{Origin: origin}, "a %s is not sandboxed: %s", x.kind, why)
}
