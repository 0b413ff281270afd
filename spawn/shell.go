package spawn

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LoginShell is the user's shell as a login shell: $SHELL, or else the shell of
// the password file. Its argv[0] begins with "-", as login(1) does it, because
// not every shell has an option for that.
func LoginShell(env []string) (program string, argv []string) {
	program = lookUp(env, "SHELL")
	if program == "" {
		program = passwdShell("/etc/passwd", os.Getuid())
	}
	return program, []string{"-" + filepath.Base(program)}
}

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
