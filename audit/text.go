package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Describe says what an event is about, in one line for people. The caller
// escapes it.
func Describe(e Event) string {
	switch e.Event {
	case Spawn:
		return fmt.Sprintf("%s in %s: %s", e.Kind, e.Project, cmp.Or(strings.Join(e.Argv, " "), e.Program))
	case Started:
		return describeStart(e)
	case NotStarted:
		return "not started: " + e.Error
	case Refused, Connected, Asked:
		return describeAccess(e)
	case Review:
		var list []string
		for _, change := range e.Changed {
			others := ""
			if change.Others > 0 {
				others = fmt.Sprintf(" and %d more", change.Others)
			}
			list = append(list, fmt.Sprintf("%s (%s%s)", change.Path, strings.ReplaceAll(change.How, "_", " "), others))
		}
		if e.More > 0 {
			list = append(list, fmt.Sprintf("and %d more", e.More))
		}
		return "check: " + strings.Join(list, ", ")
	case Ended:
		how := "ended"
		switch {
		case e.Signal != "":
			how += ": " + e.Signal
		case e.ExitCode != nil:
			how += fmt.Sprintf(": exit status %d", *e.ExitCode)
		}
		if e.Survivors {
			how += ", with processes left"
		}
		return how
	case Trusted:
		return fmt.Sprintf("trusted %s (digest %.12s)", e.Project, e.Digest)
	case Untrusted:
		return "no longer trusted: " + e.Project
	case Allowed:
		return fmt.Sprintf("allowed: %s in %s, written to %s", e.Value, e.Key, strings.Join(e.Files, ", "))
	case SettingsChanged:
		return "settings changed: " + strings.Join(e.Files, ", ")
	}
	return e.Event // of a later version
}

// describeStart names only protections that do not hold.
func describeStart(e Event) string {
	if e.Confined == nil || !*e.Confined {
		return "runs without a sandbox"
	}
	var lacks []string
	for name, status := range e.Protections {
		if status != "enforced" && status != "not_requested" {
			lacks = append(lacks, name+" "+status)
		}
	}
	if len(lacks) == 0 {
		return "runs sandboxed"
	}
	slices.Sort(lacks)
	return "runs sandboxed; " + strings.Join(lacks, ", ")
}

func describeAccess(e Event) string {
	if e.Target == "" && len(e.Targets) == 0 {
		return fmt.Sprintf("%s: %d more", e.Event, e.More)
	}
	if e.Event != Asked {
		return e.Event + ": " + attempt(e) + times(e.Count)
	}
	answer := map[string]string{
		"once": "allowed once", "session": "allowed for the session",
	}[e.Answer]
	if e.Answer == "directory" {
		directory := e.Detail
		e.Detail = ""
		return fmt.Sprintf("asked: %s: allowed with all of %s for the session%s", attempt(e), directory, times(e.Count))
	}
	if answer == "" {
		answer = "denied"
	}
	return fmt.Sprintf("asked: %s: %s%s", attempt(e), answer, times(e.Count))
}

func attempt(e Event) string {
	text := strings.TrimSpace(e.Access + " " + cmp.Or(e.Target, strings.Join(e.Targets, ", ")))
	if e.Process != "" {
		text += " by " + e.Process
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

func times(count int) string {
	if count <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", count)
}

// ParseSince reads a time: a duration before now such as "90m" or "7d", or a day
// or a time as in RFC 3339.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		if hours, err := time.ParseDuration(days + "h"); err == nil && hours >= 0 {
			return now.Add(-24 * hours), nil
		}
	}
	if before, err := time.ParseDuration(text); err == nil && before >= 0 {
		return now.Add(-before), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	today := now.Format(time.DateOnly)
	return time.Time{}, fmt.Errorf("expected a duration such as 2h or 7d, or a day such as %s", today)
}
