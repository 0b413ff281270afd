package settings

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// input is all that an evaluation is made of: the settings at one moment, and
// how the machine is asked. Nothing changes it.
type input struct {
	host       resolve.Host
	files      resolve.FS
	askGit     askGit         // nil: git is not asked
	user       []source.State // lowest first; the editor's is last
	project    *source.State  // nil without a project
	command    *source.State  // of the command line; nil if there is none
	granted    []addition     // until the sidecar ends, beside what any list holds
	projectDir string         // clean
	trust      *trust.List    // nil: nothing is trusted
	others     []string       // directories of projects that the store was asked about
	ownPaths   []string       // see Options.Guarded
	hostsGap   func() string  // see Options.HostsGap
}

// addition is an entry of a list that no file holds; see Store.Grant.
type addition struct{ Key, Value string }

// askGit asks git about its configuration in a project.
type askGit func(host resolve.Host, project string) git.Answer

// sameSettings reports whether two inputs of a store mean the same, as long
// as the machine gives the same answers.
func (s *input) sameSettings(other *input) bool {
	sameProject := s.project == nil && other.project == nil ||
		s.project != nil && other.project != nil && *s.project == *other.project
	return sameProject && s.projectDir == other.projectDir && slices.Equal(s.user, other.user) &&
		slices.Equal(s.granted, other.granted) && slices.Equal(s.others, other.others) &&
		s.trust.Equal(other.trust)
}

// recorded returns an input that notes all that its evaluation asks.
func (s *input) recorded() (*input, *resolve.Transcript) {
	files, transcript := resolve.Record(s.files)
	copied := *s
	copied.files = files
	if s.askGit != nil {
		copied.askGit = func(host resolve.Host, project string) git.Answer {
			answer := s.askGit(host, project)
			transcript.Also(func() bool { return slices.Equal(s.askGit(host, project), answer) })
			return answer
		}
	}
	if s.hostsGap != nil {
		copied.hostsGap = func() string {
			gap := s.hostsGap()
			transcript.Also(func() bool { return s.hostsGap() == gap })
			return gap
		}
	}
	return &copied, transcript
}

// byKind reports whether the settings distinguish the kinds of session.
func (s *input) byKind() bool {
	for _, state := range s.user {
		if state.Good.ByKind() || state.Bound.ByKind() {
			return true
		}
	}
	for _, entry := range s.granted {
		if kind, _ := document.SplitKey(entry.Key); kind != "" {
			return true
		}
	}
	return s.project != nil && s.project.Good.ByKind()
}

func (s *input) states() []source.State {
	states := slices.Clone(s.user)
	if s.project != nil {
		states = append(states, *s.project)
	}
	return states
}
