package spawn

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// LoginShell is the user's shell as a login shell: $SHELL, or else the shell of
// the password file. Its argv[0] begins with "-", as login(1) does it, because
// not every shell has an option for that.
func LoginShell(env []string) (program string, argv []string) {
	program = lookUp(env, "SHELL")
	if program == "" {
		program = PasswdShell()
	}
	return program, []string{"-" + filepath.Base(program)}
}

// bashes are the usual places of bash, which agents and users write command
// lines for: dash has neither [[ nor pipefail.
var bashes = []string{
	"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash", "/run/current-system/sw/bin/bash",
}

// CommandShell is the shell for a command line: bash if a session with that
// policy can run it, else /bin/sh.
func CommandShell(p *policy.Policy) string {
	for _, path := range bashes {
		real, err := fsguard.EvalSymlinks(path)
		if err == nil && (!p.Restricted || p.At(real).Has(policy.Execute)) {
			return path
		}
	}
	return "/bin/sh"
}

// PasswdShell is the user's shell in the password file.
func PasswdShell() string { return passwdShell("/etc/passwd", os.Getuid()) }

// passwdShell is field 7 of the user's entry in passwd(5). An empty field means
// /bin/sh; so does a missing entry.
func passwdShell(file string, uid int) string {
	const standard = "/bin/sh"
	passwd, err := os.Open(file)
	if err != nil {
		return standard
	}
	defer passwd.Close()
	lines := bufio.NewScanner(passwd)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) == 7 && fields[2] == strconv.Itoa(uid) && fields[6] != "" {
			return fields[6]
		}
	}
	return standard
}
