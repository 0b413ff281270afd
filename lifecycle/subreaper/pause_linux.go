package subreaper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

const (
	// holdTimeout bounds the scans for processes to stop.
	holdTimeout = 500 * time.Millisecond
	// leastScans are made in any case: on a busy machine three of them, which
	// stop a session that does not fork, can take longer than holdTimeout.
	leastScans = 6
	// silence bounds the wait for the subreaper's answer. A busy machine may stop
	// it for seconds, and the user would not be asked.
	silence = 10 * time.Second
)

// hold stops every process below, parents before their children, and records
// which it has stopped. One that the user has stopped stays stopped on resume.
// A stop takes a moment, and a process may fork or write until then. So it scans
// until all stand still, and one scan that finds nothing new is followed by
// another.
func (k *subreaper) hold() error {
	k.holding = true
	known := map[proc.ID]bool{}
	end := time.Now().Add(holdTimeout)
	for scans, quiet := 0, 0; quiet < 2; scans++ {
		late := scans >= leastScans && time.Now().After(end)
		below, err := k.below()
		if err != nil {
			return err
		}
		quiet++
		for _, entry := range below {
			switch {
			case entry.Dead:
			case known[entry.ID]:
				if entry.Runs && !late {
					quiet = 0 // it is about to stop
				}
			case entry.Stopped:
				known[entry.ID] = true
			case late:
				return errors.New("the session forks too fast")
			default:
				known[entry.ID] = true
				if err := proc.Signal(entry.ID, unix.SIGSTOP); err == nil {
					k.held = append(k.held, entry.ID)
					quiet = 0
				} else if !errors.Is(err, unix.ESRCH) {
					return err
				}
			}
		}
	}
	return nil
}

// letGo continues the processes that hold has stopped, children before their
// parents, so that no parent sees a stopped child.
func (k *subreaper) letGo() {
	for i := len(k.held) - 1; i >= 0; i-- {
		_ = proc.Signal(k.held[i], unix.SIGCONT) // it may have ended
	}
	k.held = nil
	k.reap() // a stop seen now was not the leader's own
	k.holding = false
}

// carryOutHold pauses or resumes, and reports the result.
func (k *subreaper) carryOutHold(order *holdOrder) {
	report := heldReport{ID: order.ID}
	if order.Held {
		if err := k.hold(); err != nil {
			k.letGo()
			report.Problem = err.Error()
		}
	} else {
		k.letGo()
	}
	_ = k.reports.Encode(reportMessage{Held: &report})
}

// Pause stops every process of the session until resume is called. On an error
// all processes continue.
func (g *Group) Pause(ctx context.Context) (func() error, error) {
	if err := g.orderHold(ctx, true); err != nil {
		return nil, fmt.Errorf("pause session: %w", err)
	}
	return func() error {
		if err := g.orderHold(context.Background(), false); err != nil && !errors.Is(err, errGone) {
			return fmt.Errorf("resume session: %w", err)
		}
		return nil
	}, nil
}

// orderHold sends the order and waits for the answer.
func (g *Group) orderHold(ctx context.Context, held bool) error {
	g.mu.Lock()
	conn, gone, closed := g.conn, g.gone, g.closed
	g.mu.Unlock()
	if conn == nil || closed {
		return errGone
	}
	g.pausing.Lock()
	defer g.pausing.Unlock()
	g.holds++
	if err := conn.send(orderMessage{Hold: &holdOrder{ID: g.holds, Held: held}}); err != nil {
		return errors.Join(errGone, err)
	}
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case answer := <-g.heldAnswers:
			switch {
			case answer.ID != g.holds:
			case answer.Problem != "":
				return errors.New(answer.Problem)
			default:
				return nil
			}
		case <-gone:
			return errGone
		case <-ctx.Done():
			if held { // the session must not stay paused without anybody to resume it
				_ = conn.send(orderMessage{Hold: &holdOrder{}})
			}
			return ctx.Err()
		case <-timer.C:
			if held {
				_ = conn.send(orderMessage{Hold: &holdOrder{}})
			}
			return os.ErrDeadlineExceeded
		}
	}
}
