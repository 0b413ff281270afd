package resolve

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// maxQuestions bounds a transcript. A longer one never holds.
const maxQuestions = 10_000

// Transcript is what was asked of a machine, with the answers. A result that is
// made of nothing else is still right as long as the transcript holds: the
// same work would get the same answers again.
type Transcript struct {
	fs FS

	mu     sync.Mutex // guards the fields below
	asked  map[question]int
	list   []exchange
	others []func() bool
	broken bool // it never holds
	closed bool
}

type question struct {
	call call
	name string
}

type exchange struct {
	question
	answer
}

// call is a function of FS.
type call int

const (
	callLstat call = iota
	callReadlink
	callReadDir
	callReadFile
	callDirs
	callFind
	callLinks
	callModes
	callOldest
	callHostname
	callHomeOf
	callAddresses
)

// answer is what a call returned. Of what may be long it keeps the digest.
type answer struct {
	mode fs.FileMode
	text string
	err  error
}

// Record returns a machine that answers as f does, and the transcript of what it
// is asked. Close ends the transcript.
func Record(f FS) (FS, *Transcript) {
	t := &Transcript{fs: f, asked: map[question]int{}}
	return FS{
		Lstat: func(path string) (fs.FileMode, error) {
			mode, err := f.Lstat(path)
			t.add(question{callLstat, path}, answer{mode: mode, err: err})
			return mode, err
		},
		Readlink: func(path string) (string, error) {
			target, err := f.Readlink(path)
			t.add(question{callReadlink, path}, answer{text: target, err: err})
			return target, err
		},
		ReadDir: func(path string) ([]string, error) {
			names, err := f.ReadDir(path)
			t.add(question{callReadDir, path}, answer{text: digestOf(names), err: err})
			return names, err
		},
		ReadFile: func(path string) ([]byte, error) {
			data, err := f.ReadFile(path)
			t.add(question{callReadFile, path}, answer{text: digest(data), err: err})
			return data, err
		},
		Dirs: func(path string) ([]string, error) {
			names, err := f.Dirs(path)
			t.add(question{callDirs, path}, answer{text: digestOf(names), err: err})
			return names, err
		},
		Find: func(root string, patterns []string) ([]string, error) {
			paths, err := f.Find(root, patterns)
			asked := root + separator + strings.Join(patterns, separator)
			t.add(question{callFind, asked}, answer{text: digestOf(paths), err: err})
			return paths, err
		},
		Links: func(roots []string) ([]string, error) {
			paths, err := f.Links(roots)
			t.add(question{callLinks, strings.Join(roots, separator)}, answer{text: digestOf(paths), err: err})
			return paths, err
		},
		Modes: func(path string) (Modes, error) {
			list, err := f.Modes(path)
			t.add(question{callModes, path}, answer{text: list.sum, err: err})
			return list, err
		},
		Oldest: func(dir, file string, most int) ([]string, error) {
			names, err := f.Oldest(dir, file, most)
			asked := dir + separator + file + separator + strconv.Itoa(most)
			t.add(question{callOldest, asked}, answer{text: digestOf(names), err: err})
			return names, err
		},
		Hostname: func() (string, error) {
			name, err := f.Hostname()
			t.add(question{callHostname, ""}, answer{text: name, err: err})
			return name, err
		},
		HomeOf: func(user string) (string, error) {
			home, err := f.HomeOf(user)
			t.add(question{callHomeOf, user}, answer{text: home, err: err})
			return home, err
		},
		Addresses: func() ([]string, error) {
			list, err := f.Addresses()
			t.add(question{callAddresses, ""}, answer{text: digestOf(list), err: err})
			return list, err
		},
	}, t
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return string(sum[:])
}

// separator is in no name.
const separator = "\x00"

// digestOf is the digest of names or paths.
func digestOf(names []string) string { return digest([]byte(strings.Join(names, separator))) }

// ask calls f again.
func (q question) ask(f FS) (a answer) {
	switch q.call {
	case callLstat:
		a.mode, a.err = f.Lstat(q.name)
	case callReadlink:
		a.text, a.err = f.Readlink(q.name)
	case callReadDir, callDirs:
		read := f.ReadDir
		if q.call == callDirs {
			read = f.Dirs
		}
		var names []string
		names, a.err = read(q.name)
		a.text = digestOf(names)
	case callFind:
		parts := strings.Split(q.name, separator)
		var paths []string
		paths, a.err = f.Find(parts[0], parts[1:])
		a.text = digestOf(paths)
	case callLinks:
		var roots, paths []string
		if q.name != "" {
			roots = strings.Split(q.name, separator)
		}
		paths, a.err = f.Links(roots)
		a.text = digestOf(paths)
	case callModes:
		var list Modes
		list, a.err = f.Modes(q.name)
		a.text = list.sum
	case callOldest:
		parts := strings.Split(q.name, separator)
		most, _ := strconv.Atoi(parts[2]) // Record wrote it
		var names []string
		names, a.err = f.Oldest(parts[0], parts[1], most)
		a.text = digestOf(names)
	case callReadFile:
		var data []byte
		data, a.err = f.ReadFile(q.name)
		a.text = digest(data)
	case callHostname:
		a.text, a.err = f.Hostname()
	case callHomeOf:
		a.text, a.err = f.HomeOf(q.name)
	case callAddresses:
		var list []string
		list, a.err = f.Addresses()
		a.text = digestOf(list)
	}
	return a
}

func (t *Transcript) add(q question, a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, known := t.asked[q]
	switch {
	case known && !t.list[i].answer.equal(a), errors.Is(a.err, fsguard.ErrNoAnswer), t.closed,
		len(t.list) == maxQuestions:
		t.broken = true
	case !known:
		t.asked[q] = len(t.list)
		t.list = append(t.list, exchange{q, a})
	}
}

// Also adds what else must be true for the transcript to hold.
func (t *Transcript) Also(holds func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.others = append(t.others, holds)
	t.broken = t.broken || t.closed
}

// Close ends the transcript. If anything is asked later, it does not hold.
func (t *Transcript) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed, t.asked = true, nil
	if t.broken {
		t.list, t.others = nil, nil
	}
}

// Holds asks everything again and reports whether all answers are the same.
// Several goroutines may call it.
func (t *Transcript) Holds() bool {
	t.mu.Lock()
	usable, list, others := t.closed && !t.broken, t.list, t.others
	t.mu.Unlock()
	if !usable {
		return false
	}
	for i := range list {
		if !list[i].ask(t.fs).equal(list[i].answer) {
			return false
		}
	}
	for _, holds := range others {
		if !holds() {
			return false
		}
	}
	return true
}

// equal reports whether nobody can tell the answers apart. Errors are compared as
// a whole, because their text may be shown.
func (a answer) equal(b answer) bool {
	return a.mode == b.mode && a.text == b.text && (a.err == nil && b.err == nil || reflect.DeepEqual(a.err, b.err))
}
