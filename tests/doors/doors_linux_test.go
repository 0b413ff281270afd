package doors

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

var update = flag.Bool("update", false, "write the table of the document")

// turns is how many turns it takes until all has been tried.
const turns = 3

const (
	document = "../../docs/design/session.md"
	tableTop = "<!-- situations by front doors; go test ./tests/doors -update -->\n"
	tableEnd = "<!-- end of situations -->\n"
)

// situation is a row of the table.
type situation struct {
	name string
	// extra are keys of the user's settings.
	extra harness.Sandbox
	env   []string
	// prepare changes the world before the command starts.
	prepare func(s *scene)
	// without: the kernel has no Landlock.
	without bool
	// lost: the user's settings have counted, and are gone.
	lost bool
	// says is part of what the user, the editor or the agent gets to read; nil if
	// there is nothing to tell. tells: it is told although the command is
	// confined.
	says  *regexp.Regexp
	tells bool
	// flagged: it needs the flag --project, which a shell does not have.
	flagged bool
}

// scene is one command in one situation.
type scene struct {
	*harness.World
	t  *testing.T
	of situation
	// project and cwd are where the command starts.
	project, cwd string
	// left are the descriptors from 3 on that the caller leaves open.
	left []*os.File
}

// door is a column of the table: it runs a line of shell, and returns what was
// said about its session.
type door struct {
	name string
	run  func(s *scene, line string) (said string)
	// flagless: the project is the working directory.
	flagless bool
}

var doors = []door{
	{name: "editor's terminal", run: func(s *scene, line string) string {
		return s.serve(protocol.SpawnParams{Kind: protocol.Terminal, Command: line})
	}},
	{name: "editor's tool", run: func(s *scene, line string) string {
		return s.serve(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
	}},
	{name: "`mcp`", run: (*scene).mcp},
	{name: "`exec`", run: func(s *scene, line string) string { return s.command("exec", "--", "sh", "-c", line) }},
	{name: "`exec --sandbox`", run: func(s *scene, line string) string {
		return s.command("exec", "--sandbox", "--", "sh", "-c", line)
	}},
	{name: "shell", run: (*scene).shell, flagless: true},
	{name: "`learn`", run: func(s *scene, line string) string { return s.command("learn", "--", "sh", "-c", line) }},
	{name: "`acp`", run: func(s *scene, line string) string { return s.command("acp", "--", "sh", "-c", line) }},
}

func situations() []situation {
	says := regexp.MustCompile
	return []situation{
		{name: "nothing special"},
		{
			name: "the settings leave the sandbox off", extra: harness.Sandbox{"enabled": false},
			says: says(`not sandboxed|leave the sandbox off|applied: false`),
		},
		{
			name: "they leave it off for tools", extra: harness.Sandbox{"apply_to": "terminal"},
			says: says(`not sandboxed|leave the sandbox off|applied: false`),
		},
		{
			name: "a trusted project leaves it off",
			prepare: func(s *scene) {
				s.projectSettings(`{"enabled": false}`)
				s.trust()
			},
			says: says(`not sandboxed|leave the sandbox off|applied: false`),
		},
		{
			name: "a mistake in a settings file", extra: harness.Sandbox{"no_such_key": true},
			says: says(`no_such_key|settings\.json:\d+ is wrong`), tells: true,
		},
		{
			name: "the user's settings are gone", lost: true,
			prepare: func(s *scene) {
				command := s.start(harness.Binary(s.t), "exec", "--", "true")
				if out, err := command.CombinedOutput(); err != nil {
					s.t.Fatalf("control: %v: %s", err, out)
				}
				harness.Must(s.t, os.Remove(s.UserSettings()))
			},
			says: says(`settings that counted are gone|settings\.json:\d+ is wrong`), tells: true,
		},
		{
			name: "a note: the proxy has a password", env: []string{"HTTPS_PROXY=http://user:secret@127.0.0.1:9"},
			says: says(`password of your proxy`), tells: true,
		},
		{
			name: "a grant that opens keys", extra: harness.Sandbox{"additional_read_only_paths": []string{"~/.ssh"}},
			prepare: func(s *scene) { harness.Write(s.t, s.HomePath(".ssh/id_ed25519"), "key") },
			says:    says(`\.ssh`), tells: true,
		},
		{
			name: "a directory of a toolchain cannot be made", extra: harness.Sandbox{"toolchains": []string{"go"}},
			prepare: func(s *scene) { harness.Write(s.t, s.HomePath(".cache"), "a file") },
			says:    says(`make a directory that sessions need`), tells: true,
		},
		{
			name:    "no Landlock",
			without: true, says: says(`Landlock`),
		},
		{
			name:    "no Landlock, `on_unavailable` is warn",
			without: true, extra: harness.Sandbox{"on_unavailable": "warn"}, says: says(`Landlock`),
		},
		{
			name:    "no Landlock, `on_unavailable` is refuse",
			without: true, extra: harness.Sandbox{"on_unavailable": "refuse"}, says: says(`Landlock`),
		},
		{
			name: "a project that is not trusted asks for more",
			prepare: func(s *scene) {
				s.projectSettings(fmt.Sprintf(`{"additional_read_write_paths": [%q]}`, s.Outside))
			},
		},
		{
			name: "a trusted project asks for more",
			prepare: func(s *scene) {
				s.projectSettings(fmt.Sprintf(`{"additional_read_write_paths": [%q]}`, s.Outside))
				s.trust()
			},
		},
		{
			name: "the user has made a symlink to the project",
			prepare: func(s *scene) {
				s.project = s.HomePath("link")
				s.cwd = s.project
				harness.Must(s.t, os.Symlink(s.Project, s.project))
			},
		},
		{
			name: "a session could have made it",
			prepare: func(s *scene) {
				repository := filepath.Join(filepath.Dir(s.Project), "repository")
				harness.MakeDir(s.t, filepath.Join(repository, ".git"))
				s.project = filepath.Join(repository, "link")
				s.cwd = s.project
				harness.Must(s.t, os.Symlink(s.Project, s.project))
			},
			says: says(`symlink`),
		},
		{
			name:    "the project directory does not exist",
			prepare: func(s *scene) { s.project = filepath.Join(s.Outside, "missing") },
			says:    says(`missing`), flagged: true,
		},
		{
			name: "the working directory does not exist",
			prepare: func(s *scene) {
				s.cwd = filepath.Join(s.Project, "gone")
				harness.MakeDir(s.t, s.cwd)
			},
			says: says(`no such file|not a directory`),
		},
	}
}

// What every front door decides is one table. It is made by trying: the real
// program, each door in each situation. Doors take turns with situations: each turn
// has two or three doors in a situation, and six situations of a door. The document
// says what the others decide.
func TestDoors_DecideAlike(t *testing.T) { // alone: it may write the document
	harness.RequireSandbox(t)
	rows, known := situations(), documented(t)
	cells := make([][]string, len(rows))
	t.Run("try", func(t *testing.T) {
		for i, of := range rows {
			cells[i] = make([]string, len(doors))
			for j, d := range doors {
				if !harness.Turn(t, i+j, turns) {
					if old := known[of.name]; j < len(old) {
						cells[i][j] = old[j]
					}
					continue
				}
				t.Run(of.name+", "+d.name, func(t *testing.T) {
					t.Parallel()
					if of.flagged && d.flagless {
						cells[i][j] = "-"
						return
					}
					cells[i][j] = newScene(t, of).happens(d)
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	var table strings.Builder
	table.WriteString("| situation |")
	for _, d := range doors {
		fmt.Fprintf(&table, " %s |", d.name)
	}
	fmt.Fprintf(&table, "\n|---|%s\n", strings.Repeat("---|", len(doors)))
	for i, of := range rows {
		fmt.Fprintf(&table, "| %s | %s |\n", of.name, strings.Join(cells[i], " | "))
	}
	checkTable(t, table.String())
}

func newScene(t *testing.T, of situation) *scene {
	t.Helper()
	s := &scene{World: harness.NewWorldOutsideDefaults(t), t: t, of: of}
	s.project, s.cwd = s.Project, s.Project
	harness.Write(t, s.UserSettings(), harness.Defaults(of.extra))
	if of.prepare != nil {
		of.prepare(s)
	}
	return s
}

// happens runs a command and says what came of it in a word.
func (s *scene) happens(d door) string {
	inside, outside := filepath.Join(s.Project, "inside"), s.OutsidePath("file")
	line := fmt.Sprintf("echo in > %s; echo out > %s", harness.Quote(inside), harness.Quote(outside))
	said := harness.Unfold(d.run(s, line))
	ran, escaped := harness.Read(s.t, inside) == "in\n", harness.Read(s.t, outside) == "out\n"
	s.t.Logf("%s, %s: ran: %t, wrote outside: %t\n%s", s.of.name, d.name, ran, escaped, said)
	word := "confined"
	switch {
	case !ran && escaped:
		s.t.Errorf("%s: only half of the command ran", d.name)
	case !ran:
		word = "refused"
	case escaped:
		word = "open"
	}
	if s.of.says != nil && (s.of.tells || word != "confined") && !s.of.says.MatchString(said) {
		word += ", silently"
	}
	return word
}

// start is a command of the program, in this situation.
func (s *scene) start(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	if s.of.without {
		victim := s.HomePath("victim")
		harness.Victim(s.t, "tests/victim", victim)
		command = exec.Command(victim, slices.Concat([]string{"without-landlock", name}, args)...)
	}
	if s.of.lost {
		command = s.atHome(command)
	}
	command.Env = slices.Concat(harness.Environ(s.World), s.of.env, []string{"PWD=" + s.cwd})
	command.Dir, command.ExtraFiles = s.cwd, s.left
	return command
}

// atHome is a command for which the user database has the world's home: notes are
// kept only there.
func (s *scene) atHome(command *exec.Cmd) *exec.Cmd {
	passwd := s.OutsidePath("passwd")
	harness.Write(s.t, passwd, "root:x:0:0::"+s.Home+":/bin/sh\n")
	args := []string{"--mount"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "/bin/sh", "-c", `mount --bind "$0" /etc/passwd && exec "$@"`, passwd)
	if out, err := exec.Command("unshare", append(args, "true")...).CombinedOutput(); err != nil {
		harness.Skip(s.t, "mount_namespace", fmt.Sprintf("%v: %s", err, out))
	}
	return exec.Command("unshare", slices.Concat(args, []string{command.Path}, command.Args[1:])...)
}

// leave has a command start in the scene's directory, which is then removed if
// it should not exist.
func (s *scene) leave(command *exec.Cmd) {
	if s.cwd == s.project || filepath.Base(s.cwd) != "gone" {
		return
	}
	args := slices.Concat([]string{"sh", "-c", `rmdir "$PWD" && exec "$@"`, "sh"}, command.Args)
	command.Path, command.Args = "/bin/sh", args
}

// command runs a subcommand to its end.
func (s *scene) command(name string, args ...string) (said string) {
	if s.project != s.cwd {
		args = slices.Concat([]string{"--project", s.project}, args)
	}
	return s.ends(s.start(harness.Binary(s.t), slices.Concat([]string{name}, args)...))
}

// shell is a link to the program that has the name of a shell.
func (s *scene) shell(line string) (said string) {
	link := s.HomePath("bin/sh")
	harness.MakeDir(s.t, filepath.Dir(link))
	harness.Must(s.t, os.Symlink(harness.Binary(s.t), link))
	return s.ends(s.start(link, "-c", line))
}

// ends runs a command to its end, and returns what it says beside its output.
func (s *scene) ends(command *exec.Cmd) (said string) {
	s.leave(command)
	var errors harness.Buffer
	command.Stderr = &errors
	if err := command.Run(); err != nil {
		s.t.Logf("%s: %v", command, err)
	}
	return errors.String()
}

// serve spawns a session of an editor, in the scene's project.
func (s *scene) serve(params protocol.SpawnParams) (said string) {
	e := harness.Start(s.t, s.World, harness.Options{
		Settings: harness.Read(s.t, s.UserSettings()), Env: s.of.env,
		Wrap: func(command *exec.Cmd) {
			wrapped := s.start(command.Path, command.Args[1:]...)
			command.Path, command.Args, command.ExtraFiles = wrapped.Path, wrapped.Args, wrapped.ExtraFiles
		},
	})
	s.remove()
	if s.of.lost { // the harness has written it
		harness.Must(s.t, os.Remove(s.UserSettings()))
	}
	var diagnostics strings.Builder
	settings := harness.Call(e, protocol.SettingsGet, protocol.SettingsGetParams{ProjectDir: s.project})
	for _, d := range settings.Diagnostics {
		fmt.Fprintln(&diagnostics, d.Key, d.Message)
	}
	params.ProjectDir, params.Cwd = s.project, s.cwd
	result, err := harness.Try(e, protocol.Spawn, params)
	if err != nil {
		return err.Error() + "\n" + diagnostics.String()
	}
	session := e.Session(result)
	session.Exit()
	return fmt.Sprintf("applied: %t\n%s\n%s\n%s", result.Sandbox.Applied,
		strings.Join(result.Sandbox.Warnings, "\n"), session.Output(), diagnostics.String())
}

// remove removes the working directory if it should not exist.
func (s *scene) remove() {
	if filepath.Base(s.cwd) == "gone" {
		harness.Must(s.t, os.Remove(s.cwd))
	}
}

// mcp has an agent run a command.
func (s *scene) mcp(line string) (said string) {
	args := []string{"mcp"}
	if s.project != s.Project {
		args = append(args, "--project", s.project)
	}
	command := s.start(harness.BinaryWithMCP(s.t), args...)
	command.Dir = s.Project
	var errors harness.Buffer
	command.Stderr = &errors
	agent := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := agent.Connect(s.t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		return errors.String()
	}
	defer session.Close()
	s.remove()
	arguments := map[string]any{"command": line, "cwd": s.cwd}
	got, err := session.CallTool(s.t.Context(), &mcp.CallToolParams{Name: "run", Arguments: arguments})
	harness.Must(s.t, err)
	for _, content := range got.Content {
		said += content.(*mcp.TextContent).Text + "\n"
	}
	return said + errors.String()
}

// projectSettings writes a block of the project's settings.
func (s *scene) projectSettings(block string) {
	harness.Write(s.t, s.ProjectPath(".zed/settings.json"), `{"terminal": {"sandbox": `+block+`}}`)
}

// trust trusts the project's settings.
func (s *scene) trust() {
	digest := harness.Digest(s.t, s.ProjectPath(".zed/settings.json"))
	command := exec.Command(harness.Binary(s.t), "trust", "--digest", digest)
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("trust: %v: %s", err, out)
	}
}

// readTable reads the document, with its table and what is around it.
func readTable(t *testing.T) (before, table, after string) {
	t.Helper()
	data, err := os.ReadFile(document)
	harness.Must(t, err)
	before, rest, found := strings.Cut(string(data), tableTop)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("the table is not in %s", document)
	}
	return before, table, after
}

// documented are the rows of the document's table, by situation.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	_, table, _ := readTable(t)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		rows[cells[0]] = cells[1:]
	}
	return rows
}

// checkTable compares the table of the document with what was tried, or writes
// it.
func checkTable(t *testing.T, table string) {
	t.Helper()
	before, old, after := readTable(t)
	switch {
	case old == table:
	case *update:
		harness.Must(t, os.WriteFile(document, []byte(before+tableTop+table+tableEnd+after), fs.FileMode(0o644)))
	default:
		t.Errorf("%s says something else than what was tried; go test ./tests/doors -update:\n%s", document, table)
	}
}
