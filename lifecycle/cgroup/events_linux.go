package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changes tells of files of cgroups that the kernel has changed, by one inotify
// instance for all groups. Nothing is watched until the first one is limited.
type changes struct {
	mu      sync.Mutex // guards the fields below
	file    *os.File
	watches map[int32]func()
}

// add has changed called whenever the kernel has changed a file. It is called by
// a goroutine of its own, one call at a time. The number is for remove.
func (c *changes) add(path string, changed func()) (number int32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return 0, fmt.Errorf("watch cgroups: %w", err)
		}
		c.file, c.watches = os.NewFile(uintptr(fd), "inotify"), map[int32]func(){}
		go c.read(c.file)
	}
	var added int
	err = c.control(func(fd int) (err error) {
		added, err = unix.InotifyAddWatch(fd, path, unix.IN_MODIFY)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("watch cgroup: %w", err)
	}
	c.watches[int32(added)] = changed
	return int32(added), nil
}

// control calls the kernel with the descriptor, which stays non-blocking.
func (c *changes) control(call func(fd int) error) error {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = call(int(fd)) })
	return errors.Join(err, failed)
}

// remove ends watches. The kernel ends none by itself when a cgroup is removed.
func (c *changes) remove(numbers []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, number := range numbers {
		delete(c.watches, number)
		_ = c.control(func(fd int) error {
			_, err := unix.InotifyRmWatch(fd, uint32(number))
			return err
		})
	}
}

// read ends when the file is closed.
func (c *changes) read(file *os.File) {
	var buf [4096]byte
	for {
		n, err := file.Read(buf[:])
		if err != nil {
			return
		}
		// Files of cgroups have no names below them, so every event is as long.
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
			c.mu.Lock()
			changed := c.watches[event.Wd]
			c.mu.Unlock()
			if event.Mask&unix.IN_MODIFY != 0 && changed != nil {
				changed()
			}
			rest = rest[min(len(rest), unix.SizeofInotifyEvent+int(event.Len)):]
		}
	}
}

func (c *changes) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		c.file.Close()
	}
}

// Reached says how often the limits of a group were reached.
type Reached struct {
	// Processes: the kernel has refused a process or a thread.
	Processes int
	// Memory: the kernel has killed a process to free memory.
	Memory int
}

// Watch has changed called when a limit may have been reached.
func (g *Group) Watch(changed func()) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handle == nil {
		return nil
	}
	var failures []error
	for _, file := range []string{"pids.events", "memory.events"} {
		path := filepath.Join(g.dir, file)
		if _, err := os.Stat(path); err == nil {
			number, err := g.tree.changes.add(path, changed)
			if err == nil {
				g.watched = append(g.watched, number)
			}
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// Reached says how often limits were reached so far.
func (g *Group) Reached() Reached {
	return Reached{
		Processes: g.events("pids.events", "max"), Memory: g.events("memory.events", "oom_kill"),
	}
}

// events is how many events of that name a file counts.
func (g *Group) events(file, name string) int {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 2 && fields[0] == name {
			count, _ := strconv.Atoi(fields[1])
			return count
		}
	}
	return 0
}
