package outbound

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"

// Judge decides about what a client sends to a target at first. It does not
// change.
type Judge struct {
	// Rules have allowed the target.
	Rules *hosts.Rules
	To    Target
	// Approved reports whether the user has allowed a target, "host:port". May
	// be nil.
	Approved func(target string) bool
}

// Refusal is what a judge has refused.
type Refusal struct {
	// Target is "host:port" of the server that was asked for, with tcp:// before
	// it if only TLS passes to it.
	Target string
	// Greeting says in words what of the client's first bytes was refused; "" if
	// it is the server's name alone.
	Greeting string
}

// allowsServer reports whether a client may ask the target for a server of this
// name by TLS; "" is none. Behind an address that the rules name, and on this
// machine, every server is allowed that is not denied.
func (j *Judge) allowsServer(name string) bool {
	switch {
	case name == "" || name == j.To.Name:
		return true
	case j.byAddress():
		return !j.Rules.DeniedName(name, j.To.Port)
	}
	return j.Rules.Name(name, j.To.Port) || j.Approved != nil && j.Approved(j.server(name))
}

// byAddress reports whether the rules allow the target as an address, or as this
// machine, and with it every server behind it.
func (j *Judge) byAddress() bool { return j.To.Name == "" || j.To.Name == hosts.HostName }

// server is "host:port" of a server behind the target.
func (j *Judge) server(name string) string { return Target{Name: name, Port: j.To.Port}.String() }

// Other is the refusal of what is no TLS; nil if that may pass.
func (j *Judge) Other() *Refusal {
	allowed := j.Rules.OtherAddress(j.To.Addr, j.To.Port)
	if j.To.Name != "" {
		allowed = j.Rules.OtherName(j.To.Name, j.To.Port)
	}
	if allowed {
		return nil
	}
	return &Refusal{Target: "tcp://" + j.To.String(), Greeting: "another protocol than TLS"}
}

// judge decides about the client's first bytes. done is false if more are needed.
// first is the hello; nil if the client does not speak TLS.
func (j *Judge) judge(g *greeting, data []byte) (first *hello, refusal *Refusal, done bool) {
	switch what, h, why := g.next(data); {
	case what == unfinished:
		return nil, nil, false
	case what == otherProtocol:
		return nil, j.Other(), true
	case what == unacceptable:
		return nil, j.refuse(why), true
	case h.encrypted && h.name == "" && !j.byAddress(): // browsers send one to each address, too
		return nil, j.refuse("an encrypted hello (ECH) without the name of an allowed server"), true
	case !j.allowsServer(h.name):
		return nil, &Refusal{Target: j.server(h.name)}, true
	default:
		return &h, nil, true
	}
}

// refuse is the refusal of something in the client's first bytes.
func (j *Judge) refuse(greeting string) *Refusal {
	return &Refusal{Target: j.To.String(), Greeting: greeting}
}
