//go:build unix

package platform

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ConfineSelf confines the calling thread, proves it, and says what is enforced. On an error the stage executes nothing.
type ConfineSelf func(Confinement) (Enforcement, error)

// RunStage is the stage's whole life: it takes its order from StageFD, confines itself and execs. It returns only where nothing
// was executed, with the exit status. It must be called on the main goroutine before anything else was started.
func RunStage(confine ConfineSelf) int {
	// Landlock, capabilities and no_new_privs belong to a thread, and execve(2) carries over those of the thread that calls it.
	runtime.LockOSThread()
	if err := closeOnExec(StageFD); err != nil {
		return 1 // without the handshake there is nobody to tell
	}
	handshake := os.NewFile(StageFD, "handshake")
	var order Order
	if err := json.NewDecoder(handshake).Decode(&order); err != nil {
		return 1 // the sidecar is gone
	}
	reports := json.NewEncoder(handshake)
	if failure := carryOut(&order, confine, reports); failure != nil {
		_ = reports.Encode(Report{Failure: failure})
		return 1
	}
	return 0
}

// carryOut returns nil only for a probe; an executed order does not return.
func carryOut(order *Order, confine ConfineSelf, reports *json.Encoder) *Failure {
	if order.Dir != "" {
		if err := os.Chdir(order.Dir); err != nil {
			return failure(StepDirectory, order.Dir, err)
		}
	}
	var enforcement Enforcement
	if order.Confinement != nil {
		var err error
		if enforcement, err = confine(order.Confinement); err != nil {
			return &Failure{Step: StepConfine, Cause: err.Error()}
		}
	}
	if order.Program == "" {
		if err := reports.Encode(Report{Enforcement: &enforcement}); err != nil {
			return failure(StepConfine, "", err)
		}
		return nil
	}
	program, err := lookUp(order.Program, order.Env)
	if err != nil {
		return failure(StepProgram, order.Program, err)
	}
	if err := resetSignals(); err != nil {
		return failure(StepProgram, order.Program, err)
	}
	if err := reports.Encode(Report{Enforcement: &enforcement}); err != nil {
		return failure(StepProgram, order.Program, err)
	}
	// syscall.Exec gives back the soft limit of open files that the Go runtime raised.
	return failure(StepProgram, program, syscall.Exec(program, order.Argv, order.Env))
}

func failure(step Step, path string, err error) *Failure {
	f := &Failure{Step: step, Path: path, Cause: err.Error(), Denied: errors.Is(err, fs.ErrPermission)}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		f.Cause = pathErr.Err.Error()
	}
	var execErr *exec.Error
	if errors.As(err, &execErr) {
		f.Cause = execErr.Err.Error()
	}
	return f
}

// lookUp finds a program as execvp(3) does, in the PATH that the program itself will see. Candidates are tried with real access
// checks only where that costs nothing: whether a directory of PATH may be executed from is found out by execve(2).
func lookUp(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		if !strings.HasPrefix(dir, "/") {
			continue // an empty or relative entry would run what lies in the working directory
		}
		candidate := dir + "/" + program
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && openable(candidate) {
			return candidate, nil
		}
	}
	return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
}

// openable tells a program that the sandbox lets us run from one that it hides: a shim in an ungranted directory early in PATH must
// not shadow the system's own program. access(2) cannot tell, because Landlock does not mediate it.
func openable(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		// A program may be executable without being readable; then nothing but execve(2) can tell.
		return !errors.Is(err, fs.ErrPermission) || unix.Access(path, unix.R_OK) != nil
	}
	file.Close()
	return true
}
