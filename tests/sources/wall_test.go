package sources

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wallRow is a line of the table in docs/design/wall.md: a package and its lines.
var wallRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\d+) \\|")

// wallSum is where a page says how many lines the wall has.
var wallSum = regexp.MustCompile(`some ([\d,]+) lines, (?:of which [\d,]+ are code|with an order to read them)`)

// wallPackage is a package that another reaches, without the standard library.
type wallPackage struct {
	name  string // ours without the module's name
	ours  bool
	lines int
}

// reachedOnLinux returns what a package of ours reaches on Linux, itself too.
func reachedOnLinux(t *testing.T, dir string) (reached []wallPackage) {
	t.Helper()
	const format = "{{if not .Standard}}{{.ImportPath}}\t{{.Dir}}{{range .GoFiles}}\t{{.}}{{end}}{{end}}"
	list := exec.Command("go", "list", "-deps", "-f", format, "./"+dir)
	list.Dir, list.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	list.Stderr = t.Output()
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", dir, err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 2 {
			continue
		}
		p := wallPackage{}
		if p.name, p.ours = strings.CutPrefix(fields[0], module); p.ours {
			for _, file := range fields[2:] {
				source, err := os.ReadFile(filepath.Join(fields[1], file))
				if err != nil {
					t.Fatal(err)
				}
				p.lines += bytes.Count(source, []byte("\n"))
			}
		}
		reached = append(reached, p)
	}
	return reached
}

// The page about the wall says what to read. Whatever the stage reaches must be
// on it, with its lines, and nothing else.
func TestWall_IsWhatItsPageSays(t *testing.T) {
	t.Parallel()
	// Read here, so that the test cache notices every change.
	goFiles(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") {
			importsOf(t, file)
		}
	})
	for _, file := range []string{"go.mod", "go.sum"} {
		if _, err := fs.ReadFile(root, file); err != nil {
			t.Fatal(err)
		}
	}
	page, err := fs.ReadFile(root, "docs/design/wall.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, row := range wallRow.FindAllStringSubmatch(string(page), -1) {
		if listed[row[1]], err = strconv.Atoi(row[2]); err != nil {
			t.Fatal(err)
		}
	}
	sum := 0
	for _, p := range reachedOnLinux(t, "platform/linux/stage") {
		if p.ours && p.name != "platform/policy" {
			sum += p.lines
		}
		if !p.ours {
			if !strings.Contains(string(page), "`"+p.name+"`") {
				t.Errorf("the stage reaches the library %s, which docs/design/wall.md does not name", p.name)
			}
			continue
		}
		said, is := listed[p.name]
		delete(listed, p.name)
		switch off := p.lines - said; {
		case !is:
			t.Errorf("the stage reaches %s, which docs/design/wall.md does not list", p.name)
		case max(off, -off) > max(p.lines/10, 20):
			t.Errorf("%s has %d lines; docs/design/wall.md says %d", p.name, p.lines, said)
		}
	}
	for name := range listed {
		t.Errorf("docs/design/wall.md lists %s, which the stage does not reach", name)
	}
	security, err := fs.ReadFile(root, "SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"docs/design/wall.md": page, "SECURITY.md": security} {
		said := wallSum.FindSubmatch(text)
		if said == nil {
			t.Errorf("%s does not say how long the wall is", name)
			continue
		}
		lines, err := strconv.Atoi(strings.ReplaceAll(string(said[1]), ",", ""))
		if off := sum - lines; err != nil || max(off, -off) > sum/20 {
			t.Errorf("the wall has %d lines without platform/policy; %s says %s", sum, name, said[1])
		}
	}
	// The sidecar's part reaches more: this test would see it.
	var others []string
	for _, p := range reachedOnLinux(t, "platform/linux") {
		if !strings.Contains(string(page), "`"+p.name+"`") {
			others = append(others, p.name)
		}
	}
	for _, name := range []string{"fsguard", "lifecycle/cgroup", "github.com/coreos/go-systemd/v22/dbus"} {
		if !strings.Contains(" "+strings.Join(others, " ")+" ", " "+name+" ") {
			t.Errorf("platform/linux does not reach %s, so this test finds nothing", name)
		}
	}
}
