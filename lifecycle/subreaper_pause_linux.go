package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// holdTimeout bounds the looks for processes that are to be stopped.
const holdTimeout = 500 * time.Millisecond

// hold stops every process below, parents before their children, and notes
// which it has stopped: one that the user has stopped is to stay so. A look
// that finds nobody new is followed by another, as a stop takes a moment to
// hold and a process may fork until then.
func (k *subreaper) hold() error {
	k.holding = true
	known := map[processID]bool{}
	quiet := 0
	for end := time.Now().Add(holdTimeout); quiet < 2; {
		if time.Now().After(end) {
			return errors.New("the session forks too fast")
		}
		below, err := k.below()
		if err != nil {
			return err
		}
		quiet++
		for _, entry := range below {
			if entry.dead || known[entry.processID] {
				continue
			}
			known[entry.processID] = true
			if entry.stopped {
				continue
			}
			if err := signalExactly(entry.processID, unix.SIGSTOP); err == nil {
				k.held = append(k.held, entry.processID)
				quiet = 0
			} else if !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// letGo lets everybody go on whom hold has stopped, children before their
// parents, so that no parent sees a child that is stopped.
func (k *subreaper) letGo() {
	for i := len(k.held) - 1; i >= 0; i-- {
		_ = signalExactly(k.held[i], unix.SIGCONT) // it may have ended
	}
	k.held = nil
	k.reap() // a stop that is seen only now is none of the leader's own
	k.holding = false
}

// carryOutHold holds or lets go, and says so.
func (k *subreaper) carryOutHold(order *subreaperHold) {
	report := subreaperHeld{ID: order.ID}
	if order.Held {
		if err := k.hold(); err != nil {
			k.letGo()
			report.Problem = err.Error()
		}
	} else {
		k.letGo()
	}
	_ = k.reports.Encode(subreaperReport{Held: &report})
}

// Pause stops every process of the session until resume is called. On an error
// everybody goes on.
func (g *subreaperGroup) Pause(ctx context.Context) (func() error, error) {
	if err := g.orderHold(ctx, true); err != nil {
		return nil, fmt.Errorf("pause session: %w", err)
	}
	return func() error {
		if err := g.orderHold(context.Background(), false); err != nil && !errors.Is(err, errSubreaperGone) {
			return fmt.Errorf("resume session: %w", err)
		}
		return nil
	}, nil
}

// orderHold orders and waits for the answer.
func (g *subreaperGroup) orderHold(ctx context.Context, held bool) error {
	g.mu.Lock()
	conn, gone, closed := g.conn, g.gone, g.closed
	g.mu.Unlock()
	if conn == nil || closed {
		return errSubreaperGone
	}
	g.pausing.Lock()
	defer g.pausing.Unlock()
	g.holds++
	if err := conn.send(subreaperOrder{Hold: &subreaperHold{ID: g.holds, Held: held}}); err != nil {
		return errors.Join(errSubreaperGone, err)
	}
	silence := time.NewTimer(holdTimeout + subreaperGrace)
	defer silence.Stop()
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
			return errSubreaperGone
		case <-ctx.Done():
			if held { // it must not come to hold once nobody waits for it
				_ = conn.send(subreaperOrder{Hold: &subreaperHold{}})
			}
			return ctx.Err()
		case <-silence.C:
			if held {
				_ = conn.send(subreaperOrder{Hold: &subreaperHold{}})
			}
			return os.ErrDeadlineExceeded
		}
	}
}
