package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// tree are processes by their ids: the parent, and the command line. One with a
// "+" leads a terminal's session, and one with a "#" is another user's.
type tree map[int]struct {
	parent int
	line   string
}

func (t tree) find(pid int) (Process, error) {
	at, known := t[pid]
	if !known {
		return Process{}, fs.ErrNotExist
	}
	line, leads := strings.CutPrefix(at.line, "+")
	line, other := strings.CutPrefix(line, "#")
	p := Process{PID: pid, Parent: at.parent, User: 1000, Leads: leads, Argv: strings.Split(line, " ")}
	if other {
		p.User = 0
	}
	return p, nil
}

const link = 9

func TestOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		above []string // from the parent up, below process 1
		named string
		want  int // how many steps up; 0: none
	}{
		"an agent":                      {above: []string{"claude"}, want: 1},
		"by a shell of node":            {above: []string{"/bin/sh -c link", "node agent.js"}, want: 2},
		"by two shells":                 {above: []string{"sh -ec link", "bash -lc sh", "codex"}, want: 3},
		"by a shell that leads nothing": {above: []string{"/bin/bash -c -l link", "opencode"}, want: 2},
		"by busybox":                    {above: []string{"busybox sh -c link", "agent"}, want: 2},
		"by fish":                       {above: []string{"fish --command link", "agent"}, want: 2},
		"with a time limit":             {above: []string{"timeout 9 link", "sh -c timeout", "agent"}, want: 3},
		"by npm":                        {above: []string{"sh -c link", "npm test", "agent"}, want: 2},
		"by make":                       {above: []string{"make", "sh -c make", "agent"}, want: 1},
		"by a script":                   {above: []string{"bash build.sh", "agent"}, want: 1},
		"by a part of a script":         {above: []string{"bash build.sh", "bash build.sh", "agent"}, want: 2},
		"by a script of a script":       {above: []string{"bash a.sh", "bash b.sh", "agent"}, want: 1},
		"by a script with -c as text":   {above: []string{"bash build.sh -c", "agent"}, want: 1},
		"by an interactive shell":       {above: []string{"bash", "sshd"}, want: 1},
		"by a login shell":              {above: []string{"-bash", "sshd"}, want: 1},
		"by a terminal's first shell":   {above: []string{"+sh -c link", "tmux"}, want: 1},
		"an agent that is a shell":      {above: []string{"bash -c loop", "bash", "sshd"}, want: 1},
		"an agent of a script":          {above: []string{"sh -c link", "bash -c loop", "bash x.sh"}, want: 2},
		"a part of such an agent":       {above: []string{"bash -c loop", "bash -c loop", "+bash"}, want: 2},
		"a limit in a script":           {above: []string{"timeout 9 link", "bash x.sh", "agent"}, want: 2},
		"named beyond a terminal":       {above: []string{"agent", "+bash", "tmux"}, named: "12"},
		"named first of a terminal":     {above: []string{"agent", "+bash", "tmux"}, named: "11", want: 2},
		"by another user's":             {above: []string{"sh -c link", "#sudo link"}},
		"by nothing that ends":          {above: []string{"sh -c link"}},
		"by systemd":                    {above: []string{"/usr/lib/systemd/systemd --user", "+login"}},
		"by a process that has gone":    {above: nil},
		"named":                         {above: []string{"helper", "agent", "bash"}, named: "11", want: 2},
		"named beyond a wrapper":        {above: []string{"sh -c link", "agent", "bash"}, named: "12", want: 3},
		"named that is no ancestor":     {above: []string{"agent", "bash"}, named: "77"},
		"named that is no number":       {above: []string{"agent"}, named: "agent"},
		"named process 1":               {above: []string{"agent"}, named: "1"},
		"named beyond another user's":   {above: []string{"#sudo", "agent"}, named: "11"},
		"without a command line":        {above: []string{"", "agent"}, want: 1},
	} {
		all := tree{1: {0, "#init"}, link: {link + 1, "link -c true"}}
		for i, line := range c.above {
			parent := link + i + 2
			if i == len(c.above)-1 {
				parent = 1
			}
			all[link+i+1] = struct {
				parent int
				line   string
			}{parent, line}
		}
		got, err := Of(link, c.named, all.find)
		switch {
		case c.want == 0 && err == nil:
			t.Errorf("%s: %s, expected none", name, got)
		case c.want == 0 && c.named == "" && !errors.Is(err, ErrNone):
			t.Errorf("%s: %v", name, err)
		case c.want > 0 && (err != nil || got.PID != link+c.want):
			t.Errorf("%s: %s, %v, expected process %d", name, got, err, link+c.want)
		}
	}
}

// Whatever a process tree is like, the walk ends, at an ancestor of the same user.
func TestOf_EndsInALoop(t *testing.T) {
	t.Parallel()
	loop := tree{2: {3, "sh -c a"}, 3: {2, "sh -c b"}}
	if got, err := Of(2, "", loop.find); !errors.Is(err, ErrNone) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	self, err := Look(os.Getpid())
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system has no /proc")
	}
	if err != nil || self.PID != os.Getpid() || self.Parent != os.Getppid() || self.User != os.Getuid() ||
		self.Birth == 0 || self.name() != "owner.test" {
		t.Errorf("%+v, %v", self, err)
	}
	for _, stat := range []string{"", "7 (a", "7 (a) S x 1 1 0 -1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"} {
		if p, err := parse(stat); err == nil {
			t.Errorf("%q: %+v", stat, p)
		}
	}
	odd := "7 (a) (b c) S 3 7 7 34816 -1 1 2 3 4 5 6 7 8 9 10 11 12 13 99 15"
	if p, err := parse(odd); err != nil || p.PID != 7 || p.Parent != 3 || !p.Leads || p.Birth != 99 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	name, err := os.Readlink("/proc/self/ns/pid")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system has no /proc")
	}
	if number, err := Namespace(); err != nil || name != fmt.Sprintf("pid:[%d]", number) {
		t.Errorf("%d, %v, in %s", number, err, name)
	}
}

// A process has ended only if its id is free, or another process has it: an error
// that says something else is no proof.
func TestLives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		birth uint64
		err   error
		want  bool
	}{
		"it is there":            {birth: 99, want: true},
		"another has its id":     {birth: 98},
		"there is none":          {err: fs.ErrNotExist},
		"it ends as it is read":  {err: &fs.PathError{Op: "read", Path: "/proc/7/stat", Err: syscall.ESRCH}},
		"it may not be read":     {err: fs.ErrPermission, want: true},
		"too many files":         {err: syscall.EMFILE, want: true},
		"something else is read": {err: errors.New("unexpected content"), want: true},
	} {
		got := Lives(7, 99, func(int) (Process, error) { return Process{PID: 7, Birth: c.birth}, c.err })
		if got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
