package lifecycle

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/cgroup"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
)

// enders end what journals list, in this order. Subreapers end their sessions
// themselves, so they come before the session ids. The directories come last,
// when nobody uses them any more.
var enders = []journal.Ender{
	cgroup.Ender, subreaper.Ender, refuse(kindFingerprint), session.Ender, directoryEnder, temporaryEnder,
}
