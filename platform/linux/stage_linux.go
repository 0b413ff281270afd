package linux

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// RunStage is the stage of this platform; see platform.RunStage.
func RunStage() int { return platform.RunStage(confineSelf) }

// confineSelf confines the calling thread in an order that matters: mounts come first, because Landlock refuses them, the canary is tried
// while everything is still allowed, capabilities go before no_new_privs (both are this thread's and are kept by execve), then Landlock, which needs no_new_privs and after
// which even opening the granted paths could fail, and last the filter of system calls, so that it need not allow what comes before it.
func confineSelf(order *platform.Order) (platform.Confined, error) {
	var ruleset Ruleset
	if err := json.Unmarshal(order.Orders, &ruleset); err != nil {
		return platform.Confined{}, fmt.Errorf("read ruleset: %w", err)
	}
	if ruleset.Asked.Network {
		if err := refuseNetworkStreams(); err != nil {
			return platform.Confined{}, err
		}
	}
	var own made
	if ruleset.Own != nil {
		var err error
		if own, err = ruleset.Own.set(order); err != nil {
			return platform.Confined{}, err
		}
	}
	if ruleset.Canary != nil {
		if err := proveBefore(ruleset.Canary); err != nil {
			return platform.Confined{}, err
		}
	}
	if err := dropCapabilities(ruleset.Own); err != nil {
		return platform.Confined{}, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return platform.Confined{}, fmt.Errorf("set no_new_privs: %w", err)
	}
	missing, err := enforce(ruleset, own.terminals)
	if err != nil {
		return platform.Confined{}, err
	}
	if ruleset.Canary != nil {
		if err := proveAfter(ruleset.Canary); err != nil {
			return platform.Confined{}, err
		}
	}
	if ruleset.ABI < truncationABI {
		if err := installTruncationFilter(); err != nil {
			return platform.Confined{}, err
		}
	}
	// In a network of its own, where nothing is to be reached, a session may make sockets.
	isolated := ruleset.Own != nil && ruleset.Own.Network
	sockets := !ruleset.Asked.Network || isolated
	if err := installFilter(sockets); err != nil {
		return platform.Confined{}, err
	}
	if err := proveFilter(sockets); err != nil {
		return platform.Confined{}, err
	}
	if isolated {
		if err := proveIsolated(); err != nil {
			return platform.Confined{}, err
		}
	}
	return platform.Confined{
		Enforcement: platform.Enforcement{Protections: report(ruleset, own.outcome), Missing: missing}, Handed: own.handed,
	}, nil
}
