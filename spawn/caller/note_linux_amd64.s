#include "textflag.h"

// The kernel calls note with the number of the signal in DI, siginfo_t in SI and
// ucontext_t in DX, on the runtime's stack for signals. Whatever is changed here
// is restored when the runtime's handler returns (rt_sigreturn(2)).
TEXT ·note(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVQ	DI, R12
	MOVQ	SI, R13
	MOVQ	DX, R14
	MOVL	·noteFD(SB), DI
	MOVL	$12, DX
	MOVL	$1, AX // write
	SYSCALL
	MOVQ	R12, DI
	MOVQ	R13, SI
	MOVQ	R14, DX
	MOVQ	·runtimeHandler(SB), AX
	JMP	AX

TEXT ·noteAddress(SB),NOSPLIT,$0-8
	MOVQ	$·note(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
