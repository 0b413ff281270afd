package rpc

import (
	"fmt"
	"strings"
	"time"

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

// maxTimeout bounds timeoutMs.
const maxTimeout = 24 * time.Hour

// checkStreams refuses further pipes without the first, and limits that are none.
func checkStreams(params *protocol.SpawnParams) error {
	switch most := int(maxTimeout.Milliseconds()); {
	case params.Stdin && !params.Pipe:
		return invalidParams("stdin", "only a command with pipe has one")
	case params.Stderr && !params.Pipe:
		return invalidParams("stderr", "only a command with pipe has one")
	case params.TimeoutMs < 0 || params.TimeoutMs > most:
		return invalidParams("timeoutMs", "expected 0 to %d, found %d", most, params.TimeoutMs)
	case params.OutputBytesCap < 0:
		return invalidParams("outputBytesCap", "expected 0 or more, found %d", params.OutputBytesCap)
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
