package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
)

// Finding is one changed path.
type Finding struct {
	// Path is absolute.
	Path string
	// How is what happened to it.
	How Change
	// Why says which program acts upon it.
	Why string
}

// Change is what happened to a path.
type Change string

const (
	// Created: it did not exist before.
	Created Change = "created"
	// Changed: its content or mode may have changed.
	Changed Change = "changed"
	// Removed: it no longer exists.
	Removed Change = "removed"
)

// State is the state of the files when a session started.
type State struct {
	project string
	since   time.Time
	why     map[string]string // by the path that is scanned, which may be a directory
	before  map[string]string
	unread  []string // not scanned, because the file system does not answer
	// repository: the project had a repository of its own.
	repository bool
	crowded    []string // directories with more files than are scanned
}

// The bounds of a scan: a project must not be able to slow down every start of
// a session.
const (
	maxFiles   = 512
	maxDepth   = 4
	maxPackage = 1 << 20
)

// fileTimeLag is how far a new file's time can lie behind the clock. The kernel
// uses the time of its last tick (current_time() in fs/inode.c), which is 10 ms
// ago at most (CONFIG_HZ=100).
const fileTimeLag = 10 * time.Millisecond

// Take records the state of the policy's protected paths, and of the project's
// files that programs act upon.
func Take(p *policy.Policy) *State {
	s := &State{project: p.Project, since: time.Now().Add(-fileTimeLag), why: map[string]string{}}
	if p.Project != "" {
		for _, one := range protected.Names {
			path := filepath.Join(p.Project, one.Path)
			switch {
			case one.Scripts:
				s.why[path+scripts] = one.Why
			case one.ReviewOnly:
				s.why[path] = one.Why
			}
		}
	}
	for _, one := range p.Protected {
		s.why[one.Path] = whyProtected
	}
	_, err := fsguard.Lstat(filepath.Join(p.Project, ".git"))
	s.repository = err == nil
	s.before, s.unread = s.scan()
	return s
}

// Findings returns the paths that have changed since Take, sorted.
func (s *State) Findings() []Finding {
	after, unread := s.scan()
	unread = append(unread, s.unread...)
	unread = append(unread, s.crowded...)
	var findings []Finding
	add := func(path string, how Change) {
		if slices.ContainsFunc(unread, func(dir string) bool { return policy.Contains(dir, path) }) {
			return // it could not be compared
		}
		findings = append(findings, Finding{Path: strings.TrimSuffix(path, scripts), How: how, Why: s.reason(path)})
	}
	for path, signature := range after {
		switch before, was := s.before[path]; {
		case !was:
			add(path, Created)
		case before != signature:
			add(path, Changed)
		}
	}
	for path := range s.before {
		if _, is := after[path]; !is {
			add(path, Removed)
		}
	}
	for _, dir := range s.crowded {
		findings = append(findings, Finding{Path: dir, How: Changed, Why: whyUncompared})
	}
	repositories, complete := s.newRepositories()
	for _, dir := range repositories {
		findings = append(findings, Finding{Path: dir, How: Created, Why: whyRepository})
	}
	if !complete {
		findings = append(findings, Finding{Path: s.project, How: Changed, Why: whyUnsearched})
	}
	slices.SortFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(findings, func(a, b Finding) bool { return a.Path == b.Path })
}

// reason returns the reason of the path, or of the directory that contains it.
func (s *State) reason(path string) string {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if why, ok := s.why[path]; ok {
			return why
		}
	}
	return whyProtected
}

// scripts marks the part of a package.json that contains commands.
const scripts = "#scripts"

// scan maps each existing path to its signature. unread lists the paths whose
// file system does not answer.
func (s *State) scan() (found map[string]string, unread []string) {
	found = map[string]string{}
	listed := map[string][]fsguard.Entry{} // of the directories with patterns, once
	for path := range s.why {
		if file, ok := strings.CutSuffix(path, scripts); ok {
			commands, ok, err := packageScripts(file)
			if ok {
				found[path] = commands
			}
			unread = appendUnread(unread, path, err)
			continue
		}
		if dir, pattern := filepath.Split(path); strings.Contains(pattern, "*") {
			entries, known := listed[dir]
			if !known {
				var err error
				entries, err = fsguard.ReadDir(dir, maxEntries)
				unread = appendUnread(unread, path, err)
				listed[dir] = entries
			}
			if len(entries) == maxEntries {
				if !slices.Contains(s.crowded, path) {
					s.crowded = append(s.crowded, path)
				}
				continue // which of its files are listed is left to chance
			}
			for _, entry := range entries {
				if !policy.MatchName(pattern, entry.Name) {
					continue
				}
				if info, err := fsguard.Lstat(dir + entry.Name); err == nil {
					found[dir+entry.Name] = signature(info)
				}
			}
			continue
		}
		info, err := fsguard.Lstat(path)
		switch {
		case err != nil:
			unread = appendUnread(unread, path, err)
		case info.IsDir():
			in := map[string]string{}
			err := scanDir(in, path, maxDepth)
			if errors.Is(err, errCrowded) && !slices.Contains(s.crowded, path) {
				s.crowded = append(s.crowded, path)
			}
			maps.Copy(found, in)
			unread = appendUnread(unread, path, err)
		default:
			found[path] = signature(info)
		}
	}
	return found, unread
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
func scanDir(found map[string]string, dir string, depth int) error {
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
		// git installs sample hooks, which it does not run
		case strings.HasSuffix(path, ".sample"):
		case info.IsDir() && depth > 1:
			if failure = errors.Join(failure, scanDir(found, path, depth-1)); errors.Is(failure, errCrowded) {
				return failure
			}
		default:
			found[path] = signature(info)
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
// cannot be parsed counts as a whole.
func packageScripts(path string) (commands string, there bool, err error) {
	info, err := fsguard.Lstat(path)
	if err != nil {
		return "", false, err
	}
	var content struct {
		Scripts json.RawMessage `json:"scripts"`
		Hooks   json.RawMessage `json:"gitHooks"`
	}
	if !info.Mode().IsRegular() || info.Size() > maxPackage {
		return signature(info), true, nil
	}
	read, err := fsguard.ReadFile(path, maxPackage)
	if err != nil || json.Unmarshal(read.Data, &content) != nil {
		return signature(info), true, err
	}
	sum := sha256.Sum256(append(append(content.Scripts, 0), content.Hooks...))
	return string(sum[:]), true, nil
}
