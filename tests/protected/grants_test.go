//go:build linux

package protected

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// grantKind is a way to let sessions write outside of the project.
type grantKind struct {
	name string
	// grant is the entry of additional_read_write_paths, and root what the rows
	// are relative to; both relative to the home directory.
	grant, root string
	// rows are names that programs outside act on. Those that end in "+" do not
	// exist, and only the review knows those that begin with "?".
	rows []string
	// narrower are more grants, in protected directories: what they name can be
	// written.
	narrower []string
	// project: the grant is that of the project, which is there.
	project bool
	// zed: the grant is one of Zed's own settings.
	zed bool
}

var grantKinds = []grantKind{
	{name: "a project", grant: "other", root: "other", rows: []string{
		".git/hooks/pre-commit+", ".git/config", ".vscode/tasks.json", ".envrc+", ".claude/settings.json",
		"deps/inner/.git/config", "?package.json", "?Makefile",
	}},
	{
		name: "a repository's directory", grant: "other/.git", root: "other/.git",
		rows: []string{"hooks/pre-commit+", "config"},
	},
	{
		name: "a symlink to a project", grant: "led", root: "other",
		rows: []string{".git/hooks/pre-commit+", ".vscode/tasks.json", "?Makefile"},
	},
	{
		name: "a grant of Zed's", grant: "other", root: "other", zed: true,
		rows: []string{".git/config", ".vscode/tasks.json", "?package.json"},
	},
	{
		name: "a repository's parts", grant: "other/.git", root: "other/.git",
		rows: []string{"modules/sub/config", "modules/sub/hooks/post-checkout+", "worktrees/side/commondir"},
	},
	{name: "home", grant: ".", root: ".", rows: []string{
		".bashrc", ".zshrc", ".profile+", ".local/bin/tool", ".vscode/tasks.json", ".config/fish/config.fish+",
		".shell/sourced", ".shell/d/one", ".shell/d/new+", "gitmore", "githooks/pre-commit+",
	}},
	{
		name: "home, and narrower", grant: ".", root: ".", rows: []string{".claude/settings.json", ".local/bin/tool"},
		narrower: []string{".claude/projects", ".claude/a/b", ".local/bin/mine"},
	},
	{name: "start-up files", grant: "dotfiles", root: "dotfiles", rows: []string{
		"zshrc", "aliases", "now/env", "helix.toml", "vim/plugin/new.vim+", "?hook.sh",
	}},
	{
		name: "the project has start-up files", grant: "dotfiles", root: "dotfiles", project: true,
		rows: []string{
			"zshrc", "aliases", "now/env", "ssh/work", "ssh/d/new+", "helix.toml", "vim/plugin/a.vim",
			"vim/plugin/new.vim+", "?hook.sh", "?mine", "?link.sh",
		},
	},
	{name: "files that a start-up file sources", grant: ".shell/d", root: ".shell/d", rows: []string{"one", "new+"}},
	{name: "hooks of all repositories", grant: "githooks", root: "githooks", rows: []string{"?pre-commit+"}},
	{name: "one file", grant: ".bashrc", root: ".", rows: []string{"?.bashrc"}},
	{
		name: "one file that a start-up file sources", grant: ".shell/sourced", root: ".",
		rows: []string{"?.shell/sourced"},
	},
	{name: "one file that git reads", grant: "gitmore", root: ".", rows: []string{"?gitmore"}},
	{name: "one file of a group", grant: "other/package.json", root: "other", rows: []string{"?package.json"}},
}

// byGit is the road on which the file itself stays as it is.
const byGit = "by git's objects"

// grantRoads are lines that change the file $1 below $2, each in a session.
var grantRoads = map[string][]string{
	"directly":     {`mkdir -p "$(dirname "$1")"; echo planted >>"$1"`},
	"by a symlink": {`mkdir -p "$(dirname "$1")"; ln -s "$2" way; echo planted >>"way/${1#"$2"/}"`},
	"by rename":    {`mkdir -p "$(dirname "$1")"; echo planted >new; mv -f new "$1"`},
	"by a hard link": {`test -e "$1" || exit 0; ln "$1" "$1.linked" && echo planted >>"$1.linked"; ` +
		`rm -f "$1.linked"`},
	"its directory moved": {`d="$(dirname "$1")"; test "$d" = "$2" || { mv "$d" "$2/away"; mkdir -p "$d"; } ` +
		`&& echo planted >>"$1"`},
	"in two sessions": {
		`mkdir -p "$2/node_modules/keep"; echo planted >"$2/node_modules/keep/$(basename "$1")"`,
		`d="$(dirname "$1")"; k="$2/node_modules/keep"; if test -e "$d"; then mv -f "$k/$(basename "$1")" "$1"
else mkdir -p "$(dirname "$d")"; mv "$k" "$d"; fi`,
	},
	byGit: {`cd "$2" && export GIT_INDEX_FILE=$PWD/.git/more &&
git update-index --add --cacheinfo 100644,$(echo planted | git hash-object -w --stdin),"${1#"$2"/}" &&
git tag -f evil $(echo m | git -c user.name=u -c user.email=u@example.com commit-tree $(git write-tree))`},
}

// planted reports whether a road has led to a file below a root.
func (s *scene) planted(road, root, path string) bool {
	if road != byGit {
		content, _ := os.ReadFile(path)
		return strings.Contains(string(content), "planted")
	}
	name, _ := filepath.Rel(root, path)
	show := exec.Command("git", "-C", root, "show", "evil:"+name)
	show.Env = harness.Environ(s.World)
	content, _ := show.CombinedOutput()
	return string(content) == "planted\n"
}

// fill makes what the rows need.
func (s *scene) fill() {
	s.T.Helper()
	for _, dir := range []string{
		"other", "dotfiles", ".vscode", ".local/bin", ".config/fish", ".claude", ".shell", "githooks", "node_modules",
	} {
		if err := os.RemoveAll(filepath.Join(s.Home, dir)); err != nil {
			s.T.Fatal(err)
		}
	}
	for _, repository := range []string{"other/.git", "other/deps/inner/.git"} { // without git, it is faster
		for _, dir := range []string{"objects", "refs", "hooks"} {
			harness.MakeDir(s.T, filepath.Join(s.Home, repository, dir))
		}
		harness.Write(s.T, filepath.Join(s.Home, repository, "HEAD"), "ref: refs/heads/main\n")
		harness.Write(s.T, filepath.Join(s.Home, repository, "config"), "[core]\n\trepositoryformatversion = 0\n")
	}
	for _, dir := range []string{"objects", "refs", "hooks"} {
		harness.MakeDir(s.T, filepath.Join(s.Home, "other/.git/modules/sub", dir))
	}
	for path, content := range map[string]string{
		"other/.git/modules/sub/HEAD": "ref: refs/heads/main\n", "other/.git/modules/sub/config": "[core]\n",
		"other/.git/worktrees/side/HEAD": "ref: refs/heads/side\n", "other/.git/worktrees/side/commondir": "../..\n",
		"other/.git/worktrees/side/gitdir": "/nowhere/.git\n",
		"other/.vscode/tasks.json":         "{}", "other/.agents/settings.json": "{}", "other/package.json": "{}",
		"other/build/mk": "all:\n", "dotfiles/zshrc": "", "dotfiles/aliases": "",
		"dotfiles/v1/env": "", "dotfiles/ssh/work": "", "dotfiles/ssh/d/one": "",
		"dotfiles/helix.toml": "", "dotfiles/vim/plugin/a.vim": "", ".config/helix/themes/x": "", ".vim/vimrc": "",
		".ssh/config": "Include ~/dotfiles/ssh/work ~/dotfiles/ssh/d/*\n",
		".bashrc": ". ~/.shell/sourced; . ~/dotfiles/aliases; . ~/dotfiles/now/env\nfor f in ~/.shell/d/*; do . \"$f\"; done\n" +
			"alias mine=~/dotfiles/mine; alias linked=~/dotfiles/link.sh\n",
		".shell/sourced": "", ".shell/d/one": "", "gitmore": "", "githooks/README": "",
		".gitconfig":         "[core]\n\thooksPath = ~/githooks\n[include]\n\tpath = ~/gitmore\n",
		".local/bin/tool":    "",
		".vscode/tasks.json": "{}", ".claude/settings.json": `{"hooks": {"Stop": [{"hooks": [{"command": "~/dotfiles/hook.sh"}]}]}}`,
		"dotfiles/hook.sh": "", "dotfiles/mine": "",
		"dotfiles/impl.sh": "", ".claude/projects/x": "", ".claude/a/b/x": "",
		".local/bin/mine": "",
	} {
		harness.Write(s.T, filepath.Join(s.Home, path), content)
	}
	for link, target := range map[string]string{
		"other/.claude": ".agents", "other/Makefile": "build/mk", ".zshrc": "dotfiles/zshrc",
		"led": "other", "dotfiles/now": "v1",
		"dotfiles/link.sh": "impl.sh", ".config/helix/config.toml": "../../dotfiles/helix.toml",
		".vim/plugin": "../dotfiles/vim/plugin",
	} {
		link = filepath.Join(s.Home, link)
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			s.T.Fatal(err)
		}
	}
	for _, path := range []string{"way", "away", ".profile", ".config/fish", "new", "linked"} {
		for _, dir := range []string{s.Home, s.Project} {
			if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
				s.T.Fatal(err)
			}
		}
	}
}

// told reports whether what a session's end says names a path, or one above it that
// is below the root of the grant: what is said of the whole grant names nothing.
func told(end protocol.CloseResult, alarms []string, root string, paths ...string) bool {
	covers := func(named string) bool {
		return named != root && slices.ContainsFunc(paths, func(path string) bool { return within(named, path) })
	}
	for _, f := range end.Review {
		if covers(f.Path) || slices.ContainsFunc(f.Others, covers) {
			return true
		}
	}
	return slices.ContainsFunc(alarms, covers)
}

func within(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// grantMatrix is where the table of grants and roads is written; see "make attack".
var grantMatrix = flag.String("matrix", "", "file to write the table of grants and roads to")

// cells counts outcomes, by grant and road.
type cells struct {
	sync.Mutex
	of map[[2]string]map[string]int
}

var grantCells = cells{of: map[[2]string]map[string]int{}}

func (c *cells) add(grant, road, outcome string) {
	c.Lock()
	defer c.Unlock()
	key := [2]string{grant, road}
	if c.of[key] == nil {
		c.of[key] = map[string]int{}
	}
	c.of[key][outcome]++
}

// table has a line for each grant, and a column for each road: how many rows stayed
// the same, and of how many changes the session's end told, and did not.
func (c *cells) table() string {
	c.Lock()
	defer c.Unlock()
	roads := slices.Sorted(maps.Keys(grantRoads))
	grants := map[string]bool{}
	for key := range c.of {
		grants[key[0]] = true
	}
	text := "\nWhat programs outside act on, in each grant, by each road: same/told/silent\n"
	text += fmt.Sprintf("%-56s %s\n", "", strings.Join(roads, " | "))
	for _, grant := range slices.Sorted(maps.Keys(grants)) {
		text += fmt.Sprintf("%-56s", grant)
		for _, road := range roads {
			of := c.of[[2]string{grant, road}]
			text += fmt.Sprintf(" %*s |", len(road)-1, fmt.Sprintf("%d/%d/%d", of["same"], of["told"], of["silent"]))
		}
		text += "\n"
	}
	return text
}

// What programs outside act on cannot be changed in silence in any grant, by any
// road. Where the kernel prevents it, it stays as it is. In a turn each row is tried
// by one road, on one machine and in the control. The numbers of roads and machines
// have no common factor, so over all turns each road is tried on each machine.
func TestEveryWritableGrantIsTreatedAsTheProject(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	if *grantMatrix != "" {
		t.Cleanup(func() { harness.Must(t, os.WriteFile(*grantMatrix, []byte(grantCells.table()), 0o600)) })
	}
	machines := harness.Machines(t)
	for i, kind := range grantKinds {
		for j, machine := range machines {
			for _, protect := range []bool{true, false} {
				if !protect && !machine.Namespaces || protect && !harness.Turn(t, i+j, len(machines)) {
					continue // the control is the same on each machine
				}
				t.Run(fmt.Sprintf("%s, %s, %v", kind.name, machine.Name, protect), func(t *testing.T) {
					t.Parallel()
					newGrantScene(t, kind, protect).roads(kind, i, machine, protect)
				})
			}
		}
	}
}

func newGrantScene(t *testing.T, kind grantKind, protect bool) *grantScene {
	s := newScene(t)
	granted := []string{filepath.Join(s.Home, kind.grant)}
	for _, path := range kind.narrower {
		granted = append(granted, filepath.Join(s.Home, path))
	}
	block := harness.Sandbox{"additional_read_write_paths": granted}
	if kind.zed {
		block = harness.Sandbox{}
		harness.Write(t, s.HomePath(".config/zed/settings.json"),
			fmt.Sprintf(`{"agent": {"sandbox_permissions": {"write_paths": [%q]}}}`, granted[0]))
	}
	if kind.project {
		block["additional_read_write_paths"], s.Project = []string{}, granted[0]
	}
	if !protect {
		block["protected_paths"] = []string{"!*"}
	}
	s.fill()
	return &grantScene{s, harness.Defaults(block)}
}

type grantScene struct {
	*scene
	settings string
}

// roads tries those of which it is the turn. first is the turn of the first road to
// the first row.
func (s *grantScene) roads(kind grantKind, first int, machine harness.Machine, protect bool) {
	e := s.start(s.settings, machine)
	for _, path := range kind.narrower {
		file := filepath.Join(s.Home, path)
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file = filepath.Join(file, "x")
		}
		session, _ := e.Run(protocol.SpawnParams{
			Command: "/bin/sh", Args: []string{"-c", `echo written >>"$1"`, "sh", file}, Cwd: s.Project,
		})
		session.Close(0)
		if content, _ := os.ReadFile(file); !strings.Contains(string(content), "written") {
			s.T.Errorf("%s is granted, and cannot be written: %s", path, session.Output())
		}
	}
	for i, road := range slices.Sorted(maps.Keys(grantRoads)) {
		for j, row := range kind.rows {
			if !harness.Turn(s.T, first+i+j, len(grantRoads)) {
				continue
			}
			cell := "same"
			s.fill()
			name, missing := strings.CutSuffix(row, "+")
			name, reviewed := strings.CutPrefix(name, "?")
			root := filepath.Join(s.Home, kind.root)
			path := filepath.Join(root, name)
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				real = path
			}
			reported := len(e.denials.All())
			var session *harness.Session
			var end protocol.CloseResult
			for _, line := range grantRoads[road] {
				session, _ = e.Run(protocol.SpawnParams{
					Command: "/bin/sh", Args: []string{"-c", line, "sh", path, root}, Cwd: s.Project,
				})
				end = session.Close(0)
			}
			changed := s.planted(road, root, path)
			var alarms []string
			for _, one := range e.denials.All()[reported:] {
				if strings.HasPrefix(one.Access, "protected_") {
					alarms = append(alarms, one.Target)
				}
			}
			what := fmt.Sprintf("%s, %s", road, row)
			hopeless := missing && road == "by a hard link" || onlyByWriting(kind, road) ||
				road == byGit && (!strings.HasPrefix(filepath.Join(root, ".git"), s.HomePath("other/.git")) ||
					strings.HasPrefix(filepath.Join(kind.root, name), "other/.git") || strings.Contains(name, "/.git/"))
			switch {
			case changed && told(end, alarms, root, path, real):
				cell = "told"
			case changed:
				cell = "silent"
			}
			if protect {
				grantCells.add(kind.name+", "+machine.Name, road, cell)
			}
			switch {
			case changed && protect && !told(end, alarms, root, path, real):
				harness.Breach(s.T, "%s: changed, and nobody is told: %+v", what, end.Review)
			case changed && protect && machine.Namespaces && !reviewed && road != byGit:
				harness.Breach(s.T, "%s: changed, though it could be prevented", what)
			case !changed && !protect && !hopeless:
				s.T.Errorf("%s: the control has no effect: %s", what, session.Output())
			}
		}
	}
}

// onlyByWriting reports whether a road cannot work without protection either: the
// directory of a granted file is not writable.
func onlyByWriting(kind grantKind, road string) bool {
	return strings.HasPrefix(kind.name, "one file") && road != "directly" && road != "by a symlink"
}

// What only its owner may read is hidden in such a grant. A machine that can hide
// nothing tells what happens to it, by each road.
func TestPrivateFilesOfAGrantAreNotChangedInSilence(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	kind := grantKinds[slices.IndexFunc(grantKinds, func(k grantKind) bool { return k.name == "home" })]
	for _, machine := range harness.Machines(t) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			s := newGrantScene(t, kind, true)
			changes := 0
			for i, road := range slices.Sorted(maps.Keys(grantRoads)) {
				if road == byGit {
					continue // the home directory is no repository
				}
				names := []string{".shell/sourced", ".vscode/tasks.json", ".bashrc", ".local/bin/tool"}
				for j, name := range names {
					if !harness.Turn(t, i+j, len(names)) {
						continue
					}
					s.fill()
					path := filepath.Join(s.Home, name)
					harness.Must(t, os.Chmod(path, 0o600))
					e := s.start(s.settings, machine) // what is private is looked for when a sidecar starts
					var end protocol.CloseResult
					for _, line := range grantRoads[road] {
						session, _ := e.Run(protocol.SpawnParams{
							Command: "/bin/sh", Args: []string{"-c", line, "sh", path, s.Home}, Cwd: s.Project,
						})
						end = session.Close(0)
					}
					if content := harness.Read(t, path); !strings.Contains(content, "planted") {
						continue
					}
					changes++
					var alarms []string
					for _, one := range e.denials.All() {
						if strings.HasPrefix(one.Access, "protected_") {
							alarms = append(alarms, one.Target)
						}
					}
					if machine.Namespaces || !told(end, alarms, s.Home, path) {
						harness.Breach(t, "%s, %s: changed; the review: %+v", road, name, end.Review)
					}
				}
			}
			if !machine.Namespaces && changes == 0 {
				t.Error("control: nothing was changed")
			}
		})
	}
}
