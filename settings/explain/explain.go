package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// Answer says whether a session could do something, and why.
type Answer struct {
	// Allowed is what the policy says. The permissions of the file may still
	// refuse it.
	Allowed bool
	// Target is where the target leads: an absolute path without symlinks, a
	// socket, an address.
	Target string
	// Reason is one sentence, without a full stop.
	Reason string
	// Rule is the rule that decides; nil if the reason is that there is none.
	Rule *DecidingRule
	// Key and Value are the setting that would allow it: an entry of the list
	// Key, or the whole value of Key as JSON. If it is allowed, Key is the
	// setting that allows it. Both are empty if no setting would.
	Key, Value string
	// List is the list that would have the entry which allows it, if nobody knows
	// that entry; else "". The hint names the list.
	List string
	// Hint is a second sentence: what to do, or what to watch out for; "" if
	// there is none.
	Hint string
	// Holds names the keys or passwords that the setting would also open; "" if
	// none are known.
	Holds string
	// Acts is a clause that says which program outside acts on what the setting
	// would let sessions write, or which agent signs in with what they would read;
	// "" if none is known.
	Acts string
	// Set is the entry of "toolchains" that gives sessions what they need there
	// without that risk; "" if there is none. The hint names it.
	Set string
	// kept says that the user has protected the target, although nothing grants it.
	kept bool
	// own says that the target is the session's own localhost, on a machine that
	// can give it one.
	own bool
	// doubt is why the target may hold a secret, if nobody knows whether it does;
	// "" otherwise.
	doubt string
}

// DecidingRule is the rule that decides an explanation.
type DecidingRule struct {
	// Path is the granted or protected path, or the socket; "" if the rule is
	// not about a path.
	Path string
	// Access is what the grant of a path gives.
	Access policy.Access
	Origin policy.Origin
}

// Why says whether a session of that kind that starts now could do
// something to a target, and why. The target is an absolute path for Read, Write
// and Execute; a path or "abstract:NAME" for ConnectUnix; a fingerprint or a
// keygrip for Sign; else an address.
func Why(s *compile.Snapshot, kind document.Kind, attempt Attempt, target string) (Answer, error) {
	x := newExplainer(s, kind, attempt)
	x.Target = target
	_, path := pathAttempts[attempt]
	if attempt == ConnectUnix && !strings.HasPrefix(target, risks.AbstractPrefix) {
		path = true
	}
	if path {
		if err := x.follow(target); err != nil {
			return Answer{}, fmt.Errorf("explain %s: %s: %w", attempt, display.Quote(target), err)
		}
	}
	switch doubt := x.Doubt; {
	case doubt != nil && doubt.Refused:
		x.refuse(nil, "", "", "a %s does not start: %s", kind, doubt.FileDiagnostic)
		x.Hint = "fix the file; it is read again at once"
		if doubt.Managed() {
			x.Hint = "it is set by your organisation; ask whoever administers this machine"
		}
	case !x.Policy.Restricted:
		x.unrestricted(ownFile(s), doubt)
	case x.end.Detour:
		x.refuse(nil, "", "", `%s leads nowhere: there is a ".." behind what is no directory`, display.Quote(target))
	case x.end.Err != nil:
		x.refuse(nil, "", "", "%s leads nowhere: %s", display.Quote(x.Target), textfile.Cause(x.end.Err))
	case attempt == ConnectUnix:
		x.socket()
	case attempt == Sign:
		if err := x.sign(); err != nil {
			return Answer{}, fmt.Errorf("explain sign: %s: %w", display.Quote(target), err)
		}
	case attempt == Connect || attempt == Bind:
		x.network()
	default:
		x.path()
	}
	x.byOrganisation()
	return x.Answer, nil
}

// ownFile is the user's file that overrides the others; "" if there is none.
func ownFile(s *compile.Snapshot) string {
	for _, state := range slices.Backward(s.UserStates) {
		if state.File != policy.OriginEditor && !state.Managed {
			return state.File
		}
	}
	return ""
}

type explainer struct {
	*compile.Reasons
	kind    document.Kind
	attempt Attempt
	end     resolve.Target // where a path leads
	rules   *policy.Policy // see live
	Answer
}

// newExplainer asks the kept evaluation. Only the target is looked up.
func newExplainer(s *compile.Snapshot, kind document.Kind, attempt Attempt) *explainer {
	return &explainer{Reasons: s.Reasons(kind), kind: kind, attempt: attempt}
}

// live is the policy with only the rules that count for the target, once it is
// followed.
func (x *explainer) live() *policy.Policy {
	if x.rules == nil {
		x.rules = x.liveRules(x.Reasons)
	}
	return x.rules
}

// liveRules is the policy without the rules that have no effect on sessions that
// start now: a rule for a path that does not exist has none. A rule that is about
// neither the target nor the way to it is not looked up, and stays: most denials
// are about one path, and there may be thousands of rules. Only sockets may be
// elsewhere than their target.
func (x *explainer) liveRules(r *compile.Reasons) *policy.Policy {
	live := r.Policy
	about := append([]string{x.end.Path, live.Inside(x.end.Path)}, x.end.Left...)
	for _, link := range x.end.Links {
		about = append(about, link.Path)
	}
	live.Rules = slices.DeleteFunc(slices.Clone(live.Rules), func(rule policy.Rule) bool {
		if x.attempt != ConnectUnix && !slices.ContainsFunc(about, func(path string) bool {
			return policy.Contains(rule.Path, path) || policy.Contains(path, rule.Path)
		}) {
			return false
		}
		// The caches of toolchains are made before a session starts, and so is
		// what it has for itself.
		made := rule.Origin.File == policy.OriginSession && rule.Path != live.Project || r.Makes(rule.Path)
		return !r.Resolve(rule.Path).Exists && !made
	})
	return &live
}

// follow resolves the target as a session would.
func (x *explainer) follow(target string) error {
	// A dollar sign in the name of a file is itself; only ~ is replaced.
	path := target
	if strings.HasPrefix(target, "~") {
		var err error
		if path, err = x.Host.Expand(target, ""); err != nil {
			return err
		}
	}
	switch {
	case strings.ContainsRune(path, 0):
		return resolve.ErrNUL
	case !filepath.IsAbs(path):
		return errors.New("not an absolute path")
	}
	x.end = x.Resolve(path)
	for _, l := range x.end.Links {
		if policy.Contains("/proc", l.Dir) {
			// The link leads to another file for each process. The answer is
			// the one that holds for all of /proc.
			x.end = resolve.Target{Path: l.Path, Exists: true}
			x.Hint = fmt.Sprintf("%s is another file for each process", display.Quote(l.Path))
			break
		}
	}
	if x.end.Err == nil {
		x.Target = x.end.Path
	}
	return nil
}

func (x *explainer) allow(rule *DecidingRule, format string, args ...any) {
	x.Allowed, x.Rule, x.Reason = true, rule, fmt.Sprintf(format, args...)
	x.Key = rule.Origin.Key
}

func (x *explainer) refuse(rule *DecidingRule, key, value, format string, args ...any) {
	x.Rule, x.Key, x.Value, x.Reason = rule, key, value, fmt.Sprintf(format, args...)
}

func (x *explainer) path() {
	a := pathAttempts[x.attempt]
	rule, granted := x.rule(x.live(), a.access)
	if x.ownTerminals(a) || x.copied(a) || x.unseen(a, granted) {
		return
	}
	if x.attempt == Write {
		if protected, ok := x.Policy.ProtectedAt(x.end.Path); ok && granted {
			x.protected(protected)
			return
		}
	}
	if !granted {
		x.notGranted(a)
		x.keep()
		return
	}
	x.allow(&DecidingRule{Path: rule.Path, Access: rule.Access, Origin: rule.Origin}, "%s is granted (%s) by %s",
		display.Quote(rule.Path), rule.Access, rule.Origin)
	switch {
	case x.live().Inside(x.end.Path) != x.end.Path:
		x.Hint = "only the project's sessions see what they have in its place, if this machine can give them that"
	case !x.end.Exists && x.attempt != Write:
		x.Hint = "there is no such file"
	case x.attempt == Write && x.ownTemporary():
		x.Hint = "only the project's sessions see what is written there, if this machine can give them their own"
	case x.attempt == Write && x.cached():
		x.Hint = "only your sandboxed sessions see what is written there, if this machine has overlays"
	case x.attempt != Write && x.emptied():
		x.Hint = "sessions do not see what programs outside have written there, if this machine has overlays"
	case rule.Guarded.Has(a.access):
		x.Hint = `only if this machine can protect paths; "sandbox-sidecar doctor" says if it can`
	}
}

// unmoved explains what a variable of a toolchain names in vain. A grant of it, or
// of what is around, would open more than the tool's own.
func (x *explainer) unmoved() bool {
	why := x.Unmoved(x.end.Path, x.end.Exists)
	if why == "" {
		return false
	}
	x.Key, x.Value, x.Hint = "", "", why
	return true
}

// copied explains a file of which sessions read a part.
func (x *explainer) copied(a attemptKind) bool {
	c, is := x.Policy.CopyAt(x.end.Path)
	if !is || a.access != policy.Read {
		return false
	}
	x.allow(&DecidingRule{Path: c.Path, Access: policy.Read, Origin: c.Origin},
		"sessions read a part of %s, without what may be a secret, by %s", display.Quote(c.Path), c.Origin)
	x.Hint = "only if this machine can give sessions a file tree of their own"
	return true
}

// ownTerminals explains the directory of a session's own terminals. The numbers of
// terminals outside are not theirs.
func (x *explainer) ownTerminals(a attemptKind) bool {
	at := x.end.Path == terminalDir && a.access == policy.Read || x.end.Path == terminalDir+"/ptmx"
	if !at || !x.live().PrivateTerminals || a.access == policy.Execute {
		return false
	}
	x.allow(&DecidingRule{
		Path: x.end.Path, Access: policy.Read | policy.Write, Origin: policy.Origin{
			File: policy.OriginSession, Key: "private terminals",
		},
	}, "a session has terminals of its own at %s", terminalDir)
	x.Key = ""
	x.Hint = "if this machine can give sessions their own"
	return true
}

// terminalDir holds terminals.
const terminalDir = "/dev/pts"

// rule finds the most specific rule that grants an access to the target.
func (x *explainer) rule(live *policy.Policy, access policy.Access) (best policy.Rule, found bool) {
	for _, rule := range live.Rules {
		if live.Given(rule, live.Inside(x.end.Path)).Has(access) && (!found || len(rule.Path) > len(best.Path)) {
			best, found = rule, true
		}
	}
	return best, found
}

// takenAway reports whether the project's file takes the access away.
func (x *explainer) takenAway(access policy.Access) bool {
	alone := x.WithoutProject()
	if alone == nil {
		return false
	}
	_, granted := x.rule(x.liveRules(alone), access)
	return granted
}

// protected explains why a protected path is refused.
func (x *explainer) protected(p policy.Protected) {
	rule := &DecidingRule{Path: p.Path, Access: policy.Read, Origin: p.Origin}
	const form = "%s stays as it is, although the directory around it can be written, by %s"
	if p.Origin.Key == compile.GuardKey {
		x.refuse(rule, "", "", form, display.Quote(p.Path), p.Origin)
		x.Hint = editOutside
		return
	}
	if p.Origin.File == policy.OriginBuiltIn && !policy.Contains(x.Policy.Project, p.Path) {
		x.protectedOutside(p, rule, fmt.Sprintf(form, display.Quote(p.Path), p.Origin))
		return
	}
	if i := slices.IndexFunc(x.Policy.Protected, func(one policy.Protected) bool {
		return one.Origin.File == x.ProjectFile() && x.ProjectFile() != "" && one.Covers(x.end.Path)
	}); i >= 0 {
		// No setting of the user's takes the project's own entry away.
		one := x.Policy.Protected[i]
		x.refuse(rule, "", "", form, display.Quote(one.Path), one.Origin)
		x.Hint = fmt.Sprintf("the project protects it; only a change of %s allows it", display.Quote(x.ProjectFile()))
		return
	}
	value, err := json.Marshal(x.withoutProtected())
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal paths: %v", err))
	}
	x.refuse(rule, x.WrittenKey(protectedKey), string(value), form, display.Quote(p.Path), p.Origin)
	x.Hint = `a session can change it if this machine cannot protect paths; run "sandbox-sidecar doctor" to see`
	if p.GitConfig {
		x.Hint = acceptedOfGit
	}
}

// keep takes back the setting for what the user has protected: a grant of it, or
// of a directory around it, leaves it as it is.
func (x *explainer) keep() {
	p, is := x.ProtectedUngranted(x.end.Path)
	if !is || x.attempt != Write {
		return
	}
	x.Key, x.Value, x.List, x.kept = "", "", "", true
	x.Holds, x.Acts, x.Set = "", "", ""
	x.Hint = fmt.Sprintf("it is protected by %s: take that entry away to grant it", p.Origin)
}

// protectedOutside explains why a path is refused that is protected outside of
// the project. A grant of exactly this path is meant to open it; what has no path
// of its own needs an exception.
func (x *explainer) protectedOutside(p policy.Protected, rule *DecidingRule, reason string) {
	key, value := x.WrittenKey("additional_read_write_paths"), p.Path
	if p.Pattern || p.Origin.Reason != "" {
		list, err := json.Marshal(x.withoutProtected())
		if err != nil {
			panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal paths: %v", err))
		}
		key, value = x.WrittenKey(protectedKey), string(list)
	}
	x.refuse(rule, key, value, "%s", reason)
	x.Acts = "git outside acts on it"
	if actor, found := x.Actors().ActingAt(x.View, p.Path); found {
		x.Acts = actor.Acts
	} else if p.Origin.Reason != "" {
		x.Acts = "programs outside act on it, because " + p.Origin.Reason
	}
	x.Hint = "careful: " + x.Acts
}

// acceptedOfGit says what a session may change nevertheless.
const acceptedOfGit = "git may add remotes, tracking and user.name; no setting that runs or redirects anything"

// withoutProtected is the value of protected_paths with which the target is not
// protected: the entries that hold, without those that cover the target, and an
// exception from the built-in list.
func (x *explainer) withoutProtected() []string {
	var covering []policy.Protected
	for _, p := range x.Policy.Protected {
		if p.Origin.Key != compile.GuardKey && p.Covers(x.end.Path) {
			covering = append(covering, p)
		}
	}
	list := []string{}
	for _, entry := range x.Settings().ProtectedPaths {
		path, err := x.Host.Expand(entry, x.Policy.Project)
		path = x.InProject(filepath.Clean(path)) // the pattern's own, if it begins with **/
		if err != nil || !slices.ContainsFunc(covering, func(p policy.Protected) bool { return p.Path == path }) {
			list = append(list, entry)
		}
	}
	for _, p := range covering {
		name := "!" + strings.TrimPrefix(p.Path, x.Policy.Project+"/")
		covered := slices.ContainsFunc(covering, func(wider policy.Protected) bool {
			return wider.Path != p.Path && wider.Pattern && wider.Origin.File == policy.OriginBuiltIn &&
				wider.Covers(p.Path)
		})
		if !covered && !slices.Contains(list, name) && p.Origin.File == policy.OriginBuiltIn {
			list = append(list, name)
		}
	}
	return list
}

// notGranted finds the setting that would grant the access.
func (x *explainer) notGranted(a attemptKind) {
	x.refuse(nil, x.WrittenKey(a.key), x.end.Path, "no rule lets a session %s %s", a.verb, display.Quote(x.end.Path))
	for _, rule := range x.Policy.Rules {
		// Name the rule that comes nearest.
		if !policy.Contains(rule.Path, x.end.Path) {
			continue
		}
		if x.Policy.Given(rule, x.end.Path).Has(a.access) {
			x.Hint = fmt.Sprintf("the grant of %s by %s counts for sessions that start once it exists",
				display.Quote(rule.Path), rule.Origin)
			x.Key, x.Value = "", ""
			return
		}
		x.Reason = fmt.Sprintf("%s is granted by %s, but not to %s it", display.Quote(rule.Path), rule.Origin, a.verb)
	}
	switch what := x.holds(x.end.Path); {
	case x.takenAway(a.access):
		x.Key, x.Value = "", ""
		x.Hint = fmt.Sprintf("your own settings grant it; the project's file %s takes it away",
			display.Quote(x.ProjectFile()))
	case policy.Contains("/proc", x.end.Path):
		x.Key, x.Value = "", ""
		if x.Hint == "" {
			x.Hint = "what is in /proc belongs to single processes"
		}
	case x.attempt == Write && x.Guards(x.end.Path):
		x.Key, x.Value, x.Hint = "", "", editOutside
	case x.attempt == Write && x.Undoes(x.end.Path) != "":
		x.Key, x.Value, x.Hint = "", "", neverWritable
	case x.unmoved():
	case what == "" && x.toolchain(a.access):
	case what == "" && x.actedOn(x.end.Path):
		if !x.end.Exists {
			x.Key, x.Value = "", "" // a grant of it opens nothing yet
		}
	case !x.end.Exists && what != "":
		x.Hint, x.Holds = x.careful(what), what
		x.Key, x.Value = "", ""
	case !x.end.Exists:
		// A grant of a path that does not exist opens nothing. The nearest
		// directory that exists has to be granted.
		x.Value = x.nearestDir()
		if x.holds(x.Value) != "" || x.Value == "/" || x.Undoes(x.Value) != "" || x.actedOn(x.Value) {
			x.Key, x.Value, x.Acts, x.Set = "", "", "", ""
			x.Hint = fmt.Sprintf("create it first: a grant of it by %s counts for sessions that start once it exists",
				x.WrittenKey(a.key))
		}
	case x.Policy.PrivateRuntimeDir && policy.Contains("/run/user", x.end.Path):
		x.Hint = "a session has a runtime directory of its own, which XDG_RUNTIME_DIR names"
	case x.Policy.PrivateTerminals && policy.Contains("/dev/pts", x.end.Path):
		x.Hint = "a session has terminals of its own, and this one is another's; a grant opens all of yours"
	case what != "":
		x.Hint, x.Holds = x.careful(what), what
	}
}

// toolchain chooses the toolchain that grants the access. It reports whether
// there is one.
func (x *explainer) toolchain(access policy.Access) bool {
	name := x.toolchainOf(access)
	if name != "" {
		x.Key, x.Value = x.WrittenKey(toolchainsKey), name
	}
	return name != ""
}

// actedOn reports whether programs outside act on what a grant of path would let
// sessions write, or whether an agent keeps its sign-in there. It says so in the
// hint.
func (x *explainer) actedOn(path string) bool {
	var actor sensitive.Actor
	found := false
	switch x.attempt {
	case Write:
		actor, found = x.Actors().FindActor(x.View, path)
		x.Acts = actor.Acts
	case Read, Execute: // what may be executed may be read
		x.Acts, found = x.Secrets().SignIn(x.View, path)
	}
	if !found {
		return false
	}
	x.Hint = "careful: " + x.Acts
	if actor.Set != "" && !x.HasToolchain(actor.Set) {
		x.Set = actor.Set
		x.Hint += fmt.Sprintf("; %q in \"toolchains\" gives sessions what they need", actor.Set)
	}
	return true
}

// holds says what a grant of path would open that gives power elsewhere, or
// over later sessions; "" if nothing is known.
func (x *explainer) holds(path string) string {
	what := x.Secrets().Holds(path)
	if what == "" && x.attempt == Write {
		what = x.Enfolds(path)
	}
	return what
}

// careful is the hint for a grant of the value that would also open what.
func (x *explainer) careful(what string) string {
	switch {
	case x.Secrets().Holds(x.Value) != what || strings.HasPrefix(what, "your "):
		return "careful: that would open " + what
	case !strings.Contains(what, " and ") && (strings.HasPrefix(what, "a ") || strings.HasPrefix(what, "the ")):
		return "careful: " + what + " is stored there"
	}
	return "careful: " + what + " are stored there"
}

// neverWritable is the hint for files that decide about sessions.
const neverWritable = "no setting lets a session change what decides about sessions"

// editOutside is that for files that a user may want to edit.
const editOutside = "edit it outside: " + neverWritable

// nearestDir is the nearest directory on the way to the target that exists.
func (x *explainer) nearestDir() string {
	dir := filepath.Dir(x.end.Path)
	for dir != "/" && !x.Resolve(dir).Exists {
		dir = filepath.Dir(dir)
	}
	return dir
}
