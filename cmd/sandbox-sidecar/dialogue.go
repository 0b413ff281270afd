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

// dialogue is a question on a terminal that a program has had until now. The
// program stands still; what it has left behind is another matter: colours,
// attributes of the terminal, and what was typed for it.
type dialogue struct {
	ctx      context.Context
	terminal *os.File
	plain    bool         // the terminal knows no escape sequences
	lines    unix.Termios // while the dialogue holds the terminal
}

const (
	// quiet is how long nothing may have been typed before an answer is asked
	// for. It is too short to read the question in, and longer than the pieces
	// of a paste are apart.
	quiet = 300 * time.Millisecond
	// quietTimeout bounds the wait for that.
	quietTimeout = 10 * time.Second
	// afterthought is how long nothing may follow an answer that allows: where
	// something does, it was pasted.
	afterthought = 100 * time.Millisecond
	// mostAttempts is how often an answer that is none is asked for again.
	mostAttempts = 3
)

// The program may have begun a sequence that would swallow the question, or
// have hidden what is written from now on. What this says in turn: cancel, end
// a string; let the screen be drawn; plain characters and colours, no margins,
// the cursor visible; a new line, with nothing on it or below.
const (
	regain = "\x18\x1b\\" + "\x1b[?2026l" + "\x1b[!p\x1b(B\x0f\x1b[0m\x1b[?25h" + "\r\n\x1b[J"
	wipe   = "\x1b[K"
)

// paints reports whether a kind of terminal knows escape sequences.
func paints(term string) bool { return term != "" && term != "dumb" }

// hold runs talk with a terminal that gathers lines, shows what is typed and
// turns Ctrl-C into an interrupt, whatever the program has made of that.
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
		for key, value := range map[int]byte{unix.VINTR: 'C' & 0x1f, unix.VEOF: 'D' & 0x1f, unix.VEOL: noKey,
			unix.VEOL2: noKey} {
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

// ask puts a question, and returns one of the choices. Whatever goes wrong is a
// no.
func (d *dialogue) ask(lines []string, choices []protocol.Decision) protocol.Decision {
	stop := context.AfterFunc(d.ctx, func() { _ = d.terminal.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := d.control(flushInput); err != nil {
		return protocol.DecisionDeny
	}
	if d.plain {
		fmt.Fprint(d.terminal, "\n")
	} else {
		fmt.Fprint(d.terminal, regain)
	}
	for _, line := range lines {
		d.say("%s", line)
	}
	for range mostAttempts {
		if !d.settle() {
			d.say("denied: %s", d.why("the keyboard gives no rest"))
			return protocol.DecisionDeny
		}
		if _, err := fmt.Fprintf(d.terminal, "sandbox-sidecar: allow it? type %s (Enter denies): ",
			words(choices)); err != nil {
			return protocol.DecisionDeny
		}
		line, err := d.readLine(time.Time{})
		if err != nil {
			fmt.Fprintln(d.terminal)
			d.say("denied: %s", d.why("the terminal was closed"))
			return protocol.DecisionDeny
		}
		decision, is := decisionOf(line, choices)
		switch {
		case is && decision == protocol.DecisionDeny:
			return decision
		case !is:
			d.say("that is none of the words")
		case d.follows():
			d.say("more was typed than one word")
		case d.ctx.Err() == nil:
			return decision
		}
	}
	d.say("denied: %s", d.why("no answer"))
	return protocol.DecisionDeny
}

// why names the reason for a no.
func (d *dialogue) why(otherwise string) string {
	if d.ctx.Err() != nil {
		return "the question has ended"
	}
	return otherwise
}

// say writes one line.
func (d *dialogue) say(format string, args ...any) {
	text := "sandbox-sidecar: " + display.Line(fmt.Sprintf(format, args...))
	if !d.plain {
		text += wipe
	}
	fmt.Fprintln(d.terminal, text)
}

// settle drops what was typed before, until nothing comes any more.
func (d *dialogue) settle() bool {
	for end := time.Now().Add(quietTimeout); time.Now().Before(end) && d.ctx.Err() == nil; {
		if !d.comes(quiet) {
			return d.ctx.Err() == nil
		}
	}
	return false
}

// follows reports whether something was typed behind a line.
func (d *dialogue) follows() bool { return d.comes(afterthought) }

// comes reports whether a key is typed within a time, and drops what was. The
// terminal gathers no lines meanwhile: half a line could not be seen.
func (d *dialogue) comes(within time.Duration) bool {
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
	came := !errors.Is(err, os.ErrDeadlineExceeded)
	return errors.Join(d.control(flushInput), set(&d.lines)) != nil || came
}

// readLine reads a line, or keys where none are gathered, until a deadline or
// the end of the question.
func (d *dialogue) readLine(deadline time.Time) (string, error) {
	if err := d.terminal.SetReadDeadline(deadline); err != nil {
		return "", err
	}
	if err := d.ctx.Err(); err != nil { // it may have set a deadline before us
		return "", err
	}
	var line [4096]byte // the longest that a terminal gathers
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

// words lists what may be typed.
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

// decisionOf reads an answer: a whole word, or nothing for a no. It reports
// false for anything else.
func decisionOf(line string, choices []protocol.Decision) (protocol.Decision, bool) {
	typed := protocol.Decision(strings.ToLower(strings.TrimSpace(line)))
	if typed == "" {
		return protocol.DecisionDeny, true
	}
	return typed, slices.Contains(choices, typed)
}
