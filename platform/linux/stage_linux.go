package linux

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
)

// RunStage is the stage of this platform; see platform.RunStage.
func RunStage() int { return platform.RunStage(confineSelf, rehearse) }

// rehearse reads orders of no meaning; see platform.RunStage.
func rehearse() {
	var r Ruleset
	_ = json.Unmarshal([]byte(`{"rules":[{"path":""}],"canary":{},"namespaces":{"mounts":{"protected":[""]}},"missing":[{}],"warnings":[""],"program":""}`), &r)
}

// confineSelf confines the calling thread in an order that matters: mounts come
// first, because Landlock refuses them, the canary is tried while everything is
// still allowed, then the signal domain, whose domain killer keeps the
// capabilities that it may need to signal everybody in it. They go, with
// no_new_privs (both are this thread's and are kept by execve), before
// Landlock, which needs no_new_privs and after which even opening the granted
// paths could fail, and last comes the filter of system calls, so that it need
// not allow what comes before it.
func confineSelf(order *platform.Order) (platform.Confined, error) {
	var ruleset Ruleset
	if err := json.Unmarshal(order.Orders, &ruleset); err != nil {
		return platform.Confined{}, fmt.Errorf("read ruleset: %w", err)
	}
	if err := namespace.CheckStreams(ruleset.Requested.Network, ruleset.Filtering.Sockets); err != nil {
		return platform.Confined{}, err
	}
	var result namespace.Result
	if ruleset.Namespaces != nil {
		var err error
		if result, err = ruleset.Namespaces.Enter(order); err != nil {
			return platform.Confined{}, err
		}
	}
	if ruleset.Canary != nil {
		if err := proveBefore(ruleset.Canary); err != nil {
			return platform.Confined{}, err
		}
	}
	var domain *lifecycle.SignalDomain
	if order.InSignalDomain {
		var err error
		if domain, err = lifecycle.EnterSignalDomain(); err != nil {
			return platform.Confined{}, err
		}
	}
	if err := dropCapabilities(ruleset.Namespaces); err != nil {
		return platform.Confined{}, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return platform.Confined{}, fmt.Errorf("set no_new_privs: %w", err)
	}
	missing, err := enforce(ruleset, result.Terminals)
	if err != nil {
		return platform.Confined{}, err
	}
	if ruleset.Canary != nil {
		if err := proveAfter(ruleset.Canary); err != nil {
			return platform.Confined{}, err
		}
	}
	if domain != nil { // before the filter, with which the sidecar would have to look at a signal first
		if err := domain.Confirm(); err != nil {
			return platform.Confined{}, err
		}
	}
	if ruleset.ABI < truncationABI {
		if err := seccomp.InstallTruncation(); err != nil {
			return platform.Confined{}, err
		}
	}
	if ruleset.Namespaces == nil {
		if err := seccomp.InstallIPC(); err != nil {
			return platform.Confined{}, err
		}
	}
	passed, err := installSupervised(ruleset)
	if err != nil {
		return platform.Confined{}, err
	}
	if err := seccomp.Prove(ruleset.Filtering); err != nil {
		return platform.Confined{}, err
	}
	return platform.Confined{
		Enforcement: platform.Enforcement{
			Protections: report(ruleset, result), Missing: append(missing, ruleset.Missing...), Warnings: ruleset.Warnings,
		},
		Passed: append(result.Passed, passed...), Confirm: ruleset.confirm,
	}, nil
}

// installSupervised installs the filter and returns what the sidecar needs to
// supervise it.
func installSupervised(ruleset Ruleset) ([]platform.PassedFile, error) {
	var passed []platform.PassedFile
	if ruleset.Filtering.Sockets && networkNamespace() != ruleset.Network {
		// Made before the filter, which would refuse it.
		list, err := sockets.OpenDiag()
		if err != nil {
			return nil, err
		}
		passed = append(passed, platform.PassedFile{Kind: platform.PassedDiag, FD: list})
	}
	listener, err := seccomp.Install(ruleset.Program, ruleset.Filtering)
	if err != nil {
		return nil, err
	}
	if listener >= 0 {
		passed = append(passed, platform.PassedFile{Kind: platform.PassedListener, FD: listener})
	}
	return passed, nil
}

// confirm makes sure that somebody answers what the filter asks, and tries what
// cannot be tried before.
func (r Ruleset) confirm() error {
	if r.Filtering.Sockets {
		if err := sockets.Prove(); err != nil {
			return err
		}
	}
	if r.Filtering.Observed != seccomp.ObservedNone {
		if r.Filtering.Offline {
			if err := seccomp.ProveOffline(); err != nil {
				return err
			}
		}
		if err := proveObserved(); err != nil {
			return err
		}
	}
	if r.Namespaces != nil && r.Namespaces.Network {
		return namespace.ProveIsolated()
	}
	return nil
}
