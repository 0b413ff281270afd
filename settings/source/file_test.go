package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

const (
	enabled  = `{"terminal": {"sandbox": {"enabled": true}}}`
	disabled = `{"terminal": {"sandbox": {"enabled": false}}}`
)

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFile_GapWithinASaveIsNotSeen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		gap  func(t *testing.T, path string)
		then bool // the last good content counts if the gap stays
	}{
		"moved away": {func(t *testing.T, path string) { must(t, os.Rename(path, path+"~")) }, false},
		"truncated":  {func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "settings.json")
			write(t, path, enabled)
			// In the bubble time stands still while files are read and written,
			// however slow the machine is.
			synctest.Test(t, func(t *testing.T) {
				source := newFile(path, "linux")
				source.refresh()
				test.gap(t, path)
				time.AfterFunc(settleTime/2, func() { write(t, path, enabled+" ") })
				if !source.refresh() || source.state.Good == nil || source.state.Good.Values.Enabled == nil {
					t.Error("the settings were gone for a moment")
				}
				test.gap(t, path)
				if !source.refresh() || source.state.Good.HasSettings() != test.then ||
					(source.state.Problem != nil) != test.then {
					t.Errorf("after the gap it counts: %t, problem %v", source.state.Good.HasSettings(),
						source.state.Problem)
				}
			})
		})
	}
}

func TestFile_UnchangedFilesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settings.json")
	write(t, path, enabled)
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, old, old))
	source := newFile(path, "linux")
	source.refresh()
	// The change time cannot be set back, so the test clears the flag: an
	// hour-old file is not racy.
	source.racy = false
	before := source.state.Good
	if source.refresh() || source.state.Good != before {
		t.Error("an unchanged file counts as changed")
	}
	write(t, path+".tmp", disabled)
	must(t, os.Rename(path+".tmp", path))
	must(t, os.Chtimes(path, old, old))
	if !source.refresh() {
		t.Error("another file with the same times is not seen")
	}
}

// While a file system does not answer, what was read of a file stays. The file
// never counts as absent.
func TestFile_ThatDoesNotAnswerIsNotAbsent(t *testing.T) {
	t.Parallel()
	s := newFile("/somewhere/settings.json", "linux")
	state, changed := s.unusable(&fs.PathError{Op: "stat", Path: s.path, Err: fsguard.ErrNoAnswer})
	if !changed || !state.Exists || !state.NoAnswer || state.Problem == nil ||
		!strings.Contains(state.Problem.Message, "does not answer") {
		t.Errorf("a file that was never seen is %+v", state)
	}
	if err := error(&fs.PathError{Err: fsguard.ErrNoAnswer}); textfile.Missing(err) || errors.Is(err, fs.ErrNotExist) {
		t.Error("it counts as missing")
	}
}
