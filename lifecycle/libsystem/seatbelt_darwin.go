package libsystem

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// Confine puts a Seatbelt profile in force on all threads of this process, for
// good. The parameters are pairs of a key and a value, for the profile's (param
// "KEY"). It must be called on the main thread before anything else is started,
// because the interpreter that compiles the profile recurses on the caller's
// stack. On failure libsandbox itself also prints a line to stderr.
//
// sandbox_init_with_parameters(const char *profile, uint64_t flags, const char
// *const parameters[], char **errorbuf); flags 0 means that profile is a text.
// Deprecated since OS X 10.8 and enforcing ever since: browsers depend on it.
func Confine(profile string, parameters []string) error {
	text, err := syscall.BytePtrFromString(profile)
	if err != nil {
		return fmt.Errorf("apply seatbelt profile: text holds a NUL byte: %w", err)
	}
	list := make([]*byte, 0, len(parameters)+1)
	for _, parameter := range parameters {
		value, err := syscall.BytePtrFromString(parameter)
		if err != nil {
			return fmt.Errorf("apply seatbelt profile: parameter %q: %w", parameter, err)
		}
		list = append(list, value)
	}
	list = append(list, nil)
	var message *byte
	result, _, errno := syscall6(libc_sandbox_init_with_parameters_stub_address, uintptr(unsafe.Pointer(text)), 0,
		uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&message)), 0, 0)
	runtime.KeepAlive(text)
	runtime.KeepAlive(list)
	if int32(result) == 0 {
		return nil
	}
	if message == nil {
		return fmt.Errorf("apply seatbelt profile: %w", errno)
	}
	cause := textAt(message)
	_, _, _ = syscall6(libc_sandbox_free_error_stub_address, uintptr(unsafe.Pointer(message)), 0, 0, 0, 0, 0)
	return fmt.Errorf("apply seatbelt profile: %s", cause)
}

// The kinds of argument that Check takes (enum sandbox_filter_type).
const (
	FilterNone       = 0
	FilterPath       = 1
	FilterGlobalName = 2
)

// noReport keeps a denied check out of the system's log
// (SANDBOX_CHECK_NO_REPORT).
const noReport = 0x40000000

// Check asks the kernel whether a process may perform an operation. It returns
// 0 if it may, 1 if not, and -1 with an error if the question could not be
// answered. For a process that has ended the answer is 1 or -1. An empty
// operation asks whether the process is confined at all: 1 or 0.
//
// int sandbox_check(pid_t pid, const char *operation, enum sandbox_filter_type
// type, ...)
func Check(pid int, operation string, filter int, argument string) (int, error) {
	var name, value *byte
	var err error
	if operation != "" {
		if name, err = syscall.BytePtrFromString(operation); err != nil {
			return -1, fmt.Errorf("ask seatbelt about %q: %w", operation, err)
		}
	}
	kind := uintptr(filter)
	if filter != FilterNone {
		if value, err = syscall.BytePtrFromString(argument); err != nil {
			return -1, fmt.Errorf("ask seatbelt about %q: %w", argument, err)
		}
		kind |= noReport
	}
	result, _, errno := syscall6(libc_sandbox_check_stub_address, uintptr(pid), uintptr(unsafe.Pointer(name)), kind,
		uintptr(unsafe.Pointer(value)), 0, 0)
	runtime.KeepAlive(name)
	runtime.KeepAlive(value)
	if answer := int32(result); answer == 0 || answer == 1 {
		return int(answer), nil
	}
	return -1, fmt.Errorf("ask seatbelt about process %d: %w", pid, errno)
}

// textAt copies a C string.
func textAt(start *byte) string {
	var text []byte
	for at := unsafe.Pointer(start); *(*byte)(at) != 0; at = unsafe.Add(at, 1) {
		text = append(text, *(*byte)(at))
	}
	return string(text)
}
