package platform

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/reserve"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// LaunchDirect executes a target that is not confined without a stage, by fork
// and exec, if the program can notice no difference. What Target.Start starts
// must be in its group from its birth. The error wraps ErrNeedsStage if nothing
// was started, and ErrNotExecuted if the program could not be executed; the
// target's terminal may be hung up then. After an error the process is dead.
func LaunchDirect(ctx context.Context, target Target) (Launched, error) {
	program, fits := target.direct()
	if !fits {
		return Launched{}, ErrNeedsStage
	}
	if err := target.settle(); err != nil {
		return Launched{}, err
	}
	if err := ctx.Err(); err != nil {
		return Launched{}, err
	}
	// A child starts with the signal mask of the thread that forks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if !handshake.SignalsAreReset() {
		return Launched{}, ErrNeedsStage
	}
	// What this process has inherited itself is not for its children.
	if err := handshake.CloseOnExec(handshake.StageFD); err != nil {
		return Launched{}, ErrNeedsStage
	}
	order := &target.Order
	process, err := target.Start(program, order.Argv, &os.ProcAttr{
		Dir:   order.Dir,
		Env:   append([]string{}, order.Env...), // not nil, which would be this process's own
		Files: target.Streams[:], Sys: target.Attr,
	})
	if err != nil {
		return Launched{}, fmt.Errorf("%w: %w", ErrNotExecuted, err)
	}
	reserve.SealLeader(process.PID())
	return Launched{Process: process}, nil
}

// direct finds the program, and reports whether a stage would only execute it.
// This process waits until the program was executed, and starts no other
// meanwhile. So a stage does it if a file system may not answer, and where an
// error is to be expected.
func (t *Target) direct() (program string, fits bool) {
	order := &t.Order
	switch {
	case t.Confinement.Orders != nil || t.Confinement.Attach != nil || t.waits() || len(t.Inherited) > 0,
		order.InSignalDomain || order.Full || len(order.Ignored) > 0,
		strings.Contains(order.Program, "/") && !filepath.IsAbs(order.Program),
		!filepath.IsAbs(order.Dir) || !fsguard.Local(order.Dir):
		return "", false
	}
	for _, candidate := range handshake.Candidates(order.Program, order.Env) {
		if !fsguard.Local(candidate) {
			return "", false
		}
	}
	program, err := handshake.FindProgram(order.Program, order.Env, unix.O_NONBLOCK)
	return program, err == nil && isPlain(program)
}

// isPlain reports whether a program on a local file system is one that the kernel
// executes without another file system that may not answer, and with the rights
// of this process: sealing its limits would fail later.
func isPlain(path string) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return false
	}
	head := make([]byte, 4096)
	n, _ := file.ReadAt(head, 0) // what is missing is no program
	linker, plain := linkerOf(head[:n])
	return plain && (linker == "" || filepath.IsAbs(linker) && fsguard.Local(linker))
}

// linkerOf returns the dynamic linker that the beginning of a program names
// (elf(5)); "" if it has none. plain is false for scripts, for programs of other
// processors, and if the beginning does not tell.
func linkerOf(head []byte) (linker string, plain bool) {
	const class64, littleEndian, fileHeader, programHeader, ptInterp = 2, 1, 64, 56, 3
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	get := binary.LittleEndian
	if len(head) < fileHeader || !bytes.HasPrefix(head, []byte{0x7f, 'E', 'L', 'F', class64, littleEndian}) ||
		get.Uint16(head[18:]) != machine || get.Uint16(head[54:]) != programHeader {
		return "", false
	}
	at, size := get.Uint64(head[32:]), uint64(len(head))
	for range get.Uint16(head[56:]) {
		if at > size || size-at < programHeader {
			return "", false
		}
		if header := head[at:]; get.Uint32(header) == ptInterp {
			from, length := get.Uint64(header[8:]), get.Uint64(header[32:])
			if from > size || length > size-from {
				return "", false
			}
			name, _, ended := bytes.Cut(head[from:from+length], []byte{0})
			return string(name), ended
		}
		at += programHeader
	}
	return "", true
}
