package gitchange

import (
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
)

// maxValue bounds the length of names and values in bytes.
const maxValue = 1024

// isPlain accepts text of one line that a terminal shows as it is.
func isPlain(text string) bool {
	return len(text) <= maxValue && utf8.ValidString(text) && strings.IndexFunc(text, unseen) < 0
}

// unseen reports whether a character acts on the text around it, or shows
// nothing.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func isText(e gitconfig.Entry) bool { return e.Valued && isPlain(e.Value) }

// isProse accepts several lines.
func isProse(e gitconfig.Entry) bool {
	return e.Valued && isPlain(strings.NewReplacer("\n", "", "\t", "").Replace(e.Value))
}

// isName accepts a name that no program takes for an option or a directory
// above.
func isName(name string) bool {
	if name == "" || !isPlain(name) || strings.ContainsAny(name, " ~^:?*[\\") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, "-") || strings.HasPrefix(part, ".") {
			return false
		}
	}
	return true
}

// isRemoteName accepts a name that git cannot take for an address or a path.
func isRemoteName(name string) bool {
	return isName(name) && strings.IndexFunc(name, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("._-", r)
	}) < 0 && !strings.Contains(name, "..")
}

// isSubmoduleName accepts a name below .git/modules.
func isSubmoduleName(name string) bool {
	if name == "" || !isPlain(name) || strings.ContainsAny(name, "\\:") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.HasPrefix(part, "-") {
			return false
		}
	}
	return true
}

// isRef accepts the full name of a branch or a tag.
func isRef(name string) bool {
	rest, full := strings.CutPrefix(name, "refs/")
	return full && isName(rest)
}

// isFetch accepts a refspec that writes only the remote's own refs.
func isFetch(remote, spec string) bool {
	from, to, ok := strings.Cut(strings.TrimPrefix(spec, "+"), ":")
	star := func(name string) string { return strings.Replace(name, "*", "x", 1) }
	own := "refs/remotes/" + remote + "/"
	return ok && isRef(star(from)) && isRef(star(to)) && strings.HasPrefix(to, own) && len(to) > len(own)
}

// schemes are those at which git runs no program of this machine but ssh.
var schemes = map[string]bool{"https": true, "ssh": true, "git": true, "git+ssh": true, "ssh+git": true}

// address reads an address of a repository. ok is false if git could do anything
// with it but to ask another machine, or to read the local path.
func address(text string) (local string, isLocal, ok bool) {
	if !isPlain(text) || text == "" || strings.ContainsAny(text, " \\") {
		return "", false, false
	}
	if strings.HasPrefix(text, "/") {
		return text, true, path.Clean(text) == text
	}
	scheme, _, full := strings.Cut(text, "://")
	if !full {
		return "", false, isScp(text)
	}
	parsed, err := url.Parse(text)
	if err != nil || !isPlain(parsed.Path) || parsed.Opaque != "" {
		return "", false, false
	}
	if scheme == "file" {
		return parsed.Path, true, parsed.Host == "" && parsed.RawQuery == "" && parsed.Fragment == "" &&
			strings.HasPrefix(parsed.Path, "/") && path.Clean(parsed.Path) == parsed.Path
	}
	user := ""
	if parsed.User != nil {
		user = parsed.User.Username()
	}
	known := schemes[scheme] && parsed.Hostname() != ""
	return "", false, known && isPlain(user) && !isOption(user, parsed.Host, parsed.Path)
}

// isScp accepts [USER@]HOST:PATH.
func isScp(text string) bool {
	host, rest, ok := strings.Cut(text, ":")
	if !ok || host == "" || rest == "" || strings.HasPrefix(rest, ":") || strings.ContainsAny(host, "/[]") {
		return false
	}
	user, name, has := strings.Cut(host, "@")
	if !has {
		user, name = "", host
	}
	return name != "" && !strings.Contains(name, "@") && !isOption(user, name, rest)
}

// isOption reports whether a program could take a part of an address for an
// option.
func isOption(parts ...string) bool {
	for _, part := range parts {
		for one := range strings.FieldsFuncSeq(part, func(r rune) bool { return r == '/' || r == ':' || r == '@' }) {
			if strings.HasPrefix(one, "-") {
				return true
			}
		}
	}
	return false
}
