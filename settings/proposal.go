package settings

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// Proposal is an entry that may be written into a settings file, as the file is
// now. Only the store that made it can write it.
type Proposal struct {
	// File is the settings file, as the user names it.
	File string
	// Suggestion is what is added.
	Suggestion explain.Suggestion
	// Present: the list has the entry already, and nothing would be written.
	Present bool
	// Lines are the lines of the file that would be new or other than now.
	Lines []string
	// Gone are the lines that would not be there any more. What a comma alone
	// changes is neither.
	Gone []string

	project  string // whose file it is; "" for a file of the user's
	snapshot *compile.Snapshot
	dir      string // real, of the file; the project's directory for its file
	order    order
	planned  change // what was read, and what would be written
}

// mostAdditions bounds how often an addition is made because its file has changed
// between the snapshot and the reading.
const mostAdditions = 20

// Propose says what Confirm would write into the settings of a scope. It writes
// nothing. The error is as of Allowable, or that the file cannot be changed.
func (s *Store) Propose(scope Scope, projectDir string, suggestion explain.Suggestion) (*Proposal, error) {
	var p *Proposal
	err := untilSame(func() (err error) {
		p, err = s.proposal(scope, projectDir, suggestion)
		return err
	})
	return p, err
}

// untilSame calls make until its file has not changed meanwhile.
func untilSame(make func() error) (err error) {
	for range mostAdditions {
		if err = make(); !errors.Is(err, ErrChanged) {
			break
		}
	}
	return err
}

// proposal is Propose for a file that stays as it is meanwhile.
func (s *Store) proposal(scope Scope, projectDir string, suggestion explain.Suggestion) (*Proposal, error) {
	p, err := s.addition(scope, projectDir, suggestion)
	if err != nil || p.Present {
		return p, err
	}
	order := p.order
	order.Dry = true
	if p.planned, err = p.do(order); err != nil {
		return nil, p.failed(err)
	}
	before, after := string(p.planned.Before.Data), string(p.planned.After.Data)
	if p.Lines = newLines(before, after); p.order.Drop != nil {
		p.Gone, p.Lines = without(before, after), without(after, before)
	}
	return p, nil
}

// Confirm writes a proposal, only if the file is still what it was: otherwise the
// error is ErrChanged. Undo takes it back.
func (s *Store) Confirm(p *Proposal) error {
	if p.Present {
		return nil
	}
	return s.write(p)
}

// With returns the settings as they would be with a proposal that Propose has
// made.
func (s *Store) With(p *Proposal) *compile.Snapshot {
	if p.Present {
		return p.snapshot
	}
	in := p.snapshot.Input
	after := p.planned.After
	block, problem := document.Decode(after.Data, s.options.Platform, source.OwnerOf(p.File))
	fresh := source.State{
		File: p.File, Exists: true, Read: true, Digest: after.sum(), Good: block, Problem: problem,
	}
	if p.project != "" {
		in.ProjectState = &fresh
		projects := in.Trust.With(trust.Project{Path: p.snapshot.Project().Dir, Digest: after.digest()})
		in.Trust = &trust.List{Path: in.Trust.Path, Projects: projects}
		return compile.New(in, nil, s.options.Complete)
	}
	in.UserStates = slices.Clone(in.UserStates)
	for i, state := range in.UserStates {
		if state.File == p.File {
			fresh.Required = state.Required
			in.UserStates[i] = fresh
		}
	}
	return compile.New(in, nil, s.options.Complete)
}

// addition is a proposal of which nothing was read yet.
func (s *Store) addition(scope Scope, projectDir string, suggestion explain.Suggestion) (*Proposal, error) {
	snapshot := s.Snapshot(projectDir)
	if err := Allowable(snapshot, scope, suggestion); err != nil {
		return nil, err
	}
	kind, name := snapshot.KindOf(suggestion.Key)
	merged := snapshot.MergedFor(kind)
	base := merged.List(name)
	p := &Proposal{Suggestion: suggestion, snapshot: snapshot, Present: slices.Contains(base, suggestion.Value)}
	p.order = order{Platform: s.options.Platform, Add: &entry{suggestion.Key, suggestion.Value, base}}
	p.order.Drop = needless(snapshot, suggestion)
	if scope == ScopeProject {
		p.File, p.project, p.dir = snapshot.ProjectState.File, projectDir, snapshot.ProjectDir
		p.order.Name, p.order.Project = "settings.json", true
		// What is written is trusted, so it is added to that content and no other.
		p.order.Expect = content{}.digest()
		if shown := snapshot.Project(); shown.Exists {
			p.order.Expect = shown.Digest
		}
		return p, nil
	}
	var err error
	if p.File, err = fileOfUser(snapshot, suggestion.Key); err != nil {
		return nil, err
	}
	// Another shell may write the same entry before the file is read.
	p.order.Expect = digestOf(snapshot.UserStates, p.File)
	// If the file is a symlink, as dotfile managers make it, its target is
	// replaced.
	real, err := fsguard.EvalSymlinks(p.File)
	if errors.Is(err, fs.ErrNotExist) {
		real, err = p.File, nil
	}
	p.dir, p.order.Name = filepath.Dir(real), filepath.Base(real)
	return p, err
}

// digestOf is the digest of a file as states know it.
func digestOf(states []source.State, file string) string {
	for _, state := range states {
		if state.File == file && state.Exists {
			return hex.EncodeToString(state.Digest[:])
		}
	}
	return content{}.digest()
}

// needless is the entry for reading of a path that a suggestion grants for writing.
// Beside that it would only say what is not so. nil: there is none. In another file
// it stays.
func needless(snapshot *compile.Snapshot, suggestion explain.Suggestion) *entry {
	const write, read = "additional_read_write_paths", "additional_read_only_paths"
	block, is := strings.CutSuffix(suggestion.Key, write)
	path, err := snapshot.Host.Expand(suggestion.Value, "")
	if !is || err != nil {
		return nil
	}
	kind, _ := snapshot.KindOf(suggestion.Key)
	// Where one kind of session has a list for writing alone, it would lose reading.
	for _, each := range []document.Kind{document.KindTool, document.KindTerminal} {
		if (snapshot.KeyFor(each, read) == block+read) != (snapshot.KeyFor(each, write) == suggestion.Key) {
			return nil
		}
	}
	merged := snapshot.MergedFor(kind)
	for _, value := range merged.List(read) {
		if same, err := snapshot.Host.Expand(value, ""); err == nil && filepath.Clean(same) == filepath.Clean(path) {
			return &entry{Key: block + read, Value: value}
		}
	}
	return nil
}

// write writes a proposal, and remembers what was there.
func (s *Store) write(p *Proposal) error {
	unlock, err := s.lockAllowing()
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	defer unlock()
	if p.project == "" {
		if err := fsguard.MkdirAll(p.dir, 0o700); err != nil {
			return p.failed(err)
		}
	}
	done, err := p.do(p.order)
	if err != nil {
		return p.failed(err)
	}
	last := lastAllowed{
		File: []byte(p.File), Dir: []byte(p.dir), Name: []byte(p.order.Name),
		Project: []byte(p.project), Key: p.Suggestion.Key, Value: []byte(p.Suggestion.Value), Before: done.Before,
		After: done.After.digest(), At: time.Now().UTC(),
	}
	if shown := p.snapshot.Project(); p.project != "" && shown.Trusted {
		last.Trusted = shown.Digest
	}
	if err := s.rememberLast(last); err != nil {
		s.log.Info("what was allowed cannot be taken back by allow --undo", "error", err)
	}
	s.sources.State(p.File) // so that the next denial is answered by the new content
	s.note(p.snapshot.ProjectDir, allowed(p.Suggestion, p.File))
	if p.project == "" {
		return nil
	}
	_, err = s.Trust(p.project, done.After.digest())
	return err
}

// do carries an order out.
func (p *Proposal) do(what order) (change, error) { return what.carryOut(p.dir) }

// failed says which file could not be written, and why.
func (p *Proposal) failed(err error) error {
	what := "write settings"
	if p.project != "" {
		what = "write the project's settings"
	}
	return fmt.Errorf("%s: %s: %w", what, display.Quote(p.File), err)
}

// newLines are the lines of a text that are not at the same place in the one
// before, counted from the start and from the end.
func newLines(before, after string) []string {
	was, now := linesOf(before), linesOf(after)
	for len(was) > 0 && len(now) > 0 && was[0] == now[0] {
		was, now = was[1:], now[1:]
	}
	for len(was) > 0 && len(now) > 0 && was[len(was)-1] == now[len(now)-1] {
		was, now = was[:len(was)-1], now[:len(now)-1]
	}
	if len(was) > 0 && len(now) > 1 && now[0] == was[0]+"," {
		return now[1:] // the comma is of the new line
	}
	return now
}

func linesOf(text string) []string {
	text = strings.TrimSuffix(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// without are the lines of a text that another one has not, wherever they are. A
// comma at the end makes none another.
func without(text, other string) (lines []string) {
	bare := func(line string) string { return strings.TrimSuffix(line, ",") }
	has := map[string]int{}
	for _, line := range linesOf(other) {
		has[bare(line)]++
	}
	for _, line := range linesOf(text) {
		if has[bare(line)]--; has[bare(line)] < 0 {
			lines = append(lines, line)
		}
	}
	return lines
}
