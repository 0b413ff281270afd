package denials

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

const (
	// timeout bounds the wait for an answer. Who gives none has said no.
	timeout = time.Minute
	// mostQuestions bounds the questions of one session that wait for an
	// answer; more are refused without being asked.
	maxQuestions = 8
	// mostAnswers bounds the answers that are remembered, of which each is good
	// for one access to one path.
	maxAnswers = 1024
)

// questions are those of one session, with their answers.
type questions struct {
	mu      sync.Mutex // guards the fields below
	open    map[question]*pending
	answers map[question]platform.Answer
}

type question struct {
	access platform.Refused
	target string
}

// pending is a question that waits; all who have the same share it.
type pending struct {
	done   chan struct{} // closed once answer is set
	answer platform.Answer
	users  int // who still wait
	cancel context.CancelFunc
}

// ask answers a call that is about to be refused: it opens the file for the
// caller, if that is allowed. Landlock never knows of it. It reports false
// where there is nobody to ask about this, and the call is to go on.
func (o *Observer) ask(call *notify.Call, root int, f *finding) bool {
	if o.options.Ask == nil || !o.started.Load() || f.op != opOpen || !askable(f) {
		return false
	}
	denial := o.describe(call, f.refusal)
	answer, err := o.answer(call, denial)
	switch {
	case errors.Is(err, notify.ErrGone):
		return true // needs no answer
	case errors.Is(err, unix.EINTR):
		call.Fail(unix.EINTR)
		return true
	case err != nil || answer == platform.AnswerDeny:
		o.options.Report(denial)
		call.Fail(unix.EACCES)
		return true
	}
	fd, err := o.openForCaller(call, root, f)
	if err != nil {
		call.Fail(errnoOf(err))
		return true
	}
	defer unix.Close(fd)
	if !call.Valid() {
		return true
	}
	if err := call.ReturnFD(fd, f.flags.has(unix.O_CLOEXEC)); err != nil {
		call.Fail(errnoOf(err))
	}
	return true
}

// askable reports whether a file can be opened for somebody else without doing
// more than opening it: a device or a FIFO may wait, and act.
func askable(f *finding) bool {
	kind := f.loc.kind()
	return !f.flags.has(unix.O_TMPFILE) && (!f.loc.exists() || kind == unix.S_IFREG || kind == unix.S_IFDIR)
}

// answer finds out what is said about a denial, and waits for it.
func (o *Observer) answer(call *notify.Call, denial platform.Denial) (platform.Answer, error) {
	if o.options.Learn {
		return o.options.Ask(context.Background(), denial), nil
	}
	q := question{denial.Access, denial.Target}
	p, known := o.submit(q, denial)
	if p == nil {
		return known, nil
	}
	defer o.withdraw(q, p)
	ready, err := call.Await(p.done, timeout)
	switch {
	case err != nil:
		return platform.AnswerDeny, err
	case !ready:
		return platform.AnswerDeny, nil
	}
	return p.answer, nil
}

// put asks a question, unless it was answered for good, or waits already, or
// too many do.
func (o *Observer) submit(q question, denial platform.Denial) (*pending, platform.Answer) {
	o.questions.mu.Lock()
	defer o.questions.mu.Unlock()
	if answer, known := o.answers[q]; known {
		return nil, answer
	}
	if p := o.open[q]; p != nil {
		p.users++
		return p, 0
	}
	if len(o.open) >= maxQuestions {
		return nil, platform.AnswerDeny
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	p := &pending{done: make(chan struct{}), users: 1, cancel: cancel}
	o.open[q] = p
	go func() {
		defer cancel()
		answer := o.options.Ask(ctx, denial)
		o.questions.mu.Lock()
		defer o.questions.mu.Unlock()
		p.answer = answer
		if o.open[q] == p {
			delete(o.open, q)
		}
		if answer != platform.AnswerOnce && ctx.Err() == nil && len(o.answers) < maxAnswers {
			o.answers[q] = answer // a refusal too: who asks in a loop is not to ask the user in a loop
		}
		close(p.done)
	}()
	return p, 0
}

// leave takes back a question that nobody waits for any more.
func (o *Observer) withdraw(q question, p *pending) {
	o.questions.mu.Lock()
	defer o.questions.mu.Unlock()
	if p.users--; p.users == 0 {
		p.cancel()
		if o.open[q] == p {
			delete(o.open, q)
		}
	}
}

// carryOut opens what was asked about, as the caller would: that very file, by
// the descriptor that has held it since the question was put, or a new one in
// that very directory, where nothing may have come to be meanwhile.
func (o *Observer) openForCaller(call *notify.Call, root int, f *finding) (fd int, err error) {
	caller, err := call.Identity()
	if err != nil {
		return -1, err
	}
	flags := int(f.flags)&(unix.O_ACCMODE|unix.O_APPEND|unix.O_TRUNC|unix.O_NONBLOCK|unix.O_SYNC|unix.O_DSYNC|unix.O_DIRECTORY|unix.O_NOATIME) |
		unix.O_CLOEXEC | unix.O_NOCTTY
	open := func() (int, error) { return unix.Open(fdPath(f.loc.fd), flags, 0) }
	if !f.loc.exists() {
		mask, err := call.Umask()
		if err != nil {
			return -1, err
		}
		if err := f.loc.openParent(root); err != nil {
			return -1, err
		}
		mode := f.mode & 0o7777 &^ mask
		open = func() (int, error) {
			made, err := unix.Openat(f.loc.parent, path.Base(f.loc.path), flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW,
				mode)
			if err != nil {
				return -1, err
			}
			// Our own umask has no say.
			if err := unix.Fchmod(made, mode); err != nil {
				unix.Close(made)
				return -1, err
			}
			return made, nil
		}
	}
	var failed error
	err = caller.As(func() { fd, failed = open() })
	return fd, errors.Join(err, failed)
}

// errnoOf is what the caller is told; what is no error of the kernel's is a
// refusal.
func errnoOf(err error) unix.Errno {
	if errno, is := errors.AsType[unix.Errno](err); is {
		return errno
	}
	return unix.EACCES
}
