package explain

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// Suggestion is what a user may do about a denial.
type Suggestion struct {
	// Key and Value are the setting that would allow the access and as little
	// else as possible: an entry of the list Key, or the whole value of Key as
	// JSON. Both are empty if no setting would, or if one click should not set
	// it.
	Key, Value string
	// List is the list that would have the entry which allows it, if nobody knows
	// that entry; else "". The hint names the list.
	List string
	// Hint is a sentence for the user; "" if there is none.
	Hint string
	// Allowed says that the settings allow it already.
	Allowed bool
	// Protected says that the path is protected. No setting is suggested: it would
	// give the protection up, for all sessions to come.
	Protected bool
}

// Suggest says what would allow a refused access: one of Attempts, "create" or
// "remove" of a name, "signal" of a process, or "agent". The target is resolved
// as for a session that starts now. program is the name of the process that was
// refused, or "".
func Suggest(s *compile.Snapshot, kind document.Kind, access, target, program string) (Suggestion, error) {
	suggestion, err := suggest(s, kind, access, target, program)
	return suggestion.withReason(access, target), err
}

func suggest(s *compile.Snapshot, kind document.Kind, access, target, program string) (Suggestion, error) {
	switch access {
	case "create", "remove":
		if knownHosts(s, target) {
			return Suggestion{Hint: knownHostsHint}, nil
		}
		suggestion, err := suggestName(s, kind, target)
		if err != nil || suggestion.Allowed || suggestion.Protected {
			return suggestion, err
		}
		if x := newExplainer(s, kind, Write); x.follow(target) == nil && x.unmoved() {
			return Suggestion{Hint: x.Hint}, nil
		}
		switch create := access == "create" && suggestion.Key == ""; {
		case create && program == "git" && isLock(target):
			suggestion.Hint = lockHint
		case create && isBesideProject(s, target, program):
			suggestion.Hint = besideHint
		}
		switch name, made := toolchainFor(s, kind, target, program); {
		case made:
			return Suggestion{Hint: allowedByNow, Allowed: true}, nil
		case name != "":
			return Suggestion{Key: s.KeyFor(kind, toolchainsKey), Value: name}, nil
		}
		return suggestion, nil
	case "agent":
		return Suggestion{Hint: "sessions may list keys and sign, and nothing else; no setting grants just that"}, nil
	case string(Sign):
		if key, _ := policy.FindSigningKey(s.Reasons(kind).Policy.SigningKeys, target); key.Ask {
			return Suggestion{Hint: "each use of this key is a question, by " + key.Origin.String()}, nil
		}
	case "signal":
		return Suggestion{Hint: "no setting lets a session signal processes outside of it"}, nil
	}
	attempt, err := ParseAttempt(access)
	if err != nil {
		return Suggestion{}, fmt.Errorf("suggest a setting: %w", err)
	}
	x, err := Why(s, kind, attempt, target)
	if err != nil {
		return Suggestion{}, err
	}
	if !x.Allowed && attempt != Connect && s.HoldsState(target) {
		return Suggestion{Hint: ownStateHint}, nil
	}
	suggestion := x.suggestion()
	if attempt == Write && !x.Allowed && knownHosts(s, target) {
		return Suggestion{Hint: knownHostsHint}, nil
	}
	if why := notProgram(s, target); attempt == Execute && why != "" {
		return Suggestion{Hint: why}, nil
	}
	if attempt == Read && x.Holds == risks.SSHKeys && s.Reasons(kind).MayAddSSH() {
		suggestion.Hint += `; to use them through an agent, add "ssh" to "toolchains"`
	}
	if attempt == Read && x.Holds == risks.KeyChain {
		suggestion.Hint += keyChainHint
	}
	return suggestion, nil
}

// keyChainHint says what programs meet that keep their sign-ins in the key chain of
// macOS, such as gh and git's helper osxkeychain. They blame the token.
const keyChainHint = `; programs say "not logged in" for that: pass a token by a variable, or run them outside`

// ownStateHint says why no setting and no answer opens what the sidecar keeps.
const ownStateHint = "it is what the sidecar keeps about sessions, of other projects too; no setting is suggested"

// Unseen reports whether an access to a path may be allowed without a question, in a
// directory that an answer has opened: whether neither the settings nor its name say
// that it holds a secret or, if it would be changed, that programs act on it. A bare
// repository is one by its HEAD.
func Unseen(s *compile.Snapshot, kind document.Kind, access, path string) bool {
	attempts, name := []Attempt{Read, Write}, filepath.Base(path)
	if access == "read" {
		attempts = attempts[:1]
	} else if name == "HEAD" || sensitive.Reviewed(path) != "" {
		return false
	}
	return !risks.IsEnvFile(name) && !risks.IsSecretName(path) &&
		!slices.ContainsFunc(attempts, func(attempt Attempt) bool {
			x, err := Why(s, kind, attempt, path)
			return err != nil || x.Careful()
		})
}

// notProgram says why nothing could execute a path, whatever the settings say;
// "" if that is not known.
func notProgram(s *compile.Snapshot, path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	const executable = 0o111
	end := resolve.NewView(s.FS).Resolve(path)
	switch {
	case end.Err != nil || !end.Exists:
		return ""
	case end.Mode.IsDir():
		return "it is a directory; name a program in it"
	case end.Mode.IsRegular() && end.Mode&executable == 0:
		return `the file is not executable; if it is a program, "chmod +x" makes it so`
	}
	return ""
}

// knownHostsHint is the advice if ssh asked about a new server. A session that
// could write the list could pass another server off as a known one.
const knownHostsHint = "only programs outside add known hosts: connect once without the sandbox"

// knownHosts reports whether a path is the user's list of known hosts, or the
// file that ssh replaces it by.
func knownHosts(s *compile.Snapshot, path string) bool {
	return s.Host.Home != "" && strings.HasPrefix(path, filepath.Join(s.Host.Home, ".ssh", "known_hosts"))
}

// suggestName is about a name, which belongs to its directory unless the name
// itself is protected.
func suggestName(s *compile.Snapshot, kind document.Kind, target string) (Suggestion, error) {
	dir, err := Why(s, kind, Write, filepath.Dir(target))
	if err != nil {
		return Suggestion{}, err
	}
	name, err := Why(s, kind, Write, target)
	if err != nil {
		return Suggestion{}, err
	}
	if !dir.Allowed && !name.kept {
		return dir.suggestion(), nil
	}
	return name.suggestion(), nil
}

const allowedByNow = "the settings allow it by now, for sessions that start from now on"

// protectedHint is the advice for a protected path.
const protectedHint = "it is protected: change it outside the sandbox"

// givesUp reports whether the setting gives up the protection of a path.
func (x Answer) givesUp() bool {
	_, name := document.SplitKey(x.Key)
	return !x.Allowed && name == protectedKey
}

// Careful reports whether the setting would open what gives power elsewhere, or
// give up a protection. Nobody gets it unasked, and no model.
func (x Answer) Careful() bool {
	return !x.Allowed && (x.kept || x.Holds != "" || x.Acts != "" || x.Set != "" || x.givesUp())
}

func (x Answer) suggestion() Suggestion {
	switch {
	case x.own: // and it was refused
		return Suggestion{Hint: noLocalhost}
	case x.Allowed:
		return Suggestion{Hint: allowedByNow, Allowed: true}
	case x.kept:
		return Suggestion{Hint: x.Hint, Protected: true}
	case x.givesUp():
		hint := protectedHint
		if x.Hint == acceptedOfGit {
			hint = x.Hint
		}
		return Suggestion{Hint: hint, Protected: true}
	case x.Set != "":
		return Suggestion{Hint: x.Hint}
	case x.doubt != "" && x.Key != "":
		step := Suggestion{Key: x.Key, Value: x.Value}.Instruction()
		return Suggestion{Hint: x.doubt + "; if sessions need it, " + step}
	case x.Holds != "" || x.Acts != "":
		return Suggestion{List: x.List, Hint: x.Hint + ", so no setting is suggested"}
	case !utf8.ValidString(x.Value) || strings.Contains(x.Value, "$"):
		return Suggestion{Hint: "its name cannot be written in settings; grant a directory above it"}
	}
	return Suggestion{Key: x.Key, Value: x.Value, List: x.List, Hint: x.Hint}
}

// Entry reports whether the value is an entry to add to a list. Otherwise it is
// the key's whole value.
func (s Suggestion) Entry() bool {
	return s.Setting() != networkKey && s.Setting() != protectedKey
}

// Setting is the key without the block for one kind of session.
func (s Suggestion) Setting() string {
	_, name := document.SplitKey(s.Key)
	return name
}

// JSON is the value as it stands in a settings file: an entry of a list, or the
// whole value of another key. It is the whole value of protected_paths, because
// one entry has to go.
func (s Suggestion) JSON() json.RawMessage {
	if !s.Entry() {
		return json.RawMessage(s.Value)
	}
	text, err := json.Marshal(s.Value)
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %q: %v", s.Value, err))
	}
	return text
}

// Instruction says on one line what to write into the settings. A long value is
// shortened in the middle.
func (s Suggestion) Instruction() string { return s.instruction(display.MaxText) }

// InstructionInFull is Instruction with a value that can be copied.
func (s Suggestion) InstructionInFull() string { return s.instruction(display.MaxLine) }

func (s Suggestion) instruction(limit int) string {
	// JSON's own escapes stay, so that the pasted text means the same.
	value := display.Shorten(display.Line(string(display.JSON(s.JSON()))), limit)
	where := fmt.Sprintf("%q", s.Setting())
	if kind, _ := document.SplitKey(s.Key); kind != "" {
		where += fmt.Sprintf(" of %q", kind)
	}
	if s.Entry() {
		return fmt.Sprintf("add %s to %s", value, where)
	}
	return fmt.Sprintf("set %s to %s", where, value)
}

// BoundBy is where the file of a project that is not trusted sets a list, which
// bounds what the user's has. bound is false if it does not.
func BoundBy(s *compile.Snapshot, key string) (by policy.Origin, bound bool) {
	state := s.ProjectState
	if state == nil || state.Good == nil || s.Project().Trusted {
		return by, false
	}
	kind, name := s.KindOf(key)
	for _, set := range []string{document.KeyOf(kind, name), name} {
		if span, is := state.Good.Spans[set]; is {
			return policy.Origin{File: display.Quote(state.File), Key: name, Line: span.At.Line}, true
		}
	}
	return by, false
}

// toolchainFor names the toolchain that a name is made or removed for: the one
// that the name belongs to. If a program makes the directories above its cache,
// it is that program's toolchain. Sessions find such directories made; made
// says that those that start now do.
func toolchainFor(s *compile.Snapshot, kind document.Kind, target, program string) (name string, made bool) {
	x := newExplainer(s, kind, Write)
	if err := x.follow(target); err != nil || x.end.Err != nil {
		return "", false
	}
	made = x.MakesBelow(x.end.Path)
	if made || x.takenAway(policy.Write) {
		return "", made
	}
	for _, known := range x.Secrets().All {
		if policy.Contains(known.Path, x.end.Path) {
			return "", false
		}
	}
	if name := x.toolchainOf(policy.Write); name != "" {
		return name, false
	}
	t, known := toolchain.Find(toolchain.OfProgram(program))
	if !known || x.HasToolchain(t.Name) {
		return "", false
	}
	for _, p := range t.Places {
		if !p.Create {
			continue
		}
		for _, path := range x.PlacesOf(t, p) {
			if policy.Contains(x.end.Path, x.Resolve(path).Path) {
				return t.Name, false
			}
		}
	}
	return "", false
}

// toolchainOf names the toolchain that the target belongs to and that would
// grant the access. A toolchain's name says more than a path and also grants
// what else the tool needs. It is "" if there is none, or if the settings have
// it already.
func (x *explainer) toolchainOf(access policy.Access) string {
	found, longest := "", 0
	for _, t := range toolchain.All {
		if t.Agent || x.HasToolchain(t.Name) {
			continue
		}
		for _, p := range t.Places {
			if !p.Access.Has(access) {
				continue
			}
			for _, path := range x.PlacesOf(t, p) {
				place := x.Resolve(path)
				if place.Err == nil && (place.Exists || p.Create) && policy.Contains(place.Path, x.end.Path) &&
					len(place.Path) > longest {
					found, longest = t.Name, len(place.Path)
				}
			}
		}
	}
	return found
}

// toolchainOfSocket names the toolchain whose agent's socket the target is, if
// the settings do not have it already; "" if there is none.
func (x *explainer) toolchainOfSocket() string {
	for _, t := range toolchain.All {
		if x.HasToolchain(t.Name) {
			continue
		}
		socket := x.AgentSocket(t.Keys)
		if socket != "" && x.end.Path != "" && x.Resolve(socket).Path == x.end.Path {
			return t.Name
		}
	}
	return ""
}

// withReason names the command that says why a path is protected. It is left out if
// a shell would read the path in another way.
func (s Suggestion) withReason(access, target string) Suggestion {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%,:"
	if s.Hint == protectedHint && filepath.IsAbs(target) && strings.Trim(target, plain) == "" {
		if access == "create" || access == "remove" {
			access = string(Write)
		}
		s.Hint += " (sandbox-sidecar explain " + access + " " + target + " says why)"
	}
	return s
}
