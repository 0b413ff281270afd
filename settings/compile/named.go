package compile

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/startup"
)

// Built-in origins of grants of files that others name: the user's configuration
// of git, and start-up files of shells.
const (
	namedByGitKey   = "git configuration"
	namedByShellKey = "start-up files"
)

// named is a file that files of the user's name.
type named struct {
	path string // symlinks in it are not followed
	// dir: path is a directory that shells list, to find the files of a pattern.
	dir bool
	// certificates: it counts only if it holds certificates and no private key. It
	// may be a directory.
	certificates bool
	// by are the files that lead to it, the first one that programs read of
	// themselves.
	by       []string
	key, why string
}

// namedFiles grants what the user's configuration of git and the start-up files
// of shells name for reading, as far as granted does not open it already: without
// it, every command of git and every login shell ends with an error. A file that
// is secret stays closed, and so does what a session may have named.
func namedFiles(view fsView, granted outside) (list []grant) {
	if view.host.Home == "" {
		return nil
	}
	for _, file := range slices.Concat(namedByGit(view), namedByShells(view, granted), namedByOthers(view)) {
		target := view.Resolve(file.path)
		_, hidden := granted.index.HiddenAt(target.Path)
		if target.Err != nil || !target.Exists || hidden || granted.at(target.Path).Has(policy.Read) ||
			view.sensitive.Holds(target.Path) != "" {
			continue
		}
		counts := target.Mode.IsRegular() || file.dir && target.Mode.IsDir()
		if file.certificates { // they are large, and mostly in /etc, which is open
			counts = view.noCertificates(target.Path, target.Mode) == ""
		}
		if !counts {
			continue
		}
		var by []string
		links := target.Links
		for _, name := range file.by {
			from := view.Resolve(name)
			by, links = append(by, from.Path), slices.Concat(links, from.Links)
		}
		list = append(list, grant{path: target.Path, links: links, namedBy: by, request: request{
			text: file.path, access: policy.Read,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: file.key, Reason: file.why},
		}})
	}
	return list
}

func namedByGit(view fsView) (list []named) {
	for _, file := range git.NamedFiles(view.View, view.host) {
		list = append(list, named{
			path: file.Path, by: file.By, key: namedByGitKey, why: file.Key + " names it",
			certificates: file.Certificates,
		})
	}
	return list
}

// Bounds of the search for files that start-up files name.
const (
	maxSourced     = 256
	maxSourceDepth = 8
)

// sourcing is a start-up file of a shell, or a file that one sources.
type sourcing struct {
	file string
	// pattern: all files that match the last name of file are sourced. matched: it
	// is one of those. wide: see startup.Source.
	pattern, matched, wide bool
	// by are the files that lead to it, the start-up file first. There are none if
	// it is that.
	by []string
}

// files are those that a pattern stands for now.
func (s sourcing) files(view fsView) (list []sourcing) {
	dir, pattern := filepath.Split(s.file)
	for _, name := range view.names(view.Resolve(dir).Path) {
		if policy.MatchName(pattern, name) && strings.HasPrefix(name, ".") == strings.HasPrefix(pattern, ".") {
			list = append(list, sourcing{file: filepath.Join(dir, name), matched: true, wide: s.wide, by: s.by})
		}
	}
	return list
}

// directories are those that a path with patterns stands for. "**" stands for one,
// and for none. whole is false if there are more.
func (v fsView) directories(pattern string) (list []string, whole bool) {
	const several = "/**"
	patterns := []string{pattern}
	if without := strings.ReplaceAll(pattern, several, ""); without != pattern {
		patterns = append(patterns, without)
	}
	whole = true
	for _, one := range patterns {
		g := globber{view: v, left: maxGlob, dirs: true}
		list = append(list, g.find(one)...)
		whole = whole && g.left >= 0
	}
	return list, whole
}

// eachSourced visits start-up files, what they source, and what that does, each
// file once. visit gets the text of a readable file, and says whether that counts.
// It gets a pattern before its files. whole is false if a bound left something out.
func eachSourced(
	view fsView, home string, start []string, visit func(one sourcing, at resolve.Target, text string, read bool) bool,
) (whole bool) {
	var queue []sourcing
	for _, file := range start {
		queue = append(queue, sourcing{file: file})
	}
	seen := map[string]bool{}
	whole = true
	for visited := 0; len(queue) > 0; {
		if visited == maxSourced {
			// What a pattern stands for is protected by it.
			return whole && !slices.ContainsFunc(queue, func(one sourcing) bool { return !one.matched })
		}
		next := queue[0]
		queue = queue[1:]
		if next.pattern && next.wide && strings.Trim(filepath.Base(next.file), ".*") == "" {
			// A pattern for all would close the directory. Only its files count.
			for _, one := range next.files(view) {
				one.matched = false
				queue = append(queue, one)
			}
			visited++
			continue
		}
		if next.pattern {
			visit(next, view.Resolve(filepath.Dir(next.file)), "", false)
			visited++
			if next.wide { // most of them no shell reads
				queue = append(queue, next.files(view)...)
			} else {
				queue = append(next.files(view), queue...)
			}
			continue
		}
		target := view.Resolve(next.file)
		if seen[target.Path] {
			continue
		}
		seen[target.Path] = true
		var text []byte
		read := target.Exists && target.Mode.IsRegular()
		if read {
			var err error
			text, err = view.FS.ReadFile(target.Path)
			read = err == nil
		}
		if !visit(next, target, string(text), read) {
			continue
		}
		if len(next.by) > 0 {
			visited++
		}
		by := append(slices.Clone(next.by), next.file)
		for _, one := range startup.Sourced(string(text), home) {
			if len(by) > maxSourceDepth {
				whole = false
				break
			}
			found := sourcing{file: one.Path, pattern: one.Pattern, wide: one.Wide || next.wide, by: by}
			if !one.Deep {
				queue = append(queue, found)
				continue
			}
			dir, name := filepath.Split(one.Path)
			dirs, all := view.directories(filepath.Clean(dir))
			whole = whole && all
			for _, dir := range dirs {
				found.file, found.wide = filepath.Join(dir, name), true
				queue = append(queue, found)
			}
		}
	}
	return whole
}

// namedByShells lists what the start-up files source that sessions may read. A
// file that is private to the user, or that assigns what looks like a secret,
// is left out, and so is all that it names.
func namedByShells(view fsView, granted outside) (list []named) {
	var start []string
	for _, name := range sensitive.StartupFiles {
		file := filepath.Join(view.host.Home, name)
		if granted.at(view.Resolve(file).Path).Has(policy.Read) {
			start = append(start, file)
		}
	}
	var patterns []sourcing
	counts := map[string]bool{} // the files of list, by their names
	eachSourced(view, view.host.Home, start, func(one sourcing, at resolve.Target, text string, read bool) bool {
		const others = 0o077
		if len(one.by) == 0 {
			return true
		}
		if one.wide {
			return false // it may be a file that no shell reads
		}
		if one.pattern {
			patterns = append(patterns, one)
		}
		if !read || at.Mode&others == 0 || len(text) > sensitive.MaxStartupFile ||
			sensitive.MayHoldSecret(at.Path, text) {
			return false
		}
		counts[one.file] = true
		list = append(list, named{
			path: one.file, by: one.by, key: namedByShellKey, why: "a start-up file names it",
		})
		return true
	})
	for _, one := range patterns {
		// The shell lists the directory. Sessions may, if it holds nothing else.
		dir := filepath.Dir(one.file)
		names := view.names(view.Resolve(dir).Path)
		others := func(name string) bool { return !counts[filepath.Join(dir, name)] }
		if len(names) > 0 && !slices.ContainsFunc(names, others) {
			list = append(list, named{
				path: dir, dir: true, by: one.by, key: namedByShellKey, why: "a start-up file sources what is in it",
			})
		}
	}
	return list
}

// sourcedFiles keeps what start-up files source, what ssh's configuration includes,
// and what symlinks beside such files lead to, for all evaluations of a snapshot.
type sourcedFiles struct {
	known  bool
	places []sourcedPlace
	whole  bool // see eachSourced
}

// sourcedPlace is a path in a real directory that a program reads because a file of
// the user's names it, what such a path leads to, or a symlink on the way.
type sourcedPlace struct {
	path    string
	pattern bool // the last name has "*"
	// reason says who reads it, and acts what follows.
	reason, acts string
	// open: it is not protected, since sessions have good reasons to write it.
	// Advice warns of it, and it is reviewed.
	open bool
	// secret is what it holds, and shown, as in risks.Place.
	secret string
	shown  bool
}

// onTheWay is the reason of a symlink to a directory that is not protected itself.
const onTheWay = "what they read is reached by it"

// onlyWay is a target whose symlinks are all on the way.
func onlyWay(target resolve.Target) resolve.Target { return resolve.Target{Links: target.Links} }

// sourced finds it, in every home directory and whoever may read it.
func (v fsView) sourced() *sourcedFiles {
	s := v.startup
	if s.known {
		return s
	}
	s.known, s.whole = true, true
	known := map[sourcedPlace]bool{}
	add := func(one sourcedPlace, on ...resolve.Target) {
		list := []sourcedPlace{one}
		for _, target := range on {
			for _, link := range target.Links {
				place := one
				place.path, place.pattern = link.Path, false
				if v.Resolve(link.Path).Path != target.Path {
					place.reason = onTheWay
				}
				list = append(list, place)
			}
		}
		for _, place := range list {
			if !known[place] {
				known[place] = true
				s.places = append(s.places, place)
			}
		}
	}
	const byShells, acts = "shells read it when they start", "your shells run it when they start"
	mentioned := mentions{view: v, seen: map[string]bool{}}
	for _, home := range v.host.Homes() {
		var start []string
		for _, name := range sensitive.StartupFiles {
			start = append(start, filepath.Join(home, name))
		}
		whole := eachSourced(v, home, start, func(one sourcing, at resolve.Target, text string, _ bool) bool {
			if len(one.by) <= 1 { // itself, or sourced by one
				mentioned.add(one.file, startup.Mentioned(text, home), true)
				mentioned.load(one.file, startup.Mentioned(startup.Loads(one.file, text), home))
			}
			name := v.inGrant(one.file)
			switch {
			case len(one.by) == 0: // the table has it
			case one.pattern:
				add(sourcedPlace{
					path: filepath.Join(at.Path, filepath.Base(one.file)), pattern: true, reason: byShells, acts: acts,
				}, onlyWay(at))
			case one.matched && at.Path == name: // the pattern protects it
			case v.isActivation(at.Path):
				add(sourcedPlace{path: at.Path, acts: acts, open: true})
				for _, link := range at.Links {
					add(sourcedPlace{path: link.Path, reason: onTheWay, acts: acts})
				}
			default:
				add(sourcedPlace{path: name, reason: byShells, acts: acts}, at)
				add(sourcedPlace{path: at.Path, reason: byShells, acts: acts})
			}
			return true
		})
		s.whole = s.whole && whole
	}
	mentioned.settings()
	for _, path := range v.includedBySSH() {
		const bySSH, acts = "ssh reads it", "ssh outside runs the programs that it names"
		target := v.Resolve(path)
		dir, name := filepath.Split(path)
		if strings.Contains(name, "*") {
			target = v.Resolve(dir)
			add(sourcedPlace{
				path: filepath.Join(target.Path, name), pattern: true, reason: bySSH, acts: acts,
			}, onlyWay(target))
			continue
		}
		add(sourcedPlace{path: v.inGrant(path), reason: bySSH, acts: acts}, target)
		add(sourcedPlace{path: target.Path, reason: bySSH, acts: acts})
	}
	sourced := map[string]bool{}
	for _, one := range s.places {
		sourced[one.path] = true
	}
	for _, one := range mentioned.list {
		if !sourced[one.place.path] {
			add(one.place, one.target)
		}
	}
	for _, one := range v.sensitive.Linked(v.View) {
		reason := display.Quote(one.Path) + " leads there"
		target := one.Target
		target.Links = slices.DeleteFunc(slices.Clone(target.Links), func(link resolve.Link) bool {
			return link.Path == one.Path // its directory is a place itself
		})
		acts := one.Acts
		if one.Program {
			acts = reason + ", and " + acts
		}
		if one.Secret != "" {
			add(sourcedPlace{path: target.Path, acts: acts, open: true, secret: one.Secret, shown: one.Shown})
			continue
		}
		add(sourcedPlace{path: target.Path, reason: reason, acts: acts, open: one.Program}, target)
	}
	return s
}

// isActivation reports whether a file is the script of a virtual environment of
// Python (venv). A session that makes the environment anew writes it, and could not
// remove the directory if it was protected.
func (v fsView) isActivation(path string) bool {
	dir, name := filepath.Split(path)
	return strings.HasPrefix(name, "activate") && filepath.Base(dir) == "bin" &&
		v.isFile(v.Resolve(filepath.Join(filepath.Dir(filepath.Clean(dir)), "pyvenv.cfg")))
}

// actingNames are the places that programs outside act on because files of the
// user's name them: what shells source at their start, what ssh includes, what the
// user's and the project's configuration of git leads to, and what symlinks beside
// such files do. Some of those hold secrets.
func (v fsView) actingNames(repository git.Repository) []risks.Place {
	var list []risks.Place
	add := func(path, acts string) { list = append(list, risks.Place{Path: path, Acts: acts}) }
	for _, one := range v.sourced().places {
		list = append(list, risks.Place{Path: one.path, Acts: one.acts, Secret: one.secret, Shown: one.shown})
	}
	for _, path := range repository.Elsewhere {
		if v.Resolve(path).Mode.IsDir() {
			add(path, "git outside runs the hooks in it")
		} else {
			add(path, "git outside runs the programs that it names")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(repository.Programs)) {
		add(path, "git outside runs it, as "+repository.Programs[path]+" says")
	}
	return list
}

// includedBySSH are the files that the user's configuration of ssh includes.
func (v fsView) includedBySSH() (list []string) {
	for _, home := range v.host.Homes() {
		config := v.Resolve(filepath.Join(home, ".ssh", "config"))
		if config.Err == nil && config.Exists {
			names := v.sshConfig(config.Path)
			list = slices.Concat(list, names.Included, names.Widened)
		}
	}
	return list
}

// namedPaths are the real paths of the files that the user's configuration of
// git names, but for what a session may have named. Of certificates only those in a
// home directory matter, where private files are looked for.
func namedPaths(view fsView, writable cover) (list []string) {
	homes := view.RealHomes(view.host)
	for _, file := range namedByGit(view) {
		target := view.Resolve(file.path)
		inHome := slices.ContainsFunc(homes, func(home string) bool { return policy.Contains(home, target.Path) })
		if file.certificates && (!inHome || view.noCertificateFile(target.Path, target.Mode) != "") {
			continue // what is private there stays hidden
		}
		links := target.Links
		steady := true
		for _, name := range file.by {
			from := view.Resolve(name)
			steady, links = steady && !writable.at(from.Path).Has(policy.Write), slices.Concat(links, from.Links)
		}
		for _, link := range links {
			steady = steady && !writable.at(link.Dir).Has(policy.Write)
		}
		if steady {
			list = append(list, target.Path)
		}
	}
	return list
}
