package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// expected are the known statuses, by kernel and context, from a file that
// every run is compared with. If a protection is lost and correctly reported as
// lost, no test fails: only this comparison does. Tests may skip what is not
// enforced.
type expected map[place]statuses

// place is a context on a kernel.
type place struct{ kernel, context string }

// statuses are those of each protection, "name=status", in the order of doctor.
type statuses []string

const expectedHead = `# What each protection is, by kernel and context.
# "make test-kernels" compares with it; "go run ./tests/kernels -update" rewrites it.
`

func readExpected(path string) (expected, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	e := expected{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] == "#" {
			continue
		}
		e[place{fields[0], fields[1]}] = fields[2:]
	}
	return e, lines.Err()
}

// write keeps the kernels' order.
func (e expected) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprint(w, expectedHead)
	for _, k := range kernels {
		var contexts []string
		for at := range e {
			if at.kernel == k.name {
				contexts = append(contexts, at.context)
			}
		}
		slices.Sort(contexts)
		for _, context := range contexts {
			fmt.Fprintln(w, k.name, context, strings.Join(e[place{k.name, context}], " "))
		}
	}
	return w.Flush()
}

// missing lists the protections that are not enforced, for the guest:
// "context:name,name;context:name".
func (e expected) missing(kernel string) string {
	var parts []string
	for at, all := range e {
		var names []string
		for _, one := range all {
			if name, status, _ := strings.Cut(one, "="); status != "enforced" {
				names = append(names, name)
			}
		}
		if at.kernel == kernel && len(names) > 0 {
			parts = append(parts, at.context+":"+strings.Join(names, ","))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ";")
}

// found are the statuses of an outcome.
func (o outcome) found() expected {
	e := expected{}
	for context, doctor := range o.guest.doctor {
		at := place{o.kernel.name, context}
		for _, p := range doctor.Protections {
			e[at] = append(e[at], p.Name+"="+p.Status)
		}
	}
	return e
}

// differ lists the differences between an outcome and the expectations.
func (e expected) differ(o outcome) (all []string) {
	for at := range e {
		if _, reported := o.guest.doctor[at.context]; at.kernel == o.kernel.name && o.guest.ended && !reported {
			all = append(all, fmt.Sprintf("%s: %s: nothing is reported, expected statuses", at.kernel, at.context))
		}
	}
	for at, found := range o.found() {
		for _, status := range found {
			name, _, _ := strings.Cut(status, "=")
			i := slices.IndexFunc(e[at], func(s string) bool { return strings.HasPrefix(s, name+"=") })
			switch {
			case i < 0:
				all = append(all, fmt.Sprintf("%s: %s: %s is not among what is expected", at.kernel,
					at.context, status))
			case e[at][i] != status:
				all = append(all, fmt.Sprintf("%s: %s: %s, expected %s", at.kernel, at.context, status, e[at][i]))
			}
		}
	}
	slices.Sort(all)
	return all
}
