package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/agent"
)

const (
	// agentVariable names the ssh-agent's socket.
	agentVariable = "SSH_AUTH_SOCK"
	// gpgVariable names GnuPG's home directory.
	gpgVariable = "GNUPGHOME"
	// maxKeyring bounds each file of GnuPG that is copied.
	maxKeyring = 64 << 20
)

// filterAgents puts filters in the place of the agents that sets of toolchains
// grant. One that allowed_unix_sockets grants is granted as a whole.
func (a *attempt) filterAgents() {
	p := a.policy
	if !p.Restricted {
		return
	}
	// Until a filter is there, nothing is granted.
	var filtered []policy.UnixSocket
	p.UnixSockets = slices.DeleteFunc(slices.Clone(p.UnixSockets), func(s policy.UnixSocket) bool {
		if s.Agent != "" {
			filtered = append(filtered, s)
		}
		return s.Agent != ""
	})
	for _, socket := range filtered {
		var err error
		switch socket.Agent {
		case policy.SSHAgent:
			err = a.filterSSH(socket)
		case policy.GPGAgent:
			err = a.filterGPG(socket)
		}
		if err != nil {
			why := "the " + string(socket.Agent) + " cannot be used: " + cause(err).Error()
			a.running.log.Warn(why)
			a.warnings = append(a.warnings, why)
		}
	}
}

var errReplaceable = errors.New("sessions may write where its socket is")

// filterSSH puts a filter in the place of an agent: into SSH_AUTH_SOCK, or onto
// its socket, if the user's configuration of ssh names that.
func (a *attempt) filterSSH(granted policy.UnixSocket) error {
	named := lookUp(lastOfEach(a.request.Env), agentVariable)
	real, err := fsguard.EvalSymlinks(named)
	byVariable := err == nil && real == granted.Path
	if a.policy.Replaceable(granted) {
		return errReplaceable
	}
	if !byVariable && !granted.InPlace {
		return otherAgent(named, err)
	}
	if info, err := fsguard.Lstat(granted.Path); granted.InPlace && !byVariable &&
		(err != nil || info.Mode().Type() != fs.ModeSocket) {
		a.running.log.Info("an agent that ssh's configuration names does not run", "socket", granted.Path)
		return nil
	}
	socket, err := a.placeFilter(func(socket string) (*agent.Filter, error) {
		return agent.Listen(socket, granted.Path, a.sessionOfAgent())
	}, "a filter for the ssh-agent")
	if err != nil {
		return err
	}
	if byVariable {
		a.own = append(a.own, agentVariable+"="+socket)
	}
	if granted.InPlace {
		a.policy.Replaced = append(slices.Clone(a.policy.Replaced), policy.Replaced{Path: granted.Path, Source: socket})
		// Without namespaces nothing can be there but the agent itself.
		a.lacking = append(a.lacking, platform.Missing{
			Path: granted.Path, Reason: "this machine cannot put a filter before ssh's IdentityAgent; use " +
				"SSH_AUTH_SOCK",
		})
	}
	return nil
}

// otherAgent says why a session's SSH_AUTH_SOCK does not lead to the granted
// socket. err is what following it came to.
func otherAgent(named string, err error) error {
	switch {
	case named == "":
		return errors.New("SSH_AUTH_SOCK is not set in this session's environment")
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s, which SSH_AUTH_SOCK names; its agent has ended: set SSH_AUTH_SOCK anew",
			display.Quote(named))
	case err != nil:
		return fmt.Errorf("cannot follow %s, which SSH_AUTH_SOCK names: %w", display.Quote(named), cause(err))
	}
	return fmt.Errorf("SSH_AUTH_SOCK names another socket than when the settings were read: %s", display.Quote(named))
}

// placeFilter makes a filter's socket in a directory that no session may write,
// and grants it.
func (a *attempt) placeFilter(listen func(socket string) (*agent.Filter, error), key string) (string, error) {
	dir, err := a.running.group.MakeDir()
	if err != nil {
		return "", err
	}
	socket := filepath.Join(dir, "agent")
	filter, err := listen(socket)
	if err != nil {
		return "", err
	}
	a.running.agents = append(a.running.agents, filter)
	a.policy.UnixSockets = append(a.policy.UnixSockets, policy.UnixSocket{
		Path: socket, Origin: policy.Origin{File: policy.OriginSession, Key: key},
	})
	return socket, nil
}

// filterGPG gives the session a home directory of GnuPG with copies of what is
// public, and with a link to the filter for the agent.
func (a *attempt) filterGPG(granted policy.UnixSocket) error {
	if a.policy.Replaceable(granted) {
		return errReplaceable
	}
	whole := granted.Path
	if _, err := fsguard.Lstat(whole); errors.Is(err, fs.ErrNotExist) {
		// It may start any time. Until then gpg says what it lacks.
		a.running.log.Info("no gpg-agent is running", "socket", whole)
	}
	home, err := a.makeOwnDir("the session's home directory of GnuPG")
	if err != nil {
		return err
	}
	if err := a.copyPublic(home); err != nil {
		return err
	}
	description := agent.Description("A session in the sandbox wants to sign; its project is " +
		display.Quote(a.policy.Project))
	socket, err := a.placeFilter(func(socket string) (*agent.Filter, error) {
		return agent.ListenGPG(socket, whole, description, pinentryOptions(), a.sessionOfAgent())
	}, "a filter for the gpg-agent")
	if err != nil {
		return err
	}
	if err := os.Symlink(socket, filepath.Join(home, "S.gpg-agent")); err != nil {
		return err
	}
	a.own = append(a.own, gpgVariable+"="+home)
	return nil
}

// copyPublic copies what the session may read of the user's home directory of
// GnuPG.
func (a *attempt) copyPublic(home string) error {
	env := lastOfEach(a.request.Env)
	from := cmp.Or(lookUp(env, gpgVariable), filepath.Join(lookUp(env, "HOME"), ".gnupg"))
	for _, name := range []string{
		"pubring.kbx", "pubring.gpg", "public-keys.d/pubring.db", "trustdb.gpg", "gpg.conf", "common.conf",
	} {
		real, err := fsguard.EvalSymlinks(filepath.Join(from, name))
		if err != nil {
			continue // mostly there is none
		}
		if rule, ok := a.policy.Find(policy.Read, real); !ok || !rule.Access.Has(policy.Read) {
			continue
		}
		data, err := fsguard.ReadPlain(real, maxKeyring) // what the policy was asked about, and no other
		if err != nil {
			continue
		}
		if len(data) > maxKeyring {
			a.warnings = append(a.warnings, "GnuPG's "+name+" is too large to be copied for a session")
			continue
		}
		to := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// pinentryOptions say where the agent asks for a passphrase. They are the
// sidecar's own: a session could name a program among them.
func pinentryOptions() []string {
	var options []string
	add := func(prefix, variable string) {
		if value := os.Getenv(variable); value != "" {
			options = append(options, prefix+value)
		}
	}
	add("display=", "DISPLAY")
	add("xauthority=", "XAUTHORITY")
	for _, name := range []string{"WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS"} {
		add("putenv="+name+"=", name)
	}
	return options
}

const (
	// signingTimeout bounds the wait for an answer about a key. No answer in time
	// means no.
	signingTimeout = time.Minute
	// maxKeyQuestions bounds the questions that wait for an answer. Further uses
	// are refused without one.
	maxKeyQuestions = 8
	// maxKeyAnswers bounds the answers that are remembered. Beyond it, each use
	// is a question.
	maxKeyAnswers = 64
)

// keyUses decides which keys of agents a session may use. Each use of a key
// whose entry says so is a question of its own, until the user answers for the
// whole session.
type keyUses struct {
	keys    []policy.SigningKey
	ask     func(ctx context.Context, denial platform.Denial) Answer // nil: nobody can be asked
	denied  func(d platform.Denial)
	timeout time.Duration

	mu       sync.Mutex // guards the fields below
	open     int        // questions
	answered map[keyUse]Answer
}

// keyUse is what an answer about a use of a key holds for: all that the question
// shows, but for what the agent calls the key.
type keyUse struct{ key, purpose, name string }

// sessionOfAgent is what the filters before agents know of the session. They
// report what an agent was not asked.
func (a *attempt) sessionOfAgent() agent.Session {
	if a.uses == nil {
		running := a.running
		denied := func(d platform.Denial) {
			if running.denials != nil {
				running.denied(d)
			}
		}
		a.uses = &keyUses{
			keys: slices.Clone(a.policy.SigningKeys), denied: denied, timeout: signingTimeout,
			answered: map[keyUse]Answer{},
		}
		if questions := a.questions(); questions != nil {
			a.uses.ask = questions.ask
		}
	}
	uses := a.uses // the filters must not hold the attempt
	return agent.Session{
		Refused: func(what string) {
			uses.denied(platform.Denial{Access: platform.RefusedAgent, Target: what, Count: 1})
		},
		MayUse: uses.may,
	}
}

// may reports whether a key may be used now, and reports the denial if not.
func (u *keyUses) may(ctx context.Context, use agent.Use) bool {
	entry, listed := policy.FindSigningKey(u.keys, use.Key)
	if listed && !entry.Ask {
		return true
	}
	denial := platform.Denial{Access: platform.RefusedSign, Target: use.Key, Name: useOf(use), Count: 1}
	if listed && showable(use) && u.answer(ctx, keyUse{use.Key, use.Purpose, use.For}, denial) {
		return true
	}
	u.denied(denial)
	return false
}

// answer asks the user about one use of a key.
func (u *keyUses) answer(ctx context.Context, use keyUse, denial platform.Denial) bool {
	u.mu.Lock()
	known, is := u.answered[use]
	asks := u.ask != nil && u.open < maxKeyQuestions
	if !is && asks {
		u.open++
	}
	u.mu.Unlock()
	switch {
	case is:
		return known.Allows()
	case !asks:
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	answer := u.ask(ctx, denial)
	late := ctx.Err() != nil
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open--
	if late {
		return false // whatever was said about it, nobody waits any more
	}
	if answer.Lasts() && len(u.answered) < maxKeyAnswers {
		// A no as well: a program that tries again must not ask the user again.
		u.answered[use] = answer
	}
	return answer.Allows()
}

// showable reports whether a question shows all of what a key is used for.
func showable(use agent.Use) bool {
	return len(use.For) <= display.MaxText && utf8.RuneCountInString(display.QuoteWhole(use.For)) <= display.MaxText
}

// useOf says what a key is called and what it is to be used for.
func useOf(use agent.Use) string {
	var parts []string
	if comment := use.Comment(); comment != "" {
		parts = append(parts, display.Quote(comment))
	}
	switch {
	case use.For != "":
		parts = append(parts, use.Purpose+" "+display.Quote(use.For))
	case use.Purpose != "":
		parts = append(parts, use.Purpose)
	default:
		parts = append(parts, "for something unknown")
	}
	return strings.Join(parts, ", ")
}
