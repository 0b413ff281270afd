//go:build unix

// Package trailview shows the audit trail to people.
package trailview

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// Options say what to show.
type Options struct {
	audit.Filter
	// Dirs are directories of trails. Journal is true for the journal of systemd.
	Dirs    []string
	Journal bool
	// Lines shows the lines as they were written.
	Lines bool
	// Out is for people, and Raw for programs.
	Out, Raw io.Writer
}

// Show prints events, oldest first. It returns whether there were any, and how
// many lines are broken.
func Show(o Options) (any bool, torn int, err error) {
	shown := &printer{out: o.Out, raw: o.Raw, lines: o.Lines}
	for _, dir := range o.Dirs {
		n, err := audit.Read(dir, o.Filter, shown.print)
		if torn += n; err != nil {
			return shown.any, torn, fmt.Errorf("read audit trail: %w", err)
		}
	}
	if o.Journal {
		n, err := readJournal(o.Filter, shown.print)
		if torn += n; err != nil {
			return shown.any, torn, fmt.Errorf("read audit trail in the journal: %w", err)
		}
	}
	return shown.any, torn, nil
}

// printer prints events, below the day on which they happened.
type printer struct {
	out, raw   io.Writer
	lines, any bool
	day        string
}

func (p *printer) print(e audit.Event, line []byte) error {
	p.any = true
	if p.lines {
		_, err := fmt.Fprintf(p.raw, "%s\n", display.JSON(line))
		return err
	}
	at := e.Time.Local()
	if day := at.Format(time.DateOnly); day != p.day {
		p.day = day
		if _, err := fmt.Fprintln(p.out, day); err != nil {
			return err
		}
	}
	if e.Lost > 0 {
		display.Fprintf(p.out, "%s       lines lost before this one: %d\n", at.Format(time.TimeOnly), e.Lost)
	}
	// Four digits tell sessions apart that run at once.
	display.Fprintf(p.out, "%s %-4.4s  %s\n", at.Format(time.TimeOnly), e.Session, audit.Describe(e))
	return nil
}

// readJournal reads what this user's sidecars wrote to the journal. The journal
// itself says whose a line is.
func readJournal(filter audit.Filter, each func(audit.Event, []byte) error) (torn int, err error) {
	args := []string{
		"--quiet", "--no-pager", "--output=cat", "--identifier=" + audit.Identifier,
		fmt.Sprintf("_UID=%d", os.Getuid()),
	}
	if !filter.Since.IsZero() {
		args = append(args, fmt.Sprintf("--since=@%d", filter.Since.Unix()))
	}
	command := exec.Command("journalctl", args...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	torn, err = audit.ReadLines(out, filter, each)
	_, _ = io.Copy(io.Discard, out)
	if waited := command.Wait(); err == nil && waited != nil {
		err = errors.Join(waited, errors.New(strings.TrimSpace(complaint.String())))
	}
	return torn, err
}
