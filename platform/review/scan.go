package review

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// The bounds of a scan: a project must not be able to slow down every start of
// a session.
const (
	maxFiles   = 512
	maxDepth   = 4
	maxPackage = 1 << 20
)

// scripts marks the part of a package.json that contains commands.
const scripts = "#scripts"

// scan maps each existing path to its signature. unread lists the paths whose
// file system does not answer.
func (s *State) scan() (found map[string]string, unread []string) {
	found = map[string]string{}
	listed := map[string][]fsguard.Entry{} // of the directories with patterns, once
	list := func(dir string) ([]fsguard.Entry, error) {
		entries, known := listed[dir]
		var err error
		if !known {
			entries, err = fsguard.ReadDir(dir, maxEntries)
			listed[dir] = entries
		}
		return entries, err
	}
	missing := s.missing(list)
	for path := range s.reasons {
		if missing(path) {
			continue
		}
		var err error
		switch dir, pattern := filepath.Split(path); {
		case strings.HasSuffix(path, scripts):
			err = scanScripts(found, path)
		case strings.Contains(pattern, "*"):
			var entries []fsguard.Entry
			entries, err = list(filepath.Clean(dir))
			s.scanPattern(found, path, entries)
		default:
			err = s.scanPath(found, path)
		}
		unread = appendUnread(unread, path, err)
	}
	for path := range s.acting {
		unread = appendUnread(unread, path, s.scanPath(found, path))
	}
	return found, unread
}

// scanScripts notes the commands of a package.json.
func scanScripts(found map[string]string, path string) error {
	commands, ok, err := packageScripts(strings.TrimSuffix(path, scripts))
	if ok {
		found[path] = commands
	}
	return err
}

// scanPattern notes the entries of a directory that match a pattern, unless it
// has so many that it is left to chance which are listed.
func (s *State) scanPattern(found map[string]string, path string, entries []fsguard.Entry) {
	if len(entries) == maxEntries {
		s.crowd(path)
		return
	}
	dir, pattern := filepath.Split(path)
	for _, entry := range entries {
		if !policy.MatchName(pattern, entry.Name) {
			continue
		}
		if info, err := fsguard.Lstat(dir + entry.Name); err == nil {
			found[dir+entry.Name] = signature(info)
			s.follow(dir+entry.Name, info)
		}
	}
}

// scanPath notes a file, or all of a directory.
func (s *State) scanPath(found map[string]string, path string) error {
	info, err := fsguard.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		found[path] = signature(info)
		s.follow(path, info)
		return nil
	}
	in := map[string]string{}
	err = s.scanDir(in, path, maxDepth)
	if errors.Is(err, errCrowded) {
		s.crowd(path)
	}
	maps.Copy(found, in)
	return err
}

// crowd notes that a path has too many entries to scan.
func (s *State) crowd(path string) {
	if !slices.Contains(s.crowded, path) {
		s.crowded = append(s.crowded, path)
	}
}

// missing returns a function that reports whether a path cannot exist, because
// the project has no entry that leads to it. Most names of the table are missing
// in most projects, and one list of the project says so of all.
func (s *State) missing(list func(dir string) ([]fsguard.Entry, error)) func(path string) bool {
	none := func(string) bool { return false }
	if s.project == "" {
		return none
	}
	entries, err := list(s.project)
	if err != nil || len(entries) == maxEntries {
		return none
	}
	names := map[string]bool{}
	for _, entry := range entries {
		names[strings.ToLower(entry.Name)] = true // the directory may ignore case
	}
	return func(path string) bool {
		rest, in := strings.CutPrefix(path, s.project+"/")
		if !in {
			return false
		}
		first, _, _ := strings.Cut(strings.TrimSuffix(rest, scripts), "/")
		return !strings.Contains(first, "*") && !names[strings.ToLower(first)]
	}
}

func appendUnread(unread []string, path string, err error) []string {
	if errors.Is(err, fsguard.ErrNoAnswer) {
		return append(unread, path)
	}
	return unread
}

// errCrowded means that a directory holds more than maxFiles.
var errCrowded = errors.New("too many files")

// scanDir returns an error if something could not be scanned.
func (s *State) scanDir(found map[string]string, dir string, depth int) error {
	entries, failure := fsguard.ReadDir(dir, maxFiles+1)
	for _, entry := range entries {
		if len(found) >= maxFiles {
			return errors.Join(failure, errCrowded)
		}
		path := filepath.Join(dir, entry.Name)
		info, err := fsguard.Lstat(path)
		switch {
		case err != nil:
			failure = errors.Join(failure, err)
		// git installs sample hooks, which it does not run; see opened
		case strings.HasSuffix(path, ".sample"), s.open[path]:
		case info.IsDir() && depth > 1:
			if failure = errors.Join(failure, s.scanDir(found, path, depth-1)); errors.Is(failure, errCrowded) {
				return failure
			}
		default:
			found[path] = signature(info)
			s.follow(path, info)
		}
	}
	return failure
}

// signature differs if the content may differ: a program can set a file's
// times, but not that of the inode's last change.
func signature(info fs.FileInfo) string {
	return strings.Join([]string{info.Mode().String(), info.ModTime().Format(time.RFC3339Nano), changeTime(info)}, " ")
}

// packageScripts returns a hash of the commands in a package.json. A file that
// programs may read in different ways counts as a whole.
func packageScripts(path string) (commands string, there bool, err error) {
	info, err := fsguard.Lstat(path)
	if err != nil {
		return "", false, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPackage {
		return signature(info), true, nil
	}
	read, err := fsguard.ReadFile(path, maxPackage)
	if err != nil {
		return signature(info), true, err
	}
	text, ok := commandsOf(read.Data)
	if !ok {
		return signature(info), true, nil
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), true, nil
}

// commandKeys are the members of a package.json with commands: of package
// managers, of packages that set git's hooks, and of what those hooks start.
var commandKeys = []string{
	"scripts", "wireit",
	"config", "gitHooks", "husky", "pre-commit", "pre-push", "simple-git-hooks",
	"lint-staged", "nano-staged",
}

// commandsOf returns the members of a package.json that hold commands. It
// returns false if parsers may disagree about them: of a member that is there
// twice one takes the first and another the last, and some ignore case.
func commandsOf(data []byte) (text []byte, ok bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, false
	}
	values := map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return nil, false
		}
		for _, key := range commandKeys {
			if !strings.EqualFold(key, name.(string)) { // a name, or Token would have failed
				continue
			}
			if _, twice := values[key]; twice || key != name || !unambiguous(json.NewDecoder(bytes.NewReader(value))) {
				return nil, false
			}
			values[key] = value
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, false // text behind the object
	}
	for _, key := range commandKeys {
		text = append(append(text, values[key]...), 0)
	}
	return text, true
}

// unambiguous reports whether all parsers agree about the next value: no object
// in it has a name twice.
func unambiguous(decoder *json.Decoder) bool {
	token, err := decoder.Token()
	begins, is := token.(json.Delim)
	if err != nil || !is {
		return err == nil
	}
	seen := map[string]bool{}
	for decoder.More() {
		if begins == '{' {
			name, err := decoder.Token()
			if err != nil || seen[name.(string)] {
				return false
			}
			seen[name.(string)] = true
		}
		if !unambiguous(decoder) {
			return false
		}
	}
	_, err = decoder.Token() // the end
	return err == nil
}
