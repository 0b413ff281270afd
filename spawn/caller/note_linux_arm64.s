#include "textflag.h"

// See note_linux_amd64.s. The arguments are in R0, R1 and R2.
TEXT ·note(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVD	R0, R19
	MOVD	R2, R21
	MOVW	·noteFD(SB), R0
	MOVD	$12, R2
	MOVD	$64, R8 // write
	SVC
	MOVD	R19, R0
	MOVD	R21, R2
	MOVD	·runtimeHandler(SB), R3
	JMP	(R3)

TEXT ·noteAddress(SB),NOSPLIT,$0-8
	MOVD	$·note(SB), R0
	MOVD	R0, ret+0(FP)
	RET
