package sensitive

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// The bounds of a search for private files.
const (
	// searchDepth is how many names a file is below the directory that the
	// search began in.
	searchDepth = 4
	// maxSearched bounds the names that one search looks at.
	maxSearched = 20_000
	// crowd is how many private files of one directory are told apart. One that
	// has more, most of its files, is a store of one program as a whole.
	crowd = 16
	// weight bounds what one program's files say about the user's umask, and
	// fewPrivate is how many private files say nothing about it.
	weight, fewPrivate = 8, 12
)

// Private is what the modes of files in home directories say about them.
type Private struct {
	// Paths are private to the user: files, and directories that are full of
	// such. None of the places about which the table decides is among them.
	Paths []string
	// Usual: most files are private, so that it says nothing about one of them.
	Usual bool
	// Whole is false if not all was looked at. Remote are the directories that
	// were not, because they are on remote file systems.
	Whole  bool
	Remote []string
}

// Bases are the directories of the home directories in which each program has a
// file or a directory of its own: the XDG base directories, and the home
// directories themselves for names that begin with a dot. Caches, which are large
// and hold few secrets, come last.
func (p *Paths) Bases(r *resolve.View, getenv func(string) string) (list []string) {
	add := func(path string) {
		if !filepath.IsAbs(path) {
			return
		}
		at := r.Resolve(path)
		if at.Exists && at.Mode.IsDir() && (slices.Contains(p.homes, at.Path) || p.inHome(at.Path)) &&
			!slices.Contains(list, at.Path) {
			list = append(list, at.Path)
		}
	}
	for _, base := range []struct{ variable, usual string }{
		{"XDG_CONFIG_HOME", ".config"},
		{"", ""},
		{"XDG_DATA_HOME", ".local/share"},
		{"XDG_STATE_HOME", ".local/state"},
		{"XDG_CACHE_HOME", ".cache"},
	} {
		for _, home := range p.homes {
			add(filepath.Join(home, base.usual))
		}
		if base.variable != "" {
			add(getenv(base.variable))
		}
	}
	return list
}

// inHome reports whether a path is below a home directory.
func (p *Paths) inHome(path string) bool {
	return slices.ContainsFunc(p.homes, func(home string) bool { return home != path && policy.Contains(home, path) })
}

// FindPrivate searches some bases. What is in known is left out.
func (p *Paths) FindPrivate(r *resolve.View, bases, known []string) Private {
	s := searcher{
		Paths: p, view: r, known: p.namedPlaces(known), apart: known, seen: map[string]bool{}, left: maxSearched,
		programs: map[string]*tally{}, found: Private{Whole: true},
	}
	for _, base := range bases {
		s.seen[base] = true
	}
	for _, base := range bases {
		s.queue = []searched{{path: base}}
		for len(s.queue) > 0 {
			next := s.queue[0]
			s.queue = s.queue[1:]
			s.directory(next)
		}
	}
	private, others := 0, 0
	for _, program := range s.programs {
		private += min(program.private, weight)
		others += min(program.others, weight)
	}
	s.found.Usual = private > others && private > fewPrivate
	return s.found
}

// searcher looks for private files: in each base the nearest first.
type searcher struct {
	*Paths
	view     *resolve.View
	known    namedPlaces
	apart    []string        // of known, those about which others decide
	seen     map[string]bool // directories, with those in queue
	queue    []searched
	left     int
	programs map[string]*tally // by the first name below a base
	found    Private
}

// searched is a directory, how many names it is below its base, and the program
// that it belongs to.
type searched struct {
	path    string
	depth   int
	program string
}

type tally struct{ private, others int }

func (s *searcher) directory(at searched) {
	if s.left <= 0 {
		s.found.Whole = false
		return
	}
	list, err := s.view.FS.Modes(at.path)
	if err != nil {
		// What the user cannot list is not the user's. Sessions cannot either.
		if errors.Is(err, fsguard.ErrRemote) || errors.Is(err, fsguard.ErrNoAnswer) {
			s.found.Remote = append(s.found.Remote, at.path)
		}
		return
	}
	if len(list.Entries) > s.left || len(list.Entries) == resolve.MaxNames {
		s.found.Whole = false
	}
	entries := list.Entries[:min(len(list.Entries), s.left)]
	s.left -= len(entries)
	isHome := slices.Contains(s.homes, at.path)
	var private []string
	others := 0
	for _, entry := range entries {
		path, program := filepath.Join(at.path, entry.Name), at.program
		if at.depth == 0 {
			if isHome && !strings.HasPrefix(entry.Name, ".") {
				continue
			}
			program = path
		}
		mode := entry.Type
		if s.known.has(path) {
			continue
		}
		if mode&fs.ModeSymlink != 0 {
			if to := s.view.Entry(path).Target; filepath.IsAbs(to) && !s.inHome(to) {
				continue // most lead to a store of packages
			}
			target := s.view.Resolve(path)
			if !target.Exists || target.Err != nil || !s.inHome(target.Path) {
				continue
			}
			path, mode = target.Path, target.Mode
		}
		switch {
		case s.known.has(path):
		case mode.IsDir() && at.depth+1 < searchDepth && !s.seen[path]:
			s.seen[path] = true
			s.queue = append(s.queue, searched{path, at.depth + 1, program})
		case mode.IsRegular() && mode&0o077 == 0:
			private = append(private, path)
			s.count(program).private++
		case mode.IsRegular():
			others++
			s.count(program).others++
		}
	}
	if at.depth > 0 && len(private) > max(crowd, others) && !s.holdsKnown(at.path) {
		s.found.Paths = append(s.found.Paths, at.path)
		return
	}
	s.found.Paths = append(s.found.Paths, private...)
}

// holdsKnown reports whether a directory cannot be hidden as a whole, because
// others decide about something in it.
func (s *searcher) holdsKnown(dir string) bool {
	return slices.ContainsFunc(s.apart, func(path string) bool { return policy.Contains(dir, path) })
}

func (s *searcher) count(program string) *tally {
	if s.programs[program] == nil {
		s.programs[program] = &tally{}
	}
	return s.programs[program]
}

// namedPlaces are places about which something else than a file's mode decides.
type namedPlaces struct {
	paths    map[string]bool
	patterns map[string][]string // names by their directory
}

// namedPlaces are those of the table, but for what programs outside only act on,
// and the caches of toolchains.
func (p *Paths) namedPlaces(more []string) namedPlaces {
	named := namedPlaces{paths: map[string]bool{}, patterns: map[string][]string{}}
	add := func(path string) {
		dir, name := filepath.Split(path)
		if dir = filepath.Clean(dir); strings.Contains(name, "*") {
			named.patterns[dir] = append(named.patterns[dir], name)
			return
		}
		named.paths[path] = true
	}
	for _, place := range p.table {
		if place.Class()&risks.Secret != 0 || place.Harmless {
			add(place.Path)
		}
	}
	for _, place := range p.All { // by their real paths
		add(place.Path)
	}
	for _, t := range toolchain.All {
		if t.Agent {
			continue // an agent keeps its sign-in there
		}
		for _, place := range t.Places {
			below, inHome := strings.CutPrefix(place.At, "~/")
			for _, home := range p.homes {
				if inHome {
					add(filepath.Join(home, below, place.Below))
				}
			}
		}
	}
	for _, path := range more {
		add(path)
	}
	return named
}

func (n namedPlaces) has(path string) bool {
	if n.paths[path] {
		return true
	}
	dir, name := filepath.Split(path)
	return slices.ContainsFunc(n.patterns[filepath.Clean(dir)], func(pattern string) bool {
		return policy.MatchName(pattern, name)
	})
}
