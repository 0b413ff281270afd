package compile

import (
	"regexp"
	"strings"
	"sync"
)

// wordSettings tell which settings of a program sessions may read: those that are
// known by their names, with a value of the shape that it has. The others are left
// out: without them the program does less. Where it would go elsewhere, or trust
// more, the file is closed instead.
type wordSettings struct {
	// entry is a setting with its name and its value.
	entry *regexp.Regexp
	// shape is that of the value of a setting in a section; nil if it is not known.
	shape func(section, name string) *shape
	// section is the line that begins one; nil if there are none. A line that is
	// indented then belongs to the one before it.
	section *regexp.Regexp
	// short are options of a letter without a value, which may stand together, and
	// valued those with one.
	short, valued string
}

// shape is what a value looks like that is no secret.
type shape struct {
	value *regexp.Regexp
	// text: the value is free, so what looks like a secret is none of it.
	text bool
	// leads: the program goes elsewhere, or trusts more, without it.
	leads bool
}

// shapes are those of values. A host is no secret, whatever its name is.
var shapes = sync.OnceValue(func() map[string]*shape {
	return map[string]*shape{
		"switch": {value: regexp.MustCompile(`^$`)},
		"number": {value: regexp.MustCompile(`(?i)^["']?([\d.]{1,12}[kmgt%s]?|on|off|true|false|yes|no|` +
			`inf|always|auto|never)?["']?$`)},
		"text":    {value: regexp.MustCompile(`^("[^"\\]*"|'[^']*'|\S+)$`), text: true},
		"line":    {value: regexp.MustCompile(`^.*$`), text: true},
		"address": {value: regexp.MustCompile(`^["']?(\w{2,8}://)?[\w.-]+(:\d{1,5})?/?["']?$`), leads: true},
		"hosts":   {value: regexp.MustCompile(`^["']?[\w.*:/\[\]-]+([, ]+[\w.*:/\[\]-]+)*["']?$`), leads: true},
		"path":    {value: regexp.MustCompile(`^["']?(~|\.{1,2}|\$\{?HOME\}?)?/?[\w./ +-]+["']?$`), leads: true},
		"pin":     {value: regexp.MustCompile(`^["']?((sha(1|256|512)(//|:))?[\w+/=:;, ]+)["']?$`), leads: true},
		"phase":   {value: regexp.MustCompile(`^(secret|draft|public)$`), leads: true},
		"author":  {value: regexp.MustCompile(`^[^/]*$`), leads: true},
	}
})

// shapesOf makes a table from lists: the name of a shape, and settings that have it.
func shapesOf(lists ...[]string) map[string]*shape {
	table := map[string]*shape{}
	for _, list := range lists {
		for _, name := range list[1:] {
			table[plainName(name)] = shapes()[list[0]]
		}
	}
	return table
}

// plainName is a name without what may stand in it or not.
var plainName = strings.NewReplacer("-", "", "_", "").Replace

// curlOptions are those of curl(1), without what signs in, what is sent and where
// output goes.
var curlOptions = sync.OnceValue(func() wordSettings {
	long := shapesOf(
		[]string{
			"switch", "silent", "show-error", "location", "fail", "fail-with-body", "ipv4", "ipv6", "compressed",
			"retry-connrefused", "retry-all-errors", "ssl", "ssl-reqd", "ssl-no-revoke", "http1.0", "http1.1",
			"http2", "http2-prior-knowledge", "http3", "progress-bar", "no-progress-meter", "remote-time",
			"insecure", "path-as-is", "tcp-nodelay", "no-keepalive", "parallel", "styled-output", "no-alpn",
			"no-npn", "globoff", "create-dirs", "netrc", "netrc-optional", "anyauth", "tcp-fastopen", "tlsv1",
			"tlsv1.0", "tlsv1.1", "tlsv1.2", "tlsv1.3", "ca-native", "proxytunnel", "cert-status",
			"disallow-username-in-url",
		},
		[]string{
			"number", "connect-timeout", "max-time", "retry", "retry-delay", "retry-max-time", "limit-rate",
			"max-redirs", "max-filesize", "keepalive-time", "speed-limit", "speed-time", "parallel-max",
			"happy-eyeballs-timeout-ms", "tls-max",
		},
		[]string{
			"text", "user-agent", "proto", "proto-default", "proto-redir", "ciphers", "tls13-ciphers", "curves",
			"interface",
		},
		[]string{"address", "proxy", "preproxy", "socks5", "socks5-hostname", "socks4", "socks4a", "doh-url"},
		[]string{"hosts", "noproxy", "dns-servers", "resolve", "connect-to"},
		[]string{"path", "cacert", "capath", "proxy-cacert", "proxy-capath", "crlfile", "hsts"},
		[]string{"pin", "pinnedpubkey", "proxy-pinnedpubkey"},
	)
	one := shapesOf(
		[]string{"switch", "s", "S", "L", "f", "k", "g", "n", "4", "6", "#"},
		[]string{"number", "m", "y", "Y"}, []string{"text", "A"}, []string{"address", "x"},
	)
	return wordSettings{
		entry: regexp.MustCompile(`^-{0,2}([A-Za-z0-9#][\w.-]*)(?:\s*[=:]\s*|\s+|$)(.*)$`),
		shape: func(_, name string) *shape {
			if len(name) == 1 {
				return one[name]
			}
			return long[plainName(name)]
		},
		short: "sSLfkgn46#", valued: "xAmyY",
	}
})

// wgetCommands are those of the manual's chapter "Wgetrc Commands".
var wgetCommands = sync.OnceValue(func() wordSettings {
	known := shapesOf(
		[]string{
			"number", "tries", "timeout", "dns_timeout", "connect_timeout", "read_timeout", "wait", "waitretry",
			"random_wait", "retry_connrefused", "use_proxy", "check_certificate", "https_only", "dirstruct",
			"add_hostdir", "timestamping", "continue", "quiet", "verbose", "show_progress", "inet4_only",
			"inet6_only", "limit_rate", "robots", "passive_ftp", "iri", "content_disposition", "trust_server_names",
			"adjust_extension", "backups", "hsts", "no_parent", "reclevel", "server_response", "unlink", "xattr",
			"max_redirect", "keep_session_cookies", "dns_cache", "cache", "httpkeepalive", "page_requisites",
			"convert_links", "convert_file_only", "preserve_permissions", "quota", "no_clobber", "cut_dirs",
		},
		[]string{
			"text", "secure_protocol", "ciphers", "user_agent", "progress", "prefer_family", "local_encoding",
			"remote_encoding", "restrict_file_names", "compression",
		},
		[]string{"address", "http_proxy", "https_proxy", "ftp_proxy", "bind_address"},
		[]string{"hosts", "no_proxy", "domains", "exclude_domains"},
		[]string{"path", "ca_certificate", "ca_directory", "crl_file", "hsts_file"},
		[]string{"pin", "pinnedpubkey"},
	)
	return wordSettings{
		entry: regexp.MustCompile(`^([A-Za-z][\w-]*)\s*=\s*(.*)$`),
		shape: func(_, name string) *shape { return known[plainName(strings.ToLower(name))] },
	}
})

// mercurialSettings are those of hgrc(5), in sections that do not sign in. What
// %include names may be closed, and hg would end with an error.
var mercurialSettings = sync.OnceValue(func() wordSettings {
	sections := shapesOf(
		[]string{
			"line", "ui", "extensions", "alias", "diff", "color", "pager", "commands", "defaults", "merge",
			"merge-tools", "merge-patterns", "format", "experimental", "email", "schemes", "hooks", "progress",
			"committemplate", "templates", "templatealias", "revsetalias", "revsets", "filesetalias", "histedit",
			"rebase", "share", "trusted", "worker", "annotate", "grep", "log", "graph", "extdiff", "largefiles",
			"lfs", "tweakdefaults", "cmdserver", "devel", "eol", "encode", "decode", "patch", "profiling", "server",
			"storage", "subrepos", "absorb", "fix", "show", "evolution", "topic",
		},
		[]string{"pin", "hostsecurity", "hostfingerprints"}, []string{"phase", "phases"},
		[]string{"address", "http_proxy"},
	)
	secret := regexp.MustCompile(`(?i)token|pass|pwd|secret|credential|auth|key`)
	address := &shape{value: regexp.MustCompile(`^[\w:/.@~+-]*$`), text: true}
	return wordSettings{
		entry: regexp.MustCompile(`^([^\s=%\[][^=]*?)(?:\s*=\s*|\s+|$)(.*)$`),
		shape: func(section, name string) *shape {
			is, all := sections[plainName(section)], shapes()
			switch {
			case section == "paths":
				return address
			case section == "phases" && name != "new-commit":
				return all["number"]
			case section == "hostsecurity" && !strings.HasSuffix(name, ":fingerprints"):
				return all["path"]
			case section == "http_proxy" && name == "no":
				return all["hosts"]
			case section == "http_proxy" && name == "always":
				return all["number"]
			case section == "http_proxy" && name != "host":
				return nil
			case section == "ui" && name == "username":
				return all["author"]
			case is == all["line"] && section != "hooks" && secret.MatchString(name):
				return nil
			}
			return is
		},
		section: regexp.MustCompile(`^\[([^\[]+)\]`),
	}
})

// parts is partsOf for such a file. What is left out may be everything: then the
// rest is an empty line.
func (w wordSettings) parts(text string) (kept string, lines []int, line int) {
	var out strings.Builder
	section, left, number := "", false, 0
	first := func() {
		if line == 0 {
			line = number
		}
	}
	for raw := range strings.Lines(strings.TrimPrefix(text, byteOrderMark)) {
		number++
		if hasControl(raw) {
			first()
			return "", nil, line
		}
		text := strings.TrimSpace(raw)
		indented := w.section != nil && strings.TrimLeft(raw, " \t") != raw
		switch {
		case isComment(text):
			if w.mayBeSecret(text) {
				first() // one that is kept for later
			}
			continue
		case indented && left:
			lines = append(lines, number)
			continue
		case indented && isSecretText(text):
			first()
			return "", nil, line // the rest of the value would mean something else
		case indented:
			out.WriteString(strings.TrimRight(raw, "\r\n") + "\n")
			continue
		case w.section != nil && strings.HasPrefix(text, "["):
			begins := w.section.FindStringSubmatch(text)
			if begins == nil {
				first()
				return "", nil, line
			}
			// What is indented below goes with a section that is not known.
			section, left = begins[1], w.shape(begins[1], "x") == nil
			out.WriteString("[" + section + "]\n")
			if begins[0] != text {
				first()
			}
			continue
		}
		kept, leads := w.harmless(section, text)
		left = kept == ""
		if !left {
			out.WriteString(kept + "\n")
		}
		if kept == text {
			continue
		}
		first()
		if leads {
			return "", nil, line
		}
		lines = append(lines, number)
	}
	if line == 0 {
		return "", nil, 0
	}
	return strings.TrimSuffix(out.String(), "\n") + "\n", lines, line
}

// signedIn is the name and the password in an address.
var signedIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(["']?)(\w{2,8}://)?[^\s"'/]*@`)
})

// harmless is what sessions may read of a line: all of it, an address without the
// name and password in it, or nothing. leads says that the program would go
// elsewhere without it.
func (w wordSettings) harmless(section, line string) (kept string, leads bool) {
	name, value, ok := w.split(line)
	if !ok {
		return "", false
	}
	of := w.shape(section, name)
	if of == nil {
		return "", false
	}
	bare := value
	if !settingsPatterns().overSSH.MatchString(value) && (!of.text || !strings.Contains(value, " ")) {
		bare = signedIn().ReplaceAllString(value, "$1$2")
	}
	for _, one := range []string{value, bare} {
		if of.value.MatchString(one) && (!of.text || !isSecretText(one)) {
			return strings.TrimSuffix(line, value) + one, false
		}
	}
	return "", of.leads
}

// split is the name and the value of a line. Short options may stand together, and
// their value behind them.
func (w wordSettings) split(line string) (name, value string, ok bool) {
	if letters, is := strings.CutPrefix(line, "-"); is && w.short != "" && len(letters) > 1 && letters[0] != '-' {
		if strings.Trim(letters, w.short) == "" {
			return letters[:1], "", true
		}
		if strings.Contains(w.valued, letters[:1]) {
			return letters[:1], strings.TrimLeft(letters[1:], "= \t"), true
		}
	}
	entry := w.entry.FindStringSubmatch(line)
	if entry == nil {
		return "", "", false
	}
	return entry[1], entry[2], true
}

// signs are what stands before a secret in a command, and names whose values are
// one.
var signs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|\s)(-[uUHbdEF]|` +
		`--?(user|proxy-user|header|cookie|data|form|key|cert|oauth2-bearer)[\w-]*)\b|` +
		`(?i)\w*(key|token|pass|pwd?|secret)\w*\s*[=:]\s*\S|[?&]\w+=`)
})

// isSecretText reports whether free text may hold a secret.
func isSecretText(text string) bool {
	is := settingsPatterns()
	text = is.overSSH.ReplaceAllString(text, "") // the user of an ssh server signs in with a key
	return is.secret(text) || is.user.MatchString(text) || is.said.MatchString(text) || signs().MatchString(text) ||
		strings.Contains(text, "Authorization") || strings.Contains(text, "Cookie")
}

// pair is a name and something behind it, without a blank.
var pair = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|\s)[^\s:]+:[^\s:/]`) })

// mayBeSecret reports whether a comment may be a setting that signs in.
func (w wordSettings) mayBeSecret(comment string) bool {
	text := strings.TrimLeft(comment, "#; \t")
	name, value, ok := w.split(text)
	is := settingsPatterns()
	return isSecretText(text) || pair().MatchString(text) ||
		ok && value != "" && (is.secretKey.MatchString(name) || signs().MatchString("--"+name) ||
			signs().MatchString("-"+name))
}
