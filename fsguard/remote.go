package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// timeout bounds the wait for a file system. One that is mounted on first use,
// or whose disk must spin up, needs seconds.
const timeout = 2 * time.Second

// haste replaces timeout once the program is about to end.
const haste = 200 * time.Millisecond

// atOnce is how many calls on one file system may be under way. That many
// threads of the helper wait if it does not answer.
const atOnce = 4

type operation string

const (
	opStat     operation = "stat"
	opLstat    operation = "lstat"
	opReadlink operation = "readlink"
	opReadDir  operation = "readdir"
	opReadFile operation = "read"
	opMkdirAll operation = "mkdir"
	opReplace  operation = "replace"
	opCreate   operation = "create"
	opPlain    operation = "plain"
	opWatch    operation = "watch"
)

// request is a call for the helper.
type request struct {
	ID   uint64
	Op   operation
	Path text
	Most int         `json:",omitempty"`
	Mode fs.FileMode `json:",omitempty"`
	Mask uint32      `json:",omitempty"`
	Data []byte      `json:",omitempty"`
	// InFile says that the data is in a file whose descriptor comes along.
	InFile bool `json:",omitempty"`

	passed int // a descriptor: for opWatch, or of that file
}

// text is a string whose bytes are kept: names need not be UTF-8, which JSON
// would make of them.
type text []byte

// result is the result of a call.
type result struct {
	Info, After *fileInfo `json:",omitempty"`
	Text        text      `json:",omitempty"`
	Entries     []entry   `json:",omitempty"`
	Data        []byte    `json:",omitempty"`
	Number      int       `json:",omitempty"`
}

type entry struct {
	Name text
	Type fs.FileMode
}

// remote is a file system that may not answer.
type remote struct {
	kind    string
	slots   chan struct{} // one token for each call under way
	timeout time.Duration // how long a call may take

	mu      sync.Mutex // guards overdue
	overdue int        // calls that were given up and are still under way
}

// remotes are recorded by the names of their devices. A number is reused only
// after its file system was unmounted, so no call is under way on it then.
var remotes struct {
	mu sync.Mutex // guards by
	by map[string]*remote
}

func remoteNamed(device, kind string) *remote {
	remotes.mu.Lock()
	defer remotes.mu.Unlock()
	if remotes.by == nil {
		remotes.by = map[string]*remote{}
	}
	r := remotes.by[device]
	if r == nil {
		r = &remote{kind: kind, slots: make(chan struct{}, atOnce), timeout: timeout}
		remotes.by[device] = r
	}
	return r
}

var hurried struct {
	once sync.Once
	soon chan struct{}
}

func init() { hurried.soon = make(chan struct{}) }

// Hurry is for a program that is about to end: from now on no call waits long
// for a file system.
func Hurry() { hurried.once.Do(func() { close(hurried.soon) }) }

// wait returns a channel that is closed when the timeout has ended, and a
// function that releases it.
func wait(timeout time.Duration) (<-chan struct{}, func()) {
	ended, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		long := time.NewTimer(timeout)
		defer long.Stop()
		select {
		case <-long.C:
			return
		case <-stop:
			return
		case <-hurried.soon:
		}
		short := time.NewTimer(haste)
		defer short.Stop()
		select {
		case <-short.C:
		case <-long.C:
		case <-stop:
		}
	}()
	return ended, func() { close(stop) }
}

// call makes a call on this file system, and gives it up when it takes too
// long.
func (r *remote) call(q request) (result, error) {
	noAnswer := &fs.PathError{Op: string(q.Op), Path: string(q.Path), Err: ErrNoAnswer}
	r.mu.Lock()
	silent := r.overdue > 0
	r.mu.Unlock()
	if silent {
		return result{}, noAnswer
	}
	ended, stop := wait(r.timeout)
	defer stop()
	select {
	case r.slots <- struct{}{}:
	case <-ended:
		return result{}, noAnswer
	}
	answers := transport(q)
	select {
	case a := <-answers:
		<-r.slots
		return a.result, a.err(q)
	case <-ended:
	}
	r.mu.Lock()
	r.overdue++
	r.mu.Unlock()
	go func() {
		<-answers
		<-r.slots
		r.mu.Lock()
		r.overdue--
		r.mu.Unlock()
	}()
	return result{}, noAnswer
}

func (r *remote) info(q request) (fs.FileInfo, error) {
	done, err := r.call(q)
	if err != nil {
		return nil, err
	}
	return done.Info, nil
}

// answer is a result with an error that can be sent to another process.
type answer struct {
	ID uint64
	result
	Failed bool
	// Errno is the system's error number, if the error has one; otherwise Cause
	// is its text.
	Errno uintptr
	Cause string
}

func answerOf(done result, err error) answer {
	a := answer{result: done}
	if err != nil {
		a.Failed, a.Cause = true, err.Error()
		var errno syscall.Errno
		if errors.As(err, &errno) {
			a.Errno = uintptr(errno)
		}
	}
	return a
}

func (a *answer) err(q request) error {
	switch {
	case !a.Failed:
		return nil
	case a.Errno != 0:
		return &fs.PathError{Op: string(q.Op), Path: string(q.Path), Err: syscall.Errno(a.Errno)}
	}
	return &fs.PathError{Op: string(q.Op), Path: string(q.Path), Err: errors.New(a.Cause)}
}

// perform makes a call on this thread.
func perform(q request) answer {
	var done result
	var err error
	path := string(q.Path)
	switch q.Op {
	case opStat:
		done.Info, err = infoOf(os.Stat(path))
	case opLstat:
		done.Info, err = infoOf(os.Lstat(path))
	case opReadlink:
		var target string
		target, err = os.Readlink(path)
		done.Text = text(target)
	case opReadDir:
		var list []Entry
		list, err = readDir(path, q.Most)
		for _, found := range list {
			done.Entries = append(done.Entries, entry{text(found.Name), found.Type})
		}
	case opReadFile:
		var read File
		if read, err = readFile(path, q.Most); err == nil {
			done.Data = read.Data
			done.Info, _ = infoOf(read.Before, nil)
			done.After, _ = infoOf(read.After, nil)
		}
	case opMkdirAll:
		err = os.MkdirAll(path, q.Mode)
	case opReplace:
		err = replace(path, q.Data, q.Mode)
	case opCreate:
		err = create(path, q.Data, q.Mode)
	default:
		if call := defined[q.Op]; call != nil {
			done.Data, err = call(path, q.Data)
			break
		}
		done.Number, err = performHere(q)
	}
	return answerOf(done, err)
}

// inProcess makes a call on a goroutine, whose thread waits as long as the call
// takes.
func inProcess(q request) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- perform(q) }()
	return answers
}

// fileInfo is a fs.FileInfo that can be sent to another process.
type fileInfo struct {
	FileName text
	FileSize int64
	FileMode fs.FileMode
	// Seconds and Nanos are the modification time since 1970. JSON has no times
	// after the year 9999, which a file may have.
	Seconds, Nanos int64
	Stat           *systemStat
}

func infoOf(info fs.FileInfo, err error) (*fileInfo, error) {
	if err != nil {
		return nil, err
	}
	stat, _ := info.Sys().(*systemStat)
	modified := info.ModTime()
	return &fileInfo{
		text(info.Name()), info.Size(), info.Mode(), modified.Unix(),
		int64(modified.Nanosecond()), stat,
	}, nil
}

func (i *fileInfo) Name() string       { return string(i.FileName) }
func (i *fileInfo) Size() int64        { return i.FileSize }
func (i *fileInfo) Mode() fs.FileMode  { return i.FileMode }
func (i *fileInfo) ModTime() time.Time { return time.Unix(i.Seconds, i.Nanos) }
func (i *fileInfo) IsDir() bool        { return i.FileMode.IsDir() }
func (i *fileInfo) Sys() any           { return i.Stat }
