//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each of these reads what another process has left, or, with a text as second
// argument, leaves it.
var ipcActions = map[string]action{
	"shared-memory":      onQueue(sharedMemory),
	"message-queue":      onQueue(messageQueue),
	"posix-queue":        posixQueue,
	"posix-queue-remove": one(removePosixQueue),
}

func onQueue(do func(id uintptr, text string) error) action {
	return func(args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%w: no id", errMisuse)
		}
		id, err := strconv.Atoi(args[0])
		if err != nil {
			return fmt.Errorf("%w: %w", errMisuse, err)
		}
		return do(uintptr(id), textOf(args))
	}
}

func textOf(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

// call makes a system call, and marks every error as an answer of the kernel.
func call(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	result, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return 0, fmt.Errorf("%w: %w", errAnswer, errno)
	}
	return result, nil
}

func sharedMemory(id uintptr, text string) error {
	memory, err := unix.SysvShmAttach(int(id), 0, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	if text != "" {
		copy(memory, text)
		return unix.SysvShmDetach(memory)
	}
	end := max(0, bytes.IndexByte(memory, 0))
	fmt.Printf("%s\n", memory[:end])
	return unix.SysvShmDetach(memory)
}

// messageQueue sends or takes one message (struct msgbuf: a long, which is the
// type, and the text).
func messageQueue(id uintptr, text string) error {
	const head = unsafe.Sizeof(uintptr(0))
	buffer := make([]byte, 256)
	if text != "" {
		buffer[0] = 1
		copy(buffer[head:], text)
		_, err := call(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(text)), 0)
		return err
	}
	const nowait = 0o4000
	n, err := call(unix.SYS_MSGRCV, id, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer))-head, 0, nowait)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", buffer[head:head+n])
	return nil
}

func posixQueue(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no name", errMisuse)
	}
	name, err := unix.BytePtrFromString(args[0])
	if err != nil {
		return err
	}
	attributes := struct{ flags, most, size, current, _, _, _, _ int64 }{most: 4, size: 256}
	flags := uintptr(unix.O_RDWR)
	if textOf(args) != "" {
		flags |= unix.O_CREAT | unix.O_EXCL
	}
	queue, err := call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), flags, 0o600,
		uintptr(unsafe.Pointer(&attributes)))
	if err != nil {
		return err
	}
	defer os.NewFile(queue, "queue").Close()
	buffer := make([]byte, attributes.size)
	if text := textOf(args); text != "" {
		copy(buffer, text)
		_, err := call(unix.SYS_MQ_TIMEDSEND, queue, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(text)), 0, 0)
		return err
	}
	n, err := call(unix.SYS_MQ_TIMEDRECEIVE, queue, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0, 0)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", buffer[:n])
	return nil
}

func removePosixQueue(name string) error {
	pointer, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, err = call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(pointer)))
	return err
}
