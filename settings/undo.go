package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// lastAllowed is the last change that Allow or Confirm has made, with all that
// takes it back. Paths and values may be no UTF-8.
type lastAllowed struct {
	Version int       `json:"version"`
	File    []byte    `json:"file"`
	Dir     []byte    `json:"dir"`
	Name    []byte    `json:"name"`
	Project []byte    `json:"project,omitempty"`
	Key     string    `json:"key"`
	Value   []byte    `json:"value"`
	Before  content   `json:"before"`
	After   string    `json:"after"`             // digest
	Trusted string    `json:"trusted,omitempty"` // digest of the project's file that was trusted
	At      time.Time `json:"at"`
}

const (
	// lastVersion is that of the file's format. A file of another version stays as
	// it is.
	lastVersion = 1
	// allowingTimeout bounds the wait for another sidecar that changes settings.
	allowingTimeout = 5 * time.Second
)

// ErrNothingToUndo means that there is no last change.
var ErrNothingToUndo = errors.New("nothing was allowed that could be taken back")

// lockAllowing keeps other sidecars of the user from changing settings meanwhile.
// Without a home there is none to lock.
func (s *Store) lockAllowing() (unlock func(), err error) {
	path := s.host.Kept().LastAllowed()
	if path == "" {
		return func() {}, nil
	}
	if err := fsguard.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if unlock, err = fsguard.Lock(path+".lock", allowingTimeout); err != nil {
		return nil, fmt.Errorf("lock %s: %w", display.Quote(path), err)
	}
	return unlock, nil
}

// rememberLast keeps a change in the place of the one before.
func (s *Store) rememberLast(last lastAllowed) error {
	path := s.host.Kept().LastAllowed()
	if path == "" {
		return fsguard.ErrNoHome
	}
	data, err := json.Marshal(last)
	if err != nil {
		return err
	}
	return fsguard.Replace(path, append(data, '\n'), 0o600)
}

// Undo takes the last change of Allow or Confirm back, whichever project it was
// for: the file is again what it was, byte by byte. It returns the file and what
// was taken out. The error is ErrNothingToUndo, or ErrChanged if the file is not
// what that change has made of it. A project that is trusted now stays so if it was
// trusted before the change.
func (s *Store) Undo() (file string, undone explain.Suggestion, err error) {
	unlock, err := s.lockAllowing()
	if err != nil {
		return "", undone, fmt.Errorf("take back: %w", err)
	}
	defer unlock()
	path := s.host.Kept().LastAllowed()
	if path == "" {
		return "", undone, ErrNothingToUndo
	}
	read, err := fsguard.ReadFile(path, 2*textfile.MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", undone, ErrNothingToUndo
	case err != nil:
		return "", undone, fmt.Errorf("take back: %w", err)
	}
	var last lastAllowed
	if err := json.Unmarshal(read.Data, &last); err != nil || last.Version != lastVersion {
		return "", undone, fmt.Errorf("take back: %s is of another version of this program: use that one",
			display.Quote(path))
	}
	file, project := string(last.File), string(last.Project)
	undone = explain.Suggestion{Key: last.Key, Value: string(last.Value)}
	// The user may have withdrawn the trust since.
	trusted := project != "" && last.Trusted != "" && s.Snapshot(project).Project().Trusted
	what := order{Name: string(last.Name), Project: project != "", Put: &last.Before, Expect: last.After}
	if _, err := what.carryOut(string(last.Dir)); err != nil {
		return file, undone, fmt.Errorf("take back: %s: %w", display.Quote(file), err)
	}
	s.sources.State(file)
	s.note(project, audit.Event{Event: audit.SettingsChanged, Files: []string{file}})
	err = os.Remove(path)
	switch {
	case project == "":
	case trusted:
		_, trustErr := s.Trust(project, last.Trusted)
		err = errors.Join(err, trustErr)
	default:
		_, trustErr := s.Untrust(project)
		err = errors.Join(err, trustErr)
	}
	return file, undone, err
}
