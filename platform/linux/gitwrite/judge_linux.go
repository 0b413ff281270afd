package gitwrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitchange"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
)

const (
	// MaxSize bounds a configuration file.
	MaxSize = 1 << 20
	// maxText bounds the keys and values that a file stands for.
	maxText = 8 << 20
	// askTimeout bounds the wait for git, which takes 2 ms.
	askTimeout = 5 * time.Second
)

var (
	errSize     = fmt.Errorf("the new file has more than %d bytes", MaxSize)
	errKind     = errors.New("the new file is no plain file of its own")
	errNUL      = errors.New("the new file has a NUL byte")
	errRejected = errors.New("git could not read the new file")
	errOld      = errors.New("git cannot read the present file")
	errDiffers  = errors.New("git reads the new file in another way")
)

// Read reads a configuration file that is open for reading. It must be a regular
// file without other names.
func Read(fd int) ([]byte, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, err
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 1:
		return nil, errKind
	case stat.Size > MaxSize:
		return nil, errSize
	}
	var text bytes.Buffer
	n, err := io.Copy(&text, io.NewSectionReader(file(fd), 0, MaxSize+1))
	if err == nil && n > MaxSize {
		err = errSize
	}
	return text.Bytes(), err
}

// file is an io.ReaderAt of a descriptor.
type file int

func (f file) ReadAt(into []byte, offset int64) (int, error) {
	n, err := unix.Pread(int(f), into, offset)
	if n < len(into) && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// Judge decides about a change of a file's content. The error says that nobody
// can tell what it means.
func Judge(before, after []byte, facts gitchange.Facts) (gitchange.Verdict, error) {
	if bytes.IndexByte(after, 0) >= 0 {
		return gitchange.Verdict{}, errNUL
	}
	var verdict gitchange.Verdict
	var readings [][2][]gitconfig.Entry
	for _, how := range []gitconfig.Blanks{gitconfig.BlanksReplaced, gitconfig.BlanksKept} {
		was, old := gitconfig.ParseUpTo(string(before), how, maxText)
		is, valid := gitconfig.ParseUpTo(string(after), how, maxText)
		switch {
		case !old:
			return gitchange.Verdict{}, errOld
		case !valid:
			return gitchange.Verdict{}, errRejected
		}
		readings = append(readings, [2][]gitconfig.Entry{was, is})
		if verdict = gitchange.Judge(was, is, facts); len(verdict.Refused) > 0 {
			return verdict, nil
		}
	}
	program := installed()
	if program == "" {
		return verdict, nil
	}
	was, err := ask(program, before, askTimeout)
	if err != nil {
		return gitchange.Verdict{}, err
	}
	is, err := ask(program, after, askTimeout)
	if err != nil {
		return gitchange.Verdict{}, err
	}
	for _, read := range readings {
		if slices.Equal(read[0], was) && slices.Equal(read[1], is) {
			return verdict, nil
		}
	}
	return gitchange.Verdict{}, errDiffers
}

// installed is the git of a directory of the system; "" if there is none.
var installed = sync.OnceValue(func() string {
	for _, path := range gitconfig.Programs["linux"] {
		if info, err := fsguard.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
})

// ask returns what git reads in a file's content. It gets the content as its
// input, finds no repository and reads no other configuration.
func ask(program string, content []byte, timeout time.Duration) ([]gitconfig.Entry, error) {
	input, err := memory(content)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		_ = write.Close()
		return nil, err
	}
	process, err := proc.Start(program, []string{"git", "config", "--file", "-", "--list", "-z"}, &os.ProcAttr{
		Dir: "/", Files: []*os.File{input, write, null}, Env: []string{
			"PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=/nonexistent", "GIT_DIR=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TRACE=0", "GIT_TRACE2=0",
			"GIT_TRACE2_EVENT=0", "GIT_TRACE2_PERF=0",
		},
	})
	_, _ = write.Close(), null.Close()
	if err != nil {
		return nil, err
	}
	_ = read.SetReadDeadline(time.Now().Add(timeout))
	out, err := io.ReadAll(io.LimitReader(read, 2*maxText))
	if err != nil || len(out) == 2*maxText {
		_ = process.Signal(unix.SIGKILL)
		err = errDiffers
	}
	status, failed := process.Wait(false)
	switch {
	case err != nil || failed != nil:
		return nil, errors.Join(err, failed)
	case status.ExitStatus() != 0:
		return nil, errRejected
	}
	var entries []gitconfig.Entry
	for one := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if len(out) > 0 {
			key, value, valued := strings.Cut(one, "\n")
			entries = append(entries, gitconfig.Entry{Key: key, Value: value, Valued: valued})
		}
	}
	return entries, nil
}

// memory is a file with a content that has no name.
func memory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("git-config", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "git-config")
	if _, err = file.Write(content); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
