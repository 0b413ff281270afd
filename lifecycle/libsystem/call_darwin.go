package libsystem

import (
	"syscall"
	_ "unsafe" // for go:linkname
)

// syscall6 is how package syscall calls C. It stores the fourth of six
// arguments both in its register and on the stack, where Apple's calling
// convention for arm64 expects variadic arguments (runtime/sys_darwin_arm64.s;
// made for openat, whose shape sandbox_check shares).
//
//go:linkname syscall6 syscall.syscall6
func syscall6(fn, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

//go:cgo_import_dynamic libc_sandbox_init_with_parameters sandbox_init_with_parameters "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_sandbox_free_error sandbox_free_error "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_sandbox_check sandbox_check "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_proc_pidinfo proc_pidinfo "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_getattrlist getattrlist "/usr/lib/libSystem.B.dylib"

// The addresses of the stubs in stubs_darwin.s.
var (
	libc_sandbox_init_with_parameters_stub_address uintptr
	libc_sandbox_free_error_stub_address           uintptr
	libc_sandbox_check_stub_address                uintptr
	libc_proc_pidinfo_stub_address                 uintptr
	libc_getattrlist_stub_address                  uintptr
)
