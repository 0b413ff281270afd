package stage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Ruleset is a policy in the kernel's terms: what Landlock governs, what it
// grants, and what the filter of system calls does. The sidecar sends it to the
// stage; see orders.
type Ruleset struct {
	ABI    int                  `json:"abi"`
	FS     landlock.AccessFSSet `json:"fs"`
	Scoped landlock.ScopedSet   `json:"scoped"`
	Rules  []Rule               `json:"rules"`
	// Canary proves that the ruleset is in force; nil if the policy leaves none.
	Canary *Canary `json:"canary"`
	// Requested says which protections the policy wants.
	Requested Requested `json:"requested"`
	// Namespaces is what the stage makes in its namespaces; nil if it is
	// started in none.
	Namespaces *namespace.Setup `json:"namespaces,omitempty"`
	// NamespaceGap says which namespaces this machine does not have; empty if
	// it has all of them, or if the session needs none.
	NamespaceGap string `json:"namespaceGap,omitempty"`
	// NamespaceFix is what the user can do about that; empty if nothing shows
	// why they are refused.
	NamespaceFix string `json:"namespaceFix,omitempty"`
	// Filtering is what the filter does.
	Filtering seccomp.Filtering `json:"filtering"`
	// Program is the filter, made by seccomp.ForThisMachine.
	Program []byte `json:"-"`
	// MediationGap says why Filtering.Sockets is false although Landlock does
	// not govern Unix sockets; empty otherwise.
	MediationGap string `json:"mediationGap,omitempty"`
	// SupervisionGap says why Filtering.Priorities is false; empty otherwise.
	SupervisionGap string `json:"supervisionGap,omitempty"`
	// Errata are the effects of faults of this kernel's Landlock.
	Errata []string `json:"errata,omitempty"`
	// ObservationGap says why Filtering.Observed is empty although
	// Requested.Denials is true; empty otherwise.
	ObservationGap string `json:"observationGap,omitempty"`
	// Unreported: calls are observed only to refuse the creation of protected
	// paths; nobody receives denials.
	Unreported bool `json:"unreported,omitempty"`
	// CacheGap says why toolchains' caches are shared with programs outside,
	// although they must not be; empty otherwise.
	CacheGap string `json:"cacheGap,omitempty"`
	// LockedCaches are read-only, because they could not be made private.
	LockedCaches []handshake.Missing `json:"lockedCaches,omitempty"`
	// HostsGap says why Filtering.Hosts is false although Requested.Hosts is
	// true; empty otherwise.
	HostsGap string `json:"hostsGap,omitempty"`
	// LocalhostGap says why Filtering.Localhost is false although
	// Requested.Localhost is true; empty otherwise.
	LocalhostGap string `json:"localhostGap,omitempty"`
	// Processes is how many processes and threads the session has at most; 0 if
	// there is no limit.
	Processes int `json:"processes,omitempty"`
	// Shared is true if the session is a group: its leader is the group's init,
	// which is this program.
	Shared bool `json:"shared,omitempty"`
	// Missing are grants without effect, as far as the sidecar knows them.
	Missing []handshake.Missing `json:"missing,omitempty"`
	// Warnings are shown to the user.
	Warnings []string `json:"warnings,omitempty"`
	// Network is the inode of the sidecar's network namespace; 0 if unknown.
	Network uint64 `json:"network,omitempty"`
}

// Rule grants rights below a path. If the path is a file, the stage removes the
// rights that apply only to directories.
type Rule struct {
	Path   handshake.RawString  `json:"path"`
	Access landlock.AccessFSSet `json:"access"`
	// Required is true for the project directory and others without which the
	// session must not start.
	Required bool `json:"required,omitempty"`
	// Checked is the file at Path that the sidecar has checked. The rule is for
	// no other. It is nil if nobody can put another file there that matters.
	Checked *Identity `json:"checked,omitempty"`
}

// Identity tells a file from all others.
type Identity struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	// Born is when the file was made, in nanoseconds since 1970, because numbers
	// of inodes are used again; 0 if the file system does not know.
	Born int64 `json:"born,omitempty"`
}

// Canary is an access that must work before the ruleset is in force, and must be
// refused after.
type Canary struct {
	// Path is a directory that every user may list.
	Path string `json:"path"`
}

// Requested says which of the optional protections a policy wants.
type Requested struct {
	// Network is true if the network must be off.
	Network bool `json:"network"`
	// Hosts is true if the session may nevertheless reach some hosts.
	Hosts bool `json:"hosts,omitempty"`
	// Localhost is true if the session, which has the network, may reach only some
	// services of this machine.
	Localhost bool `json:"localhost,omitempty"`
	// Terminals is true if the session must have terminals of its own.
	Terminals      bool `json:"terminals"`
	ProtectedPaths bool `json:"protectedPaths"`
	// Caches is true if programs outside must not see what the session writes to
	// caches of toolchains.
	Caches bool `json:"caches"`
	// Temporary is true if the session must not share /tmp and its kin with
	// programs outside.
	Temporary bool `json:"temporary"`
	// Hidden is true if the session must not see some paths.
	Hidden bool `json:"hidden"`
	// FileTree is false if the policy grants writing all of "/", so that nothing
	// is left to make read-only.
	FileTree bool `json:"fileTree"`
	Denials  bool `json:"denials"`
	// WholeFilesystem is true if the policy grants reading all of "/", so that
	// no canary is possible.
	WholeFilesystem bool `json:"wholeFilesystem"`
}

// NeedsNamespaces reports whether a requested protection needs namespaces.
func (r Requested) NeedsNamespaces() bool {
	return r.Terminals || r.Network || r.ProtectedPaths || r.Caches || r.Temporary || r.Hidden ||
		r.FileTree
}

// canaryPaths are directories that exist on all machines and that every user may
// list (mode 0755 or 0555).
var canaryPaths = []string{"/", "/sys", "/boot", "/var", "/home"}

// Translate turns a policy into a ruleset for a kernel with the given ABI
// version. It is a pure function: only the stage finds out which paths exist.
func Translate(p *policy.Policy, abi int) Ruleset {
	fs, scoped := Handled(abi)
	ruleset := Ruleset{ABI: abi, FS: fs, Scoped: scoped, Rules: []Rule{}, Processes: p.Limits.Processes}
	for _, rule := range p.Rules {
		access := translateAccess(rule.Access) & fs
		if access == 0 {
			continue
		}
		ruleset.Rules = append(ruleset.Rules, Rule{
			Path: handshake.RawString(rule.Path), Access: access,
			Required: rule.Origin.File == policy.OriginSession,
		})
	}
	for _, socket := range p.UnixSockets {
		if socket.Path != "" && FSConnect&fs != 0 {
			ruleset.Rules = append(ruleset.Rules, Rule{Path: handshake.RawString(socket.Path), Access: FSConnect})
		}
	}
	for _, path := range canaryPaths {
		if _, granted := p.Find(policy.Read, path); !granted {
			ruleset.Canary = &Canary{Path: path}
			break
		}
	}
	ruleset.Requested = Requested{
		Network:         !p.Network.Allowed,
		Hosts:           p.Network.ByHost(),
		Localhost:       p.Network.Allowed && p.Network.Localhost != policy.LocalhostAll,
		Terminals:       p.PrivateTerminals,
		ProtectedPaths:  len(p.Protected) > 0,
		Caches:          len(p.Caches) > 0,
		Temporary:       len(p.Temporary) > 0,
		Hidden:          len(p.Hidden) > 0 || copiesAreGranted(p),
		FileTree:        !slices.Contains(ruleset.Writable(), "/"),
		Denials:         p.OnDenied != policy.Ignore,
		WholeFilesystem: ruleset.Canary == nil,
	}
	return ruleset
}

// Writable lists the paths of the rules that give any right to write.
func (r Ruleset) Writable() []string {
	var paths []string
	for _, rule := range r.Rules {
		if rule.Access&FSWrite != 0 {
			paths = append(paths, string(rule.Path))
		}
	}
	return paths
}

// DropGuarded removes the rights that hold only if protected paths are mounted
// read-only; see policy.Rule.
func (r *Ruleset) DropGuarded(p *policy.Policy) {
	guarded := map[handshake.RawString]landlock.AccessFSSet{}
	for _, rule := range p.Rules {
		if rule.Guarded != 0 {
			guarded[handshake.RawString(rule.Path)] = translateAccess(rule.Guarded)
		}
	}
	for i, rule := range r.Rules {
		r.Rules[i].Access &^= guarded[rule.Path]
	}
}

func translateAccess(access policy.Access) landlock.AccessFSSet {
	var fs landlock.AccessFSSet
	for _, pair := range []struct {
		from policy.Access
		to   landlock.AccessFSSet
	}{{policy.Read, FSRead}, {policy.Write, FSWrite}, {policy.Execute, FSExecute}, {policy.Device, fsDevice}} {
		if access.Has(pair.from) {
			fs |= pair.to
		}
	}
	return fs
}

// String renders the ruleset for readers and golden files.
func (r Ruleset) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "landlock abi %d\nhandled %s\nscoped %s\n", r.ABI, r.FS, r.Scoped)
	if r.Canary != nil {
		fmt.Fprintf(&b, "canary list %q\n", r.Canary.Path)
	}
	for _, rule := range r.Rules {
		required := ""
		if rule.Required {
			required = " (required)"
		}
		fmt.Fprintf(&b, "allow %q %s%s\n", rule.Path, rule.Access, required)
	}
	return b.String()
}

// copiesAreGranted reports whether a wider grant opens a file of which the session
// reads a part. Without mounts it would read the whole file.
func copiesAreGranted(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Copies, func(c policy.Copy) bool { return p.At(c.Path) != 0 })
}
