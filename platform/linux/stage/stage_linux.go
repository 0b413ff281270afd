package stage

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/signaldomain"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// Run is the stage of this platform; see handshake.RunStage.
func Run() int { return handshake.RunStage(ConfineSelf, rehearse) }

// rehearse decodes an order without meaning; see handshake.RunStage.
func rehearse() {
	_, _ = readRuleset([]byte(`{"rules":[{"path":""}],"canary":{},"namespaces":{"mounts":{"protected":[""]}},` +
		`"missing":[{}],"warnings":[""]}`))
}

// ConfineSelf confines the calling thread. The order matters:
//
//  1. Mounts, because Landlock refuses them.
//  2. The canary, while everything is still allowed.
//  3. The signal domain. Its domain killer keeps the capabilities that it may
//     need to signal every process in the domain.
//  4. Capabilities are dropped and no_new_privs is set, which Landlock needs.
//     Both belong to this thread, and execve keeps them.
//  5. Landlock. After it, even opening the granted paths could fail.
//  6. Inherited descriptors are compared with what can be opened now.
//  7. The filter of system calls, so that it need not allow the steps above. A
//     supervisor would also report those opens, and ask about them.
func ConfineSelf(order *handshake.Order) (handshake.Confined, error) {
	ruleset, err := readRuleset(order.Orders)
	if err != nil {
		return handshake.Confined{}, err
	}
	if err := namespace.CheckStreams(ruleset.Requested.Network, ruleset.Filtering.Sockets); err != nil {
		return handshake.Confined{}, err
	}
	preferForOOM() // before /proc is read-only
	var result namespace.Result
	if ruleset.Namespaces != nil {
		if result, err = ruleset.Namespaces.Enter(order); err != nil {
			return handshake.Confined{}, err
		}
	}
	limited := ruleset.Namespaces != nil && ruleset.Namespaces.User && ruleset.Processes > 0
	if limited {
		if result.NoProcessLimit, err = namespace.TryProcessLimit(); err != nil {
			return handshake.Confined{}, err
		}
	}
	missing, err := restrict(ruleset, order.InSignalDomain, result.Terminals)
	if err != nil {
		return handshake.Confined{}, err
	}
	closed := unlikeOpened(order.Inherited)
	passed, err := installFilters(ruleset)
	if err != nil {
		return handshake.Confined{}, err
	}
	if limited {
		if err := namespace.LimitProcesses(ruleset.Processes, order.InSignalDomain, ruleset.Shared); err != nil {
			return handshake.Confined{}, err
		}
	}
	return handshake.Confined{
		Enforcement: handshake.Enforcement{
			Protections: report(ruleset, result), Unheld: unheld(ruleset), Missing: append(missing, ruleset.Missing...),
			Warnings: ruleset.Warnings,
		},
		Closed: closed,
		Passed: append(result.Passed, passed...), Confirm: ruleset.confirm,
	}, nil
}

// restrict does steps 2 to 5 of ConfineSelf. It returns the paths that could not
// be granted.
func restrict(ruleset Ruleset, inSignalDomain, ownTerminals bool) ([]handshake.Missing, error) {
	if ruleset.Canary != nil {
		if err := proveBefore(ruleset.Canary); err != nil {
			return nil, err
		}
	}
	var domain *signaldomain.Domain
	if inSignalDomain {
		var err error
		if domain, err = signaldomain.Enter(); err != nil {
			return nil, err
		}
	}
	if err := dropCapabilities(ruleset.Namespaces); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("set no_new_privs: %w", err)
	}
	missing, err := enforce(ruleset, ownTerminals)
	if err != nil {
		return nil, err
	}
	if ruleset.Canary != nil {
		if err := proveAfter(ruleset.Canary); err != nil {
			return nil, err
		}
	}
	if domain != nil {
		// Confirm sends a signal. With the filter, the sidecar would have to
		// inspect that call first.
		if err := domain.Confirm(); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// installFilters installs and proves all filters. It returns what the sidecar
// needs to supervise the session.
func installFilters(ruleset Ruleset) ([]handshake.PassedFile, error) {
	if ruleset.ABI < TruncationABI {
		if err := seccomp.InstallTruncation(); err != nil {
			return nil, err
		}
	}
	if ruleset.Namespaces == nil {
		if err := seccomp.InstallIPC(); err != nil {
			return nil, err
		}
	}
	passed, err := installSupervised(ruleset)
	if err != nil {
		return nil, err
	}
	return passed, seccomp.Prove(ruleset.Filtering)
}

// installSupervised installs the main filter. It returns what the sidecar needs
// to supervise it.
func installSupervised(ruleset Ruleset) ([]handshake.PassedFile, error) {
	var passed []handshake.PassedFile
	if ruleset.Filtering.Sockets && NetworkNamespace() != ruleset.Network {
		// Before the filter, which would refuse it.
		list, err := canary.OpenDiag()
		if err != nil {
			return nil, err
		}
		passed = append(passed, handshake.PassedFile{Kind: canary.PassedDiag, FD: list})
	}
	listener, err := seccomp.Install(ruleset.Program, ruleset.Filtering)
	if err != nil {
		return nil, err
	}
	if listener >= 0 {
		passed = append(passed, handshake.PassedFile{Kind: canary.PassedListener, FD: listener})
	}
	return passed, nil
}

// confirm proves that the supervisor answers, and whatever can only be proved
// with a supervisor.
func (r Ruleset) confirm() error {
	if r.Filtering.Sockets {
		if err := canary.ProveSockets(); err != nil {
			return err
		}
	}
	if r.Filtering.Observed != seccomp.ObservedNone {
		if r.Filtering.Offline {
			if err := seccomp.ProveOffline(); err != nil {
				return err
			}
		}
		if err := canary.ProveObserved(); err != nil {
			return err
		}
	}
	if r.Filtering.Hosts {
		if err := canary.ProveHosts(); err != nil {
			return err
		}
	}
	if r.Filtering.Shared {
		if err := canary.ProveShared(); err != nil {
			return err
		}
	}
	if r.Namespaces != nil && r.Namespaces.Network {
		return namespace.ProveIsolated()
	}
	return nil
}
