package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// watchLimits are the limits of a session. A program that watches files takes
// one instance (chokidar, vite, watchman, gopls, tail -f), and a watch for each
// directory of a project.
var watchLimits = []struct {
	// name is the limit of a user namespace, below /proc/sys/user, and user is
	// the limit of the user, below /proc/sys/fs.
	name, user string
	// See share.
	part, least int
}{
	{InotifyInstances, "inotify/max_user_instances", 4, 16},
	{"max_inotify_watches", "inotify/max_user_watches", 2, 4096},
	{"max_fanotify_groups", "fanotify/max_user_groups", 4, 16},
	{"max_fanotify_marks", "fanotify/max_user_marks", 2, 4096},
}

// sessionLimits returns the values for watchLimits on this machine, without
// limits that this kernel does not have. It may be called from several
// goroutines.
var sessionLimits = sync.OnceValue(func() map[string]int {
	limits := map[string]int{}
	for _, limit := range watchLimits {
		whole := 0
		// If the sidecar itself is in a user namespace, that may have less than
		// the user.
		for _, path := range []string{"/proc/sys/fs/" + limit.user, "/proc/sys/user/" + limit.name} {
			if has, err := readNumber(path); err == nil && has > 0 && (whole == 0 || has < whole) {
				whole = has
			}
		}
		if whole > 0 {
			limits[limit.name] = share(whole, limit.part, limit.least)
		}
	}
	return limits
})

func readNumber(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// applyLimits sets the limits of this process's user namespace. It returns why
// they are not in force, or "".
func applyLimits(limits map[string]int) (problem string) {
	if limits[InotifyInstances] == 0 {
		return "the kernel does not report the user's limit"
	}
	for name, value := range limits {
		path := "/proc/sys/user/" + name
		if err := writeNumber(path, value); err != nil && problem == "" {
			problem = fmt.Sprintf("%s cannot be written", path)
			if errors.Is(err, fs.ErrNotExist) {
				problem = fmt.Sprintf("%s does not exist", path)
			}
		}
	}
	return problem
}

// writeNumber writes a value and reads it back.
func writeNumber(path string, value int) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.Itoa(value))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if now, err := readNumber(path); err != nil || now != value {
		return fmt.Errorf("%s is %d: %w", path, now, err)
	}
	return nil
}
