package gitconfig

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// gitProgram is the installed git, and how it treats blanks in values.
func gitProgram(t *testing.T) (program string, how Blanks) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		harness.Skip(t, "git", err.Error())
	}
	out, err := exec.Command(program, "version").Output()
	if err != nil {
		t.Skip("git does not start:", err)
	}
	fields := strings.Fields(string(out))
	if len(fields) > 2 {
		numbers := strings.Split(fields[2], ".")
		major, _ := strconv.Atoi(numbers[0])
		minor, _ := strconv.Atoi(numbers[min(1, len(numbers)-1)])
		if major > 2 || major == 2 && minor >= 45 {
			how = BlanksKept
		}
	}
	return program, how
}

// asGit is what git reads in a file; !ok if it rejects it.
func asGit(t *testing.T, program, content string) (entries []Entry, ok bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "config", "--file", file, "--list", "-z")
	command.Env = []string{"HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	command.Dir = "/"
	out, err := command.Output()
	for one := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(out) > 0 {
			key, value, valued := strings.Cut(string(one), "\n")
			entries = append(entries, Entry{key, value, valued})
		}
	}
	return entries, err == nil
}

// pieces are what generated files are made of.
var pieces = []string{
	"[", "]", "[core]", "[Core]", "[core ", `[core "a"]`, `[core "A.b\"]\\"]`, "[core.Sub]", `[include]`,
	`[includeIf "gitdir:~/x/"]`, "[core]hooksPath=x", "[a][core]", "[core][a] x = y", "[]", "[.]", "[a..b]",
	"hooksPath", "hookspath =", "hooksPath = tools/hooks", "path = ~/x", "path=../x", "name", "a-b = 1",
	"1a = 2", "a_b = c",
	"=", " = ", " ", "  ", "\t", "\n", "\n", "\n", "\n", "\r\n", "\r", "\v", "\f", "\\", "\\\n", "\\\r\n",
	`\\`, `\"`, `\n`, `\t`,
	`\b`, `\x`,
	"\"", "\"\"", `"a b"`, `" # "`, "#", ";", "# x\\\n", "; C:\\repo\\\n", "# c", "a", "b c", "x  y", "x\ty",
	".", "-", "é", "\xff",
	"\x00",
	"\uFEFF", "\xEF", "\xEF\xBB", "'", "$", "!cmd", "%(prefix)/x",
}

// lines and ends are mostly what git accepts.
var (
	lines = []string{
		"[core]", "[Core] ", "[a][core]", "[core][include]", `[core "A.b\"]\\"]`, "[core.Sub]\t", "[include]x=y",
		"hooksPath=",
		"hooksPath =", "\tpath = ", " name\t= ", "n=a", "n = \"a ", "n = a\tb", "n = a \r b", "n = \\\"",
		`n = C:\\repo\\`, "name", "n=;",
		"# C:\\repo\\", "; a \"", "", "\t",
	}
	ends = []string{
		"\n", "\n", "\n", "\r\n", " \n", "\\\n", "\\\r\n", "# c\\\n", " ; c\n", "\"\n", " b\n", "b\" c\n", "\t",
		" ", "[core]\n", "\\\\\n",
		"\\n\\t\n",
	}
)

// generated is a random file.
func generated(random *rand.Rand) string {
	var text strings.Builder
	if random.IntN(2) == 0 {
		text.WriteString("[core]\n")
		for range 1 + random.IntN(6) {
			text.WriteString(lines[random.IntN(len(lines))])
			text.WriteString(ends[random.IntN(len(ends))])
		}
		return text.String()
	}
	if random.IntN(2) == 0 {
		text.WriteString("[core]\n")
	}
	for range 1 + random.IntN(14) {
		switch random.IntN(4) {
		case 0:
			fmt.Fprintf(&text, "k%d = ", random.IntN(3))
			text.WriteString(pieces[random.IntN(len(pieces))])
			text.WriteString(pieces[random.IntN(len(pieces))])
			text.WriteByte('\n')
		default:
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
	}
	return text.String()
}

// known are files that readers have read in another way than git.
var known = []string{
	"", "\n", "[core]", "[core]\n\t# C:\\repo\\\n\thooksPath = tools/hooks\n",
	"[a] x = y\n[b][core] hooksPath = tools/hooks\n",
	"[core] [core] hooksPath = x", "[a]\n[core] # c\nhooksPath = x ; y\\\n z\n", "[core]\nx = a\\\r\n b\n",
	"\uFEFF[core]\nx=y",
	"\xEF\xBB[core]\nx=y", "[core]\nx = a\rb\n", "[core \"hookspath\x00\"]\nx = y\n", "x = y\n",
	"[core]\nx = \"a\nb\"\n", "[core]\nx = a\\q\n", "[core]\nx # c\n", "[core]\nx = y\\",
	"[core]\nx = \"y", "[core \"a\nb\"]\n",
	"[core\n\"a\"]\nx = y\n",
	"[core]\nx = a\x00b\n", "[core]\nx\x00 = b\n", "[core]\nx = \"a  \"  # c\n",
	"[core]\nx =  a \"b\" \t c\n", "[core]x=\r",
	"[core]\nx = a \\\n \\\n b\n", "[core]\nx = # c\\\ny = z\n", "[core]x", "[core]x\r", "[core]\nx=\"\" a \n",
}

// The reader agrees with the installed git on every file that git accepts, and
// rejects every file that git rejects.
func TestParse_AgreesWithGit(t *testing.T) {
	t.Parallel()
	program, how := gitProgram(t)
	files := slices.Clone(known)
	random := rand.New(rand.NewPCG(1, 20))
	count := 3000
	if testing.Short() {
		count = 300
	}
	for range count {
		files = append(files, generated(random))
	}
	accepted, compared, differences := 0, 0, 0
	for _, content := range files {
		want, accepts := asGit(t, program, content)
		got, ok := Parse(content, how)
		if accepts {
			accepted++
			compared += len(want)
		}
		// What git reads before a mistake counts, too.
		if ok != accepts || accepts && !slices.Equal(got, want) {
			differences++
			if differences < 20 {
				t.Errorf("%q:\n got %s, %t\nwant %s, %t", content, quoted(got), ok, quoted(want), accepts)
			}
		}
	}
	t.Logf("%d files, of which git accepts %d with %d values: %d differences", len(files), accepted, compared,
		differences)
	if accepted < len(files)/10 {
		t.Errorf("git accepts only %d of %d files", accepted, len(files))
	}
}

// Nothing that git has read before it rejects a file is missing, and nothing
// behind the mistake: another version of git may accept the file.
func TestParse_ReadsOnBehindAMistake(t *testing.T) {
	t.Parallel()
	got := Values("[core]\nx = \\q\nhooksPath = a\n[b\nhooksPath = b\n[core]\nhooksPath = c\n", "core", "hookspath")
	if want := []string{"a", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	const config = "; comment\n[Core]\n\thooksPath = a b  \n hookspath=\"c # d\" ; e\n[core \"sub]\\\"\"] " +
		"hooksPath = \\\"q\\\\\n[other]\nhooksPath = no\n" +
		"[core.old]\nHOOKSPATH = f\\\n g\n[core]\nhooksPath\nhooksPathX = no\nhooksPath =\n# hooksPath = no\n"
	got := Values(config, "core", "hookspath")
	if want := []string{"a b", "c # d", `"q\`, "f g", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = Values("[core]\nhooksPath = a\tb\n", "core", "hookspath")
	if want := []string{"a b", "a\tb"}; !slices.Equal(got, want) {
		t.Errorf("two versions of git: %q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, content := range known {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content string) {
		for _, how := range []Blanks{BlanksReplaced, BlanksKept} {
			entries, _ := Parse(content, how)
			for _, e := range entries {
				if len(e.Key)+len(e.Value) > len(content)+1 {
					t.Errorf("%q = %q is longer than what it stands in", e.Key, e.Value)
				}
			}
		}
	})
}

func quoted(entries []Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, fmt.Sprintf("%q=%q", e.Key, e.Value))
	}
	return strings.Join(list, " ")
}
