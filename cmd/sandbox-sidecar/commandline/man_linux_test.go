package commandline

import (
	"os/exec"
	"strings"
	"testing"
)

// groff reads the page without a warning, and shows it as it was meant.
func TestMan_IsReadByMan(t *testing.T) {
	t.Parallel()
	var page, errs strings.Builder
	sample().Man(&page)
	command := exec.Command("man", "--warnings", "--local-file", "-")
	command.Stdin, command.Stderr = strings.NewReader(page.String()), &errs
	command.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "MANWIDTH=80", "LC_ALL=C.UTF-8"}
	out, err := command.Output()
	if command.Process == nil {
		// What can be said without man: nothing looks like a macro by mistake.
		if strings.Contains(page.String(), "\n.starts") || strings.Contains(page.String(), "\n'") {
			t.Errorf("a line became a macro:\n%s", &page)
		}
		t.Logf("man is not installed: %v", err)
		return
	}
	if err != nil || errs.Len() > 0 {
		t.Errorf("%v: %s", err, &errs)
	}
	for _, want := range []string{
		"EXAMPLES", "my-program run -- 'a b'", ".Runs it.", "EXIT STATUS", "FILES", "~/.my-program",
		".starts with a dot", `-dash \ and 'quotes'`, "--kind terminal|tool", "run [flags] -- CMD [ARG...]",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page lacks %q:\n%s", want, out)
		}
	}
}
