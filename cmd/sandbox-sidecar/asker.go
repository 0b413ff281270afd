package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// asker asks the user on the controlling terminal, where on_denied is "ask".
type asker struct {
	store      *settings.Store
	projectDir string
	kind       settings.Kind

	mu sync.Mutex // one question at a time
}

// ask waits for an answer. Whatever keeps the question from being read and answered is a no.
func (a *asker) ask(ctx context.Context, denial spawn.Denial) spawn.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return spawn.AnswerDeny
	}
	question, suggestion, may := rpc.Question(a.store.Snapshot(a.projectDir), a.kind, denial)
	if !may {
		return spawn.AnswerDeny
	}
	// The runtime's poller ends a read when the time is over.
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return spawn.AnswerDeny
	}
	defer terminal.Close()
	if !conversable(terminal) {
		return spawn.AnswerDeny
	}
	stop := context.AfterFunc(ctx, func() { _ = terminal.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	fmt.Fprintf(terminal, "\nsandbox-sidecar: wanted: %s\n", rpc.DenialText(denial))
	if question.Hint != "" {
		fmt.Fprintf(terminal, "sandbox-sidecar: note: %s\n", question.Hint)
	}
	fmt.Fprintf(terminal, "sandbox-sidecar: allow it? %s: ", choices(question.Choices))
	line, err := bufio.NewReader(terminal).ReadString('\n')
	if err != nil {
		fmt.Fprintln(terminal)
		return spawn.AnswerDeny
	}
	answer, err := rpc.CarryOut(a.store, a.projectDir, suggestion, decisionOf(line, question.Choices))
	if err != nil {
		fmt.Fprintf(terminal, "sandbox-sidecar: allowed for now alone: %v\n", err)
	}
	return answer
}

// conversable reports whether a question can be read and answered: our process group has the terminal (an interactive shell inside gives it
// to a group of its own, and who reads from behind is stopped), and no program has taken the keyboard for itself, as editors do.
func conversable(terminal *os.File) bool {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		foreground, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
		is = err == nil && foreground == unix.Getpgrp() && readsLines(int(fd))
	})
	return err == nil && is
}

// choices lists what may be typed: the first letters are enough.
func choices(list []protocol.Decision) string {
	var words []string
	for _, decision := range list {
		words = append(words, fmt.Sprintf("[%c]%s", decision[0], decision[1:]))
	}
	return strings.Join(words, ", ")
}

// decisionOf reads an answer; what is none is a no.
func decisionOf(line string, list []protocol.Decision) protocol.Decision {
	typed := strings.ToLower(strings.TrimSpace(line))
	if i := slices.IndexFunc(list, func(d protocol.Decision) bool { return typed != "" && strings.HasPrefix(string(d), typed) }); i >= 0 {
		return list[i]
	}
	return protocol.DecisionDeny
}

// readsLines reports whether a terminal gathers what is typed into lines, and shows it.
func readsLines(fd int) bool {
	termios, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil && termios.Lflag&unix.ICANON != 0
}
