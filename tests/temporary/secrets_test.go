//go:build linux

package temporary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// secret is a place of the table below a home directory, and a file there.
type secret struct {
	risks.Place
	at    string // the place, relative to the home directory
	file  string // the same as at, or below it
	token string
}

// mixedTexts are settings beside a secret, by their format.
var mixedTexts = map[risks.Format]string{
	risks.FormatLines:     "timeout = 60\n_password = TOKEN\n",
	risks.FormatCurl:      "max-time = 60\nuser = me:TOKEN\n",
	risks.FormatWget:      "timeout = 60\nhttp_password = TOKEN\n",
	risks.FormatMercurial: "[ui]\nusername = Me\n[auth]\na.password = TOKEN\n",
	risks.FormatMaven:     "<settings><servers><server>TOKEN</server></servers></settings>\n",
	risks.FormatSigns:     "url = https://me:TOKEN@r.example\n",
}

// plantSecrets makes a file with a secret at each place of the table, and an
// innocent one beside each place. innocent are the tokens in the latter, by their
// directory. Only the table knows the secrets: the files can be read by all
// users. Places that are no files of settings are directories, or files.
func plantSecrets(t *testing.T, w *harness.World, directories bool) (secrets []secret, innocent map[string]string) {
	t.Helper()
	innocent = map[string]string{".nvm": ""}
	for _, place := range risks.All() {
		at, inHome := strings.CutPrefix(place.Path, "~/")
		if !inHome || place.Secret == "" {
			continue
		}
		one := secret{Place: place, at: strings.ReplaceAll(at, "*", "x"), token: fmt.Sprintf("TOKEN%dX", len(secrets))}
		one.file = one.at
		text := "password = TOKEN\n"
		if place.Mixed != "" {
			text = mixedTexts[place.Format]
		} else if directories {
			one.file += "/file"
		}
		harness.Write(t, w.HomePath(one.file), strings.ReplaceAll(text, "TOKEN", one.token))
		innocent[filepath.Dir(one.at)] = ""
		secrets = append(secrets, one)
	}
	for i, dir := range dirsOf(innocent) {
		innocent[dir] = fmt.Sprintf("PLAIN%dX", i)
		harness.Write(t, w.HomePath(filepath.Join(dir, "innocent")), innocent[dir]+"\n")
	}
	const least = 200
	if len(secrets) < least {
		t.Fatalf("%d secrets", len(secrets))
	}
	return secrets, innocent
}

// dirsOf lists the directories, those that lie in another one first.
func dirsOf(innocent map[string]string) (dirs []string) {
	for dir := range innocent {
		dirs = append(dirs, dir)
	}
	slices.SortFunc(dirs, func(a, b string) int {
		if n := strings.Count(b, "/") - strings.Count(a, "/"); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	return dirs
}

// search prints the tokens in files, and in all directories that it gets.
func search(paths ...string) string {
	line := "grep -rhsoE '" + tokens.String() + "'"
	for _, path := range paths {
		line += " " + harness.Quote(path)
	}
	return line
}

var tokens = regexp.MustCompile("(TOKEN|PLAIN)[0-9]+X")

// found are the tokens that a search has printed.
func found(output string) map[string]bool {
	set := map[string]bool{}
	for _, token := range tokens.FindAllString(output, -1) {
		set[token] = true
	}
	return set
}

// holder is a way to let sessions into directories with secrets.
type holder struct {
	name string
	// keys are the settings; dirs have the places, but for the home directory.
	keys func(w *harness.World, dirs []string) harness.Sandbox
	// project is below the home directory; "" is another directory.
	project string
	// zed: Zed's own settings let its agent write the home directory.
	zed bool
	// opens reports whether sessions may read what is innocent in a directory.
	opens func(dir string) bool
	// written: sessions may write the home directory.
	written bool
	// gives is a place that a set of toolchains opens, as its reference says.
	gives string
	// says is what the settings are warned of.
	says string
}

func whole(string) bool { return true }

func ofConfig(dir string) bool { return dir == ".config" || strings.HasPrefix(dir, ".config/") }

func inHome(dir string) bool { return dir != "." }

// ofSets reports whether a set of toolchains opens a directory.
func ofSets(dir string) bool {
	return ofConfig(dir) || slices.Contains([]string{".nvm", ".conda", ".nuget/NuGet"}, dir)
}

// grants are a list of paths in the settings.
func grants(key string, paths ...string) func(*harness.World, []string) harness.Sandbox {
	return func(*harness.World, []string) harness.Sandbox { return harness.Sandbox{key: paths} }
}

// grantsDirs are all directories that hold a place.
func grantsDirs(key string) func(*harness.World, []string) harness.Sandbox {
	return func(_ *harness.World, dirs []string) harness.Sandbox {
		var list []string
		for _, dir := range dirs {
			list = append(list, "~/"+dir)
		}
		return harness.Sandbox{key: list}
	}
}

func noKeys(*harness.World, []string) harness.Sandbox { return nil }

// What the settings say of a grant whose secrets only namespaces can hide.
const (
	ofHome  = "; without namespaces SSH keys, GnuPG keys, keys of Amazon's cloud and more, too"
	ofCargo = " tokens of package registries where there are no namespaces"
)

var holders = []holder{
	{name: "the defaults", keys: noKeys, opens: ofConfig},
	{name: "home, read", keys: grants("additional_read_only_paths", "~"), opens: whole, says: ofHome},
	{
		name: "home, written", keys: grants("additional_read_write_paths", "~"), opens: whole, written: true,
		says: ofHome,
	},
	{name: "home, executed", keys: grants("additional_executable_paths", "~"), opens: whole, says: ofHome},
	{
		name: "home, a path of the system", opens: whole, says: ofHome,
		keys: func(*harness.World, []string) harness.Sandbox {
			return harness.Sandbox{"system_paths": map[string]any{"read_only": []string{"/etc", "/usr", "/proc", "~"}}}
		},
	},
	{
		name: "home, for tools alone", opens: whole,
		keys: func(*harness.World, []string) harness.Sandbox {
			return harness.Sandbox{"tool": map[string]any{"additional_read_only_paths": []string{"~"}}}
		},
	},
	{
		name: "what holds home", opens: whole,
		keys: func(w *harness.World, _ []string) harness.Sandbox {
			return harness.Sandbox{"additional_read_only_paths": []string{filepath.Dir(w.Home)}}
		},
	},
	{
		name: "a symlink to home", opens: whole,
		keys: func(w *harness.World, _ []string) harness.Sandbox {
			return harness.Sandbox{"additional_read_only_paths": []string{w.OutsidePath("led")}}
		},
	},
	{name: "directories, read", keys: grantsDirs("additional_read_only_paths"), opens: inHome, says: ofCargo},
	{name: "directories, written", keys: grantsDirs("additional_read_write_paths"), opens: inHome, says: ofCargo},
	{name: "directories, executed", keys: grantsDirs("additional_executable_paths"), opens: inHome, says: ofCargo},
	{name: "relaxed", opens: whole, keys: func(*harness.World, []string) harness.Sandbox {
		return harness.Sandbox{"mode": "relaxed"}
	}},
	{
		name: "the project is home", keys: noKeys, project: ".", opens: whole, written: true,
		says: "is your home directory: sessions may read and write all your files",
	},
	{name: "the project is .config", keys: noKeys, project: ".config", opens: ofConfig},
	{name: "Zed's own grant", keys: noKeys, zed: true, opens: whole, written: true},
	{
		name: "all sets of toolchains", opens: ofSets, gives: ".nuget/NuGet/NuGet.Config",
		keys: grants("toolchains", toolchain.Names()...),
	},
	{
		name: "all sets of toolchains, and home", opens: whole, gives: ".nuget/NuGet/NuGet.Config", says: ofHome,
		keys: func(*harness.World, []string) harness.Sandbox {
			return harness.Sandbox{
				"toolchains": toolchain.Names(), "additional_read_only_paths": []string{"~"},
			}
		},
	},
}

// start starts an editor for such sessions in a world with secrets.
func (h holder) start(
	t *testing.T, w *harness.World, innocent map[string]string, wrap func(*exec.Cmd),
) *harness.Editor {
	t.Helper()
	harness.Must(t, os.Symlink(w.Home, w.OutsidePath("led")))
	if h.project != "" {
		w.Project = w.HomePath(h.project)
	}
	if h.zed {
		harness.Write(t, w.HomePath(".config/zed/settings.json"),
			fmt.Sprintf(`{"agent": {"sandbox_permissions": {"write_paths": [%q]}}}`, w.Home))
	}
	dirs := slices.DeleteFunc(dirsOf(innocent), func(dir string) bool { return dir == "." })
	return harness.Start(t, w, harness.Options{Settings: harness.Defaults(h.keys(w, dirs)), Wrap: wrap})
}

// No kind of grant lets a session read a secret of the table that the grant does
// not name. What is innocent beside it is read. Where nothing can be hidden, the
// reply says that, and the settings are warned of.
func TestSecrets_NoWiderGrantShowsThem(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	machines := harness.Machines(t)
	for _, h := range holders {
		for _, machine := range machines {
			for _, directories := range []bool{true, false} {
				if !directories && (!machine.Namespaces || h.gives != "") {
					continue // what is tried is the same, or no set has such a file
				}
				if testing.Short() && (!directories || !machine.Namespaces && !h.written) {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, directories %t", h.name, machine.Name, directories), func(t *testing.T) {
					t.Parallel()
					w := harness.NewWorldOutsideDefaults(t)
					secrets, innocent := plantSecrets(t, w, directories)
					h.try(t, w, machine, secrets, innocent)
				})
			}
		}
	}
}

// try has a session look for all secrets.
func (h holder) try(
	t *testing.T, w *harness.World, machine harness.Machine, secrets []secret, innocent map[string]string,
) {
	t.Helper()
	e := h.start(t, w, innocent, machine.Wrap)
	paths := []string{w.Home}
	for _, one := range secrets {
		paths = append(paths, w.HomePath(one.file))
	}
	for dir := range innocent {
		paths = append(paths, w.HomePath(filepath.Join(dir, "innocent")))
	}
	outside, err := exec.Command("/bin/sh", "-c", search(paths...)).Output()
	if all := found(string(outside)); len(all) != len(secrets)+len(innocent) {
		t.Fatalf("control: outside %d tokens of %d are found: %v", len(all), len(secrets)+len(innocent), err)
	}
	session, _ := e.Run(protocol.SpawnParams{Command: search(paths...)})
	read := found(session.Output())
	for dir, token := range innocent {
		if h.opens(dir) && !read[token] {
			t.Errorf("control: what is innocent in %s cannot be read", dir)
		}
	}
	row := session.Sandbox.Protections["hidden_paths"]
	for _, one := range secrets {
		switch {
		case !read[one.token] || !one.Hidden() || one.at == h.gives:
		case machine.Namespaces:
			harness.Breach(t, "%s (%s) is read", one.Path, one.Secret)
		case row.Status == protocol.Enforced || !strings.Contains(row.Detail, "hidden paths can be read"):
			harness.Breach(t, "%s (%s) is read, and the reply says %+v", one.Path, one.Secret, row)
		}
		if one.at == h.gives && !read[one.token] {
			t.Errorf("control: a set opens %s, and it cannot be read", one.Path)
		}
	}
	if machine.Namespaces && row.Status != protocol.Enforced {
		t.Errorf("the reply says %+v", row)
	}
	said := slices.Clone(session.Sandbox.Warnings)
	for _, d := range harness.Call(e, protocol.PolicyGet, protocol.PolicyGetParams{
		ProjectDir: w.Project, Kind: protocol.Tool,
	}).Policy.Diagnostics {
		said = append(said, d.Message)
	}
	if h.says != "" && !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, h.says) }) {
		t.Errorf("%q is not said: %q", h.says, said)
	}
	if h.written && machine.Namespaces {
		h.byRoads(t, w, e, secrets)
	}
}

// onRoads are places that are tried by all roads: directories and files, in the
// home directory, in one of many programs and in one of a single program.
var onRoads = []string{
	".ssh", ".netrc", ".npmrc", ".config/gh", ".config/containers/auth.json", ".cargo/credentials.toml",
	".local/share/keyrings",
}

// roads make other names for the place $1 in the working directory, and moves
// gives one to it and to the directory above it.
const roads = `roads() {
	i=$((i+1)); ln -s "$1" "link$i"; ln "$1" "hard$i"; cp -r "$1" "copy$i"; cp -r "/proc/self/root$1" "root$i"
	d=$(dirname "$1"); b=$(basename "$1"); (cd "$d" && cp -r "./$b" "$OLDPWD/in$i")
} 2>/dev/null
moves() {
	j=$((j+1)); d=$(dirname "$1"); mv -f "$1" "moved$j"; [ "$d" = "$HOME" ] || mv -f "$d" "above$j"
} 2>/dev/null
`

// byRoads has a session make other names of secrets. It reads none by them, and
// neither does the next one. Outside they stay where they are.
func (h holder) byRoads(t *testing.T, w *harness.World, e *harness.Editor, secrets []secret) {
	t.Helper()
	line := roads
	for _, way := range []string{"roads ", "moves "} {
		for _, at := range onRoads {
			line += way + harness.Quote(w.HomePath(at)) + "\n"
		}
	}
	for _, line := range []string{line + search(".", w.Home, "/proc/self/root"+w.Home), search(".", w.Home)} {
		output, _ := e.Tool(line)
		read := found(output)
		for _, one := range secrets {
			if one.Hidden() && read[one.token] {
				harness.Breach(t, "%s (%s) is read by another name", one.Path, one.Secret)
			}
		}
	}
	for _, one := range secrets {
		if one.Hidden() && !strings.Contains(harness.Read(t, w.HomePath(one.file)), one.token) {
			harness.Breach(t, "%s (%s) was changed", one.Path, one.Secret)
		}
	}
}

// The roads lead to the secrets where there is no sandbox.
func TestSecrets_TheRoadsLeadToThem(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	secrets, innocent := plantSecrets(t, w, true)
	e := harness.Start(t, w, harness.Options{Settings: harness.Off()})
	line := roads
	for _, at := range onRoads {
		line += "roads " + harness.Quote(w.HomePath(at)) + "\n"
	}
	output, _ := e.Tool(line + search("."))
	read := found(output)
	for _, at := range onRoads {
		i := slices.IndexFunc(secrets, func(one secret) bool { return one.at == at })
		if i < 0 || !read[secrets[i].token] {
			t.Errorf("control: no road leads to %s: %s", at, output)
		}
	}
	output, _ = e.Tool(roads + "moves " + harness.Quote(w.HomePath(".cargo/credentials.toml")) + "\n" +
		search("moved1", "above1"))
	if moved := found(output); len(moved) < 2 || !moved[innocent[".cargo"]] {
		t.Errorf("control: nothing was moved: %s", output)
	}
}

// Who grants a secret means it. The session reads it, and a warning names the
// place and what it holds.
func TestSecrets_AGrantOfOneIsWarnedOf(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorldOutsideDefaults(t)
	secrets, _ := plantSecrets(t, w, true)
	var entries, paths []string
	for _, one := range secrets {
		entries, paths = append(entries, "~/"+one.at), append(paths, w.HomePath(one.file))
	}
	e := start(t, w, harness.Sandbox{"additional_read_only_paths": entries})
	said := harness.Call(e, protocol.PolicyGet, protocol.PolicyGetParams{
		ProjectDir: w.Project, Kind: protocol.Tool,
	}).Policy.Diagnostics
	output, _ := e.Tool(search(paths...))
	read := found(output)
	for _, one := range secrets {
		want := strconv.Quote("~/"+one.at) + " lets sessions read " + one.Secret
		if !slices.ContainsFunc(said, func(d protocol.FileDiagnostic) bool {
			return d.Severity == protocol.SeverityWarning && d.Key == "additional_read_only_paths" && d.Message == want
		}) {
			harness.Breach(t, "there is no warning %q", want)
		}
		if !read[one.token] {
			t.Errorf("%s is granted, and cannot be read", one.Path)
		}
	}
	// The control: without such a grant there is no such warning.
	e = start(t, w, nil)
	for _, d := range harness.Call(e, protocol.PolicyGet, protocol.PolicyGetParams{
		ProjectDir: w.Project, Kind: protocol.Tool,
	}).Policy.Diagnostics {
		if strings.Contains(d.Message, "lets sessions read") {
			t.Errorf("control: %s", d.Message)
		}
	}
}
