package managed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// carriers bring variables that a repository's files set to what a user starts.
// Each has the file, a line of it for a variable, and the command that starts
// another with the variables.
var carriers = map[string]struct {
	file, line string
	before     []string // runs once the file is there
	command    []string
}{
	"direnv": {
		".envrc", "export NAME='VALUE'\n", []string{"direnv", "allow"}, []string{"direnv", "exec", "."},
	},
	"direnv's dotenv": {
		".envrc", "export NAME='VALUE'\n",
		[]string{"sh", "-c", "mv .envrc .env; echo dotenv >.envrc; direnv allow"},
		[]string{"direnv", "exec", "."},
	},
	"a shell that reads .env": {
		".env", "NAME='VALUE'\n", nil, []string{"sh", "-c", `set -a; . ./.env; set +a; exec "$@"`, "sh"},
	},
	"a task of make": {
		"Makefile", "export NAME = VALUE\n",
		[]string{"sh", "-c", `printf 'task:\n\t@$(COMMAND)\n' >>Makefile`},
		[]string{"sh", "-c", `exec make -s task COMMAND="$*"`, "sh"},
	},
}

// TestDays_OfTwoUsers has a repository set every variable that names settings,
// state or directories of tools, by the files that direnv, shells and tasks read.
// The directories that they name have settings of a session's. Nothing opens what
// the users keep closed, and both keep what their own settings grant: those in
// the home directory, and those where the user's own XDG_CONFIG_HOME says.
func TestDays_OfTwoUsers(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "direnv", "make")
	for _, where := range []string{"settings at home", "settings by XDG_CONFIG_HOME"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			u := newElsewhereUser(t)
			if where == "settings at home" {
				u.env, u.file = nil, u.w.UserSettings()
			}
			own := filepath.Join(u.w.Outside, "own", "notes")
			harness.Write(t, own, "my notes\n")
			harness.Write(t, u.file, harness.Defaults(harness.Sandbox{
				"additional_read_only_paths": []string{own}, "allowed_env_vars": []string{"+WORD"},
				"toolchains": []string{"go", "python", "node", "codex"},
			}))
			u.confines(u.w.Project, `
for layer in c/sandbox-sidecar c/zed h/.config/sandbox-sidecar h/.config/zed; do
  mkdir -p $layer; echo '`+harness.Off()+`' >$layer/settings.json
done
mkdir -p s/sandbox-sidecar/settings-counted`)
			for name := range carriers {
				u.day(name, own)
			}
		})
	}
}

// dayDoors are the ways in which a user, an editor or an agent starts a session
// from a command line that a carrier passes on. Each runs "sh leak.sh" in it.
var dayDoors = map[string]func(u *elsewhereUser, start func(args ...string) *exec.Cmd) (output string){
	"exec": func(u *elsewhereUser, start func(args ...string) *exec.Cmd) string {
		out, _ := start(harness.Binary(u.t), "exec", "--", "sh", "leak.sh").CombinedOutput()
		return string(out)
	},
	"a link": func(u *elsewhereUser, start func(args ...string) *exec.Cmd) string {
		link := filepath.Join(u.w.Outside, "bin", "bash")
		if _, err := os.Lstat(link); err != nil {
			harness.MakeDir(u.t, filepath.Dir(link))
			harness.Must(u.t, os.Symlink(harness.Binary(u.t), link))
		}
		out, _ := start(link, "leak.sh").CombinedOutput()
		return string(out)
	},
	"acp": func(u *elsewhereUser, start func(args ...string) *exec.Cmd) string {
		out, _ := start(harness.Binary(u.t), "acp", "--", "sh", "leak.sh").CombinedOutput()
		return string(out)
	},
	"mcp": func(u *elsewhereUser, start func(args ...string) *exec.Cmd) string {
		var errors harness.Buffer
		command := start(harness.BinaryWithMCP(u.t), "mcp")
		command.Stderr = &errors
		agent := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
		session, err := agent.Connect(u.t.Context(), &mcp.CommandTransport{Command: command}, nil)
		if err != nil {
			return errors.String()
		}
		defer session.Close()
		said, err := session.CallTool(u.t.Context(), &mcp.CallToolParams{
			Name: "run", Arguments: map[string]any{"command": "sh leak.sh", "cwd": u.w.Project},
		})
		return fmt.Sprint(errors.String(), said, err)
	},
}

// day is one of a user with a carrier of variables.
func (u *elsewhereUser) day(name, own string) {
	u.t.Helper()
	inProject := u.w.ProjectPath
	hostile := []string{
		"HOME=" + inProject("h"), "XDG_CONFIG_HOME=" + inProject("c"), "XDG_STATE_HOME=" + inProject("s"),
		"XDG_RUNTIME_DIR=" + inProject("s"), "XDG_CACHE_HOME=" + u.w.Outside, "XDG_DATA_HOME=" + u.w.Outside,
		"TMPDIR=" + u.w.Outside, "GOMODCACHE=" + u.w.Outside, "GOPATH=" + u.w.Outside, "VIRTUAL_ENV=" + u.w.Outside,
		"PIP_CACHE_DIR=" + u.w.Outside, "npm_config_cache=" + u.w.Outside, "CODEX_HOME=" + u.w.Outside,
	}
	leak := inProject("leak")
	for _, variables := range append(slices.Collect(slices.Chunk(hostile, 1)), hostile[:2], hostile[1:3], hostile) {
		start := u.carrying(name, variables)
		for door, run := range dayDoors {
			if door != "exec" && len(variables) == 1 {
				continue
			}
			harness.Write(u.t, inProject("leak.sh"), fmt.Sprintf("echo ran >leak; cat %s >>leak", u.secret))
			harness.Must(u.t, os.RemoveAll(leak))
			out := run(u, start)
			text, _ := os.ReadFile(leak)
			if strings.Contains(string(text)+out, "the secret") {
				harness.Breach(u.t, "%s, %s, %q: %s%s", door, name, variables, text, out)
			}
			u.t.Logf("%s, %s, %q: %q: %s", door, name, variables, text, out)
		}
	}
	start := u.carrying(name, []string{"WORD=carried"})
	for door, run := range dayDoors {
		harness.Write(u.t, inProject("leak.sh"), "printenv WORD >leak")
		harness.Must(u.t, os.RemoveAll(leak))
		if out := run(u, start); harness.Read(u.t, leak) != "carried\n" {
			u.t.Errorf("control: %s: %s carries no variable: %s", door, name, out)
		}
	}
	if out, ok := u.runBinary(harness.Binary(u.t), u.w, u.env, "exec", "--", "cat", own); !ok || out != "my notes\n" {
		u.t.Errorf("after %s: the user's own grant: %s", name, out)
	}
	u.confines(u.w.Project, "true")
}

// carrying has a carrier set variables. It returns what makes a command that the
// carrier starts.
func (u *elsewhereUser) carrying(name string, variables []string) func(args ...string) *exec.Cmd {
	u.t.Helper()
	c, text := carriers[name], ""
	// Else this process would own the sandboxes of links, until it ends.
	for _, variable := range append([]string{"SANDBOX_GROUP_OWNER=own"}, variables...) {
		key, value, _ := strings.Cut(variable, "=")
		text += strings.NewReplacer("NAME", key, "VALUE", value).Replace(c.line)
	}
	harness.Write(u.t, u.w.ProjectPath(c.file), text)
	if c.before != nil {
		if out, ok := u.runBinary(c.before[0], u.w, u.env, c.before[1:]...); !ok {
			u.t.Fatalf("%s: %s", name, out)
		}
	}
	return func(args ...string) *exec.Cmd {
		return u.command(c.command[0], u.w, u.env, slices.Concat(c.command[1:], args)...)
	}
}
