package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/kernels/result"
)

const documentHead = `<!-- Written by "make test-kernels". Do not edit. -->

# What holds on which kernel

Debian's kernels were booted, and on each the sidecar reported what it enforces
(` + "`sandbox-sidecar doctor`" + `), in eight contexts:

- root;
- an ordinary user with a cgroup of its own, as a systemd user service has;
- an ordinary user without one;
- the same on a machine that forbids user namespaces;
- docker: the root of a container, with few capabilities, a read-only cgroup tree, and a filter that refuses what
  Docker's default one refuses;
- devcontainer: the same without a filter, as our feature starts a dev container;
- podman: the root of a container that an ordinary user has made, with few capabilities, a ` +
	"`/proc` with hidden files,\n" + `  and a filter that refuses what Podman's default one refuses;
- ubuntu: an ordinary user who can make user namespaces and can mount nothing in them, as AppArmor does it.

Each status is proved. If it is "enforced", attacks work without a sandbox and fail in a session. If it is
"degraded" or "absent", an attack works in a session. Where "limits" is degraded, memory has no limit, which nobody
tries. The status of process tracking is that of the weakest session. If that is "degraded", a sandboxed session may
still have a guarantee, which its reply says. From Linux 6.12 on it has one, which a user without a cgroup tests too.

On 6.1, 6.12 and 7 the first four contexts also carry out a share of the attacks in ` + "`tests/attack`" + `.
`

const documentFoot = `
## Kernels that Debian does not have

Landlock's ABI 1 (Linux 5.13), 3 (6.2), 4 (6.7), 5 (6.10), 7 (6.15) and 8 (7.0) have no lasting package. Every
kernel accepts the rulesets of older versions. So the backend's tests confine processes with the rulesets of each
version, and attack them. The sidecar treats a version that does not exist yet as the highest known one.
`

// document is docs/kernels.md.
func document(to io.Writer, outcomes []outcome) error {
	w := bufio.NewWriter(to)
	fmt.Fprint(w, documentHead)
	for _, o := range outcomes {
		fmt.Fprintf(w, "\n## %s\n\n", o.kernel.name)
		if o.missing != "" {
			fmt.Fprintf(w, "%s. Not available: %s\n", o.kernel.why, o.missing)
			continue
		}
		fmt.Fprintf(w, "Linux %s, Landlock %s: %s.\n", o.version, o.abi(), o.kernel.why)
		fmt.Fprintf(w, "\n| protection | %s |\n|---%s|\n", strings.Join(o.guest.contexts, " | "),
			strings.Repeat("|---", len(o.guest.contexts)))
		for _, name := range o.protections() {
			fmt.Fprintf(w, "| `%s` ", name)
			for _, context := range o.guest.contexts {
				fmt.Fprintf(w, "| %s ", cell(o.guest.doctor[context].Protections, name))
			}
			fmt.Fprint(w, "|\n")
		}
		fmt.Fprint(w, "| attacks stopped, of those that must be ")
		for _, context := range o.guest.contexts {
			r := o.row(context)
			fmt.Fprintf(w, "| %d of %d, %d open ", r.stopped, r.expected, r.open)
		}
		fmt.Fprint(w, "|\n")
	}
	fmt.Fprint(w, documentFoot)
	return w.Flush()
}

func (o outcome) protections() []string {
	var names []string
	for _, context := range o.guest.contexts {
		for _, p := range o.guest.doctor[context].Protections {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func cell(protections []result.Protection, name string) string {
	for _, p := range protections {
		switch {
		case p.Name != name:
		case p.Mechanism == "":
			return p.Status
		default:
			return fmt.Sprintf("%s (%s)", p.Status, p.Mechanism)
		}
	}
	return "–"
}
