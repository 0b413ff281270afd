//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

var processActions = map[string]action{
	"target":      one(target),
	"kill":        one(onPID(func(pid int) error { return unix.Kill(pid, unix.SIGKILL) })),
	"terminate":   one(onPID(func(pid int) error { return unix.Kill(pid, unix.SIGTERM) })),
	"kill-dead":   one(killDead),
	"kill-thread": one(onPID(func(pid int) error { return unix.Tgkill(pid, pid, unix.SIGKILL) })),
	"kill-pidfd":  one(onPID(killByDescriptor)),
	"kill-sigio":  one(onPID(killByOwner)),
	"ptrace":      one(onPID(trace)),
	"peek":        two(peek),
	"vm-read":     two(readMemory),
	"pidfd-getfd": two(stealDescriptor),
}

func onPID(do func(int) error) func(string) error {
	return func(text string) error {
		pid, err := strconv.Atoi(text)
		if err != nil || pid < 2 { // 0, 1 and negative numbers would hit far more than one process
			return fmt.Errorf("%w: %q is no process id", errMisuse, text)
		}
		return do(pid)
	}
}

// killDead signals a program that has ended and waits for its parent.
func killDead(program string) error {
	process, err := os.StartProcess(program, []string{program}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	defer func() { _, _ = process.Wait() }()
	if err := unix.Waitid(unix.P_PID, process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		return err
	}
	return unix.Kill(process.Pid, unix.SIGTERM)
}

// secret lies in the target's memory. Its value comes from the arguments, so
// that no copy of the program holds it.
var secret []byte

// target keeps a text in memory and, as an open file, in descriptor 3. It
// prints where, and waits for its stdin to end.
func target(text string) error {
	// With Yama only descendants may be traced. The attack must not fail for
	// that reason.
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
	secret = []byte(text)
	file, err := unix.MemfdCreate("target", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Pwrite(file, secret, 0); err != nil {
		return err
	}
	fmt.Printf("%d:%d %d\n", uintptr(unsafe.Pointer(&secret[0])), len(secret), file)
	var buffer [1]byte
	_, _ = os.Stdin.Read(buffer[:])
	runtime.KeepAlive(secret)
	return nil
}

// place reads "ADDRESS:LENGTH".
func place(text string) (address uintptr, buffer []byte, err error) {
	var length int
	if _, err := fmt.Sscanf(text, "%d:%d", &address, &length); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errMisuse, err)
	}
	return address, make([]byte, length), nil
}

// peek reads a process's memory by its file in /proc.
func peek(pid, where string) error {
	address, buffer, err := place(where)
	if err != nil {
		return err
	}
	fd, err := unix.Open("/proc/"+pid+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Pread(fd, buffer, int64(address)); err != nil {
		return err
	}
	fmt.Printf("%s\n", buffer)
	return nil
}

// readMemory reads a process's memory by process_vm_readv(2).
func readMemory(text, where string) error {
	address, buffer, err := place(where)
	if err != nil {
		return err
	}
	return onPID(func(pid int) error {
		local := []unix.Iovec{{Base: &buffer[0]}}
		local[0].SetLen(len(buffer))
		remote := []unix.RemoteIovec{{Base: address, Len: len(buffer)}}
		if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil {
			return err
		}
		fmt.Printf("%s\n", buffer)
		return nil
	})(text)
}

// stealDescriptor duplicates another process's descriptor into this one and
// reads it.
func stealDescriptor(text, number string) error {
	return withDescriptor(text, number, func(fd int) error {
		if _, err := unix.Seek(fd, 0, 0); err != nil {
			return err
		}
		return drain(fd)
	})
}

// withDescriptor duplicates another process's descriptor into this one.
func withDescriptor(text, number string, use func(fd int) error) error {
	target, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	return onPID(func(pid int) error {
		handle, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(handle)
		fd, err := unix.PidfdGetfd(handle, target, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return use(fd)
	})(text)
}

func killByDescriptor(pid int) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(handle)
	return unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
}

// killByOwner makes another process the owner of a pipe, so that the kernel
// sends it the signal when the pipe becomes readable.
func killByOwner(pid int) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	for _, set := range []struct{ command, value int }{
		{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC},
	} {
		if _, err := unix.FcntlInt(uintptr(pipe[0]), set.command, set.value); err != nil {
			return err
		}
	}
	_, err := unix.Write(pipe[1], []byte("x"))
	return err
}

// trace attaches to a process and detaches again.
func trace(pid int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(pid)
}
