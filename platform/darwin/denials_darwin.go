package darwin

import (
	"bufio"
	"context"
	"log/slog"
	"os/exec"
	"sync"
)

// denialsPredicate selects what the kernel's part of the sandbox writes to the
// system's log. Processes can write there too, but not in the kernel's name.
const denialsPredicate = `processID == 0 AND senderImagePath CONTAINS "/Sandbox.kext/"`

// denialStream reads refusals from the system's log while there are sessions to
// read them for. It is best effort: the log drops messages under load, gathers
// repetitions, and on some machines delivers none. One reader serves every
// session, because each costs a process.
type denialStream struct {
	mu       sync.Mutex // guards the fields below
	sessions map[string]func(Denial)
	stop     func() // nil while nothing is read; returns when nothing is read any more
}

// watch calls denied with each refusal that carries the tag, from the stream's
// own goroutine, until the returned function is called. That one returns when
// no call is under way any more.
func (s *denialStream) watch(log *slog.Logger, tag string, denied func(Denial)) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]func(Denial){}
	}
	s.sessions[tag] = denied
	if s.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		var reading sync.WaitGroup
		reading.Go(func() { s.read(ctx, log) })
		s.stop = func() {
			cancel()
			reading.Wait()
		}
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.sessions, tag)
		var stop func()
		if len(s.sessions) == 0 {
			stop, s.stop = s.stop, nil
		}
		s.mu.Unlock()
		if stop != nil {
			stop()
		}
	})
}

// read runs the system's own reader, the only one that may see the kernel's
// messages.
func (s *denialStream) read(ctx context.Context, log *slog.Logger) {
	command := exec.CommandContext(ctx, "/usr/bin/log", "stream", "--style", "ndjson", "--predicate", denialsPredicate)
	command.Env = []string{}
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		log.Warn("refusals are not read from the system's log", "error", err)
		return
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if denial, ok := ParseDenial(lines.Bytes()); ok {
			s.deliver(denial)
		}
	}
	if err := command.Wait(); err != nil && ctx.Err() == nil {
		log.Warn("refusals are no longer read from the system's log", "error", err)
	}
}

// deliver holds the lock during the call: after watch's end there is none.
func (s *denialStream) deliver(d Denial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if denied := s.sessions[d.Tag]; denied != nil {
		denied(d)
	}
}
