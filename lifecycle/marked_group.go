//go:build unix

package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// markedGroup is held together by a fingerprint, if the leader's sandbox has
// one, and by what is known of descent.
type markedGroup struct {
	sessionGroup
	fingerprint SessionFingerprint
	// carries reports whether a process carries the fingerprint.
	carries func(f SessionFingerprint, pid int) (bool, error)
	// table lists this user's processes.
	table    func() ([]proc.Entry, error)
	ancestry *ancestry

	proofMu sync.Mutex // guards proved and doubt
	proved  bool
	doubt   error
}

func (g *markedGroup) Fingerprint() SessionFingerprint { return g.fingerprint }

// Recognise reads the fingerprint of the leader and of this process, and only
// the leader may carry it. A call with its arguments in the wrong place would
// return the same for both. Then a sweep would find nobody and report the end.
func (g *markedGroup) Recognise() error {
	g.mu.Lock()
	leader := g.sid
	g.mu.Unlock()
	ours, err := g.carries(g.fingerprint, leader)
	if err == nil {
		var sidecar bool
		if sidecar, err = g.carries(g.fingerprint, os.Getpid()); err == nil && (!ours || sidecar) {
			err = fmt.Errorf("the kernel reports %t for the session's leader, and %t for the sidecar", ours, sidecar)
		}
	}
	if err != nil {
		err = fmt.Errorf("recognise session by its sandbox: %w", err)
	}
	g.proofMu.Lock()
	defer g.proofMu.Unlock()
	g.proved, g.doubt = err == nil, err
	return err
}

// Start starts the leader, and records its descendants from then on.
func (g *markedGroup) Start(path string, argv []string, attr *os.ProcAttr) (proc.Process, error) {
	process, err := g.sessionGroup.Start(path, argv, attr)
	if err != nil || g.ancestry == nil {
		return process, err
	}
	if err := g.ancestry.follow(process.PID()); err != nil {
		proc.GiveUp(process)
		return nil, err
	}
	return process, nil
}

// Kill does not begin with the leader's process group: the number may be
// another's by then, and its processes carry the fingerprint anyway.
func (g *markedGroup) Kill(ctx context.Context) (int, error) {
	g.mu.Lock()
	sid := g.sid
	g.mu.Unlock()
	if sid == 0 {
		return 0, nil
	}
	killed, err := g.killLoop(sid).Run(ctx)
	if err != nil {
		err = fmt.Errorf("kill session %d: %w", sid, err)
	}
	return len(killed), err
}

// killLoop searches for a session's processes by every means.
func (g *markedGroup) killLoop(sid int) proc.KillLoop {
	search := &search{group: g, sid: sid, chases: mostChases}
	return proc.KillLoop{
		Find:  func() iter.Seq2[proc.ID, error] { return search.scan },
		Kill:  proc.Kill,
		Pause: proc.Sleep,
	}
}

const (
	// readings is how often one scan reads the table. The kernel does not list
	// a process in the middle of its fork, nor one that ends while the list is
	// made. A chain of processes that fork and exit at full speed is in many
	// readings, but not in each.
	readings = 5
	// mostChases bounds how many extra scans are made for the next link of such
	// a chain, because a process ended before it could be asked about. On a
	// busy machine those are mostly unrelated processes.
	mostChases = 64
)

// search finds the processes for one kill loop.
type search struct {
	group  *markedGroup
	sid    int
	chases int

	// Of one scan:
	yielded  map[int]bool
	asked    map[proc.ID]bool
	vanished []proc.ID
	unknown  []error
}

func (s *search) scan(yield func(proc.ID, error) bool) {
	s.yielded, s.asked, s.vanished, s.unknown = map[int]bool{os.Getpid(): true}, map[proc.ID]bool{}, nil, nil
	for range readings {
		table, err := s.group.table()
		if err != nil {
			s.unknown = append(s.unknown, err)
			break
		}
		// The youngest first: they may end before they are asked about.
		slices.SortStableFunc(table, func(a, b proc.Entry) int { return cmp.Compare(b.Birth, a.Birth) })
		if !s.byMark(table, yield) || !s.byDescent(table, yield) {
			return
		}
	}
	if len(s.vanished) > 0 && s.chases > 0 {
		s.chases--
		if !s.yieldOnce(s.vanished[0], yield) {
			return
		}
	}
	if err := errors.Join(s.unknown...); err != nil {
		yield(proc.ID{}, err)
	}
}

// yieldOnce yields each process once.
func (s *search) yieldOnce(found proc.ID, yield func(proc.ID, error) bool) bool {
	if s.yielded[found.PID] {
		return true
	}
	s.yielded[found.PID] = true
	return yield(found, nil)
}

// byMark asks about every process that was not there before.
func (s *search) byMark(table []proc.Entry, yield func(proc.ID, error) bool) bool {
	for _, entry := range table {
		if entry.Dead || entry.PID <= 1 || entry.PID == os.Getpid() || s.asked[entry.ID] {
			continue
		}
		s.asked[entry.ID] = true
		ours, err := s.group.carries(s.group.fingerprint, entry.PID)
		switch {
		case ours:
			if !s.yieldOnce(entry.ID, yield) {
				return false
			}
		case !proc.Exists(entry.PID): // then no answer about it is reliable
			s.vanished = append(s.vanished, entry.ID)
		case err != nil:
			s.unknown = append(s.unknown, fmt.Errorf("process %d: %w", entry.PID, err))
		}
	}
	return true
}

// byDescent finds descendants, and processes of the leader's session.
func (s *search) byDescent(table []proc.Entry, yield func(proc.ID, error) bool) bool {
	var relatives map[int]bool
	if s.group.ancestry != nil {
		var err error
		if relatives, err = s.group.ancestry.members(table); err != nil {
			s.unknown = append(s.unknown, err)
		}
	}
	for _, entry := range proc.Living(proc.Descendants(table, func(entry proc.Entry) bool {
		return s.sid != 0 && entry.Session == s.sid || relatives[entry.PID]
	})) {
		if !s.yieldOnce(entry, yield) {
			return false
		}
	}
	return true
}

func (g *markedGroup) Tracking() Tracking {
	g.proofMu.Lock()
	defer g.proofMu.Unlock()
	if g.proved {
		return g.warned(Tracking{
			Mechanism: MechanismSeatbelt, Guarantee: true,
			Detail: "every process of the session is found by its sandbox, and killed; " +
				"each inherits the session's fingerprint and cannot remove it",
		})
	}
	tracking := g.warned(g.tracking)
	if g.doubt != nil {
		tracking.Detail = fmt.Sprintf("%s; the sandbox does not identify the session: %v", tracking.Detail, g.doubt)
	}
	return tracking
}

// Close also ends the scans for descendants.
func (g *markedGroup) Close() error {
	if g.ancestry != nil {
		g.ancestry.close()
	}
	return errors.Join(g.note(journal.Ended(kindFingerprint, g.fingerprint.ID)), g.sessionGroup.Close())
}
