package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// changes are what Allow and Confirm have changed, the newest last.
type changes struct {
	Version int           `json:"version"`
	List    []lastAllowed `json:"changes"`
}

// lastAllowed is a change that Allow or Confirm has made, with all that takes it
// back. Paths and values may be no UTF-8.
type lastAllowed struct {
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
	// lastVersion is that of the file's format. Nothing of a file of another version
	// is taken back.
	lastVersion = 2
	// mostChanges bounds the changes that are kept, and textfile.MaxSize the bytes
	// of what was there before them.
	mostChanges = 10
	// allowingTimeout bounds the wait for another sidecar that changes settings.
	allowingTimeout = 5 * time.Second
)

// ErrNothingToUndo means that no change is kept. Older ones may count still.
var ErrNothingToUndo = errors.New("no change is kept that could be taken back")

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

// readChanges reads what is kept. There is nothing if there is no file.
func readChanges(path string) (kept changes, err error) {
	read, err := fsguard.ReadFile(path, 2*textfile.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return changes{}, nil
	}
	if err != nil {
		return changes{}, err
	}
	if err := json.Unmarshal(read.Data, &kept); err != nil || kept.Version != lastVersion {
		return changes{}, fmt.Errorf("%s is of another version of this program: use that one", display.Quote(path))
	}
	return kept, nil
}

// writeChanges keeps the newest of a list.
func writeChanges(path string, list []lastAllowed) error {
	from, size := len(list), 0
	for from > 0 && len(list)-from < mostChanges {
		if size += len(list[from-1].Before.Data); size > textfile.MaxSize && from < len(list) {
			break
		}
		from--
	}
	data, err := json.Marshal(changes{Version: lastVersion, List: list[from:]})
	if err != nil {
		return err
	}
	return fsguard.Replace(path, append(data, '\n'), 0o600)
}

// rememberLast keeps a change after those before.
func (s *Store) rememberLast(last lastAllowed) error {
	path := s.host.Kept().LastAllowed()
	if path == "" {
		return fsguard.ErrNoHome
	}
	kept, err := readChanges(path)
	if err != nil {
		s.log.Info("what was allowed before cannot be taken back by allow --undo", "error", err)
	}
	return writeChanges(path, append(kept.List, last))
}

// Undo takes the last change of Allow or Confirm back that is kept, whichever
// project it was for: the file is again what it was, byte by byte. It returns the
// file and what was taken out. The error is ErrNothingToUndo, or ErrChanged if the
// file is not what that change has made of it: that change is kept no more. A
// project that is trusted now stays so if it was trusted before the change.
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
	kept, err := readChanges(path)
	if err != nil {
		return "", undone, fmt.Errorf("take back: %w", err)
	}
	before := len(kept.List) - 1
	if before < 0 {
		return "", undone, ErrNothingToUndo
	}
	last := kept.List[before]
	file, project := string(last.File), string(last.Project)
	undone = explain.Suggestion{Key: last.Key, Value: string(last.Value)}
	// The user may have withdrawn the trust since.
	trusted := project != "" && last.Trusted != "" && s.Snapshot(project).Project().Trusted
	what := order{Name: string(last.Name), Project: project != "", Put: &last.Before, Expect: last.After}
	if _, err := what.carryOut(string(last.Dir)); err != nil {
		if errors.Is(err, ErrChanged) { // the next call takes back the one before
			err = errors.Join(err, writeChanges(path, kept.List[:before]))
		}
		return file, undone, fmt.Errorf("take back: %s: %w", display.Quote(file), err)
	}
	s.sources.State(file)
	s.note(project, audit.Event{Event: audit.SettingsChanged, Files: []string{file}})
	err = writeChanges(path, kept.List[:before])
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
