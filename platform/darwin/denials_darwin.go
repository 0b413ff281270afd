package darwin

import (
	"bufio"
	"context"
	"log/slog"
	"os/exec"
	"sync"
)

// denialsPredicate selects the messages of the kernel's sandbox in the system
// log. Processes can write to the log, but not as the kernel.
const denialsPredicate = `processID == 0 AND senderImagePath CONTAINS "/Sandbox.kext/"`

// denialStream reads denials from the system log while there are sessions. It
// is best effort: the log drops messages under load, combines repetitions, and
// on some machines delivers none. One reader serves all sessions, because each
// reader is a process.
type denialStream struct {
	mu       sync.Mutex // guards the fields below
	sessions map[string]func(Denial)
	stop     func() // stops reading and waits for that; nil if nothing is read
}

// watch calls denied with each denial that carries the tag, on the stream's
// goroutine, until the returned function is called. That function returns when
// no call is in progress.
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

// read runs log(1), the only program that may read the kernel's messages.
func (s *denialStream) read(ctx context.Context, log *slog.Logger) {
	command := exec.CommandContext(ctx, "/usr/bin/log", "stream", "--style", "ndjson", "--predicate", denialsPredicate)
	command.Env = []string{}
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		log.Warn("denials cannot be read from the system log", "error", err)
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
		log.Warn("denials are no longer read from the system log", "error", err)
	}
}

// deliver holds the lock during the call, so that no call happens after watch
// has ended.
func (s *denialStream) deliver(d Denial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if denied := s.sessions[d.Tag]; denied != nil {
		denied(d)
	}
}
