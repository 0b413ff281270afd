package sensitive

import (
	"regexp"
	"sync"
)

// secretLines tell what may be a secret in a start-up file, also in comments, in
// aliases and on the command lines of programs.
var secretLines = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` +
		`(pass|pwd|auth|token|secret|credential|api_?key|access_?key|private_?key)\w*["']?\s*` +
		`(:?=|\+=|:)\s*(\$?["'])?[^\s"'$` + "`" + `(){};&|]{3}` +
		`|\b(gh[pousr]_|glpat-|npm_[a-z0-9]{6}|sk-[a-z0-9]|xox[abps]-|AKIA|AIza|eyJ[a-z0-9]|hf_[a-z0-9]{6})` +
		`|(?m:^\s*machine\s+\S+\s+(login|account|password)\s+\S)|(?m:^\s*password\s+[^\s"'$]{3,}\s*$)` +
		`|-----BEGIN|://[^/\s:"']*:[^/\s"']*@|\s-u\s*["']?[^\s:"'$]+:[^\s"'$]|\bmysql\S*\s.*-p[^\s"']`)
})

// MayHoldSecret reports whether a start-up file may hold a secret: it doubts more
// than Assignments, for a file that nobody needs to be shown.
func MayHoldSecret(file, text string) bool {
	return len(Assignments(file, text)) > 0 || secretLines().MatchString(text)
}
