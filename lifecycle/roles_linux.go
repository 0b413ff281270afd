package lifecycle

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/signaldomain"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
)

// RunSubreaper is a subreaper's whole life; see subreaper.Run.
func RunSubreaper() int { return subreaper.Run() }

// RunDomainKiller is a domain killer's whole life; see
// signaldomain.RunDomainKiller.
func RunDomainKiller() int { return signaldomain.RunDomainKiller() }

// SignalDomain is a leader that has entered a signal domain, and not executed
// its program yet.
type SignalDomain = signaldomain.Domain

// EnterSignalDomain puts the calling thread into a signal domain; see
// signaldomain.Enter.
func EnterSignalDomain() (*SignalDomain, error) { return signaldomain.Enter() }
