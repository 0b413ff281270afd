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

Debian's kernels were booted, and on each the sidecar was asked what it enforces (` + "`sandbox-sidecar doctor`" + `), by five callers:
root; an ordinary user with a cgroup of his own, as a systemd user service has; one without; one without, on a machine that lets nobody make
namespaces; and the root of a container, which has few capabilities, may only read the cgroup tree, and is refused namespaces by a filter. Each status is proved: where it says enforced, attacks work without a sandbox and fail in a session; where it says degraded
or absent, an attack works in a session. For the tracking of processes, the status is that of the weakest session; where it is degraded, a
sandboxed session may have more, and its reply says so: that it has a guarantee from Linux 6.12 on is tried too, as a user without a cgroup.
On 6.1, 6.12 and 7 all but the container carry out attacks beside those of ` + "`doctor`" + `, each a share of those in ` + "`tests/attack`" + `.
`

const documentFoot = `
## Kernels that Debian does not have

Landlock's ABI 1 (Linux 5.13), 3 (6.2), 4 (6.7), 5 (6.10), 7 (6.15) and 8 (7.0) have no package that lasts. What they lack is a table, and every
kernel takes the rulesets of its predecessors: the backend's tests confine processes by those of each version, and attack them. A version
that does not exist yet is taken for the highest that is known.
`

// document is docs/kernels.md.
func document(to io.Writer, outcomes []outcome) error {
	w := bufio.NewWriter(to)
	fmt.Fprint(w, documentHead)
	for _, o := range outcomes {
		fmt.Fprintf(w, "\n## %s\n\n", o.kernel.name)
		if o.missing != "" {
			fmt.Fprintf(w, "%s. Could not be had: %s\n", o.kernel.why, o.missing)
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
