package darwin

import (
	"errors"
	"testing"
)

// verdict returns a profile's answer to a question, if all models agree.
func verdict(p Profile, q question) (bool, error) {
	rules, err := readProfile(p)
	if err != nil {
		return false, err
	}
	return decided(rules, q)
}

// decided returns the answer of the rules of a profile, if all models agree.
func decided(rules []rule, q question) (bool, error) {
	rules, err := matching(rules, q)
	if err != nil {
		return false, err
	}
	var first bool
	for i, m := range models() {
		allowed, err := m.allows(rules, q)
		if err != nil {
			return false, err
		}
		if i > 0 && allowed != first {
			return false, &disagreement{q, m}
		}
		first = allowed
	}
	return first, nil
}

// disagreement is a question whose answer differs between the models.
type disagreement struct {
	question question
	model    model
}

func (d *disagreement) Error() string {
	return "the models disagree about " + d.question.String()
}

// ask is verdict, for tests.
func ask(t testing.TB, p Profile, q question) bool {
	t.Helper()
	allowed, err := verdict(p, q)
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	return allowed
}

func file(operation, path string) question {
	return question{operation, map[string]string{"path": path}}
}

func link(operation, path string) question {
	return question{operation, map[string]string{"path": path, "vnode-type": "SYMLINK"}}
}

func unixSocket(operation, path string) question {
	side := "remote"
	if operation == "network-bind" {
		side = "local"
	}
	return question{operation, map[string]string{"path": path, side: "unix-socket"}}
}

func ip(operation, address string) question {
	side := "remote"
	if operation != "network-outbound" {
		side = "local"
	}
	return question{operation, map[string]string{side: "ip", "address": address}}
}

func with(operation, attribute, value string) question {
	return question{operation, map[string]string{attribute: value}}
}

// The evaluator itself, on profiles for which the system's answer has been
// measured.
func TestEvaluator(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		q    question
		want string
	}{
		"nothing is granted": {"(version 1)(deny default)", file("file-read-data", "/a"), "no"},
		"the last rule decides": {
			`(version 1)(deny default)(allow file-read* (subpath "/a"))(deny file-read* (subpath "/a/b"))`,
			file("file-read-data", "/a/b/c"), "no",
		},
		"the last rule decides, other way": {
			`(version 1)(deny default)(deny file-read* (subpath "/a/b"))(allow file-read* (subpath "/a"))`,
			file("file-read-data", "/a/b/c"), "yes",
		},
		"a wildcard after the operation itself": {
			`(version 1)(deny default)(allow file-read-data (subpath "/a"))(deny file-read* (subpath "/a"))`,
			file("file-read-data", "/a"), "?",
		},
		"no filter after a filter": {
			`(version 1)(allow default)(deny signal (target others))(allow signal)`,
			with("signal", "target", "others"), "?",
		},
		"subpath is by whole names": {
			`(version 1)(deny default)(allow file-read* (subpath "/a"))`,
			file("file-read-data", "/ab"), "no",
		},
		"literal is not what is below": {
			`(version 1)(deny default)(allow file-read* (literal "/"))`,
			file("file-read-data", "/a"), "no",
		},
		"the root's subpath is everything": {
			`(version 1)(deny default)(allow file-read* (subpath "/"))`,
			file("file-read-data", "/a"), "yes",
		},
		"comments and blanks": {
			"(version 1) ; (allow default)\n(deny\n default)",
			file("file-read-data", "/"), "no",
		},
		"all of several": {
			`(version 1)(deny default)(allow file-ioctl (require-all (regex #"^/dev/ttys[0-9]+$") (extension "e")))`,
			file("file-ioctl", "/dev/ttys001"), "no",
		},
		"ip is not unix": {
			`(version 1)(deny default)(allow network-outbound (remote ip))`,
			unixSocket("network-outbound", "/s"), "no",
		},
		"a port of this machine": {
			`(version 1)(deny default)(allow network-outbound (remote ip "localhost:80"))`,
			ip("network-outbound", "localhost:81"), "no",
		},
		"hard links are writing, or are not": {
			`(version 1)(deny default)(deny file-link)(allow file-write* (subpath "/a"))`,
			file("file-link", "/a/b"), "?",
		},
		"clones are writing, or are not": {
			`(version 1)(deny default)(deny file-clone)(allow file-write* (subpath "/a"))`,
			file("file-clone", "/a/b"), "?",
		},
		"other processes are closed by default, or are not": {
			`(version 1)(deny default)`, with("process-info-pidinfo", "target", "others"), "?",
		},
		"hard links are closed by default, or are not": {
			`(version 1)(deny default)`, file("file-link", "/a"), "?",
		},
		"other processes are closed": {
			`(version 1)(deny default)(deny process-info*)(allow process-info* (target self))`,
			with("process-info-pidinfo", "target", "others"), "no",
		},
		"the process itself is open": {
			`(version 1)(deny default)(deny process-info*)(allow process-info* (target self))`,
			with("process-info-pidinfo", "target", "self"), "yes",
		},
		"a pattern of names": {
			`(version 1)(deny default)(allow ipc-posix-shm-read* (ipc-posix-name-regex #"^/a[0-9]+$"))`,
			with("ipc-posix-shm-read-data", "ipc-posix-name", "/a1b"), "no",
		},
		"no version": {"(deny default)", file("file-read-data", "/"), "error"},
		"an unknown filter": {
			`(version 1)(deny default)(allow file-read* (path "/a"))`,
			file("file-read-data", "/"), "error",
		},
		"an unknown head": {`(version 1)(import "system.sb")`, file("file-read-data", "/"), "error"},
		"a parameter that is not given": {
			`(version 1)(deny default)(allow file-read* (subpath (param "P")))`,
			file("file-read-data", "/"), "error",
		},
		"a list that does not end": {`(version 1)(deny default`, file("file-read-data", "/"), "error"},
		"an escaped string": {
			`(version 1)(deny default)(allow file-read* (subpath "/a\"b"))`,
			file("file-read-data", "/"), "error",
		},
	} {
		allowed, err := verdict(Profile{Text: test.text}, test.q)
		got := map[bool]string{true: "yes", false: "no"}[allowed]
		if err != nil {
			got = "error"
			if _, ok := errors.AsType[*disagreement](err); ok {
				got = "?"
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, test.want, err)
		}
	}
}
