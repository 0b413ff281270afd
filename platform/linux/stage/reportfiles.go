package stage

import (
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// filesystem says what Landlock protects of the file system.
func filesystem(r Ruleset, result namespace.Result, mechanism string) handshake.Protection {
	files := byABI(handshake.Filesystem, r.ABI, handshake.Protection{
		Status: handshake.Enforced, Mechanism: mechanism,
		Detail: "what is not granted cannot be opened, created, removed, renamed or linked; its existence " +
			"and metadata stay visible",
	})
	if r.Requested.WholeFilesystem {
		files = handshake.Protection{
			Status: handshake.Degraded, Mechanism: mechanism,
			Detail: "the settings grant reading everywhere, so a test cannot prove that anything is refused",
			Fix:    `remove "/" from the granted paths`,
		}
	}
	if len(r.Errata) > 0 {
		files.Detail += "; faults of this kernel's Landlock: " + strings.Join(r.Errata, "; ")
	}
	return withTerminals(files, r, result)
}

// withTerminals adds what the session can do with terminals that are not its
// own.
func withTerminals(files handshake.Protection, r Ruleset, result namespace.Result) handshake.Protection {
	switch {
	case !r.Requested.Terminals:
		files.Detail += "; terminals below /dev/pts can be opened as far as the settings grant them"
	case result.Terminals:
		files.Mechanism += ", own devpts"
		files.Detail += "; /dev/pts has only the session's own terminals"
	default:
		why, fix := result.NoTerminals, ""
		if why == "" {
			why, fix = r.NamespaceGap, "; or "+r.fixNamespaces()
		}
		files.Detail += "; of the terminals in /dev/pts only the session's own can be opened, so programs " +
			"that open new ones fail (tmux, script, ssh -t from inside): " + why
		if files.Fix == "" {
			files.Fix = `add "/dev/pts" to additional_read_write_paths if the session needs new terminals; ` +
				"it can then open all terminals of the user" + fix
		}
	}
	return files
}

// fileTree says whether what is not granted for writing is mounted read-only.
func fileTree(r Ruleset) handshake.Protection {
	switch {
	case !r.Requested.FileTree:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true,
			Detail: "the settings grant writing everywhere, so nothing is mounted read-only",
		}
	case r.Namespaces == nil:
		return handshake.Protection{
			Status: handshake.Absent,
			Detail: "modes, owners, times and extended attributes of the user's files outside the grants can " +
				"be changed: " + r.NamespaceGap,
			Fix: r.fixNamespaces(),
		}
	}
	return handshake.Protection{
		Status: handshake.Enforced, Mechanism: "mount namespace",
		Detail: "what is not granted for writing is mounted read-only: modes, owners, times and extended attributes " +
			"cannot be changed either; not so on file systems that are mounted outside later",
	}
}

// temporaryFiles says who shares the session's temporary files.
func temporaryFiles(r Ruleset) handshake.Protection {
	switch {
	case !r.Requested.Temporary:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true,
			Detail: "the settings share temporary files with all programs, or grant none",
		}
	case r.Namespaces == nil:
		return handshake.Protection{
			Status: handshake.Degraded, Mechanism: "TMPDIR",
			Detail: "TMPDIR names a directory of the project's own; what is written to /tmp itself is " +
				"shared with all programs: " + r.NamespaceGap,
			Fix: r.fixNamespaces(),
		}
	}
	return handshake.Protection{
		Status: handshake.Enforced, Mechanism: "mount namespace",
		Detail: "/tmp, /var/tmp and /dev/shm are the project's own; other programs' files there are not seen",
	}
}

// hiddenPaths says whether paths are hidden.
func hiddenPaths(r Ruleset) handshake.Protection {
	switch {
	case !r.Requested.Hidden:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true, Detail: "no path within the grants is hidden",
		}
	case r.Namespaces == nil:
		return handshake.Protection{
			Status: handshake.Absent,
			Detail: "hidden paths can be read as far as they lie within the grants: " + r.NamespaceGap,
			Fix:    r.fixNamespaces(),
		}
	}
	return handshake.Protection{
		Status: handshake.Enforced, Mechanism: "mount namespace",
		Detail: "hidden paths are empty and cannot be changed; a file that a program outside replaces is " +
			"seen until the session ends",
	}
}

// toolchainCaches says who uses what the session writes to caches of toolchains.
func toolchainCaches(r Ruleset) handshake.Protection {
	const mechanism = "mount namespace, overlayfs"
	switch {
	case !r.Requested.Caches:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true,
			Detail: "the session writes no cache of a toolchain that must be private",
		}
	case r.CacheGap != "":
		shared := handshake.Protection{
			Status: handshake.Absent,
			Detail: "programs outside use what the session writes to caches of toolchains: " + r.CacheGap,
			Fix:    fixOverlays,
		}
		if r.Namespaces == nil {
			shared.Fix = r.fixNamespaces()
		}
		return shared
	case len(r.LockedCaches) > 0:
		var names []string
		for _, c := range r.LockedCaches {
			names = append(names, fmt.Sprintf("%q (%s)", c.Path, c.Reason))
		}
		return handshake.Protection{
			Status: handshake.Degraded, Mechanism: mechanism,
			Detail: "these caches of toolchains are read-only, because they could not be made private: " +
				strings.Join(names[:min(len(names), maxListed)], ", "),
		}
	}
	return handshake.Protection{
		Status: handshake.Enforced, Mechanism: mechanism,
		Detail: "what the session writes to caches of toolchains is kept for the user's sandboxed sessions; programs " +
			"outside do not see it",
	}
}

const fixOverlays = "in a container, mount a volume at ~/.cache/sandbox-sidecar; elsewhere use Linux 5.11 or newer " +
	"with overlayfs, and a file system there that can hold overlays, such as ext4, xfs or btrfs"

func protectedPaths(r Ruleset, mounts namespace.MountResult) handshake.Protection {
	switch {
	case !r.Requested.ProtectedPaths:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true,
			Detail: "the session has no protected paths",
		}
	case r.Namespaces == nil:
		return handshake.Protection{
			Status: handshake.Degraded, Mechanism: "tripwire",
			Detail: "changes of protected paths are noticed and reported, and not prevented: " + r.NamespaceGap,
			Fix:    r.fixNamespaces(),
		}
	}
	p := handshake.Protection{
		Status: handshake.Enforced, PreventsChanges: true, Mechanism: "mount namespace, tripwire",
		Detail: "protected paths are mounted read-only, and the directories above them cannot be renamed",
	}
	switch {
	case len(mounts.Missing) == 0:
	case r.Filtering.Observed != seccomp.ObservedNone:
		// This is a note: nobody can do anything about it, and it is so in every
		// project.
		p.Mechanism += ", seccomp"
		p.Detail += "; these do not exist; creating one is refused; a deliberate race is reported: " +
			listed(mounts.Missing)
	default:
		p.Status, p.Fix = handshake.Degraded, r.fixSupervision()
		p.Detail += "; these do not exist; creating one is noticed and reported, and not prevented: " +
			listed(mounts.Missing)
	}
	if len(mounts.Symlinks) > 0 {
		p.Status = handshake.Degraded
		p.Detail += "; these are symlinks or lie behind one, so changes are noticed and reported, and not prevented: " +
			listed(mounts.Symlinks)
		p.Fix = "protect the paths that the symlinks lead to, or replace the symlinks by the files"
	}
	return p
}
