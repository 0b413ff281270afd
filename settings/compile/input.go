package compile

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// Input is all that an evaluation is made of: the settings at one moment, and
// how the machine is asked. Nothing changes it.
type Input struct {
	Host         resolve.Host
	FS           resolve.FS
	AskGit       AskGit         // nil: git is not asked
	AskParent    AskParent      // nil: no repository above the project counts
	UserStates   []source.State // lowest first; the editor's is last
	ProjectState *source.State  // nil without a project
	Command      *source.State  // of the command line; nil if there is none
	Agent        *Agent         // that the command line names; nil if it names none
	Granted      []Addition     // beside what any list holds
	ProjectDir   string         // as it was named, clean; "" if there is none
	Trust        *trust.List    // nil: nothing is trusted
	Others       []string       // directories of other projects, in which sessions may have been
	OwnPaths     []string       // that no grant may open to sessions for writing; absolute
	// HostsGap says why this machine cannot tell hosts apart; "" if it can. It is
	// called only if it matters. May be nil.
	HostsGap func() string
}

// Addition is an entry of a list that no file holds.
type Addition struct{ Key, Value string }

// AskGit asks git about its configuration in a project.
type AskGit func(host resolve.Host, project string) git.Answer

// AskParent asks git why a project does not belong to the repository above it;
// "" if it does.
type AskParent func(host resolve.Host, project string, parent git.Parent, answer git.Answer) string

// sameSettings reports whether two inputs of a store mean the same, as long
// as the machine gives the same answers.
func (s *Input) sameSettings(other *Input) bool {
	sameProject := s.ProjectState == nil && other.ProjectState == nil ||
		s.ProjectState != nil && other.ProjectState != nil && *s.ProjectState == *other.ProjectState
	return sameProject && s.ProjectDir == other.ProjectDir && slices.Equal(s.UserStates, other.UserStates) &&
		slices.Equal(s.Granted, other.Granted) && slices.Equal(s.Others, other.Others) &&
		s.Trust.Equal(other.Trust)
}

// recorded returns an input that notes all that its evaluation asks.
func (s *Input) recorded() (*Input, *resolve.Transcript) {
	files, transcript := resolve.Record(s.FS)
	copied := *s
	copied.FS = files
	if s.AskGit != nil {
		copied.AskGit = func(host resolve.Host, project string) git.Answer {
			answer := s.AskGit(host, project)
			transcript.Also(func() bool { return slices.Equal(s.AskGit(host, project), answer) })
			return answer
		}
	}
	if s.AskParent != nil {
		copied.AskParent = func(host resolve.Host, project string, parent git.Parent, answer git.Answer) string {
			why := s.AskParent(host, project, parent, answer)
			transcript.Also(func() bool { return s.AskParent(host, project, parent, answer) == why })
			return why
		}
	}
	if s.HostsGap != nil {
		copied.HostsGap = func() string {
			gap := s.HostsGap()
			transcript.Also(func() bool { return s.HostsGap() == gap })
			return gap
		}
	}
	return &copied, transcript
}

// byKind reports whether the settings distinguish the kinds of session.
func (s *Input) byKind() bool {
	for _, state := range s.UserStates {
		if state.Good.ByKind() || state.Bound.ByKind() {
			return true
		}
	}
	for _, entry := range s.Granted {
		if kind, _ := document.SplitKey(entry.Key); kind != "" {
			return true
		}
	}
	return s.ProjectState != nil && s.ProjectState.Good.ByKind()
}

func (s *Input) states() []source.State {
	states := slices.Clone(s.UserStates)
	if s.ProjectState != nil {
		states = append(states, *s.ProjectState)
	}
	return states
}
