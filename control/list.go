//go:build unix

package control

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

// answerTimeout bounds the wait for all processes that are asked what they run.
const answerTimeout = time.Second

// Silent is a process that did not say what it runs.
type Silent struct {
	// PID is its process id; 0 if that is not known.
	PID int
	// Socket is the path of its socket.
	Socket string
	// Err says why.
	Err error
}

// ErrSilent means that a process did not answer in time.
var ErrSilent = errors.New("it did not answer in time")

// Error names the process, and says why it did not answer.
func (s *Silent) Error() string {
	if s.PID > 0 {
		return fmt.Sprintf("process %d did not say what it runs: %v", s.PID, s.Err)
	}
	return fmt.Sprintf("no process at %s said what it runs: %v", s.Socket, s.Err)
}

// Unwrap returns the reason.
func (s *Silent) Unwrap() error { return s.Err }

// List asks every process of the user that starts sessions and has its socket
// below one of the state directories, all at once and for a second at most. Each
// error is a *Silent. Sockets that processes have left are removed.
func List(stateDirs []string) ([]Supervisor, []error) {
	var mu sync.Mutex // guards the two below
	var found []Supervisor
	var silent []error
	var asking sync.WaitGroup
	end := time.Now().Add(answerTimeout)
	for _, stateDir := range stateDirs {
		for _, path := range sockets(stateDir) {
			asking.Go(func() {
				s, err := ask(stateDir, path, end)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					silent = append(silent, err)
				case s != nil:
					found = append(found, *s)
				}
			})
		}
	}
	asking.Wait()
	slices.SortFunc(found, func(a, b Supervisor) int { return cmp.Compare(a.PID, b.PID) })
	return found, silent
}

// sockets are the paths at which processes may listen.
func sockets(stateDir string) []string {
	entries, err := os.ReadDir(stateDir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, entry := range entries {
		path := filepath.Join(stateDir, entry.Name(), name)
		if _, err := os.Lstat(path); entry.IsDir() && err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// At is the process that listens at a socket below a state directory, which it has
// named; see Listener.Socket. Whether it still does, and whether the socket is at
// such a place, shows when it is asked.
func At(stateDir, socket string) *Supervisor {
	return &Supervisor{stateDir: stateDir, socket: socket}
}

// ask asks one process. It returns nil if nobody listens there any more.
func ask(stateDir, path string, end time.Time) (*Supervisor, error) {
	raw, pid, err := usersocket.Dial(stateDir, path, name, end)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		removeLeft(path)
		return nil, nil
	case errors.Is(err, os.ErrNotExist):
		return nil, nil // it has just ended
	case err != nil:
		return nil, &Silent{PID: pid, Socket: path, Err: reason(err)}
	}
	c := usersocket.NewConn(raw, maxMessage)
	defer c.Close()
	err = errors.Join(c.ReceiveBefore(end), c.Send(request{Version: listVersion, List: &list{}}))
	var answer reply
	if err == nil {
		err = c.Receive(&answer)
	}
	switch {
	case err != nil && hasEnded(pid):
		return nil, nil
	case err == nil && answer.Refused != "":
		err = errors.New(answer.Refused)
	case err == nil && answer.Runs == nil:
		err = errors.New("it answers something else")
	}
	if err != nil {
		return nil, &Silent{PID: pid, Socket: path, Err: reason(err)}
	}
	answer.Runs.PID = pid // as the kernel says
	answer.Runs.stateDir, answer.Runs.socket = stateDir, path
	return answer.Runs, nil
}

func reason(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.EAGAIN) {
		return ErrSilent
	}
	return err
}

func hasEnded(pid int) bool { return errors.Is(unix.Kill(pid, 0), syscall.ESRCH) }

// removeLeft removes the socket of a process that has ended, and its directory.
// The user's next sidecar would do so, too. The directory is removed only if it is
// empty.
func removeLeft(path string) {
	if !refusedMeansEnded || !strings.HasSuffix(path, "/"+name) {
		return
	}
	if os.Remove(path) == nil {
		_ = os.Remove(filepath.Dir(path))
	}
}
