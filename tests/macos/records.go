package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// record is a file that says something of the machine.
type record struct{ file, command string }

// readRecords reads lines of "FILE | COMMAND". The command's output is the file.
func readRecords(text string) ([]record, error) {
	var records []record
	for _, line := range tableLines(text) {
		file, command, found := strings.Cut(line, " | ")
		if !found || file == "" || filepath.Base(file) != file {
			return nil, fmt.Errorf("%q is not FILE | COMMAND", line)
		}
		records = append(records, record{file, command})
	}
	return records, nil
}

// recordsCommand runs every command of a table. Each that fails or prints nothing
// is a difference; its file is kept.
func recordsCommand(ctx context.Context, table, dir string) error {
	text, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	records, err := readRecords(string(text))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var rows []row
	for _, r := range records {
		rows = append(rows, r.write(ctx, dir))
	}
	return writeRows(rows, filepath.Join(dir, "records.tsv"), os.Stdout)
}

func (r record) write(ctx context.Context, dir string) row {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "/bin/sh", "-c", r.command)
	command.Env = append(os.Environ(), "SIDECAR_EVIDENCE="+dir)
	command.WaitDelay = 10 * time.Second
	printed, err := command.CombinedOutput()
	written := row{what: r.file, want: "written", got: "written", said: tail(string(printed))}
	switch {
	case err != nil:
		written.got = err.Error()
	case len(printed) == 0:
		written.got = "empty"
	}
	if err := os.WriteFile(filepath.Join(dir, r.file), printed, 0o644); err != nil {
		written.got = err.Error()
	}
	return written
}
