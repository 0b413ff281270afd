package linux

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/network"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// availableNamespaces returns the namespaces of this machine. The first call
// tries them, by stages that do everything that a session's stage would do; see
// docs/design/namespaces.md. It may be called from several goroutines.
var availableNamespaces = sync.OnceValue(func() namespace.Available {
	defer namespacesKnown.Store(true)
	var attempts []namespace.Available
	if os.Geteuid() == 0 {
		attempts = append(attempts, namespace.Available{Mounts: true, Network: true})
	}
	attempts = append(attempts, namespace.Available{Mounts: true, Network: true, User: true})
	var failures []string
	for _, n := range attempts {
		err := try(n)
		if err == nil {
			return n
		}
		n.Network = false
		if try(n) == nil {
			n.Gap = fmt.Sprintf("no network namespace: %v", err)
			return n
		}
		failures = append(failures, err.Error())
	}
	return namespace.Available{
		Gap: "no namespaces: " + strings.Join(failures, "; "), Fix: namespaceFix(os.DirFS("/")),
	}
})

// namespaceFix is the step that allows namespaces on a machine that refuses them,
// as far as its files show why; see docs/containers.md.
func namespaceFix(machine fs.FS) string {
	read := func(path string) string {
		text, err := fs.ReadFile(machine, path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	exists := func(path string) bool {
		_, err := fs.Stat(machine, path)
		return err == nil
	}
	switch {
	case read("proc/sys/user/max_user_namespaces") == "0":
		return "run as root: sysctl -w user.max_user_namespaces=15000"
	case exists(".dockerenv"), exists("run/.containerenv"):
		return stage.ContainerFix
	case read("proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "run as root: sysctl -w kernel.unprivileged_userns_clone=1"
	case read("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "load the AppArmor profile of this release: see docs/containers.md"
	}
	return ""
}

// namespacesKnown is true if availableNamespaces has an answer.
var namespacesKnown atomic.Bool

// likelyNamespaces returns what availableNamespaces tries first.
func likelyNamespaces() namespace.Available {
	return namespace.Available{Mounts: true, Network: true, User: os.Geteuid() != 0}
}

// strictestPolicy grants nothing and requests every protection.
func strictestPolicy() *policy.Policy {
	return &policy.Policy{
		Restricted: true, Limits: policy.Limits{Processes: 4096},
		PrivateTerminals: true, Protected: []policy.Protected{{Path: "/etc"}}, OnDenied: policy.Report,
		// Any directory can take its place.
		Temporary: []policy.Temporary{{Path: "/tmp", Source: "/tmp"}},
		Hidden:    []policy.Hidden{{Path: "/etc/passwd"}, {Path: "/var"}},
	}
}

// tryTimeout is far above what a stage needs, and below what a user waits for a
// terminal.
const tryTimeout = 10 * time.Second

// try starts a stage in the namespaces that executes nothing.
func try(n namespace.Available) error {
	abi, err := stage.LandlockABI()
	if err != nil {
		return err
	}
	strictest := strictestPolicy()
	ruleset := ruleset{stage.Translate(strictest, abi)}
	ruleset.Namespaces = ruleset.plan(n, strictest)
	confinement, err := prepare(ruleset)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	_, err = platform.ProbeStage(ctx, Backend{}, confinement)
	return err
}

// plan returns what the stage makes in these namespaces.
func (r ruleset) plan(n namespace.Available, p *policy.Policy) *namespace.Setup {
	setup := n.Plan(r.Requested.Terminals, r.Requested.Network)
	if setup != nil {
		setup.Tree, setup.Temporary = namespace.PlanTree(r.Writable(), p), namespace.PlanTemporary(p)
		setup.Mounts, setup.Hidden = namespace.PlanMounts(p), namespace.PlanHidden(p)
	}
	return setup
}

// prepare makes the confinement of a ruleset.
func prepare(r ruleset) (platform.Confinement, error) {
	r.Filtering.Offline = r.offline()
	var err error
	if r.Program, err = seccomp.ForThisMachine(r.Filtering); err != nil {
		return platform.Confinement{}, err
	}
	if r.Namespaces != nil {
		if err := r.Namespaces.Prepare(); err != nil {
			return platform.Confinement{}, err
		}
	}
	orders, err := r.Orders()
	if err != nil {
		return platform.Confinement{}, err
	}
	confinement := platform.Confinement{Orders: orders}
	if r.Namespaces != nil {
		confinement.OwnTerminal = r.Namespaces.Terminals
		confinement.Attach, confinement.StandbyKey = r.Namespaces.Attach, r.Namespaces.StandbyKey()
		if r.Namespaces.Network {
			for range canary.LocalSockets {
				confinement.Descriptors = append(confinement.Descriptors,
					platform.Descriptor{Kind: canary.PassedLocal, Required: true})
			}
			confinement.Localhost = func(h platform.Handover) platform.Localhost {
				return network.NewLocalhost(h.Take(canary.PassedLocal), h.Take(canary.PassedLocal))
			}
		}
	}
	return confinement, nil
}

// offline reports whether the filter must refuse the network. In a network
// namespace of its own a session can make sockets: it reaches nothing.
func (r ruleset) offline() bool {
	return r.Requested.Network && (r.Namespaces == nil || !r.Namespaces.Network)
}
