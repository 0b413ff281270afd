package lifecycle

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/signaldomain"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
)

// roles are the processes that the product starts to hold a session.
var roles = map[string]func() int{"subreaper": subreaper.Run, "domain-killer": signaldomain.RunDomainKiller}
