package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	planted      = "hunter2hunter2hunter2"
	plantedToken = "0hunter2A0hunter2B0hunter2C0hunter2D"
	// kept is what none of them may leave.
	kept = "hunter2"
)

// table reads command lines.
func table(t testing.TB, name string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	planting := strings.NewReplacer("{S}", planted, "{T}", plantedToken, "⏎", "\n")
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, planting.Replace(line))
		}
	}
	return list
}

// argv splits a simple command line. It knows quotes, and no expansions.
func argv(t testing.TB, line string) (list []string) {
	t.Helper()
	var word strings.Builder
	quote, begun := byte(0), false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && c == ' ':
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
			continue
		case quote == 0 && c == '$' && i+1 < len(line) && line[i+1] == '\'':
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == c && c != 0:
			quote = 0
		case quote == '"' && c == '\\' && strings.IndexByte("\"\\$`", line[i+1]) >= 0:
			i++
			word.WriteByte(line[i])
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	if quote != 0 {
		t.Fatalf("%s: a quote is not closed", line)
	}
	return append(list, word.String())
}

// within are a command line, and others that run it.
func within(line string) map[string][]string {
	encoded, _ := json.Marshal(line)
	single := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
	double := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(line) + `"`
	return map[string][]string{
		"sh -c":     {"sh", "-c", line},
		"bash -lc":  {"/bin/bash", "-lc", "cd /x && " + line},
		"-o, -c":    {"bash", "-o", "pipefail", "-c", line},
		"env":       {"env", "A=1", "timeout", "5", "sh", "-ec", line},
		"sudo":      {"sudo", "-u", "ann", "bash", "-c", line},
		"su":        {"su", "ann", "-c", line},
		"ssh":       {"ssh", "-p", "22", "host", line},
		"container": {"docker", "exec", "-it", "db", "sh", "-c", line},
		"single":    {"sh", "-c", "bash -c " + single},
		"double":    {"sh", "-c", "ssh host bash -c " + double + " && true"},
		"JSON":      {"tool", `{"command": ` + string(encoded) + `, "timeout": 5}`},
		"JSON argv": {"tool", `{"args": ["-c", ` + string(encoded) + `], "command": "bash"}`},
		"JSON list": {"tool", `["bash", "-lc", ` + string(encoded) + `]`},
		"nested":    {"sh", "-c", "x=$(" + line + "\n)"},
		"watch":     {"watch", "-n", "1", line},
		"after all": {"bash", "-c", "git status; true | cat > /dev/null && " + line},
	}
}

func TestRedact_KeepsNoSecret(t *testing.T) {
	t.Parallel()
	lines := table(t, "secrets.txt")
	judged, survived := 0, 0
	check := func(how, line string, given []string) {
		judged++
		got := Redact(given)
		if text := strings.Join(got, " "); strings.Contains(text, kept) {
			survived++
			t.Errorf("%s: %s: %q", how, line, got)
		}
		if len(got) != len(given) || got[0] != given[0] {
			t.Errorf("%s: %q has another form: %q", how, given, got)
		}
	}
	for _, line := range lines {
		check("argv", line, argv(t, line))
		for how, given := range within(line) {
			check(how, line, given)
		}
	}
	for _, line := range table(t, "lines.txt") {
		check("sh -c", line, []string{"sh", "-c", line})
		check("bash -lc", line, []string{"bash", "-lc", line})
	}
	const least = 150
	if len(lines) < least {
		t.Errorf("only %d command lines", len(lines))
	}
	t.Logf("%d of %d kept a secret; %d command lines", survived, judged, len(lines))
}

func TestRedact_KeepsTheRest(t *testing.T) {
	t.Parallel()
	lines, changed := table(t, "ordinary.txt"), 0
	for _, line := range lines {
		// Nested lines keep their quotes, too.
		for _, given := range [][]string{
			argv(t, line), {"sh", "-c", line}, {"bash", "-lc", "cd /x && " + line}, {"ssh", "host", line},
		} {
			if got := Redact(given); !slices.Equal(got, given) {
				changed++
				t.Errorf("%q became %q", given, got)
			}
		}
	}
	for _, line := range table(t, "ordinary_lines.txt") {
		for _, given := range [][]string{{"sh", "-c", line}, {"ssh", "host", line}} {
			if got := Redact(given); !slices.Equal(got, given) {
				t.Errorf("%q became %q", given, got)
			}
		}
	}
	for _, given := range [][]string{{""}, {}} {
		if got := Redact(given); !slices.Equal(got, given) {
			t.Errorf("%q became %q", given, got)
		}
	}
	t.Logf("%d of %d changed", changed, 4*len(lines))
}

// FuzzRedact plants a secret of a known form. It never survives, whatever stands
// around it.
func FuzzRedact(f *testing.F) {
	for _, around := range [][2]string{
		{"", ""},
		{"a", "b"},
		{"echo '", "'"},
		{`{"a": "`, `"}`},
		{"x=$(echo ", ")"},
		{"https://a:", "@b"},
		{"cat <<E\n", "\nE"},
		{"$'\\x41", "'"},
		{"token=", "&x"},
		{`"\"`, `\""`},
		{"`", "`"},
		{"\x00", "\x001\x00"},
	} {
		f.Add(around[0], around[1], "sh", "-c")
	}
	const body = "0hunter2A0hunter2B0hunter2C0hunter2D"
	f.Fuzz(func(t *testing.T, before, after, program, flag string) {
		for _, form := range []string{"ghp_", "glpat-", "xoxb-", "hvs.", "github_pat_", "pypi-", "AIza", "sk_live_"} {
			word := before + form + body + after
			encoded, err := json.Marshal([]string{"bash", "-c", word})
			if err != nil {
				t.Fatal(err)
			}
			for _, given := range [][]string{
				{program, flag, word},
				{"sh", "-c", word},
				{"bash", "-lc", "x; " + word},
				{program, string(encoded)},
				{word},
			} {
				got := Redact(given)
				if text := strings.Join(got, " "); strings.Contains(text, body) {
					t.Errorf("%q: %q", given, got)
				}
				if again := Redact(got); strings.Contains(strings.Join(again, " "), body) {
					t.Errorf("again: %q: %q", given, again)
				}
			}
		}
	})
}
