package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The controllers that limit sessions.
const (
	memoryController = "memory"
	pidsController   = "pids"
	cpuController    = "cpu"
)

// controllers says which of the wanted controllers the children of a cgroup get,
// after they were enabled if that is possible. The error says why there are not
// all. A cgroup with processes, other than the root, can give none (cgroups(7),
// "no internal processes"). So a process that is alone in a delegated cgroup
// moves to a child of it.
func controllers(own string, wanted []string) (given []string, err error) {
	available, err := listed(own, "cgroup.controllers")
	if err != nil {
		return nil, err
	}
	var lacking, enable []string
	for _, name := range wanted {
		if !slices.Contains(available, name) {
			lacking = append(lacking, name)
		} else {
			enable = append(enable, name)
		}
	}
	if lacking != nil {
		err = fmt.Errorf("the sidecar's cgroup lacks the controllers %s", strings.Join(lacking, ", "))
	}
	if enable == nil {
		return nil, err
	}
	enabled := func() error { return enableAll(own, enable) }
	refused := enabled()
	if errors.Is(refused, unix.EBUSY) {
		if refused = stepAside(own); refused == nil {
			refused = enabled()
		}
	}
	if errors.Is(refused, unix.EBUSY) { // somebody has joined it meanwhile
		refused = errShared
	}
	if refused != nil {
		return nil, refused
	}
	return enable, err
}

// errShared is about a cgroup that holds more than this process.
var errShared = errors.New("other processes are in the sidecar's cgroup")

// undelegatedError is about a cgroup that this process must not arrange, although
// it is alone there.
type undelegatedError struct{ dir string }

func (e *undelegatedError) Error() string {
	return "the sidecar's cgroup is not marked as delegated to it"
}

// enableAll gives controllers to the children of a cgroup, all or none.
func enableAll(dir string, names []string) error {
	enabled, err := listed(dir, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(enabled, name) }) {
		return nil
	}
	if occupied(dir) {
		return unix.EBUSY
	}
	return writeCgroup(filepath.Join(dir, "cgroup.subtree_control"), "+"+strings.Join(names, " +"))
}

// occupied reports whether a cgroup, other than the root, holds processes. The
// kernel refuses to give its children a controller, but not always: if all that
// are wanted are threaded, like pids and cpu, it may allow it. The children can
// then hold no process any more (cgroups(7), "Threaded mode").
func occupied(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return false // the root has no type
	}
	procs, err := listed(dir, "cgroup.procs")
	return err != nil || len(procs) > 0
}

// stepAside moves this process to a child of its cgroup, if it is alone there and
// the cgroup is its own to arrange. See Tree.StepBack.
func stepAside(own string) error {
	procs, err := listed(own, "cgroup.procs")
	if err != nil {
		return err
	}
	pid := strconv.Itoa(os.Getpid())
	switch {
	case !slices.Equal(procs, []string{pid}):
		return errShared
	case !delegated(own):
		return &undelegatedError{own}
	}
	name, err := ownName()
	if err != nil {
		return err
	}
	aside := filepath.Join(own, name+"-0") // no tree has this number
	if err := os.Mkdir(aside, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return writeCgroup(filepath.Join(aside, "cgroup.procs"), pid)
}

// delegated reports whether systemd has made a cgroup for whoever is in it to
// arrange. Others may be arranged by somebody else.
func delegated(dir string) bool {
	if unit, err := scopeName(); err == nil && filepath.Base(dir) == unit {
		return true
	}
	var value [8]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// listed reads a file of names.
func listed(dir, file string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("read cgroup file: %w", err)
	}
	return strings.Fields(string(text)), nil
}

// wantControllers gets the tree's groups the controllers that limit sessions.
func (t *Tree) wantControllers(own string) {
	before, unknown := listed(own, "cgroup.subtree_control")
	t.controllers, t.unlimited = controllers(own, []string{memoryController, pidsController, cpuController})
	if now, err := ownCgroup(); err == nil && unknown == nil && filepath.Dir(now) == own {
		t.aside = &aside{own: own, dir: now, before: before}
	}
}

// aside is the child of a cgroup to which this process has moved.
type aside struct {
	own, dir string
	before   []string // the controllers that the children of own had
}

// StepBack leaves this process's cgroup as it was found, if the process has moved
// to a child: while the children have controllers, no process can be started in
// it. It does nothing if another process needs them. The tree must be closed. The
// child stays if another process is in it; a sweep may remove it.
func (t *Tree) StepBack() {
	a := t.aside
	if a == nil {
		return
	}
	t.aside = nil
	now, err := listed(a.own, "cgroup.subtree_control")
	if err != nil {
		return
	}
	enabled := slices.DeleteFunc(now, func(name string) bool { return slices.Contains(a.before, name) })
	if len(enabled) > 0 &&
		writeCgroup(filepath.Join(a.own, "cgroup.subtree_control"), "-"+strings.Join(enabled, " -")) != nil {
		return
	}
	if writeCgroup(filepath.Join(a.own, "cgroup.procs"), strconv.Itoa(os.Getpid())) == nil {
		_ = os.Remove(a.dir)
	}
}

// handDown has the tree's groups get its controllers. Without them sessions are
// not limited, and their replies say so.
func (t *Tree) handDown() {
	if len(t.controllers) == 0 {
		return
	}
	if err := enableAll(t.dir, t.controllers); err != nil {
		t.controllers, t.unlimited = nil, err
	}
}

// Limits bound what a group takes of the machine. 0 is no limit.
type Limits struct {
	Processes int   // and threads
	Memory    int64 // in bytes; the group has as much swap again
	CPUWeight int
	// Whole has the kernel end the whole group at its limit of memory, not its
	// largest process.
	Whole bool
}

// Limited says which limits hold.
type Limited struct {
	Processes, Memory, CPU bool
	Problem                error // why not all of them do
	// Shared is true if they would if the sidecar were alone in its cgroup.
	Shared bool
	// Undelegated is the directory of the sidecar's cgroup if they would if that
	// were marked as delegated; else "".
	Undelegated string
}

// Limited says which limits groups can have.
func (t *Tree) Limited() Limited {
	has := func(name string) bool { return slices.Contains(t.controllers, name) }
	l := Limited{
		Processes: has(pidsController), Memory: has(memoryController), CPU: has(cpuController), Problem: t.unlimited,
		Shared: errors.Is(t.unlimited, errShared),
	}
	if undelegated, is := errors.AsType[*undelegatedError](t.unlimited); is {
		l.Undelegated = undelegated.dir
	}
	return l
}

// Limit limits the group, as far as its controllers can, and says how far.
func (g *Group) Limit(l Limits) Limited {
	got := g.tree.Limited()
	set := func(holds *bool, needed bool, file, value string) {
		if !*holds || !needed {
			return
		}
		if err := writeCgroup(filepath.Join(g.dir, file), value); err != nil {
			*holds, got.Problem = false, err
		}
	}
	memory := strconv.FormatInt(l.Memory, 10)
	set(&got.Processes, l.Processes > 0, "pids.max", strconv.Itoa(l.Processes))
	if l.Whole {
		set(&got.Memory, l.Memory > 0, "memory.oom.group", "1") // Linux 4.19
	}
	// Where swap is not accounted the file does not exist. Memory is limited
	// anyway.
	if got.Memory && l.Memory > 0 {
		_ = writeCgroup(filepath.Join(g.dir, "memory.swap.max"), memory)
	}
	set(&got.Memory, l.Memory > 0, "memory.max", memory)
	set(&got.CPU, l.CPUWeight > 0, "cpu.weight", strconv.Itoa(l.CPUWeight))
	got.Processes, got.Memory = got.Processes && l.Processes > 0, got.Memory && l.Memory > 0
	return got
}
