package spawn

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWritable_IsWhatFilesCanChangeThrough(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(path string, flags int) *os.File {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), path)
		t.Cleanup(func() { file.Close() })
		return file
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(pair[0]), "socket")
	other := os.NewFile(uintptr(pair[1]), "socket")
	t.Cleanup(func() { socket.Close(); other.Close() })
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	for name, test := range map[string]struct {
		file *os.File
		want bool
	}{
		"none":                    {nil, false},
		"file for reading":        {open(path, unix.O_RDONLY), false},
		"file for writing":        {open(path, unix.O_WRONLY), true},
		"file for both":           {open(path, unix.O_RDWR), true},
		"directory":               {open(dir, unix.O_RDONLY), false},
		"/dev/null for writing":   {open("/dev/null", unix.O_RDWR), false},
		"writing end of a pipe":   {write, false},
		"socket, for descriptors": {socket, true},
	} {
		if got := writable(test.file); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !anyWritable([]*os.File{nil, read, socket}) || anyWritable([]*os.File{nil, read}) {
		t.Error("not the same for several")
	}
}
