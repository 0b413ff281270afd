//go:build unix

package git

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// keptParent is what git said about a parent, with what that depends on.
type keptParent struct {
	parent Parent
	why    string
	state  map[string]textfile.Signature
	asked  time.Time
	steady bool // the state says whether the answer still holds
}

// Refuses says why a project does not belong to the parent that was found for
// it; "" if it does. It does not if git takes another repository there, refuses
// this one, or ignores the project, or if another user owns the repository.
// Without git nobody knows. The answer is kept while the files that it depends
// on are the same.
func (a *Asker) Refuses(host resolve.Host, project string, p Parent, answer Answer) string {
	if !fsguard.Local(project) || !fsguard.Local(p.Top) || !fsguard.Local(p.Dir) ||
		host.Home != "" && !fsguard.Local(host.Home) {
		return "it lies on a remote file system"
	}
	for _, path := range []string{p.Top, filepath.Join(p.Top, ".git"), p.Dir, p.own} {
		if why := another(path); why != "" {
			return why
		}
	}
	program := installed(host)
	if program == "" {
		return "git is not installed, or not in a directory of the system"
	}
	a.mu.Lock()
	before, found := a.parents[project]
	hung := a.hung[project] || a.hung[p.Top]
	a.mu.Unlock()
	switch {
	case hung:
		return noParentAnswer
	case found && before.why == noParentAnswer && time.Since(before.asked) < askAgain:
		return before.why
	case found && before.steady && before.parent == p && current(kept{state: before.state}):
		return before.why
	}
	now := keptParent{parent: p, asked: time.Now(), state: map[string]textfile.Signature{}, steady: true}
	for _, path := range append(p.ignores(host, project, answer), program) {
		state := signature(path)
		now.state[path], now.steady = state, now.steady && !state.Racy()
	}
	now.why = a.refuses(program, host, project, p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.parents == nil || len(a.parents) >= maxAnswers {
		a.parents = map[string]keptParent{}
	}
	a.parents[project] = now
	return now.why
}

const noParentAnswer = "git does not answer"

// another says that a path is not the user's own; "" if it is.
func another(path string) string {
	info, err := fsguard.Stat(path)
	if err != nil {
		return "it cannot be read"
	}
	if status, ok := info.Sys().(*syscall.Stat_t); !ok || int(status.Uid) != os.Geteuid() {
		return "another user owns it"
	}
	return ""
}

// ignores are the files on which it depends whether git ignores a project, and
// whether it takes the repository.
func (p Parent) ignores(host resolve.Host, project string, answer Answer) []string {
	files := []string{
		filepath.Join(p.Top, ".git"), filepath.Join(p.Dir, "config"), filepath.Join(p.own, "config.worktree"),
		filepath.Join(p.own, "HEAD"), filepath.Join(p.Dir, "info", "exclude"),
	}
	for dir := filepath.Dir(project); ; dir = filepath.Dir(dir) {
		files = append(files, filepath.Join(dir, ".gitignore"))
		if dir == p.Top {
			break
		}
	}
	for _, file := range userConfigurations(host) {
		// The default of core.excludesFile lies beside the configuration.
		files = append(files, file, filepath.Join(filepath.Dir(file), "ignore"))
	}
	g := &finder{view: resolve.NewView(resolve.OS), host: host}
	for _, one := range answer {
		files = append(files, one.file)
		if one.entry.Key == "core.excludesfile" {
			if path, ok := g.expand(p.Top, one.entry.Value); ok {
				files = append(files, path)
			}
		}
	}
	return files
}

// refuses asks git. Neither command runs a program, and the second one reads no
// index.
func (a *Asker) refuses(program string, host resolve.Host, project string, p Parent) string {
	out, status := a.run(program, []string{
		"git", "--no-pager", "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir",
	}, host, project)
	if status < 0 {
		return noParentAnswer
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if status != 0 || len(lines) != 3 {
		return "git refuses it"
	}
	view := resolve.NewView(resolve.OS)
	for i, want := range []string{p.Top, p.own, p.Dir} {
		path := lines[i]
		if !filepath.IsAbs(path) {
			path = filepath.Join(project, path)
		}
		if view.Resolve(path).Path != want {
			return "git takes another repository there"
		}
	}
	inside, err := filepath.Rel(p.Top, project)
	if err != nil {
		return "git takes another repository there"
	}
	_, status = a.run(program, []string{
		"git", "--no-pager", "-c", "core.fsmonitor=false", "check-ignore", "--no-index", "-q", "--", "./" + inside,
	}, host, p.Top)
	switch {
	case status == 1:
		return ""
	case status == 0:
		return Ignored
	case status < 0:
		return noParentAnswer
	}
	return "git refuses it"
}

// installed is the git that no session can have replaced; "" if there is none.
func installed(host resolve.Host) string {
	for _, path := range gitconfig.Programs[host.Platform] {
		if info, err := fsguard.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
