package resolve

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// counting counts the calls of a machine by the names of its functions.
func counting(f FS, asked map[string]int) FS {
	counted := f
	functions := reflect.ValueOf(&counted).Elem()
	for i := range functions.NumField() {
		name, call := functions.Type().Field(i).Name, reflect.ValueOf(f).Field(i)
		functions.Field(i).Set(reflect.MakeFunc(call.Type(), func(arguments []reflect.Value) []reflect.Value {
			asked[name]++
			return call.Call(arguments)
		}))
	}
	return counted
}

// What a file or a directory holds is asked once, whatever the answer is. What is
// no such question goes through.
func TestOnce_AsksAboutContentOnce(t *testing.T) {
	t.Parallel()
	content := []string{"ReadFile", "ReadDir", "Dirs", "Modes"}
	missing := &fs.PathError{Op: "open", Path: "/a", Err: fs.ErrNotExist}
	for _, err := range []error{nil, missing} {
		m := &machine{err: err, answers: map[string]any{
			"ReadFile": []byte("a"), "ReadDir": []string{"a"}, "Dirs": []string{"a"},
			"Modes": NewModes([]fsguard.Entry{{Name: "a", Type: 0o600}}),
		}}
		asked := map[string]int{}
		once, forget := Once(counting(m.FS(), asked))
		for i := range reflect.TypeFor[FS]().NumField() {
			call, want := reflect.TypeFor[FS]().Field(i).Name, 3
			if slices.Contains(content, call) {
				want = 1
			}
			for range 3 {
				askBy(once, call)
			}
			if asked[call] != want {
				t.Errorf("%s, %v: asked %d times, want %d", call, err, asked[call], want)
			}
		}
		forget()
		for _, call := range content {
			askBy(once, call)
			askBy(once, call)
			if asked[call] != 3 {
				t.Errorf("control: %s, %v: asked %d times after forget, want 3", call, err, asked[call])
			}
		}
	}
}

// The answer is that of the first time, for the path that was asked about.
func TestOnce_AnswersAsTheFirstTime(t *testing.T) {
	t.Parallel()
	texts, failed := map[string]string{"/a": "first", "/b": "other"}, errors.New("failed")
	once, forget := Once(FS{ReadFile: func(path string) ([]byte, error) {
		if texts[path] == "" {
			return nil, failed
		}
		return []byte(texts[path]), nil
	}})
	check := func(when, path, want string, wantErr error) {
		t.Helper()
		if got, err := once.ReadFile(path); string(got) != want || !errors.Is(err, wantErr) {
			t.Errorf("%s, %s: %q, %v", when, path, got, err)
		}
	}
	check("first", "/a", "first", nil)
	check("first", "/c", "", failed)
	texts["/a"], texts["/c"] = "then", "made"
	check("changed", "/a", "first", nil)
	check("changed", "/b", "other", nil)
	check("changed", "/c", "", failed)
	forget()
	check("control: forgotten", "/a", "then", nil)
	check("control: forgotten", "/c", "made", nil)
}

// Large files do not fill the memory: they are read each time.
func TestOnce_IsBounded(t *testing.T) {
	t.Parallel()
	large, asked := []byte(strings.Repeat("x", maxOnce/2)), map[string]int{}
	once, _ := Once(FS{ReadFile: func(path string) ([]byte, error) {
		asked[path]++
		if path == "/small" {
			return []byte("x"), nil
		}
		return large, nil
	}})
	for range 2 {
		for _, path := range []string{"/1", "/2", "/3", "/small"} {
			if data, err := once.ReadFile(path); len(data) == 0 || err != nil {
				t.Errorf("%s: %d bytes, %v", path, len(data), err)
			}
		}
	}
	for path, want := range map[string]int{"/1": 1, "/2": 2, "/3": 2, "/small": 1} {
		if asked[path] != want {
			t.Errorf("%s was read %d times, want %d", path, asked[path], want)
		}
	}
}
