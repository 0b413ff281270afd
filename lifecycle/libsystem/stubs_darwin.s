#include "textflag.h"

// Each function of libSystem needs code of ours that jumps to it: only the address of code of ours can stand in Go data.

TEXT libc_sandbox_init_with_parameters_stub<>(SB),NOSPLIT,$0-0
	JMP	libc_sandbox_init_with_parameters(SB)
GLOBL	·libc_sandbox_init_with_parameters_stub_address(SB), RODATA, $8
DATA	·libc_sandbox_init_with_parameters_stub_address(SB)/8, $libc_sandbox_init_with_parameters_stub<>(SB)

TEXT libc_sandbox_free_error_stub<>(SB),NOSPLIT,$0-0
	JMP	libc_sandbox_free_error(SB)
GLOBL	·libc_sandbox_free_error_stub_address(SB), RODATA, $8
DATA	·libc_sandbox_free_error_stub_address(SB)/8, $libc_sandbox_free_error_stub<>(SB)

TEXT libc_sandbox_check_stub<>(SB),NOSPLIT,$0-0
	JMP	libc_sandbox_check(SB)
GLOBL	·libc_sandbox_check_stub_address(SB), RODATA, $8
DATA	·libc_sandbox_check_stub_address(SB)/8, $libc_sandbox_check_stub<>(SB)

TEXT libc_proc_pidinfo_stub<>(SB),NOSPLIT,$0-0
	JMP	libc_proc_pidinfo(SB)
GLOBL	·libc_proc_pidinfo_stub_address(SB), RODATA, $8
DATA	·libc_proc_pidinfo_stub_address(SB)/8, $libc_proc_pidinfo_stub<>(SB)

TEXT libc_getattrlist_stub<>(SB),NOSPLIT,$0-0
	JMP	libc_getattrlist(SB)
GLOBL	·libc_getattrlist_stub_address(SB), RODATA, $8
DATA	·libc_getattrlist_stub_address(SB)/8, $libc_getattrlist_stub<>(SB)
