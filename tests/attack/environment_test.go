//go:build linux

package attack

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

var entryLine = regexp.MustCompile(`(?m)^entry (".*")$`)

// entries are what the victim prints of /proc/self/environ or
// /proc/self/cmdline.
func entries(t testing.TB, output string) []string {
	t.Helper()
	var list []string
	for _, match := range entryLine.FindAllStringSubmatch(output, -1) {
		entry, err := strconv.Unquote(match[1])
		harness.Must(t, err)
		list = append(list, entry)
	}
	return list
}

// names are those of environment entries, sorted.
func names(environ []string) []string {
	var list []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// hooks are variables that make loaders, shells and interpreters run code.
var hooks = []string{
	"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONPATH",
	"PERL5OPT",
	"RUBYOPT", "BASH_ENV", "ENV", "PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "BASH_FUNC_ls%%",
}

// prefixesOfHooks cover every one of hooks.
var prefixesOfHooks = []string{
	"LD_*", "DYLD_*", "NODE_*", "PYTHON*", "PERL*", "RUBY*", "BASH_*", "ENV*", "PROMPT_*",
	"GIT_*",
}

// startWith starts an editor with variables that hold the secret. They come
// from the sidecar's environment and from the request in turn.
func startWith(s *scene, settings string, variables []string) (*harness.Editor, protocol.SpawnParams) {
	options := harness.Options{Settings: settings}
	request := protocol.SpawnParams{Env: map[string]string{}}
	for i, name := range variables {
		if i%2 == 0 {
			options.Env = append(options.Env, name+"="+secretText)
		} else {
			request.Env[name] = secretText
		}
	}
	return harness.Start(s.T, s.World, options), request
}

// Passes hooks by prefixes that happen to match them. A prefix is no consent to
// run code in every program: none arrives, and the reply names each. By its
// exact name each arrives.
func TestHooksPassByTheirExactNamesOnly(t *testing.T) {
	t.Parallel()
	arrived := func(settings string) ([]string, result) {
		s := newScene(t)
		e, request := startWith(s, settings, hooks)
		result := s.attemptFrom(e, request, "environ")
		var list []string
		for _, name := range names(entries(t, result.output)) {
			if slices.Contains(hooks, name) {
				list = append(list, name)
			}
		}
		return list, result
	}
	sorted := slices.Sorted(slices.Values(hooks))
	if got, result := arrived(harness.Off()); !slices.Equal(got, sorted) {
		t.Fatalf("control: without a sandbox all must arrive: %v\n%s", got, result.output)
	}
	for name, allowed := range map[string][]string{
		"prefixes": append([]string{"PATH", "HOME"}, prefixesOfHooks...), "everything": {"*"}, "not allowed": {"PATH"},
	} {
		got, result := arrived(harness.Settings(harness.Sandbox{"allowed_env_vars": allowed}))
		if len(got) > 0 {
			harness.Breach(t, "%s: THE ATTACK WORKS: %v arrive", name, got)
		}
		for _, hook := range hooks {
			if !slices.Contains(result.reply.Environment.Dropped, hook) {
				t.Errorf("%s: the reply does not list %s as dropped: %v", name, hook, result.reply.Environment.Dropped)
			}
		}
	}
	// Exported functions of bash have names that no setting can hold.
	exact := slices.DeleteFunc(sorted, func(name string) bool { return strings.Contains(name, "%") })
	if got, result := arrived(harness.Settings(harness.Sandbox{"allowed_env_vars": hooks})); !slices.Equal(got, exact) {
		t.Errorf("by exact name all must arrive: %v\n%s", got, result.output)
	}
}

// Compares the whole environment: it is exactly what is allowed, and what
// describes the session itself. The handshake between the sidecar and the stage
// leaves nothing in it.
func TestTheEnvironmentIsExactlyWhatIsAllowed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	variables := []string{"AWS_SECRET", "GITHUB_TOKEN", "ALLOWED_ONE", "ALLOWED_TWO"}
	e, request := startWith(s, harness.Settings(harness.Sandbox{"allowed_env_vars": []string{
		"PATH", "HOME",
		"ALLOWED_*",
	}}), variables)
	result := s.attemptFrom(e, request, "environ")
	if got, want := names(entries(t, result.output)),
		[]string{"ALLOWED_ONE", "ALLOWED_TWO", "HOME", "PATH", "PWD", "TERM"}; !slices.Equal(got, want) {
		t.Errorf("sandboxed: got %v, want %v", got, want)
	}

	s = newScene(t)
	e, request = startWith(s, harness.Off(), variables)
	result = s.attemptFrom(e, request, "environ")
	want := append(append(names(harness.Environ(s.World)), variables...), "PWD", "TERM")
	slices.Sort(want)
	if got := names(entries(t, result.output)); !slices.Equal(got, want) {
		t.Errorf("control: without a sandbox: got %v, want %v", got, want)
	}
}

// Searches the program that the stage became for traces of the stage:
// arguments, descriptors, environment. They are the program's own.
func TestTheHandshakeLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{"sandboxed": harness.Settings(nil), "unsandboxed": harness.Off()} {
		s := newScene(t)
		result := s.attempt(s.Start(settings), "cmdline", "then", "descriptors")
		if got, want := entries(t, result.output),
			[]string{s.Victim, "cmdline", "then", "descriptors"}; !slices.Equal(got, want) {
			t.Errorf("%s: arguments: got %q, want %q", name, got, want)
		}
		if !result.done() || strings.Contains(result.output, "descriptor ") {
			t.Errorf("%s: status %d\n%s", name, result.status, result.output)
		}
		for _, variable := range names(entries(t, s.attempt(s.Start(settings), "environ").output)) {
			if lower := strings.ToLower(variable); strings.Contains(lower, "stage") ||
				strings.Contains(lower, "sidecar_") ||
				strings.Contains(lower, "handshake") {
				harness.Breach(t, "%s: a trace: %s", name, variable)
			}
		}
	}
}

// Searches every output of the sidecar for values of dropped variables: the
// reply, the list of sessions, the log. Names are listed, values never.
func TestValuesOfDroppedVariablesAreNeverReported(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	variables := []string{"AWS_SECRET", "GITHUB_TOKEN", "LD_PRELOAD"}
	e, request := startWith(s, "", variables)
	request.Kind, request.Command = protocol.Tool, "true"
	session := e.Spawn(request)
	session.Exit()
	if got := session.Environment.Dropped; !slices.IsSorted(got) || !slices.Contains(got, "AWS_SECRET") ||
		!slices.Contains(got, "GITHUB_TOKEN") ||
		!slices.Contains(got, "LD_PRELOAD") {
		t.Errorf("the reply does not list what was dropped: %v", got)
	}
	reported, err := json.Marshal([]any{session.SpawnResult, harness.Call(e, protocol.List, protocol.Empty{}), e.Hello})
	harness.Must(t, err)
	if strings.Contains(string(reported), secretText) || strings.Contains(e.Log.String(), secretText) {
		harness.Breach(t, "a value is reported:\n%s\n%s", reported, e.Log)
	}
	// Control: the value would be found if it were reported.
	if control := s.attemptFrom(e, request, "environ"); strings.Contains(control.output, secretText) {
		harness.Breach(t, "THE ATTACK WORKS:\n%s", control.output)
	}
	s = newScene(t)
	e, request = startWith(s, harness.Off(), variables)
	if control := s.attemptFrom(e, request, "environ"); !strings.Contains(control.output, secretText) ||
		len(control.reply.Environment.Dropped) > 0 {
		t.Errorf("control: without a sandbox the values must arrive, and nothing be dropped: %v\n%s",
			control.reply.Environment.Dropped, control.output)
	}
}
