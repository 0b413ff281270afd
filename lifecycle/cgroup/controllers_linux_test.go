package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// limitFiles makes a directory with the files that a cgroup with all controllers
// has, apart from those left out.
func limitFiles(t *testing.T, without ...string) *Group {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"pids.max", "memory.max", "memory.swap.max", "memory.oom.group", "cpu.weight"} {
		if !slices.Contains(without, name) {
			harness.Write(t, filepath.Join(dir, name), "")
		}
	}
	return &Group{tree: &Tree{controllers: []string{memoryController, pidsController, cpuController}}, dir: dir}
}

func written(t *testing.T, g *Group) string {
	t.Helper()
	var all []string
	entries, err := os.ReadDir(g.dir)
	harness.Must(t, err)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(g.dir, entry.Name()))
		harness.Must(t, err)
		all = append(all, entry.Name()+"="+string(text))
	}
	return strings.Join(all, " ")
}

func TestLimit_WritesWhatTheKernelReads(t *testing.T) {
	t.Parallel()
	all := Limits{Processes: 40, Memory: 64 << 20, CPUWeight: 50}
	g := limitFiles(t)
	if got := g.Limit(all); got != (Limited{Processes: true, Memory: true, CPU: true}) {
		t.Errorf("all: %+v", got)
	}
	const plain = "cpu.weight=50 memory.max=67108864 memory.oom.group= memory.swap.max=67108864 pids.max=40"
	if got := written(t, g); got != plain {
		t.Errorf("all: %s", got)
	}
	whole := all
	whole.Whole = true
	g = limitFiles(t, "memory.swap.max")
	if got := g.Limit(whole); !got.Memory || !strings.Contains(written(t, g), "memory.oom.group=1") {
		t.Errorf("without accounting of swap: %+v, %s", got, written(t, g))
	}
	// What could not be written does not hold.
	g = limitFiles(t, "memory.max")
	if got := g.Limit(all); got.Memory || !got.Processes || got.Problem == nil {
		t.Errorf("without memory.max: %+v", got)
	}
	g = limitFiles(t)
	if got := g.Limit(Limits{}); got.Memory || got.Processes || strings.ContainsAny(written(t, g), "0123456789") {
		t.Errorf("no limits: %+v, %s", got, written(t, g))
	}
	g = limitFiles(t)
	g.tree.controllers = []string{pidsController}
	if got := g.Limit(all); got.Memory || got.CPU || !got.Processes || strings.Contains(written(t, g), "memory.max=6") {
		t.Errorf("the controller of processes alone: %+v, %s", got, written(t, g))
	}
}

func init() {
	// "controllers" joins a cgroup, with another process if there are more
	// arguments, and says which controllers its children get.
	proctest.Helpers["controllers"] = func(args []string) {
		own, wanted := args[0], strings.Split(args[1], ",")
		pid := strconv.Itoa(os.Getpid())
		if err := writeCgroup(filepath.Join(own, "cgroup.procs"), pid); err != nil {
			fmt.Println("ready 0", err)
			return
		}
		given, err := controllers(own, wanted)
		now, _ := ownCgroup()
		fmt.Printf("ready 0 given=%v shared=%t moved=%t error=%v\n", given, errors.Is(err, errShared), now != own, err)
	}
}

func init() {
	// "step back" joins a cgroup, arranges it for a tree, and leaves it as it was.
	proctest.Helpers["step back"] = func(args []string) {
		own, tree := args[0], &Tree{}
		if err := writeCgroup(filepath.Join(own, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
			fmt.Println("ready 0", err)
			return
		}
		tree.wantControllers(own)
		aside, _ := ownCgroup()
		during, _ := listed(own, "cgroup.subtree_control")
		tree.StepBack()
		now, _ := ownCgroup()
		after, _ := listed(own, "cgroup.subtree_control")
		_, left := os.Stat(aside)
		fmt.Printf("ready 0 aside=%t given=%t, back=%t given=%t, left=%t\n", aside != own, len(during) > 0, now == own,
			len(after) > 0, left == nil && aside != own)
	}
}

// A process that has stepped aside leaves its cgroup as it was: the next one can be
// started there.
func TestTree_LeavesItsCgroupAsItWas(t *testing.T) {
	t.Parallel()
	own, err := ownCgroup()
	harness.Must(t, err)
	names, err := listed(own, "cgroup.controllers")
	harness.Must(t, err)
	wanted := slices.DeleteFunc([]string{memoryController, pidsController, cpuController}, func(name string) bool {
		return !slices.Contains(names, name)
	})
	if len(wanted) == 0 {
		harness.Skip(t, "threaded_controllers", fmt.Sprintf("none of those that limit sessions is among %v", names))
	}
	g := newCgroup(t, givingTree(t, wanted[0]), "left")
	if err := unix.Setxattr(g.dir, "user.delegate", []byte("1"), 0); err != nil {
		harness.Skip(t, "cgroup_xattr", err.Error())
	}
	const want = "ready 0 aside=true given=true, back=true given=false, left=false"
	for round := range 2 {
		out, err := proctest.Helper("step back", g.dir).Output()
		harness.Must(t, err)
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
	}
}

// givingTree is a tree whose groups get a controller.
func givingTree(t *testing.T, name string) *Tree {
	t.Helper()
	undo := func() {}
	t.Cleanup(func() { undo() }) // after the tree is gone, which uses the controller
	tree := newTree(t)
	own := filepath.Dir(tree.dir)
	if _, err := os.Stat(filepath.Join(own, "cgroup.type")); err == nil {
		// Not the root, so no cgroup with the processes of these tests may give
		// controllers. A new one beside it has none.
		beside, err := os.MkdirTemp(filepath.Dir(own), "sandbox-sidecar-test-")
		if err != nil {
			harness.Skip(t, "cgroup_controllers", err.Error())
		}
		t.Cleanup(func() {
			_, err := killCgroup(context.Background(), beside)
			harness.Must(t, errors.Join(err, removeCgroup(beside)))
		})
		tree = &Tree{dir: beside, bornInside: tree.bornInside}
	} else {
		before, err := listed(own, "cgroup.subtree_control")
		harness.Must(t, err)
		if _, err := controllers(own, []string{name}); err != nil {
			harness.Skip(t, "cgroup_controllers", err.Error())
		}
		if !slices.Contains(before, name) {
			undo = func() { _ = writeCgroup(filepath.Join(own, "cgroup.subtree_control"), "-"+name) }
		}
	}
	if names, err := listed(tree.dir, "cgroup.controllers"); err != nil || !slices.Contains(names, name) {
		harness.Skip(t, "cgroup_controllers", fmt.Sprintf("%s is not among %v: %v", name, names, err))
	}
	harness.Must(t, enableAll(tree.dir, []string{name}))
	return tree
}

// lastController is one that this process's cgroup has.
func lastController(t *testing.T) string {
	t.Helper()
	own, err := ownCgroup()
	harness.Must(t, err)
	names, err := listed(own, "cgroup.controllers")
	harness.Must(t, err)
	if len(names) == 0 {
		harness.Skip(t, "cgroup_controllers", "the cgroup has no controller")
	}
	return names[len(names)-1]
}

// A process that is alone in a delegated cgroup steps aside, and its children's
// cgroups get controllers. In any other cgroup it stays, and changes nothing.
func TestControllers_StepAsideOnlyInADelegatedCgroupOfItsOwn(t *testing.T) {
	t.Parallel()
	name := lastController(t)
	tree := givingTree(t, name)
	stepAsideOnlyWhereAllowed(t, tree, name)
}

// The kernel may give these two to the children of a cgroup with processes. The
// children then could hold no process.
func TestControllers_ThatAreThreadedStepAsideToo(t *testing.T) {
	t.Parallel()
	own, err := ownCgroup()
	harness.Must(t, err)
	names, err := listed(own, "cgroup.controllers")
	harness.Must(t, err)
	for _, name := range []string{pidsController, cpuController} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(names, name) {
				harness.Skip(t, "threaded_controllers", fmt.Sprintf("not among %v", names))
			}
			stepAsideOnlyWhereAllowed(t, givingTree(t, name), name)
		})
	}
}

func stepAsideOnlyWhereAllowed(t *testing.T, tree *Tree, name string) {
	t.Helper()
	try := func(group string, prepare func(dir string)) (got, kind string) {
		g := newCgroup(t, tree, group)
		prepare(g.dir)
		out, err := proctest.Helper("controllers", g.dir, name).Output()
		harness.Must(t, err)
		below := filepath.Join(g.dir, "below")
		harness.Must(t, os.Mkdir(below, 0o755))
		defer func() { harness.Must(t, os.Remove(below)) }()
		children, err := os.ReadFile(filepath.Join(below, "cgroup.type"))
		harness.Must(t, err)
		return strings.TrimSpace(string(out)), strings.TrimSpace(string(children))
	}
	mark := func(dir string) {
		if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
			harness.Skip(t, "cgroup_xattr", err.Error())
		}
	}
	want := fmt.Sprintf("ready 0 given=[%s] shared=false moved=true error=<nil>", name)
	if got, kind := try("alone", mark); got != want || kind != "domain" {
		t.Errorf("alone in a delegated cgroup: %s, children are %q; want %s", got, kind, want)
	}
	const unmarked = "ready 0 given=[] shared=false moved=false error=the sidecar's cgroup is not marked"
	if got, kind := try("unmarked", func(string) {}); !strings.HasPrefix(got, unmarked) || kind != "domain" {
		t.Errorf("in a cgroup of somebody else: %s, children are %q", got, kind)
	}
	other := proctest.Helper("wait")
	harness.Must(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	got, kind := try("crowded", func(dir string) {
		mark(dir)
		harness.Must(t, writeCgroup(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(other.Process.Pid)))
	})
	if !strings.HasPrefix(got, "ready 0 given=[] shared=true moved=false") || kind != "domain" {
		t.Errorf("beside another process: %s, children are %q", got, kind)
	}
	if given, err := controllers(tree.dir, []string{"no-such-controller"}); given != nil || err == nil ||
		!strings.Contains(err.Error(), "lacks the controllers no-such-controller") {
		t.Errorf("a controller that is missing: %v, %v", given, err)
	}
}

// The kernel tells of changes of a cgroup's files, here of cgroup.events, which
// needs no controller.
func TestChanges_TheKernelTellsOfEvents(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	told := map[string]chan struct{}{}
	var groups []*Group
	for _, name := range []string{"one", "other"} {
		g, changed := newCgroup(t, tree, name), make(chan struct{}, 100)
		number, err := tree.changes.add(filepath.Join(g.dir, "cgroup.events"), func() { changed <- struct{}{} })
		harness.Must(t, err)
		g.watched = append(g.watched, number)
		groups, told[name] = append(groups, g), changed
	}
	process := proctest.Helper("wait")
	harness.Must(t, process.Start())
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	pid := strconv.Itoa(process.Process.Pid)
	harness.Must(t, writeCgroup(filepath.Join(groups[0].dir, "cgroup.procs"), pid)) // "populated 1"
	select {
	case <-told["one"]:
	case <-time.After(proctest.Timeout):
		t.Error("nobody was told")
	}
	if len(told["other"]) != 0 {
		t.Error("the other group was told")
	}
	_, err := groups[0].Kill(proctest.Soon(t))
	harness.Must(t, err)
	for _, g := range groups {
		harness.Must(t, g.Close())
	}
	if left := len(tree.changes.watches); left != 0 {
		t.Errorf("%d watches of groups that are gone are left", left)
	}
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", tree.changes.file.Fd()))
	harness.Must(t, err)
	if strings.Contains(string(info), "inotify wd:") {
		t.Errorf("the kernel still watches:\n%s", info)
	}
}

func TestReached_ReadsWhatTheKernelCounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pids, memory string
		want         Reached
	}{
		"no files":             {},
		"nothing":              {"max 0\n", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n", Reached{}},
		"processes":            {"max 3\n", "", Reached{Processes: 3}},
		"memory":               {"max 0\n", "max 9\noom 1\noom_kill 1\n", Reached{Memory: 1}},
		"memory was reclaimed": {"", "max 500\noom 0\noom_kill 0\n", Reached{}},
	} {
		g := &Group{dir: t.TempDir()}
		if test.pids != "" {
			harness.Write(t, filepath.Join(g.dir, "pids.events"), test.pids)
		}
		if test.memory != "" {
			harness.Write(t, filepath.Join(g.dir, "memory.events"), test.memory)
		}
		if got := g.Reached(); got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What keeps a cgroup from giving its children controllers is said as it is: a
// process that is alone there is not told of others.
func TestControllers_SayWhyThereAreNone(t *testing.T) {
	t.Parallel()
	alone := strconv.Itoa(os.Getpid()) + "\n"
	for name, test := range map[string]struct {
		procs       string
		mark        bool
		shared      bool
		undelegated bool
	}{
		"others":            {procs: alone + "1\n", mark: true, shared: true},
		"alone, not marked": {procs: alone, undelegated: true},
		"alone, and marked": {procs: alone, mark: true}, // it fails later: this is no cgroup
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"cgroup.controllers": "memory pids cpu\n", "cgroup.subtree_control": "\n", "cgroup.type": "domain\n",
			"cgroup.procs": test.procs,
		} {
			harness.Write(t, filepath.Join(dir, file), text)
		}
		if test.mark {
			if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
				harness.Skip(t, "cgroup_xattr", err.Error())
			}
		}
		tree := Tree{dir: dir}
		tree.wantControllers(dir)
		got := tree.Limited()
		if got.Problem == nil || got.Memory || got.Shared != test.shared ||
			(got.Undelegated == dir) != test.undelegated {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
