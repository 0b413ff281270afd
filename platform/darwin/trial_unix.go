//go:build unix

package darwin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// tryTimeout bounds one try, in which a compiler may hang. A stage takes some
// hundredths of a second.
const tryTimeout = 5 * time.Second

// killed is how the end of a process is described that somebody else has ended.
const killed = "signal: killed"

// judgeTry returns what an attempt to confine a process shows about the profile.
// The context is the whole search's, and not that of the attempt.
func judgeTry(searching context.Context, enforcement platform.Enforcement, err error) (Typing, error) {
	var failure *platform.Failure
	switch {
	case err == nil:
		return Typing(enforcement.Protections[platform.Syscalls].Detail), nil
	case searching.Err() != nil:
		return TypingUntried, fmt.Errorf("try profile: %w", searching.Err())
	case errors.As(err, &failure) && failure.Step == platform.StepConfine:
		return TypingUntried, &rejection{cause: failure.Cause}
	case errors.Is(err, platform.ErrStageDied) && !strings.HasSuffix(err.Error(), killed):
		_, how, _ := strings.Cut(err.Error(), platform.ErrStageDied.Error())
		return TypingUntried, &rejection{cause: "the compiler ended its process" + how}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return TypingUntried, &rejection{fmt.Sprintf("the compiler did not answer within %s", tryTimeout), true}
	}
	return TypingUntried, fmt.Errorf("try profile: %w", err)
}

// tried is what a try of typing in a terminal of its own shows. Before and after
// are its errors without the sandbox and in it; control is that of another call on
// the terminal in the sandbox, which must work.
func tried(before, after, control error) Typing {
	switch {
	case errors.Is(before, syscall.EPERM):
		return TypingRefused
	case before != nil, control != nil:
		return TypingUntried
	case errors.Is(after, syscall.EPERM):
		return TypingDenied
	}
	return TypingOpen
}
