package darwin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/golden"
)

// testdata/commands has what everyday commands ask of macOS, as public reports
// and sources say: one file a family. A line without a blank before it is a
// command, then come its needs, and "toolchain NAME" if it has that. The marks:
//
//   - +  allowed by every profile
//   - ~  allowed by all but the strict one
//   - ^  allowed with the toolchain alone
//   - \-  allowed by none

// command is an everyday command, or something that no session may do.
type command struct {
	name, toolchain string
	needs           []need
}

// need is a question with the mark of its answer.
type need struct {
	mark string
	text string
	question
}

// attributeOf are the attributes of operations, beside those of files.
var attributeOf = map[string]string{
	"mach-lookup": "global-name", "sysctl-read": "sysctl-name", "sysctl-write": "sysctl-name",
	"user-preference-read": "preference-domain", "iokit-open": "iokit-registry-entry-class",
	"signal": "target", "system-socket": "socket-domain",
}

var needLine = regexp.MustCompile(`^\s+([+~^-]) ([a-z-]+\*?)(?: (\S.*))?$`)

// readCommands parses a family.
func readCommands(t *testing.T, text string) []command {
	t.Helper()
	var list []command
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		name, has := strings.CutPrefix(strings.TrimSpace(line), "toolchain ")
		parts := needLine.FindStringSubmatch(line)
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case line[0] != ' ' && line[0] != '\t':
			list = append(list, command{name: line})
		case has && len(list) > 0:
			list[len(list)-1].toolchain = name
		case parts != nil && len(list) > 0:
			last := &list[len(list)-1]
			q := questionOf(t, parts[2], parts[3])
			last.needs = append(last.needs, need{parts[1], strings.TrimSpace(line)[2:], q})
		default:
			t.Fatalf("what is %q", line)
		}
	}
	return list
}

// questionOf is a need as a question. A symlink has "@" after its path, and a
// command of a device "#" before its number.
func questionOf(t *testing.T, operation, argument string) question {
	t.Helper()
	for short, long := range map[string]string{
		"~/": "/Users/u/", "$P/": "/Users/u/p/", "$TMPDIR/": stateDir + "/run/s1/",
	} {
		if rest, ok := strings.CutPrefix(argument, short); ok {
			argument = long + rest
		}
	}
	attribute, known := attributeOf[operation]
	switch {
	case known:
		return with(operation, attribute, argument)
	case strings.HasPrefix(operation, "process-info"):
		return with(operation, "target", argument)
	case strings.HasPrefix(operation, "ipc-posix-shm"):
		return with(operation, "ipc-posix-name", argument)
	case strings.HasPrefix(operation, "network-") && strings.HasPrefix(argument, "/"):
		return unixSocket(operation, argument)
	case strings.HasPrefix(operation, "network-"):
		return ip(operation, argument)
	case argument == "":
		return question{operation, nil}
	}
	path, number, _ := strings.Cut(argument, " #")
	q := file(operation, strings.TrimSuffix(path, "@"))
	if strings.HasSuffix(path, "@") {
		q.attributes["vnode-type"] = "SYMLINK"
	}
	if number != "" {
		command, _ := strconv.ParseUint("0"+number, 0, 32)
		q.attributes["ioctl-command"] = strconv.FormatUint(command, 10)
	}
	return q
}

// rulesOf are the rules of a real policy's profile.
func rulesOf(t *testing.T, block string) []rule {
	t.Helper()
	d := developers()
	p := session(policyOf(t, d.files(), "/Users/u", "/Users/u/p", block), stateDir+"/run/s1")
	rules, err := readProfile(profileOf(t, Translate(p, host), d))
	if err != nil {
		t.Fatalf("%s: %v", block, err)
	}
	return rules
}

// answer is decided, for tests.
func answer(t *testing.T, rules []rule, q question) bool {
	t.Helper()
	allowed, err := decided(rules, q)
	if err != nil {
		t.Fatal(err)
	}
	return allowed
}

const (
	byDefault = `{"enabled": true}`
	strictly  = `{"mode": "strict"}`
)

func withToolchain(name string) string {
	return fmt.Sprintf(`{"enabled": true, "toolchains": [%q]}`, name)
}

func TestCommands_AreAllowedAsTheTableSays(t *testing.T) {
	t.Parallel()
	made := map[string][]rule{}
	paths, err := filepath.Glob("testdata/commands/*.txt")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d families: %v", len(paths), err)
	}
	commands, needs := 0, 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var outcome strings.Builder
		for _, c := range readCommands(t, string(text)) {
			commands++
			needs += len(c.needs)
			if len(c.needs) == 0 {
				t.Errorf("%s: %s needs nothing", path, c.name)
			}
			fmt.Fprintf(&outcome, "%s\n", c.name)
			columns := []struct{ name, block, allowed string }{
				{"default", byDefault, "+~"}, {"strict", strictly, "+"},
			}
			if c.toolchain != "" {
				columns = append(columns, struct{ name, block, allowed string }{
					"toolchain " + c.toolchain, withToolchain(c.toolchain), "+~^",
				})
			}
			for _, column := range columns {
				if made[column.block] == nil {
					made[column.block] = rulesOf(t, column.block)
				}
				var lacks []string
				for _, n := range c.needs {
					got := answer(t, made[column.block], n.question)
					if want := strings.Contains(column.allowed, n.mark); got != want {
						t.Errorf("%s: %s: %s: %s is %t", path, c.name, column.name, n.text, got)
					}
					if !got {
						lacks = append(lacks, n.text)
					}
				}
				verdict := "works"
				if len(lacks) > 0 {
					verdict = "lacks " + strings.Join(lacks, ", ")
				}
				fmt.Fprintf(&outcome, "  %s: %s\n", column.name, verdict)
			}
		}
		golden.Compare(t, *update, strings.TrimSuffix(path, ".txt")+".golden", outcome.String())
	}
	if commands < 80 {
		t.Errorf("only %d commands", commands)
	}
	t.Logf("%d needs of %d commands in %d families are answered as the table says", needs, commands, len(paths))
}

// No toolchain opens what no session may do.
func TestCommands_NoToolchainOpensACanary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/commands/canaries.txt")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, chain := range toolchain.All {
		rules := rulesOf(t, withToolchain(chain.Name))
		for _, c := range readCommands(t, string(text)) {
			for _, n := range c.needs {
				asked++
				// The control of each canary is what the same session may do.
				if got := answer(t, rules, n.question); got != (n.mark != "-") {
					t.Errorf("%s: %s: %s is %t", chain.Name, c.name, n.text, got)
				}
			}
		}
	}
	t.Logf("%d questions to the profiles of %d toolchains", asked, len(toolchain.All))
}

// What the profile had before, and what others have, is found by a canary.
func TestCommands_CanariesFindWhatIsPutBack(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/commands/canaries.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`(allow file-read* file-write* (subpath "/private/var/folders"))`,
		`(allow sysctl-read (sysctl-name-prefix "kern.procargs."))`,
		`(allow process-info* (target others))`,
		`(allow mach-lookup (global-name "com.apple.FSEvents"))`,
		`(allow mach-lookup (global-name "com.apple.sysmond"))`,
		`(allow mach-lookup (global-name "com.apple.SecurityServer"))`,
		`(allow file-clone (subpath "/Users/u"))`,
		`(allow file-map-executable (subpath "/private/etc"))`,
		`(allow file-ioctl (regex #"^/dev/ttys[0-9]+$"))`,
	} {
		more, err := readProfile(Profile{Text: "(version 1)" + line})
		if err != nil {
			t.Fatal(err)
		}
		rules, found := append(rulesOf(t, byDefault), more...), false
		for _, c := range readCommands(t, string(text)) {
			for _, n := range c.needs {
				allowed, err := decided(rules, n.question)
				if _, differ := errors.AsType[*disagreement](err); err != nil && !differ {
					t.Fatal(err)
				}
				found = found || err != nil || allowed && n.mark == "-"
			}
		}
		if !found {
			t.Errorf("no canary finds %s", line)
		}
	}
}

// A session that may read the whole disk gets names of changed files.
func TestFSEvents_IsOpenWhereNothingIsSecret(t *testing.T) {
	t.Parallel()
	events := with("mach-lookup", "global-name", "com.apple.FSEvents")
	for block, want := range map[string]bool{
		byDefault: false, strictly: false, `{"mode": "relaxed"}`: true,
		`{"enabled": true, "additional_read_only_paths": ["/"]}`:        true,
		`{"enabled": true, "additional_read_only_paths": ["/Users/u"]}`: false,
	} {
		if got := answer(t, rulesOf(t, block), events); got != want {
			t.Errorf("%s: %t", block, got)
		}
	}
}
