package sensitive

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// StartupFiles are what shells read when they start, relative to the home
// directory. Sessions may read most of them, because their shells are the
// user's. Sessions learn whatever these files assign.
var StartupFiles = []string{
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases",
	".bash_logout", ".profile",
	".config/zsh/.zshrc", ".config/zsh/.zshenv", ".config/zsh/.zprofile", ".config/fish/config.fish",
	".config/nushell/env.nu",
	".kshrc", ".tcshrc", ".cshrc", ".login",
}

const (
	// MaxStartupFile bounds the bytes of one start-up file. Long ones have a
	// few hundred lines.
	MaxStartupFile = 1 << 20
	// maxSecrets bounds the diagnostics on one file.
	maxSecrets = 20
)

// patterns are compiled on first use, because that takes longer than all other
// initialization here.
type patterns struct {
	// assignment finds NAME=VALUE as Bourne shells write it, NAME VALUE after
	// fish's set and csh's setenv, and nushell's $env.NAME = VALUE.
	assignment *regexp.Regexp
	name       *regexp.Regexp
	// value matches the forms by which services mark their own secrets, and
	// passwords in URLs.
	value *regexp.Regexp
}

var secretPatterns = sync.OnceValue(func() patterns {
	return patterns{
		assignment: regexp.MustCompile(
			`(?:^|[\s;&(|])(?:set(?:env)?\s+(?:-\S+\s+)*([A-Za-z_]\w*)\s+|` +
				`\$env\.([A-Za-z_]\w*)\s*=\s*|([A-Za-z_]\w*)=)` +
				`("(?:[^"\\]|\\.)*"|'[^']*'|[^\s;&|)]*)`),
		name: regexp.MustCompile(`(?i)(token|secret|passw(or)?d|passphrase|api_?key|access_?key|` +
			`private_?key|signing_?key|encryption_?key|credential)s?(_|$)|_pat$`),
		value: regexp.MustCompile(
			`^(gh[pousr]_|github_pat_|glpat-|sk-[A-Za-z0-9_-]{16}|sk_live_|rk_live_|xox[abeprs]-|` +
				`AKIA[0-9A-Z]{16}|AIza[\w-]{30}|` +
				`npm_[A-Za-z0-9]{30}|hf_[A-Za-z0-9]{20}|dop_v1_|SG\.|-----BEGIN |` +
				`eyJ[\w-]+\.eyJ)|://[^/\s:@]*:[^/\s@]+@`),
	}
})

// Assignment is a variable that looks like a secret, and where a start-up file
// sets it.
type Assignment struct {
	Name string
	At   document.Position
}

// cached is what was found in a file of this content. Only a digest of the
// content is kept.
type cached struct {
	content [sha256.Size]byte
	found   []Assignment
}

// cache is by path. Policies are compiled often, and start-up files seldom
// change.
var cache sync.Map

// Assignments lists the secrets that a start-up file assigns. It remembers the
// result for each file.
func Assignments(file, text string) []Assignment {
	content := sha256.Sum256([]byte(text))
	if before, known := cache.Load(file); known && before.(cached).content == content {
		return before.(cached).found
	}
	found := assignmentsIn(text)
	cache.Store(file, cached{content, found})
	return found
}

// marks are parts of the names and values that count as secret, in lower case.
// An assignment that has none of them is not one of a secret; see patterns.
var marks = []string{
	"token", "secret", "pass", "key", "credential", "_pat",
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "sk-", "k_live_", "xox", "akia", "aiza", "npm_", "hf_", "dop_v1_",
	"sg.", "-----begin ", "eyj", "://",
}

// assignmentsIn finds assignments of literal values whose name or form marks
// them as secret. Few lines have a mark, and most files have none. Compiling the
// patterns takes longer than everything else that is done with such a file.
func assignmentsIn(text string) []Assignment {
	var list []Assignment
	number := 0
	for line := range strings.Lines(text) {
		number++
		if plain := strings.TrimSpace(line); strings.HasPrefix(plain, "#") || strings.HasPrefix(plain, "alias ") {
			continue
		}
		if !isMarked(line) {
			continue
		}
		for _, found := range assignmentsOf(line) {
			found.At.Line = number
			list = append(list, found)
			if len(list) == maxSecrets {
				return list
			}
		}
	}
	return list
}

func isMarked(line string) bool {
	lower := strings.ToLower(line)
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(lower, mark) })
}

// assignmentsOf is assignmentsIn for one line, without its number.
func assignmentsOf(line string) []Assignment {
	var list []Assignment
	for _, m := range secretPatterns().assignment.FindAllStringSubmatchIndex(line, -1) {
		name, start := "", 0
		for group := 1; group <= 3; group++ {
			if from := m[2*group]; from >= 0 {
				name, start = line[from:m[2*group+1]], from
			}
		}
		if looksSecret(name, line[m[8]:m[9]]) {
			list = append(list, Assignment{Name: name, At: document.Position{Column: start + 1}})
		}
	}
	return list
}

// looksSecret judges an assignment. A value that is computed, refers to another
// variable or names a file is no secret itself.
func looksSecret(name, value string) bool {
	literal := strings.HasPrefix(value, "'")
	value = strings.Trim(value, `"'`)
	if !literal && strings.ContainsAny(value, "$`") || strings.HasPrefix(value, "(") {
		return false
	}
	if secretPatterns().value.MatchString(value) {
		return true
	}
	const least = 6 // shorter ones are numbers, yes and no
	path := strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~") || strings.HasPrefix(value, "./")
	return secretPatterns().name.MatchString(name) && len(value) >= least && !path
}
