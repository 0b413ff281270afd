package spawn

import (
	"os"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Pipes are further pipes of a session with Request.Pipe. They belong to one
// session, and only one goroutine may use them until it has started. A nil Pipes
// has none.
type Pipes struct {
	// Stdin gives the leader a pipe as standard input; see Session.Input.
	Stdin bool
	// Stderr gives the leader a pipe of its own as standard error; see Sink.Stderr.
	Stderr bool

	stdin, stderr *os.File // the sidecar's ends, from the last attempt to start
}

// Close closes what an attempt to start has opened. Call it if the session could
// not be started; otherwise it has no effect.
func (p *Pipes) Close() {
	if p != nil {
		stdin, stderr := p.take()
		closeAll(stdin, stderr)
	}
}

// open makes the pipes, puts the leader's ends into streams, and returns these.
func (p *Pipes) open(streams *[3]*os.File) (theirs []*os.File, err error) {
	if p == nil {
		return nil, nil
	}
	p.Close() // an earlier attempt has failed
	if p.Stdin {
		reader, writer, err := newPipe()
		if err != nil {
			return nil, err
		}
		streams[0], p.stdin = reader, writer
		theirs = append(theirs, reader)
	}
	if p.Stderr {
		reader, writer, err := newPipe()
		if err != nil {
			closeAll(theirs...)
			p.Close()
			return nil, err
		}
		streams[2], p.stderr = writer, reader
		theirs = append(theirs, writer)
	}
	return theirs, nil
}

// take gives the sidecar's ends to a session that has started.
func (p *Pipes) take() (stdin, stderr *os.File) {
	if p == nil {
		return nil, nil
	}
	stdin, stderr = p.stdin, p.stderr
	p.stdin, p.stderr = nil, nil
	return stdin, stderr
}

// ownPipe gives a target a pipe for what it prints, those of Request.Pipes, and
// otherwise nothing to read. The returned file is the end from which the output
// comes.
func ownPipe(target *platform.Target, request Request) (reader *os.File, release func(), err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, &Error{Attempt: "open", Path: os.DevNull, Cause: cause(err)}
	}
	reader, writer, err := newPipe()
	if err != nil {
		null.Close()
		return nil, nil, err
	}
	streams := [3]*os.File{null, writer, writer}
	theirs, err := request.Pipes.open(&streams)
	if err != nil {
		closeAll(null, reader, writer)
		return nil, nil, err
	}
	target.Streams = streams
	target.Attr = &syscall.SysProcAttr{Setsid: true}
	return reader, func() {
		closeAll(null, writer) // or the end of its output would never be seen
		closeAll(theirs...)
	}, nil
}

func newPipe() (reader, writer *os.File, err error) {
	if reader, writer, err = os.Pipe(); err != nil {
		return nil, nil, &Error{Attempt: "make a pipe", Cause: cause(err)}
	}
	return reader, writer, nil
}

// closeAll closes files that may be nil.
func closeAll(files ...*os.File) {
	for _, file := range files {
		if file != nil {
			file.Close()
		}
	}
}
