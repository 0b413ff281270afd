package linux

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// RunStage is the stage of this platform; see platform.RunStage.
func RunStage() int { return platform.RunStage(confineSelf) }

// confineSelf confines the calling thread in an order that matters: the canary is tried while everything is still allowed,
// capabilities go before no_new_privs (both are this thread's and are kept by execve), then Landlock, which needs no_new_privs and after
// which even opening the granted paths could fail, and last the filter of system calls, so that it need not allow what comes before it.
func confineSelf(order *platform.Order) (platform.Confined, error) {
	var ruleset Ruleset
	if err := json.Unmarshal(order.Orders, &ruleset); err != nil {
		return platform.Confined{}, fmt.Errorf("read ruleset: %w", err)
	}
	network := !ruleset.Asked.Network
	if !network {
		if err := refuseNetworkStreams(); err != nil {
			return platform.Confined{}, err
		}
	}
	if ruleset.Canary != nil {
		if err := proveBefore(ruleset.Canary); err != nil {
			return platform.Confined{}, err
		}
	}
	if err := dropCapabilities(); err != nil {
		return platform.Confined{}, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return platform.Confined{}, fmt.Errorf("set no_new_privs: %w", err)
	}
	missing, err := enforce(ruleset)
	if err != nil {
		return platform.Confined{}, err
	}
	if ruleset.Canary != nil {
		if err := proveAfter(ruleset.Canary); err != nil {
			return platform.Confined{}, err
		}
	}
	if err := installFilter(network); err != nil {
		return platform.Confined{}, err
	}
	if err := proveFilter(network); err != nil {
		return platform.Confined{}, err
	}
	return platform.Confined{Enforcement: platform.Enforcement{Protections: report(ruleset), Missing: missing}}, nil
}
