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
	// timeout bounds the wait for an answer. No answer in time means no.
	timeout = time.Minute
	// maxQuestions bounds the accesses of one session that wait for an answer: of
	// the user, or of an answer that has opened their directory. Further ones are
	// denied without a question.
	maxQuestions = 256
	// maxAnswers bounds the answers that are remembered. Each answers one
	// access to one path.
	maxAnswers = 1024
)

// questions are the open questions of one session and the answers so far.
type questions struct {
	mu      sync.Mutex // guards the fields below
	open    map[question]*pending
	answers map[question]platform.Answer
}

type question struct {
	access platform.Refused
	target string
	about  string // what else the answer holds for
}

// pending is a question that waits for its answer. Callers with the same
// question share it.
type pending struct {
	done   chan struct{} // closed once answer is set
	answer platform.Answer
	users  int // callers that still wait
	cancel context.CancelFunc
	// named is the denial that the question shows. "Once" is for its caller, or if
	// that waits no more, for one other.
	named *platform.Denial
	once  bool // somebody has taken "once"
}

// ask asks the user before a call is denied, and opens the file for the caller
// if the answer allows it. Landlock then never sees the call. It returns false
// if nobody can be asked about this call, which must then continue.
func (o *Observer) ask(call *notify.Call, root int, f *finding) bool {
	if o.options.Ask == nil || !o.started.Load() || f.op != opOpen || !askable(f) {
		return false
	}
	if _, hidden := o.options.Policy.HiddenAt(f.loc.path); hidden {
		return false // the file that the caller sees is another
	}
	denial := o.describe(call, f.refusal)
	switch {
	case f.loc.isRemoved(): // nobody knows what it was called
	case f.loc.kind() == unix.S_IFDIR:
		denial.Directory = f.loc.path
	default:
		denial.Directory = f.loc.parentPath
	}
	switch allowed, answered := o.wait(call, denial, ""); {
	case answered:
		return true
	case !allowed:
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
	if err := o.given.add(fd); err != nil {
		call.Fail(errnoOf(err))
		return true
	}
	if err := call.ReturnFD(fd, f.flags.has(unix.O_CLOEXEC)); err != nil {
		call.Fail(errnoOf(err))
	}
	return true
}

// askable reports whether the sidecar can open the file for the caller without
// side effects. Opening a device or a FIFO may block or act.
func askable(f *finding) bool {
	kind := f.loc.kind()
	return !f.flags.has(unix.O_TMPFILE) && (!f.loc.exists() || kind == unix.S_IFREG || kind == unix.S_IFDIR)
}

// wait waits for the user's answer about a denial. answered is true if the call
// needs no other answer any more.
func (o *Observer) wait(call *notify.Call, denial platform.Denial, about string) (allowed, answered bool) {
	answer, err := o.answer(call, denial, about)
	switch {
	case errors.Is(err, notify.ErrGone):
		return false, true
	case errors.Is(err, unix.EINTR):
		call.Fail(unix.EINTR)
		return false, true
	}
	return err == nil && answer.Allows(), false
}

// answer is the user's answer about a denial. It holds for the same denial about
// the same.
func (o *Observer) answer(call *notify.Call, denial platform.Denial, about string) (platform.Answer, error) {
	if o.options.Learn {
		return o.options.Ask(context.Background(), denial), nil
	}
	var ready bool
	var err error
	answer := o.await(question{denial.Access, denial.Target, about}, &denial, func(p *pending) bool {
		ready, err = call.Await(p.done, timeout)
		return ready && err == nil
	})
	return answer, err
}

// await asks a question until there is an answer for this caller. wait returns
// false if the caller waits no more.
func (o *Observer) await(q question, denial *platform.Denial, wait func(*pending) bool) platform.Answer {
	for {
		p, known := o.submit(q, denial)
		if p == nil {
			return known
		}
		waited := wait(p)
		o.leave(q, p, denial, waited)
		if !waited {
			return platform.AnswerDeny
		}
		if answer, counts := o.take(p, denial); counts {
			return answer
		}
	}
}

// take returns the answer to a question. It returns false to a caller that
// "once" was not for, and that has to ask again.
func (o *Observer) take(p *pending, denial *platform.Denial) (answer platform.Answer, counts bool) {
	o.questions.mu.Lock()
	defer o.questions.mu.Unlock()
	if p.answer != platform.AnswerOnce {
		return p.answer, true
	}
	if p.once || p.named != nil && p.named != denial {
		return platform.AnswerDeny, false
	}
	p.once = true
	return p.answer, true
}

// submit asks a question. It returns nil and the answer at once if the question
// was answered for the whole session, or if too many questions are open. The
// caller is known by the address of its denial.
func (o *Observer) submit(q question, denial *platform.Denial) (*pending, platform.Answer) {
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
	p := &pending{done: make(chan struct{}), users: 1, cancel: cancel, named: denial}
	o.open[q] = p
	go func() {
		defer cancel()
		answer := o.options.Ask(ctx, *denial)
		o.questions.mu.Lock()
		defer o.questions.mu.Unlock()
		p.answer = answer
		if o.open[q] == p {
			delete(o.open, q)
		}
		if answer.Lasts() && ctx.Err() == nil && len(o.answers) < maxAnswers {
			o.answers[q] = answer // a no as well: a program that retries in a loop must not ask the user again
		}
		close(p.done)
	}()
	return p, 0
}

// Asks reports whether somebody answers questions, and takes the time to think.
func (o *Observer) Asks() bool { return o.options.Ask != nil && !o.options.Learn }

// AskHost asks the user about a connection to a host, "host:port". It returns
// at the latest when ctx ends.
func (o *Observer) AskHost(ctx context.Context, denial platform.Denial) (allowed bool) {
	if !o.Asks() || !o.started.Load() {
		return false
	}
	answer := o.await(question{access: platform.RefusedConnect, target: denial.Target}, &denial, func(p *pending) bool {
		select {
		case <-p.done:
			return true
		case <-ctx.Done():
			return false
		}
	})
	return answer.Allows()
}

// HostApproved reports whether the user has allowed a host for the session.
func (o *Observer) HostApproved(target string) bool {
	o.questions.mu.Lock()
	defer o.questions.mu.Unlock()
	answer, known := o.answers[question{access: platform.RefusedConnect, target: target}]
	return known && answer.Allows()
}

// leave ends a caller's wait. It cancels a question that nobody waits for.
func (o *Observer) leave(q question, p *pending, denial *platform.Denial, waited bool) {
	o.questions.mu.Lock()
	defer o.questions.mu.Unlock()
	if !waited && p.named == denial {
		p.named = nil
	}
	if p.users--; p.users == 0 {
		p.cancel()
		if o.open[q] == p {
			delete(o.open, q)
		}
	}
}

// openForCaller opens the file with the caller's identity. An existing file is
// opened through the descriptor held since the question was asked, so it is
// that very file. A new file is created in the directory held since then, and
// only if the name is still free. Both are found again in the sidecar's own
// mounts if they are read-only in the session's.
func (o *Observer) openForCaller(call *notify.Call, root int, f *finding) (fd int, err error) {
	caller, err := call.Identity()
	if err != nil {
		return -1, err
	}
	const passed = unix.O_ACCMODE | unix.O_APPEND | unix.O_TRUNC | unix.O_NONBLOCK | unix.O_SYNC | unix.O_DSYNC |
		unix.O_DIRECTORY | unix.O_NOATIME
	flags := int(f.flags)&passed | unix.O_CLOEXEC | unix.O_NOCTTY
	held, name := f.loc.fd, f.loc.path
	open := func(held int) (int, error) { return unix.Open(fdPath(held), flags, 0) }
	if !f.loc.exists() {
		mask, err := call.Umask()
		if err != nil {
			return -1, err
		}
		if err := f.loc.openParent(root); err != nil {
			return -1, err
		}
		held, name = f.loc.parent, f.loc.parentPath
		mode := f.mode & 0o777 &^ mask // nobody was shown a mark such as set-user-id
		open = func(held int) (int, error) {
			made, err := unix.Openat(held, path.Base(f.loc.path), flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW,
				mode)
			if err != nil {
				return -1, err
			}
			// Open without the sidecar's own umask; the caller's was applied
			// above.
			if err := unix.Fchmod(made, mode); err != nil {
				unix.Close(made)
				return -1, err
			}
			return made, nil
		}
	}
	var failed error
	err = caller.As(func() {
		if fd, failed = open(held); !errors.Is(failed, unix.EROFS) {
			return
		}
		writable, err := outside(held, name)
		if err != nil {
			return
		}
		defer unix.Close(writable)
		fd, failed = open(writable)
	})
	return fd, errors.Join(err, failed)
}

// errnoOf returns the error number for the caller. An error that is not the
// kernel's becomes EACCES.
func errnoOf(err error) unix.Errno {
	if errno, is := errors.AsType[unix.Errno](err); is {
		return errno
	}
	return unix.EACCES
}
