//go:build unix

package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Filter chooses events. The zero value chooses all.
type Filter struct {
	Since time.Time
	// Project is a directory; what was run below it counts, too.
	Project string
}

func (f Filter) has(e Event) bool {
	return !e.Time.Before(f.Since) &&
		(f.Project == "" || filepath.IsAbs(e.Project) && policy.Contains(f.Project, filepath.Clean(e.Project)))
}

// Read calls each with the events of a directory that the filter chooses, oldest
// first, and with their lines. Older files are included. It returns how many
// lines it could not understand, such as the last one of a sidecar that was
// killed. Missing files are an empty trail.
func Read(dir string, filter Filter, each func(Event, []byte) error) (torn int, err error) {
	files, err := openAll(dir)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	for _, file := range files {
		n, err := ReadLines(file, filter, each)
		torn += n
		if err != nil {
			return torn, err
		}
	}
	return torn, nil
}

// ReadLines is Read for lines from elsewhere, such as the journal.
func ReadLines(from io.Reader, filter Filter, each func(Event, []byte) error) (torn int, err error) {
	lines := bufio.NewReaderSize(from, 1<<16)
	for {
		text, whole, err := nextLine(lines)
		if len(text) > 0 || !whole {
			var event Event
			switch {
			case !whole || json.Unmarshal(text, &event) != nil || event.Version < 1 || event.Event == "":
				torn++
			case filter.has(event):
				if err := each(event, text); err != nil {
					return torn, err
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return torn, nil
		case err != nil:
			return torn, err
		}
	}
}

// nextLine reads a line without its end. whole is false if it has none, or is
// longer than any that a Trail writes.
func nextLine(from *bufio.Reader) (text []byte, whole bool, err error) {
	for {
		part, err := from.ReadSlice('\n')
		if len(text) <= 2*maxLine {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return text, len(text) == 0, err
		default:
			return bytes.TrimSuffix(text, []byte("\n")), len(text) <= 2*maxLine, nil
		}
	}
}
