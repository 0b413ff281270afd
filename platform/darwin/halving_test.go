package darwin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeCompiler is a compiler of profiles, and the process in which it runs.
type fakeCompiler struct {
	// refuses are parts of rules that it answers with an error.
	refuses []string
	// abortsAt are parts of rules at which it ends its process.
	abortsAt []string
	// hangsAt is a part of rules at which it does not end; empty for none.
	hangsAt string
	// typing is what a try of typing shows; if byRule is set, only a profile with
	// the rule denies it.
	typing Typing
	byRule bool
	// timeout is what one try may take.
	timeout time.Duration
	// busy is in how many tries it hangs at that part; 0 for all.
	busy  int
	tries int
	hung  int
}

// try implements tryProfile as the stage and judgeTry do.
func (c *fakeCompiler) try(ctx context.Context, p Profile) (Typing, error) {
	c.tries++
	if !strings.HasPrefix(p.Text, "(version 1)\n") {
		return "", &rejection{cause: "no version specified"}
	}
	for line := range strings.Lines(p.Text) {
		has := func(part string) bool { return strings.Contains(line, part) }
		switch {
		case c.hangsAt != "" && has(c.hangsAt) && (c.busy == 0 || c.hung < c.busy):
			c.hung++
			trying, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			<-trying.Done()
			if ctx.Err() != nil {
				return "", fmt.Errorf("try profile: %w", ctx.Err())
			}
			return "", &rejection{"the compiler did not answer", true}
		case slices.ContainsFunc(c.abortsAt, has):
			return "", &rejection{cause: "the compiler ended its process"}
		case slices.ContainsFunc(c.refuses, has):
			return "", &rejection{cause: "unbound variable in " + strings.TrimSpace(line)}
		}
	}
	if c.byRule && !strings.Contains(p.Text, typingFilter) {
		return TypingOpen, nil
	}
	return c.typing, nil
}

// rulesWith counts the rules that have a text.
func rulesWith(p Profile, part string) int {
	return strings.Count(p.Text, part)
}

func TestLearn(t *testing.T) {
	t.Parallel()
	const fsctl, call = "(allow system-fsctl (fsctl-command FSIOC_CAS_BSDFLAGS))", "(mac-policy-name"
	const closed = `file-ioctl (subpath (param "PROTECTED_`
	for name, test := range map[string]struct {
		compiler fakeCompiler
		version  int
		// gone are texts that the profile has no more, left those that it has.
		gone, left []string
		faults     int
		refusal    string
		typing     Typing
		tries      int // at most
	}{
		"takes everything": {
			compiler: fakeCompiler{typing: TypingDenied}, left: []string{fsctl, call}, typing: TypingDenied, tries: 1,
		},
		"aborts at a line": {
			compiler: fakeCompiler{abortsAt: []string{"FSIOC_CAS_BSDFLAGS"}}, gone: []string{fsctl},
			left: []string{call}, faults: 1, tries: 15,
		},
		"refuses two lines": {
			compiler: fakeCompiler{refuses: []string{"FSIOC_CAS_BSDFLAGS", call}}, gone: []string{fsctl, call},
			left: []string{"(allow pseudo-tty)"}, faults: 3, tries: 45,
		},
		"refuses an operation and a filter of one line": {
			compiler: fakeCompiler{refuses: []string{"file-test-existence", "(vnode-type SYMLINK)"}}, version: 12,
			gone: []string{"file-test-existence", "(vnode-type SYMLINK)"}, left: []string{fsctl}, faults: 2, tries: 45,
		},
		"refuses the last line": {
			compiler: fakeCompiler{refuses: []string{`(remote ip "localhost:1")`}},
			gone:     []string{`(remote ip "localhost:1")`}, left: []string{fsctl}, faults: 1, tries: 15,
		},
		"does not know an operation of many rules, which the default closes": {
			compiler: fakeCompiler{refuses: []string{"file-write-data"}}, gone: []string{"file-write-data"},
			left:   []string{"(deny file-write* file-write-create file-write-unlink file-link", `(subpath "/dev/fd")`},
			faults: 1, tries: 20,
		},
		"does not know how to mark denials": {
			compiler: fakeCompiler{refuses: []string{"(with message"}}, gone: []string{"(with message"},
			left: []string{"(deny default)"}, faults: 1, tries: 5,
		},
		"does not know an operation that the default leaves open, on a macOS that has it": {
			compiler: fakeCompiler{refuses: []string{"file-clone"}}, version: 14, faults: 1, tries: 25,
			refusal: "(deny file-clone)",
		},
		"does not know it on a macOS of which nothing shows that it has it": {
			compiler: fakeCompiler{refuses: []string{"file-clone"}}, version: 12, gone: []string{"file-clone"},
			left: []string{"file-link"}, faults: 1, tries: 25,
		},
		"does not take the rule about typing, and the system refuses it": {
			compiler: fakeCompiler{abortsAt: []string{"(ioctl-command"}, typing: TypingRefused},
			gone:     []string{"(ioctl-command"}, left: []string{fsctl}, faults: 1, typing: TypingRefused, tries: 15,
		},
		"does not take the rule about typing, and it is open": {
			compiler: fakeCompiler{abortsAt: []string{"(ioctl-command"}, typing: TypingDenied, byRule: true},
			faults:   1, typing: TypingOpen, tries: 15,
			refusal: "(deny file-ioctl " + typingFilter + "): the compiler ended its process",
		},
		"takes the rule about typing, and it does nothing": {
			compiler: fakeCompiler{typing: TypingOpen}, left: []string{typingFilter}, typing: TypingOpen, tries: 1,
		},
		"does not take a filter of denials": {
			compiler: fakeCompiler{refuses: []string{"(deny network-bind (local unix-socket (subpath"}},
			faults:   1, tries: 15, refusal: "(deny network-bind (local unix-socket",
		},
		"does not take a filter of denials that are marked, nor the mark": {
			compiler: fakeCompiler{
				refuses: []string{"(with message", "(deny network-bind (local unix-socket (subpath"},
			},
			faults: 2, tries: 20, refusal: "(deny network-bind (local unix-socket",
		},
		"does not take denials of protected paths, whose operation is new, nor the mark": {
			compiler: fakeCompiler{refuses: []string{"(with message", "file-clone", closed}}, version: 12,
			faults: 3, tries: 45, refusal: `")) (with message "sandbox-sidecar")): unbound variable in (deny file-write*`,
		},
		"refuses always": {
			compiler: fakeCompiler{refuses: []string{"default"}}, tries: 4,
			refusal: "no profile of the sandbox: unbound variable",
		},
	} {
		p := specimen()
		finding := learn(t.Context(), p, test.version, test.compiler.try)
		if finding.Untried != "" || len(finding.Faults) != test.faults || finding.Dialect.Typing != test.typing {
			t.Errorf("%s: %+v", name, finding)
		}
		if (finding.Refusal == "") != (test.refusal == "") || !strings.Contains(finding.Refusal, test.refusal) {
			t.Errorf("%s: refusal %q, want %q", name, finding.Refusal, test.refusal)
		}
		if test.compiler.tries > test.tries {
			t.Errorf("%s: %d tries", name, test.compiler.tries)
		}
		left := p.In(finding.Dialect)
		for _, text := range test.gone {
			if rulesWith(p, text) == 0 || rulesWith(left, text) != 0 {
				t.Errorf("%s: %d of %d rules have %s", name, rulesWith(left, text), rulesWith(p, text), text)
			}
		}
		for _, text := range test.left {
			if rulesWith(left, text) == 0 {
				t.Errorf("%s: no rule has %s", name, text)
			}
		}
		if _, err := readProfile(left); err != nil && test.refusal == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A compiler that hangs at a line is found out like one that aborts. One that
// always hangs ends the search in its time, and nothing is left out.
func TestLearn_IsBoundedInTime(t *testing.T) {
	t.Parallel()
	line := fakeCompiler{hangsAt: "FSIOC_CAS_BSDFLAGS", timeout: time.Millisecond}
	finding := learn(t.Context(), specimen(), 14, line.try)
	if len(finding.Faults) != 1 || finding.Refusal != "" || finding.Untried != "" {
		t.Errorf("hangs at a line: %+v", finding)
	}
	// A machine that is busy for a moment leaves no line out, whenever that is.
	for busy := 1; busy < line.hung; busy++ {
		moment := fakeCompiler{hangsAt: "FSIOC_CAS_BSDFLAGS", timeout: time.Millisecond, busy: busy}
		finding := learn(t.Context(), specimen(), 14, moment.try)
		if len(finding.Faults) > 0 || finding.Refusal != "" || !finding.Dialect.takesAll() {
			t.Errorf("hangs %d times: %+v", busy, finding)
		}
	}
	always := fakeCompiler{hangsAt: "(version 1)", timeout: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	finding = learn(ctx, specimen(), 14, always.try)
	if finding.Untried == "" || finding.Refusal != "" || !finding.Dialect.takesAll() || always.tries != 1 {
		t.Errorf("always hangs: %+v after %d tries", finding, always.tries)
	}
	slow := fakeCompiler{hangsAt: "(version 1)", timeout: time.Millisecond}
	finding = learn(t.Context(), specimen(), 14, slow.try)
	if finding.Untried == "" || finding.Refusal != "" || !finding.Dialect.takesAll() || slow.tries > 4 {
		t.Errorf("is slow: %+v after %d tries", finding, slow.tries)
	}
}

// If nothing can be tried, a macOS gets what public sources show there, unless
// something would be open.
func TestLearn_WithoutATry(t *testing.T) {
	t.Parallel()
	cannot := func(context.Context, Profile) (Typing, error) { return "", errors.New("no process can be started") }
	p := specimen()
	for version, want := range map[int]bool{0: true, 12: false, 14: true, 26: true} {
		finding := learn(t.Context(), p, version, cannot)
		if finding.Untried == "" || finding.Refusal != "" || finding.Dialect.takesAll() != want {
			t.Errorf("macOS %d: %+v", version, finding)
		}
	}
	text := "(version 1)\n(deny default)\n(allow file-read* file-test-existence (literal \"/\"))\n" +
		"(allow system-mac-syscall (mac-policy-name \"vnguard\"))\n"
	old := learn(t.Context(), Profile{Text: text}, 12, cannot)
	want := "(version 1)\n(deny default)\n(allow file-read* (literal \"/\"))\n"
	if got := (Profile{Text: text}).In(old.Dialect).Text; got != want {
		t.Errorf("macOS 12: %s, want %s", got, want)
	}
}

// What is left out of a session's profile is what was left out of the specimen.
func TestProfile_InADialect(t *testing.T) {
	t.Parallel()
	compiler := fakeCompiler{refuses: []string{"FSIOC_CAS_BSDFLAGS", "file-test-existence", "user-preference-read"}}
	finding := learn(t.Context(), specimen(), 12, compiler.try)
	if finding.Refusal != "" {
		t.Fatal(finding.Refusal)
	}
	for name, plan := range samples() {
		p := profileOf(t, plan, mac()).In(finding.Dialect)
		if _, err := compiler.try(t.Context(), p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := readProfile(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	profile := profileOf(t, samples()["terminal"], mac())
	if _, err := compiler.try(t.Context(), profile); err == nil {
		t.Error("the control compiles")
	}
	left := profile.In(finding.Dialect)
	if ask(t, left, file("file-read-data", "/Users/u/.ssh/id_rsa")) ||
		!ask(t, left, file("file-read-data", "/Users/u/p/x")) {
		t.Error("the dialect changes what may be read")
	}
}
