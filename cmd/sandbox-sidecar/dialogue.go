//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// dialogue asks a question on a terminal that a program has used until now. The
// program is stopped, but it has left behind colours, terminal attributes and
// typed input.
type dialogue struct {
	ctx      context.Context
	terminal *os.File
	plain    bool         // the terminal knows no escape sequences
	lines    unix.Termios // the terminal's attributes during the dialogue
}

const (
	// quiet is how long nothing may be typed before the dialogue asks for an
	// answer. It is too short to read the question in, and longer than the gaps
	// within a paste.
	quiet = 300 * time.Millisecond
	// quietTimeout bounds the wait for quiet.
	quietTimeout = 10 * time.Second
	// pasteGap is how long nothing may follow an answer that allows. If
	// something follows, the answer was pasted.
	pasteGap = 100 * time.Millisecond
	// mostAttempts is how often an invalid answer may be given.
	mostAttempts = 3
)

// The program may have begun an escape sequence that would swallow the
// question, or have hidden what is written next. resetScreen in turn: cancels
// a sequence (CAN) and ends a string (ST); ends a synchronized update; resets
// character set, colours, margins and cursor; starts an empty line.
const (
	resetScreen = "\x18\x1b\\" + "\x1b[?2026l" + "\x1b[!p\x1b(B\x0f\x1b[0m\x1b[?25h" + "\r\n\x1b[J"
	clearLine   = "\x1b[K"
)

// hasEscapes reports whether a kind of terminal knows escape sequences.
func hasEscapes(term string) bool { return term != "" && term != "dumb" }

// hold runs talk in canonical mode with echo and signals (termios(3)), whatever
// mode the program has set, and restores that mode.
func (d *dialogue) hold(talk func()) {
	var before *unix.Termios
	_ = d.control(func(fd int) (err error) {
		if before, err = unix.IoctlGetTermios(fd, getTermios); err != nil {
			return err
		}
		now := *before
		now.Iflag = now.Iflag&^(unix.ISTRIP|unix.INLCR|unix.IGNCR|unix.PARMRK) | unix.ICRNL
		now.Oflag |= unix.OPOST | unix.ONLCR
		now.Lflag = now.Lflag&^(unix.NOFLSH|unix.TOSTOP) | unix.ICANON | unix.ISIG | unix.ECHO | unix.ECHOE | unix.ECHOK
		for key, value := range map[int]byte{
			unix.VINTR: 'C' & 0x1f, unix.VEOF: 'D' & 0x1f, unix.VEOL: noKey,
			unix.VEOL2: noKey,
		} {
			now.Cc[key] = value
		}
		d.lines = now
		return unix.IoctlSetTermios(fd, setTermios, &now)
	})
	defer d.control(func(fd int) error {
		if before == nil {
			return nil
		}
		return unix.IoctlSetTermios(fd, setTermios, before)
	})
	talk()
}

// ask prints a question and returns one of the choices; "" if the question ends
// before there is an answer, and DecisionDeny if anything else goes wrong.
func (d *dialogue) ask(lines []string, choices []protocol.Decision) protocol.Decision {
	stop := context.AfterFunc(d.ctx, func() { _ = d.terminal.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := d.control(flushInput); err != nil {
		return d.noAnswer()
	}
	if d.plain {
		fmt.Fprint(d.terminal, "\n")
	} else {
		fmt.Fprint(d.terminal, resetScreen)
	}
	for _, line := range lines {
		d.print("%s", line)
	}
	for range mostAttempts {
		if !d.waitForQuiet() {
			d.print("denied: %s", d.reason("keys are pressed all the time"))
			return d.noAnswer()
		}
		if _, err := fmt.Fprintf(d.terminal, "sandbox-sidecar: type %s (Enter denies): ",
			words(choices)); err != nil {
			return d.noAnswer()
		}
		line, err := d.readLine(time.Time{})
		if err != nil {
			fmt.Fprintln(d.terminal)
			d.print("denied: %s", d.reason("the terminal was closed"))
			return d.noAnswer()
		}
		decision, is := decisionOf(line, choices)
		switch {
		case is && decision == protocol.DecisionDeny:
			return decision
		case !is:
			d.print("unknown answer")
		case d.isPasted():
			d.print("the answer was followed by more input, so it does not count")
		case d.ctx.Err() == nil:
			return decision
		}
	}
	d.print("denied: %s", d.reason("no answer"))
	return d.noAnswer()
}

// noAnswer is what ask returns if the user has chosen nothing.
func (d *dialogue) noAnswer() protocol.Decision {
	if d.ctx.Err() != nil {
		return ""
	}
	return protocol.DecisionDeny
}

// reason says why the answer is no.
func (d *dialogue) reason(otherwise string) string {
	if d.ctx.Err() != nil {
		return "the question has ended"
	}
	return otherwise
}

// print writes one line.
func (d *dialogue) print(format string, args ...any) {
	text := display.Fold("sandbox-sidecar: "+display.Line(fmt.Sprintf(format, args...)), 2)
	for line := range strings.SplitSeq(text, "\n") {
		if !d.plain {
			line += clearLine
		}
		fmt.Fprintln(d.terminal, line)
	}
}

// waitForQuiet drops typed input until none comes for a while.
func (d *dialogue) waitForQuiet() bool {
	for end := time.Now().Add(quietTimeout); time.Now().Before(end) && d.ctx.Err() == nil; {
		if !d.typedWithin(quiet) {
			return d.ctx.Err() == nil
		}
	}
	return false
}

// isPasted reports whether more input follows an answer at once.
func (d *dialogue) isPasted() bool { return d.typedWithin(pasteGap) }

// typedWithin reports whether a key is typed within a time, and drops the
// input. It leaves canonical mode meanwhile, which would hide half a line.
func (d *dialogue) typedWithin(within time.Duration) bool {
	keys := d.lines
	keys.Lflag &^= unix.ICANON
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	set := func(termios *unix.Termios) error {
		return d.control(func(fd int) error { return unix.IoctlSetTermios(fd, setTermios, termios) })
	}
	if err := set(&keys); err != nil {
		return true
	}
	_, err := d.readLine(time.Now().Add(within))
	came := !errors.Is(err, os.ErrDeadlineExceeded) || d.holdsInput()
	return errors.Join(d.control(flushInput), set(&d.lines)) != nil || came
}

// holdsInput reports whether there are keys that nobody has read. After its
// deadline a read does not look at the terminal any more, and a busy machine may
// have stopped this process until then.
func (d *dialogue) holdsInput() (held bool) {
	var key [1]byte
	failed := d.control(func(fd int) error {
		n, err := unix.Read(fd, key[:])
		held = n > 0
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		return err
	})
	return held || failed != nil
}

// readLine reads a line, or keys if the terminal is not in canonical mode. It
// fails at the deadline, or if the question ends.
func (d *dialogue) readLine(deadline time.Time) (string, error) {
	if err := d.terminal.SetReadDeadline(deadline); err != nil {
		return "", err
	}
	if err := d.ctx.Err(); err != nil { // it may have set a deadline before us
		return "", err
	}
	var line [4096]byte // the longest line of canonical mode (N_TTY_BUF_SIZE)
	n, err := d.terminal.Read(line[:])
	return string(line[:n]), err
}

func (d *dialogue) control(do func(fd int) error) error {
	raw, err := d.terminal.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}

// words lists the answers that may be typed.
func words(choices []protocol.Decision) string {
	var words []string
	for _, decision := range choices {
		words = append(words, string(decision))
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// decisionOf parses an answer: a whole word, or nothing to deny. It reports
// false for anything else.
func decisionOf(line string, choices []protocol.Decision) (protocol.Decision, bool) {
	typed := protocol.Decision(strings.ToLower(strings.TrimSpace(line)))
	if typed == "" {
		return protocol.DecisionDeny, true
	}
	return typed, slices.Contains(choices, typed)
}
