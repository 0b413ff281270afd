//go:build unix

package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// longestLine is longer than any line of ours: a path of 4096 bytes, of
	// which JSON writes each as six.
	longestLine = 64 << 10
	// mostRead bounds how much of a journal is read. Compaction keeps it far
	// smaller. Of a longer one the two ends are read.
	mostRead = 16 << 20
)

// ErrNoJournal means that a file has the name of a journal and cannot be one.
var ErrNoJournal = errors.New("not a regular file that only this user can write; remove it")

// Open opens a journal for reading. It waits for nothing, follows no link and
// refuses everything else.
func Open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK), errors.Is(err, unix.ENXIO),
		errors.Is(err, unix.EOPNOTSUPP):
		return nil, fmt.Errorf("open journal %q: %w", path, ErrNoJournal) // a symlink, a socket
	case err != nil:
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := checkJournalFile(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("open journal %q: %w", path, err)
	}
	return file, nil
}

// checkJournalFile refuses a file that no sidecar of this user has made.
func checkJournalFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || int(stat.Uid) != os.Geteuid() || stat.Nlink > 1 ||
		info.Mode().Perm()&0o022 != 0 {
		return ErrNoJournal
	}
	return nil
}

// reading is the result of reading a journal.
type reading struct {
	entries
	senseless int  // lines that are no record, or too long
	foreign   int  // records without a meaning: perhaps of another version
	cut       bool // it is so long that its middle was skipped
}

// readJournal reads a journal from its beginning, wherever the descriptor
// stands.
func readJournal(ctx context.Context, file *os.File) (*reading, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	got, size := &reading{}, info.Size()
	if size <= mostRead {
		return got, got.section(ctx, io.NewSectionReader(file, 0, mostRead))
	}
	got.cut = true
	if err := got.section(ctx, io.NewSectionReader(file, 0, mostRead/2)); err != nil {
		return nil, err
	}
	return got, got.section(ctx, io.NewSectionReader(file, size-mostRead/2, mostRead/2))
}

// section reads the lines of a part.
func (r *reading) section(ctx context.Context, from io.Reader) error {
	lines := bufio.NewReaderSize(from, longestLine)
	for ctx.Err() == nil {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) && ctx.Err() == nil {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read journal: %w", err)
		}
		var entry Record
		switch line = bytes.TrimSpace(line); {
		case !tooLong && len(line) == 0:
		case !tooLong && json.Unmarshal(line, &entry) == nil && r.apply(entry):
		// A line without an end belongs to a sidecar that died while writing
		// it. The thing that it would have listed does not exist.
		case err != nil:
		case !tooLong && line[0] == '{' && json.Valid(line):
			r.foreign++
		default:
			r.senseless++
		}
		if err != nil {
			return nil
		}
	}
	return ctx.Err()
}
