package denials

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// What may change a file is noted by the decider and by the fast path, whatever
// its path is. What only reads or executes is not.
func TestChanges_AreNotedByRegistersAlone(t *testing.T) {
	f := newFixture(t)
	numbers := map[int]string{}
	names := append([]string{"chmod", "ioctl"}, testCalls...)
	for i, call := range names {
		numbers[i] = call
	}
	f.start()
	d := NewDecider(f.Observer, NewDecidedCalls(1, numbers, map[string]int{"chmod": 1}))
	d.Begin()
	defer d.End()
	for number, name := range names {
		for _, flags := range []uint64{
			unix.O_RDONLY, unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, unix.O_PATH | unix.O_RDWR, unix.O_WRONLY,
			unix.O_RDWR, unix.O_ACCMODE, unix.O_RDONLY | unix.O_CREAT, unix.O_RDONLY | unix.O_TRUNC,
			unix.O_TMPFILE | unix.O_RDWR,
		} {
			want := true
			list := pathArgs()[name]
			n := &notify.Notification{Number: int32(number), Arch: 1}
			switch {
			case name == "execve", name == "execveat":
				want = false
			case len(list) > 0 && list[0].op == opOpen && list[0].flags != none:
				n.Args[list[0].flags] = flags
				want = flags&unix.O_PATH == 0 && flags&(unix.O_ACCMODE|unix.O_CREAT|unix.O_TRUNC) != 0
			}
			f.changed = 0
			decided := d.Decide(n)
			// What the decider does not know it leaves to the fast path.
			if known := d.calls.calls[number].known; known && f.MayHaveChanged() != want {
				t.Errorf("decider: %s with %#x: %v", name, flags, f.MayHaveChanged())
			}
			if list == nil {
				if !decided {
					t.Errorf("%s is not decided", name)
				}
				continue
			}
			if got := mayChange(&notify.Call{Args: n.Args}, list); got != want {
				t.Errorf("fast path: %s with %#x: %v", name, flags, got)
			}
		}
	}
	// A mark is ChangeMode's to decide.
	n := &notify.Notification{Number: 0, Arch: 1, Args: [6]uint64{0, 0o4755}}
	if d.Decide(n) {
		t.Error("a mode with a mark is let through")
	}
}

func TestChanges_AreNotNotedBeforeTheTargetRuns(t *testing.T) {
	f := newFixture(t)
	f.started.Store(false)
	f.NoteChange()
	if f.MayHaveChanged() {
		t.Error("the stage's own call is noted")
	}
	f.start()
	f.NoteChange()
	if !f.MayHaveChanged() {
		t.Error("the session's call is not noted")
	}
}
