package effects

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // the names of git's objects
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// holding is what a ref, or an index, holds that is new.
type holding struct {
	ref   string
	files []file
}

// file is one whose content git holds, and that differs from all commits that
// were there before.
type file struct {
	path, mode string
	id         string // "" if there are several
}

// holdings asks git what the changed refs and indexes hold.
func (c *comparison) holdings(changes []change) []holding {
	indexes := c.indexes()
	refs := map[string][]string{} // of each object
	var tips []string
	for _, one := range changes {
		for _, tip := range one.tips {
			if refs[tip] == nil {
				if len(tips) == maxTips {
					c.unknown[one.name] = true
					continue
				}
				tips = append(tips, tip)
			}
			refs[tip] = append(refs[tip], one.name)
		}
	}
	if len(tips) == 0 && len(indexes) == 0 {
		return nil
	}
	ask, err := c.asker()
	files := map[string][]file{}
	if err == nil && len(tips) > 0 {
		files, err = c.contents(ask, tips, refs)
	}
	var list []holding
	for _, tip := range tips {
		for _, ref := range refs[tip] {
			found, known := files[tip]
			if err != nil || !known {
				c.unknown[ref] = true
			}
			list = append(list, holding{ref, found})
		}
	}
	for _, w := range indexes {
		found, failed := c.index(ask, w)
		if err != nil || failed != nil {
			c.unknown[c.prefix(w)+"index"] = true
		}
		list = append(list, holding{c.prefix(w) + "index", found})
	}
	return list
}

// indexes are the working trees whose index has changed.
func (c *comparison) indexes() []worktree {
	var list []worktree
	for _, w := range c.after.worktrees {
		same := slices.ContainsFunc(c.before.worktrees, func(was worktree) bool {
			return was.dir == w.dir && was.index == w.index
		})
		if !same && w.index != "" {
			list = append(list, w)
		}
	}
	return list
}

// index compares an index with the commit that is checked out, if that was there
// before, or else with the one that was checked out before.
func (c *comparison) index(ask asker, w worktree) ([]file, error) {
	if ask.program == "" {
		return nil, errNoGit
	}
	ask.dir = w.dir
	base := target(c.now, c.prefix(w), "HEAD")
	if !c.wasThere(base) {
		base = target(c.old, c.prefix(w), "HEAD")
	}
	if base == "" {
		base = c.emptyTree()
	}
	out, err := ask.run("", "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev",
		"--ignore-submodules=none", base, "--")
	return c.differences(out)[""], err
}

// wasThere reports whether a ref led to an object before, or to a commit of whose
// history it is.
func (c *comparison) wasThere(id string) bool {
	for name, text := range c.old {
		if slices.Contains(ids(name, text), id) {
			return true
		}
	}
	commit, known := c.commits[id]
	if !known {
		return false
	}
	_, isNew := c.new.parents[commit]
	return !isNew
}

// emptyTree is the name of the tree without entries.
func (c *comparison) emptyTree() string {
	for _, values := range []map[string]string{c.old, c.now} {
		for name, text := range values {
			if list := ids(name, text); len(list) > 0 && len(list[0]) == 64 {
				return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
			}
		}
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// contents asks what each object holds that none of the old ones holds at the
// same path. An object that is missing is not in the result.
func (c *comparison) contents(ask asker, tips []string, refs map[string][]string) (map[string][]file, error) {
	commits, trees, err := peel(ask, tips)
	if err != nil {
		return nil, err
	}
	g, err := c.graph(ask, commits)
	if err != nil {
		return nil, err
	}
	c.commits, c.new = commits, g
	of := map[string][]string{}      // what is compared for each tip
	questions := map[string]string{} // for each of those
	for _, tip := range tips {
		commit, isCommit := commits[tip]
		tree, isTree := trees[tip]
		if !isCommit {
			if isTree {
				of[tip], questions[tree] = []string{tree}, c.emptyTree()+" "+tree
			}
			continue
		}
		of[tip] = []string{}
		parts := []string{commit}
		if slices.ContainsFunc(refs[tip], isStash) {
			// The index, and the untracked files, are commits of their own.
			parts = append(parts, g.parents[commit]...)
		}
		for _, part := range parts {
			if _, isNew := g.parents[part]; !isNew {
				continue // an old ref leads to it
			}
			id, question := part, strings.Join(append([]string{part}, g.bases(part)...), " ")
			if question == part { // nothing in its history is old
				id, question = g.trees[part], c.emptyTree()+" "+g.trees[part]
			}
			of[tip], questions[id] = append(of[tip], id), question
		}
	}
	differences := map[string][]file{}
	if len(questions) > 0 {
		lines := strings.Join(slices.Sorted(maps.Values(questions)), "\n") + "\n"
		out, err := ask.run(lines, "diff-tree", "--stdin", "-c", "-r", "--raw", "-z", "--no-renames", "--no-abbrev",
			"--ignore-submodules=none")
		if err != nil {
			return nil, err
		}
		differences = c.differences(out)
	}
	files := map[string][]file{}
	for tip, parts := range of {
		files[tip] = nil
		for _, part := range parts {
			files[tip] = append(files[tip], differences[part]...)
		}
	}
	return files, nil
}

func isStash(ref string) bool {
	return ref == "refs/stash" || ref == stashLog || strings.HasSuffix(strings.ToLower(ref), "autostash")
}

// peel asks which commit, or which tree, each object leads to. One that is
// missing is in neither. A blob is in trees as "".
func peel(ask asker, tips []string) (commits, trees map[string]string, err error) {
	var lines strings.Builder
	for _, tip := range tips {
		lines.WriteString(tip + "^{commit}\n" + tip + "^{tree}\n")
	}
	out, err := ask.run(lines.String(), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, nil, err
	}
	answers := strings.Split(out, "\n")
	if len(answers) < 2*len(tips) {
		return nil, nil, errShort
	}
	commits, trees = map[string]string{}, map[string]string{}
	for i, tip := range tips {
		if id := answers[2*i]; isID(id) {
			commits[tip] = id
		} else if id := answers[2*i+1]; isID(id) {
			trees[tip] = id
		}
	}
	return commits, trees, nil
}

// graph are the commits that no ref led to before.
type graph struct {
	parents map[string][]string
	trees   map[string]string
	old     map[string]bool // the commits at which they begin
}

// graph asks for the history of commits.
func (c *comparison) graph(ask asker, commits map[string]string) (graph, error) {
	g := graph{map[string][]string{}, map[string]string{}, map[string]bool{}}
	if len(commits) == 0 {
		return g, nil
	}
	var lines []string
	for _, commit := range commits {
		lines = append(lines, commit)
	}
	slices.Sort(lines)
	known := map[string]bool{}
	names := slices.SortedFunc(maps.Keys(c.old), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	for _, name := range names {
		for _, id := range ids(name, c.old[name]) {
			if len(known) < maxKnown && !known[id] {
				known[id] = true
				lines = append(lines, "^"+id)
			}
		}
	}
	// --ignore-missing is for the old ones: the new ones are there.
	out, err := ask.run(strings.Join(lines, "\n")+"\n", "rev-list", "--ignore-missing", "--stdin", "--boundary",
		"--parents", "--format=%T", "--max-count="+strconv.Itoa(maxCommits))
	if err != nil {
		return g, err
	}
	listed := strings.Split(out, "\n")
	for i := 0; i+1 < len(listed); i += 2 {
		fields := strings.Fields(listed[i])
		if len(fields) < 2 || fields[0] != "commit" {
			return g, errShort
		}
		if old, is := strings.CutPrefix(fields[1], "-"); is {
			g.old[old] = true
			continue
		}
		g.parents[fields[1]], g.trees[fields[1]] = fields[2:], listed[i+1]
	}
	if len(g.parents) < maxCommits {
		return g, nil
	}
	return g, errMuch
}

// bases are the old commits at which the history of a new one begins.
func (g graph) bases(commit string) []string {
	var list []string
	seen := map[string]bool{commit: true}
	for queue := []string{commit}; len(queue) > 0 && len(list) < maxBases; {
		at := queue[0]
		queue = queue[1:]
		if g.old[at] {
			list = append(list, at)
			continue
		}
		for _, parent := range g.parents[at] {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return list
}

// differences reads what "git diff-tree --raw -z" prints, by the object that it
// is about. It leaves out what is removed, and what nobody acts upon.
func (c *comparison) differences(out string) map[string][]file {
	all := map[string][]file{}
	about := ""
	for fields := strings.Split(out, "\x00"); len(fields) > 1; {
		entry := fields[0]
		if at := strings.LastIndexByte(entry, '\n'); at >= 0 { // behind two trees
			about, entry = last(entry[:at]), entry[at+1:]
		}
		if !strings.HasPrefix(entry, ":") {
			about, fields = last(entry), fields[1:]
			continue
		}
		path := fields[1]
		fields = fields[2:]
		parents := len(entry) - len(strings.TrimLeft(entry, ":"))
		words := strings.Fields(strings.TrimLeft(entry, ":"))
		if len(words) != 2*parents+3 {
			continue
		}
		f := file{path: path, mode: words[parents], id: words[2*parents+1]}
		wasLink := slices.Contains(words[:parents], modeLink)
		switch status := words[len(words)-1]; {
		case strings.Contains(status, "U"):
			f.mode, f.id = "", "" // in conflict: there are several
		case f.mode == "000000":
			continue
		}
		if f.mode == modeLink && !wasLink || f.mode != modeLink && c.acts(c.tree, path) {
			all[about] = append(all[about], f)
		}
	}
	return all
}

const (
	modeLink    = "160000"
	modeSymlink = "120000"
)

func last(head string) string { return head[strings.LastIndexByte(head, ' ')+1:] }

// stored adds the files of the holdings. Refs that hold the same are one effect.
func (c *comparison) stored(held []holding) {
	type key struct{ files, links string }
	by := map[key][]string{}
	var order []key
	for _, one := range held {
		var files, links []string
		for _, f := range one.files {
			switch path := filepath.Join(c.tree, f.path); {
			case f.mode == modeLink:
				links = append(links, path)
			case !c.inPlace(f, path):
				files = append(files, path)
			}
		}
		slices.Sort(files)
		slices.Sort(links)
		k := key{strings.Join(slices.Compact(files), "\x00"), strings.Join(slices.Compact(links), "\x00")}
		if k == (key{}) {
			continue
		}
		if by[k] == nil {
			order = append(order, k)
		}
		if word := named(one.ref); !slices.Contains(by[k], word) {
			by[k] = append(by[k], word)
		}
	}
	for _, k := range order {
		words := by[k]
		text := strings.Join(words[:min(len(words), maxNamed)], ", ")
		if more := len(words) - maxNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		if k.files != "" {
			c.add(Stored, text, strings.Split(k.files, "\x00"))
		}
		if k.links != "" {
			c.add(Linked, text, strings.Split(k.links, "\x00"))
		}
	}
}

const (
	maxNamed  = 3       // refs that an effect names
	maxHashed = 4 << 20 // bytes of a file that is compared with what git holds
)

// inPlace reports whether a file of the working tree is what git holds: then
// nothing new can come there, and the review has judged it. When time is up it
// looks at no more files: a session may have stored as many as git can list.
func (c *comparison) inPlace(f file, path string) bool {
	if time.Now().After(c.end) || stopped(c.stop) {
		return false
	}
	var data []byte
	switch info, err := fsguard.Lstat(path); {
	case err != nil || f.id == "":
		return false
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := fsguard.ReadlinkPlain(path)
		if err != nil || f.mode != modeSymlink {
			return false
		}
		data = []byte(target)
	default:
		found, err := fsguard.ReadFile(path, maxHashed)
		if err != nil || found.Data == nil || len(found.Data) > maxHashed || f.mode == modeSymlink {
			return false
		}
		data = found.Data
	}
	head := fmt.Appendf(nil, "blob %d\x00", len(data))
	if len(f.id) == 64 {
		sum := sha256.Sum256(append(head, data...))
		return hex.EncodeToString(sum[:]) == f.id
	}
	sum := sha1.Sum(append(head, data...)) //nolint:gosec // as git does
	return hex.EncodeToString(sum[:]) == f.id
}

// forward reports whether a branch was only continued.
func (c *comparison) forward(was, is string) bool {
	was, _ = cutID(was)
	is, _ = cutID(is)
	if commit, known := c.commits[is]; known {
		if _, isNew := c.new.parents[commit]; isNew {
			return slices.Contains(c.new.bases(commit), was)
		}
	}
	if was == "" || is == "" {
		return false
	}
	ask, err := c.asker()
	if err != nil {
		return false
	}
	_, err = ask.run("", "merge-base", "--is-ancestor", was, is)
	return err == nil
}
