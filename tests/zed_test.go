package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// zedCommand is a program with its arguments, as Zed's settings have it.
type zedCommand struct {
	Program, Command string
	Args             []string
	Type, Source     string
}

// zedRecipe is the part of Zed's settings that the guide's recipes use.
type zedRecipe struct {
	Terminal struct {
		Shell struct {
			WithArguments *zedCommand `json:"with_arguments"`
		}
	}
	AgentServers   map[string]zedCommand `json:"agent_servers"`
	ContextServers map[string]zedCommand `json:"context_servers"`
	Agent          struct {
		DefaultProfile string `json:"default_profile"`
		Profiles       map[string]struct{ Tools map[string]bool }
	}
}

// zedRecipes are the recipes of the guide.
func zedRecipes(t *testing.T) []string {
	t.Helper()
	_, chapter, _ := strings.Cut(harness.Read(t, "../docs/guide.md"), "\n## Zed\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var list []string
	for _, part := range strings.Split(chapter, "```jsonc\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		list = append(list, text)
	}
	return list
}

func recipeOf(t *testing.T, text string) zedRecipe {
	t.Helper()
	standard, err := hujson.Standardize([]byte(text))
	harness.Must(t, err)
	var recipe zedRecipe
	harness.Must(t, json.Unmarshal(standard, &recipe))
	return recipe
}

// The recipes are tested without Zed: the sidecar finds nothing wrong in the
// file, and the command lines run what they name, in a sandbox.
func TestZedRecipes(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	recipes := zedRecipes(t)
	if len(recipes) != 4 {
		t.Fatalf("%d recipes", len(recipes))
	}
	commands := 0
	for _, text := range recipes {
		w := harness.NewWorld(t)
		secret := filepath.Join(w.Outside, "secret")
		harness.Write(t, secret, "the secret")
		harness.Write(t, w.UserSettings(), harness.Settings(nil))
		harness.Write(t, filepath.Join(w.Home, ".config", "zed", "settings.json"), text)
		output, said := sidecarIn(t, w, "", "policy", "--kind", "tool")
		if said != "" || !strings.Contains(output, "a tool in") {
			t.Errorf("%s\nsays %s\n%s", text, said, output)
		}
		recipe := recipeOf(t, text)
		for _, server := range []map[string]zedCommand{recipe.AgentServers, recipe.ContextServers} {
			for _, c := range server {
				commands++
				args := argumentsOf(t, w, c, "/bin/sh", "-c", "cat; cat "+secret)
				// "acp" also answers for an agent that has ended.
				const message = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n"
				output, said := sidecarIn(t, w, message, args...)
				if !strings.HasPrefix(output, message) || !strings.Contains(said, "Permission denied") {
					t.Errorf("%v: printed %q, said %q", args, output, said)
				}
			}
		}
		if c := recipe.Terminal.Shell.WithArguments; c != nil {
			commands++
			c.Command = c.Program
			output, said := sidecarIn(t, w, "echo ran; cat "+secret+"\n", argumentsOf(t, w, *c)...)
			if !strings.Contains(output, "ran\n") || !strings.Contains(said, "Permission denied") {
				t.Errorf("%v: printed %q, said %q", c.Args, output, said)
			}
		}
		if name := recipe.Agent.DefaultProfile; name != "" {
			if allowed, listed := recipe.Agent.Profiles[name].Tools["terminal"]; allowed || !listed {
				t.Error("the profile has a terminal tool")
			}
			commands++
		}
	}
	if commands != 4 {
		t.Errorf("%d of the recipes were tried", commands)
	}
}

// argumentsOf are the arguments of a recipe, in this world and with another
// program to run.
func argumentsOf(t *testing.T, w *harness.World, c zedCommand, instead ...string) []string {
	t.Helper()
	if c.Command != "sandbox-sidecar" {
		t.Errorf("it runs %q", c.Command)
	}
	args := slices.Clone(c.Args)
	if len(instead) > 0 {
		args = append(args[:slices.Index(args, "--")+1], instead...)
	}
	if i := slices.Index(args, "--project"); i >= 0 {
		args[i+1] = w.Project
	}
	return args
}

// sidecarIn runs the sidecar in the project, and returns what it printed and
// what it said.
func sidecarIn(t *testing.T, w *harness.World, input string, args ...string) (output, said string) {
	t.Helper()
	command := exec.Command(harness.Binary(t), args...)
	command.Dir, command.Env = w.Project, append(harness.Environ(w), "PATH="+os.Getenv("PATH"))
	command.Stdin = strings.NewReader(input)
	var out, errs strings.Builder
	command.Stdout, command.Stderr = &out, &errs
	_ = command.Run() // the status is that of the command
	return out.String(), errs.String()
}
