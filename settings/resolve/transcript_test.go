package resolve

import (
	"errors"
	"io/fs"
	"reflect"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// machine answers each call by its name.
type machine struct {
	answers map[string]any
	err     error
}

func answerOf[T any](m *machine, call string) (T, error) {
	a, _ := m.answers[call].(T)
	return a, m.err
}

func (m *machine) FS() FS {
	return FS{
		Lstat:     func(string) (fs.FileMode, error) { return answerOf[fs.FileMode](m, "Lstat") },
		Readlink:  func(string) (string, error) { return answerOf[string](m, "Readlink") },
		ReadDir:   func(string) ([]string, error) { return answerOf[[]string](m, "ReadDir") },
		ReadFile:  func(string) ([]byte, error) { return answerOf[[]byte](m, "ReadFile") },
		Dirs:      func(string) ([]string, error) { return answerOf[[]string](m, "Dirs") },
		Find:      func(string, []string) ([]string, error) { return answerOf[[]string](m, "Find") },
		Links:     func([]string) ([]string, error) { return answerOf[[]string](m, "Links") },
		Modes:     func(string) (Modes, error) { return answerOf[Modes](m, "Modes") },
		Oldest:    func(string, string, int) ([]string, error) { return answerOf[[]string](m, "Oldest") },
		Hostname:  func() (string, error) { return answerOf[string](m, "Hostname") },
		HomeOf:    func(string) (string, error) { return answerOf[string](m, "HomeOf") },
		Addresses: func() ([]string, error) { return answerOf[[]string](m, "Addresses") },
	}
}

// askBy makes one call of an FS.
func askBy(f FS, call string) {
	function := reflect.ValueOf(f).FieldByName(call)
	var arguments []reflect.Value
	for i := range function.Type().NumIn() {
		arguments = append(arguments, reflect.Zero(function.Type().In(i)))
	}
	function.Call(arguments)
}

// Whatever an evaluation asks, another answer ends the transcript: each function
// of FS, and each answer that differs in any way.
func TestTranscript_EndsWithAnyOtherAnswer(t *testing.T) {
	t.Parallel()
	others := map[string][]any{
		"Lstat":    {fs.ModeDir | 0o755, fs.ModeDir | 0o700, fs.ModeSymlink, fs.FileMode(0)},
		"Readlink": {"a", "b", ""},
		"ReadDir":  {[]string{"a", "b"}, []string{"a"}, []string{"b", "a"}, []string{}},
		"ReadFile": {[]byte("a"), []byte("b"), []byte("")},
		"Find":     {[]string{}, []string{"/a"}, []string{"/a", "/b"}, []string{"/a/b"}},
		"Oldest":   {[]string{}, []string{"a"}, []string{"a", "b"}, []string{"b", "a"}},
		"Links":    {[]string{}, []string{"/a"}, []string{"/a", "/b"}, []string{"/a/b"}},
		"Dirs":     {[]string{"a", "b"}, []string{"a"}, []string{"ab"}, []string{}},
		"Modes": {
			NewModes([]fsguard.Entry{{Name: "a", Type: 0o600}}), NewModes([]fsguard.Entry{{Name: "a", Type: 0o644}}),
			NewModes([]fsguard.Entry{{Name: "b", Type: 0o600}}), NewModes(nil),
		},
		"Hostname":  {"a", "b", ""},
		"HomeOf":    {"/a", "/b", ""},
		"Addresses": {[]string{}, []string{"10.0.0.1"}, []string{"10.0.0.1", "10.0.0.2"}},
	}
	missing := &fs.PathError{Op: "lstat", Path: "/a", Err: syscall.ENOENT}
	failures := []error{
		nil, missing, &fs.PathError{Op: "lstat", Path: "/a", Err: syscall.EACCES},
		&fs.PathError{Op: "lstat", Path: "/b", Err: syscall.ENOENT}, errors.New(missing.Error()),
	}
	for i := range reflect.TypeFor[FS]().NumField() {
		call := reflect.TypeFor[FS]().Field(i).Name
		for _, first := range others[call] {
			for _, then := range others[call] {
				for _, err := range failures {
					for _, thenErr := range failures {
						m := &machine{answers: map[string]any{call: first}, err: err}
						f, transcript := Record(m.FS())
						askBy(f, call)
						transcript.Close()
						m.answers[call], m.err = then, thenErr
						same := reflect.DeepEqual(first, then) && reflect.DeepEqual(err, thenErr)
						if got := transcript.Holds(); got != same {
							t.Errorf("%s: %v (%v), then %v (%v): it holds: %t", call, first, err, then, thenErr, got)
						}
					}
				}
			}
		}
		if len(others[call]) == 0 {
			t.Errorf("%s is not tried", call)
		}
	}
}

func TestTranscript_HoldsOnlyIfItIsWhole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(m *machine, f FS, transcript *Transcript)
		holds bool
	}{
		"nothing happens": {func(*machine, FS, *Transcript) {}, true},
		"the same, twice": {func(_ *machine, f FS, _ *Transcript) { _, _ = f.Lstat("/a") }, true},
		"another path":    {func(_ *machine, f FS, _ *Transcript) { _, _ = f.Lstat("/b") }, true},
		"something else": {func(_ *machine, _ FS, transcript *Transcript) {
			transcript.Also(func() bool { return true })
		}, true},
		"something else not": {func(_ *machine, _ FS, transcript *Transcript) {
			transcript.Also(func() bool { return false })
		}, false},
		"two answers": {func(m *machine, f FS, _ *Transcript) {
			m.answers["Lstat"] = fs.ModeDir
			_, _ = f.Lstat("/a")
			m.answers["Lstat"] = fs.FileMode(0o644)
		}, false},
		"no answer": {func(m *machine, f FS, _ *Transcript) {
			m.err = &fs.PathError{Op: "lstat", Path: "/b", Err: fsguard.ErrNoAnswer}
			_, _ = f.Lstat("/b")
		}, false},
		"asked after its end": {func(_ *machine, f FS, transcript *Transcript) {
			transcript.Close()
			_, _ = f.Lstat("/a")
		}, false},
		"too long": {func(_ *machine, f FS, _ *Transcript) {
			for i := range maxQuestions {
				_, _ = f.Lstat("/" + string(rune(0x1000+i)))
			}
		}, false},
	} {
		m := &machine{answers: map[string]any{"Lstat": fs.FileMode(0o644)}}
		f, transcript := Record(m.FS())
		_, _ = f.Lstat("/a")
		if transcript.Holds() {
			t.Errorf("%s: it holds before its end", name)
		}
		test.spoil(m, f, transcript)
		transcript.Close()
		if got := transcript.Holds(); got != test.holds {
			t.Errorf("%s: it holds: %t", name, got)
		}
	}
}
