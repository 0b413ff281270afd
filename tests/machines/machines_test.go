//go:build linux

package machines

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

var update = flag.Bool("update", false, "run every program, and write docs/machines.md")

// layout is a script that lays a machine out.
type layout struct{ name, about, script string }

func layouts(t *testing.T) (list []layout) {
	t.Helper()
	files, err := filepath.Glob("layouts/*.sh")
	if err != nil || len(files) < 8 {
		t.Fatalf("%q: %v", files, err)
	}
	common := harness.Read(t, "layouts/common.sh")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sh")
		if name == "common" {
			continue
		}
		script := harness.Read(t, file)
		var about []string
		for line := range strings.Lines(script) {
			text, comment := strings.CutPrefix(strings.TrimSpace(line), "# ")
			if !comment {
				break
			}
			about = append(about, text)
		}
		list = append(list, layout{name, strings.Join(about, " "), common + script})
	}
	return list
}

// program is an everyday use of a program, of tests/ordinary.
type program struct {
	name, title string
	needs       []string
	settings    harness.Sandbox
	files       harness.CaseFile
}

func programs(t *testing.T) (list []program) {
	t.Helper()
	keys := []string{"program", "grant", "without", "network", "kind", "type", "programs", "suggested", "note"}
	for _, dir := range []string{"rows", "tools", "here"} {
		from := filepath.Join("..", "ordinary", dir)
		if dir == "here" {
			from = "programs"
		}
		for _, row := range harness.CaseFiles(t, from, keys, []string{"prepare", "script"}) {
			if row.Key("type") != "" || row.Key("kind") != "" || row.Key("network") != "" {
				continue // somebody has to type, or it needs the machine's network
			}
			p := program{
				name: dir + "/" + row.Name, title: row.Title, files: row,
				needs:    append(strings.Fields(row.Key("programs")), strings.Fields(row.Key("program"))...),
				settings: harness.Sandbox{},
			}
			if grant := row.Key("grant"); grant != "" {
				p.settings["additional_read_write_paths"] = []string{grant}
			}
			if key, value, is := strings.Cut(row.Key("suggested"), " "); is {
				p.settings[key] = []string{value}
			}
			list = append(list, p)
		}
	}
	return list
}

// quick are the programs that every run tries; "make test-machines" tries all.
// They work outside.
var quick = []string{"rows/git", "here/links", "here/names", "here/certificates"}

// who runs a program.
type who struct {
	name string
	wrap []string
}

var users = []who{
	{"root", nil},
	{"an ordinary user", []string{"setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"}},
}

func (u who) isRoot() bool { return len(u.wrap) == 0 }

// Everyday programs do inside what they do outside, on machines of every layout.
func TestMachines(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root lays a machine out")
	}
	harness.Require(t, "filesystem", "hidden_paths")
	makeNix(t)
	results := &table{cells: map[string]map[string]string{}}
	all := programs(t)
	t.Run("group", func(t *testing.T) { // ends before the table is written
		for i, l := range layouts(t) {
			for j, p := range all {
				if !*update && !slices.Contains(quick, p.name) {
					continue
				}
				for k, u := range users {
					if !harness.Turn(t, i+j+k, len(users)) {
						continue
					}
					t.Run(l.name+" "+p.name+" "+u.name, func(t *testing.T) {
						t.Parallel()
						results.set(p, l, u, try(t, l, p, u))
					})
				}
			}
		}
	})
	if *update && !t.Failed() {
		harness.Write(t, "../../docs/machines.md", results.page(t, all))
	}
}

// nix is the directory /nix while tests run. The layout of NixOS mounts over it.
var nix struct {
	mu    sync.Mutex // guards the fields below
	tests int
	made  bool
}

// makeNix makes /nix, which the last test removes if it was not there.
func makeNix(t *testing.T) {
	t.Helper()
	nix.mu.Lock()
	defer nix.mu.Unlock()
	err := os.Mkdir("/nix", 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	nix.made = nix.made || err == nil
	nix.tests++
	t.Cleanup(func() {
		nix.mu.Lock()
		defer nix.mu.Unlock()
		if nix.tests--; nix.tests == 0 && nix.made {
			os.Remove("/nix")
			nix.made = false
		}
	})
}

// try runs a program outside and inside, and says how that ended.
func try(t *testing.T, l layout, p program, u who) string {
	t.Helper()
	for _, name := range p.needs {
		if _, err := exec.LookPath(name); err != nil {
			return "not installed"
		}
	}
	if outside := run(t, l, p, u, false); outside != "" {
		if slices.Contains(quick, p.name) {
			t.Errorf("outside: %s", outside)
		}
		return "fails outside, too"
	}
	if inside := run(t, l, p, u, true); inside != "" {
		t.Errorf("inside: %s", inside)
		return "fails"
	}
	return "works"
}

// searchPath is where programs are.
const searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/go/bin"

// machine is a machine of one user, and the files on it. It is laid out anew for
// each command.
type machine struct {
	layout layout
	user   who
	// home and project are the user's. work is for what the layout mounts.
	home, project, work string
}

func newMachine(t *testing.T, l layout, u who) machine {
	t.Helper()
	root, err := os.MkdirTemp("/srv", "sidecar-machine-") // everybody's home may be there
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	harness.Must(t, os.Chmod(root, 0o755))
	m := machine{
		layout: l, user: u, work: filepath.Join(root, "work"),
		home: filepath.Join(root, "home"), project: filepath.Join(root, "home/project"),
	}
	harness.MakeDir(t, m.work)
	harness.Must(t, os.MkdirAll(m.project, 0o755))
	return m
}

// command is a script of /bin/sh on the machine, as root. The home is given to the
// user. namespaces are unshare's options.
func (m machine) command(t *testing.T, namespaces, script string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := deadline.Context(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	user := "root"
	if !m.user.isRoot() {
		user = "nobody"
		harness.Must(t, filepath.WalkDir(m.home, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nogroup)
		}))
	}
	line := "work=$1 home=$2; shift 2\n" + m.layout.script + "\n" + script
	command := exec.CommandContext(ctx, "unshare", slices.Concat([]string{
		namespaces, "/bin/sh", "-c", line, "sh", m.work, m.home,
	}, args)...)
	command.Env = []string{
		"HOME=" + m.home, "PATH=" + searchPath, "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/bash", "LANG=C.UTF-8",
		"TERM=xterm-256color", "SHARED=" + filepath.Join(m.home, "shared"),
	}
	return command
}

// run runs a program once, in a world of its own, and returns its output if it
// fails.
func run(t *testing.T, l layout, p program, u who, inside bool) (failure string) {
	t.Helper()
	m := newMachine(t, l, u)
	harness.Write(t, filepath.Join(m.home, ".gitconfig"), "[user]\n\tname = Tester\n\temail = tester@example.com\n")
	harness.Write(t, filepath.Join(m.project, "script"), p.files.Section("script"))
	harness.Write(t, filepath.Join(m.home, "prepare"), p.files.Section("prepare"))
	settings := filepath.Join(m.home, ".config/sandbox-sidecar/settings.json")
	harness.Write(t, settings, harness.Defaults(p.settings))
	command := []string{"/bin/bash", "-e", "script"}
	if inside {
		command = append([]string{harness.Binary(t), "exec", "--kind", "tool", "--"}, command...)
	}
	const start = `cd "$HOME"; "$@" /bin/bash -e prepare
cd project; exec "$@" `
	started := m.command(t, "-m", start+quoted(command), slices.Concat([]string{"env"}, u.wrap)...)
	var output bytes.Buffer
	started.Stdout, started.Stderr = &output, &output
	if err := started.Run(); err != nil {
		return fmt.Sprintf("%v:\n%s", err, output.String())
	}
	return ""
}

// nobody and nogroup are the ids of Debian's ordinary user for tests.
const (
	nobody  = 65534
	nogroup = 65534
)

func quoted(words []string) string {
	var list []string
	for _, word := range words {
		list = append(list, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(list, " ")
}

// table is what docs/machines.md shows.
type table struct {
	mu    sync.Mutex
	cells map[string]map[string]string // by program, then by layout
}

func (r *table) set(p program, l layout, u who, result string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cells[p.name] == nil {
		r.cells[p.name] = map[string]string{}
	}
	if before, is := r.cells[p.name][l.name]; is && before != result {
		result = before + "; " + u.name + ": " + result
	}
	r.cells[p.name][l.name] = result
}

// page is docs/machines.md.
func (r *table) page(t *testing.T, all []program) string {
	t.Helper()
	list := layouts(t)
	var out strings.Builder
	out.WriteString("# Everyday programs on machines of every layout\n\n" +
		"Written by `make test-machines`. Each program ran outside and in a session, as root and as an ordinary\n" +
		"user, on one machine that was laid out as those below: links in /etc, resolvers, certificates and homes.\n" +
		"The programs are Debian's. So a layout shows what files lead to, and not how another distribution builds its programs.\n\n")
	for _, l := range list {
		fmt.Fprintf(&out, "- **%s**: %s\n", l.name, l.about)
	}
	out.WriteString("\nEvery program works on every layout on which it works outside, with the settings that " +
		"[tools](tools.md) names. Others:\n\n" +
		"| program | layout | result |\n|---|---|---|\n")
	works := 0
	for _, p := range all {
		for _, l := range list {
			switch result := r.cells[p.name][l.name]; result {
			case "works":
				works++
			case "not installed":
			default:
				fmt.Fprintf(&out, "| %s | %s | %s |\n", p.title, l.name, result)
			}
		}
	}
	var missing []string
	for _, p := range all {
		if r.cells[p.name][list[0].name] == "not installed" {
			missing = append(missing, strings.Join(p.needs, " and "))
		}
	}
	fmt.Fprintf(&out, "\n%d programs on %d layouts: %d of %d work. Not installed on this machine: %s.\n\n"+
		"Not here: SELinux and AppArmor profiles of distributions, musl's loader, sssd's sockets, WSL's 9p file\n"+
		"system, NFS.\n",
		len(all), len(list), works, len(all)*len(list), strings.Join(missing, ", "))
	return out.String()
}
