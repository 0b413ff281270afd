package rpc

import (
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// maxCells is the kernel's limit for the width and the height of a terminal:
// struct winsize has 16 bits for each.
const maxCells = 1<<16 - 1

// checkSize refuses a terminal size that the kernel cannot represent.
func checkSize(cols, rows int) error {
	for _, side := range []struct {
		field string
		cells int
	}{{"cols", cols}, {"rows", rows}} {
		if side.cells < 1 || side.cells > maxCells {
			return invalidParams(side.field, "invalid terminal size %dx%d: expected 1 to %d", cols, rows, maxCells)
		}
	}
	return nil
}

// checkTexts refuses an argument that contains a NUL byte, where the kernel
// would cut it off.
func checkTexts(params *protocol.SpawnParams) error {
	whole := func(field, text string) error {
		if strings.ContainsRune(text, 0) {
			return invalidParams(field, "holds a NUL byte")
		}
		return nil
	}
	if err := whole("command", params.Command); err != nil {
		return err
	}
	for i, arg := range params.Args {
		if err := whole(fmt.Sprintf("args[%d]", i), arg); err != nil {
			return err
		}
	}
	if params.Shell == nil {
		return nil
	}
	for i, arg := range params.Shell.Args {
		if err := whole(fmt.Sprintf("shell.args[%d]", i), arg); err != nil {
			return err
		}
	}
	return whole("shell.program", params.Shell.Program)
}
