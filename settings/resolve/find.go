package resolve

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// The bounds of FS.Find, which a start of a session waits for.
const (
	MaxFindDirs = 20_000
	MaxFound    = 512 // of each pattern
	maxFindTime = 2 * time.Second
)

// ErrNotAllFound means that FS.Find has come to a bound.
var ErrNotAllFound = errors.New("too many directories or files")

// Lister lists the entries of a directory; ErrNotAllFound means that there are
// more.
type Lister func(dir string) ([]fsguard.Entry, error)

// find is FS.Find.
func find(root string, patterns []string) ([]string, error) { return FindBy(list, root, patterns) }

// FindBy searches as FS.Find does, with other entries.
func FindBy(list Lister, root string, patterns []string) (found []string, err error) {
	counts := make([]int, len(patterns))
	end := time.Now().Add(maxFindTime)
	queue := []string{root}
	for searched := 0; len(queue) > 0; searched++ {
		if searched == MaxFindDirs || time.Now().After(end) {
			return found, ErrNotAllFound
		}
		dir := queue[0]
		queue = queue[1:]
		entries, failure := list(dir)
		if errors.Is(failure, fsguard.ErrNoAnswer) || errors.Is(failure, ErrNotAllFound) {
			err = ErrNotAllFound
		}
		for _, entry := range entries {
			path, matches := filepath.Join(dir, entry.Name), false
			for i, pattern := range patterns {
				if !policy.MatchName(pattern, entry.Name) {
					continue
				}
				if counts[i]++; counts[i] > MaxFound {
					err = ErrNotAllFound
				} else {
					matches = true
				}
			}
			if matches {
				found = append(found, path)
			}
			if entry.Type.IsDir() && !policy.LeftOut(entry.Name) {
				queue = append(queue, path)
			}
		}
	}
	return found, err
}

// The bounds of FS.Links, which each start of a session waits for. Dotfiles are few
// and lie near the top.
const (
	maxLinkDepth  = 4
	maxLinkDirs   = 64 // below the roots, which take turns
	maxLinkDirsOf = 15 // below one
	maxLinksFound = 1024
)

// LinksBy searches as FS.Links does, with other entries.
func LinksBy(list Lister, roots []string) (links []string, err error) {
	type directory struct {
		path string
		root int
	}
	level := make([][]directory, len(roots)) // of each root
	for i, root := range roots {
		level[i] = []directory{{root, i}}
	}
	listed, listedOf := 0, make([]int, len(roots))
	for depth := range maxLinkDepth {
		below := make([][]directory, len(roots))
		for _, dir := range inTurn(level) {
			if depth > 0 {
				if listedOf[dir.root] == maxLinkDirsOf || listed == maxLinkDirs {
					err = ErrNotAllFound
					continue
				}
				listed++
				listedOf[dir.root]++
			}
			entries, failure := list(dir.path)
			if errors.Is(failure, fsguard.ErrNoAnswer) || errors.Is(failure, ErrNotAllFound) {
				err = ErrNotAllFound
			}
			for _, entry := range entries {
				path := filepath.Join(dir.path, entry.Name)
				switch {
				case entry.Type&fs.ModeSymlink != 0 && len(links) == maxLinksFound:
					return links, ErrNotAllFound
				case entry.Type&fs.ModeSymlink != 0:
					links = append(links, path)
				case entry.Type.IsDir() && !policy.LeftOut(entry.Name):
					below[dir.root] = append(below[dir.root], directory{path, dir.root})
				}
			}
		}
		level = below
	}
	return links, err
}

// inTurn takes the first of each list, then the second of each, and so on.
func inTurn[T any](lists [][]T) (all []T) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, list := range lists {
			if i < len(list) {
				all, more = append(all, list[i]), true
			}
		}
	}
	return all
}

// list is a Lister of the machine. The order is that of the names.
func list(dir string) ([]fsguard.Entry, error) {
	entries, err := fsguard.ReadDir(dir, MaxNames)
	slices.SortFunc(entries, func(a, b fsguard.Entry) int { return cmp.Compare(a.Name, b.Name) })
	if err == nil && len(entries) == MaxNames {
		err = ErrNotAllFound
	}
	return entries, err
}

// RememberFind returns a function for FS.Find that reads a directory again only
// if it has changed. Several goroutines may call it.
func RememberFind() func(root string, patterns []string) ([]string, error) {
	memory := newFindMemory()
	return func(root string, patterns []string) ([]string, error) {
		return FindBy(memory.list, root, patterns)
	}
}

// RememberLinks is RememberFind for FS.Links.
func RememberLinks() func(roots []string) ([]string, error) {
	memory := newFindMemory()
	return func(roots []string) ([]string, error) { return LinksBy(memory.list, roots) }
}

// maxRemembered bounds the directories and entries that RememberFind and
// RememberLinks each remember, together.
const maxRemembered = 200_000

type listing struct {
	state   textfile.Signature
	entries []fsguard.Entry
}

type findMemory struct {
	racy func(textfile.Signature) bool

	mu      sync.Mutex // guards the fields below
	known   map[string]listing
	entries int
}

func newFindMemory() *findMemory {
	return &findMemory{racy: textfile.Signature.Racy, known: map[string]listing{}}
}

func (m *findMemory) list(dir string) ([]fsguard.Entry, error) {
	info, err := fsguard.LstatPlain(dir)
	if err != nil {
		return nil, err
	}
	now := listing{state: textfile.SignatureOf(info)}
	m.mu.Lock()
	before, found := m.known[dir]
	m.mu.Unlock()
	if found && before.state == now.state {
		return before.entries, nil
	}
	if now.entries, err = list(dir); err != nil || m.racy(now.state) {
		return now.entries, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries += len(now.entries) - len(m.known[dir].entries)
	if len(m.known)+m.entries >= maxRemembered {
		clear(m.known)
		m.entries = len(now.entries)
	}
	m.known[dir] = now
	return now.entries, nil
}
