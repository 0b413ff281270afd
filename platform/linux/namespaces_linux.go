package linux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// availableNamespaces finds them out once, by starting stages that do
// everything which a session's would. A look at sysctls would not do: AppArmor
// lets a process make a user namespace and then refuses every mount in it, and
// a container's filter looks like neither.
var availableNamespaces = sync.OnceValue(func() namespaces {
	defer namespacesKnown.Store(true)
	var attempts []namespaces
	if os.Geteuid() == 0 {
		attempts = append(attempts, namespaces{mounts: true, network: true})
	}
	attempts = append(attempts, namespaces{mounts: true, network: true, user: true})
	var failures []string
	for _, n := range attempts {
		whole := try(n)
		if whole == nil {
			return n
		}
		n.network = false
		if try(n) == nil {
			n.why = fmt.Sprintf("no network namespace: %v", whole)
			return n
		}
		failures = append(failures, whole.Error())
	}
	return namespaces{why: "no namespaces: " + strings.Join(failures, "; ")}
})

// namespacesKnown is true once availableNamespaces has an answer.
var namespacesKnown atomic.Bool

// likelyNamespaces are the first that availableNamespaces tries.
func likelyNamespaces() namespaces {
	return namespaces{mounts: true, network: true, user: os.Geteuid() != 0}
}

// strictestPolicy grants nothing and asks for everything.
func strictestPolicy() *policy.Policy {
	return &policy.Policy{
		Restricted: true, PrivateTerminals: true, Protected: []policy.Protected{{Path: "/etc"}}, OnDenied: policy.Report,
	}
}

// tryTimeout is far above what a stage takes, and below what a user waits for a
// first terminal.
const tryTimeout = 10 * time.Second

// try starts a stage in the namespaces that is thrown away.
func try(n namespaces) error {
	abi, err := abiVersionOf()
	if err != nil {
		return err
	}
	strictest := strictestPolicy()
	ruleset := Translate(strictest, abi)
	ruleset.Own = n.plan(ruleset.Asked, keepOf(strictest))
	confinement, err := prepare(ruleset)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	_, err = platform.ProbeStage(ctx, Backend{}, confinement)
	return err
}

// prepare makes the confinement for a ruleset.
func prepare(r Ruleset) (platform.Confinement, error) {
	r.Filtering.Offline = r.offline()
	var err error
	if r.Program, err = seccomp.ForThisMachine(r.Filtering); err != nil {
		return platform.Confinement{}, err
	}
	if r.Own != nil {
		if r.Own.OutsideIPC, err = ipcNamespace(); err != nil {
			return platform.Confinement{}, err
		}
	}
	if r.Own != nil && r.Own.User {
		r.Own.Limits = limitsHere()
	}
	orders, err := json.Marshal(r)
	if err != nil {
		return platform.Confinement{}, fmt.Errorf("write ruleset: %w", err)
	}
	confinement := platform.Confinement{Orders: orders}
	if r.Own != nil {
		confinement.OwnTerminal = r.Own.Terminals
		confinement.Attach = r.Own.attach
		if r.Own.Terminals {
			confinement.StandbyKey = fmt.Sprintf("user %t, network %t", r.Own.User, r.Own.Network)
		}
	}
	return confinement, nil
}

// offline reports whether the filter keeps the network away. In a network of
// its own, where nothing is to be reached, a session may make sockets.
func (r Ruleset) offline() bool { return r.Asked.Network && (r.Own == nil || !r.Own.Network) }

// attach lets a process be started in the namespaces.
func (o *Own) attach(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if o.Network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if !o.User {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	// One id is all that an unprivileged process may map (user_namespaces(7));
	// every other shows as the overflow id, "nobody".
	uid, gid := os.Geteuid(), os.Getegid()
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// Ambient, because the stage is executed by a user that is not root, who
	// would lose all others.
	attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE)
}

// ipcNamespace names that of this process.
func ipcNamespace() (string, error) {
	name, err := os.Readlink("/proc/self/ns/ipc")
	if err != nil {
		return "", fmt.Errorf("look at the IPC namespace: %w", err)
	}
	return name, nil
}

// made is what the stage has made in its namespaces, and what of it the sidecar
// is to hold.
type made struct {
	outcome
	handed []platform.PassedFile
}

// set makes everything. Nothing of it reaches the namespaces of others.
func (o *Own) set(order *platform.Order) (made, error) {
	var m made
	if inside, err := ipcNamespace(); err != nil {
		return m, err
	} else if inside == o.OutsideIPC {
		return m, errors.New("make an IPC namespace: the stage is in that of the sidecar")
	}
	// The copy of the mounts still receives and, as root's, sends changes. It
	// goes on receiving: a disk that the user plugs in appears.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return m, fmt.Errorf("keep mounts to the session: %w", err)
	}
	if o.User {
		m.unlimited = limitNotices(o.Limits)
	}
	var err error
	if m.kept, err = o.Keep.make(); err != nil {
		return m, err
	}
	if o.User && os.Geteuid() != 0 {
		if err := adoptSSHConfig(); err != nil {
			return m, fmt.Errorf("make ssh's configuration usable: %w", err)
		}
	}
	if o.Terminals {
		if err := m.setTerminals(order.Terminal); err != nil {
			return m, fmt.Errorf("make terminals of the session's own: %w", err)
		}
	}
	if o.Network {
		if err := raiseLoopback(); err != nil {
			return m, fmt.Errorf("start loopback interface: %w", err)
		}
	}
	if err := rebaseStreams(o.Keep.Protected); err != nil {
		return m, err
	}
	if order.Dir != "" {
		// Where it lies below a new mount, the working directory is still what
		// the mount covers.
		if err := unix.Chdir(order.Dir); err != nil {
			return m, fmt.Errorf("change directory: %s: %w", order.Dir, err)
		}
	}
	return m, nil
}
