package lifecycle

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/signaldomain"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
)

// roles are what the program is started as to hold a session.
var roles = map[string]func() int{"subreaper": subreaper.Run, "domain-killer": signaldomain.RunDomainKiller}
