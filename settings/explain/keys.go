package explain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// keyOf reads the name of a single key.
func keyOf(text string) (policy.SigningKey, error) {
	key, err := policy.ParseSigningKey(text)
	if err == nil && (key.Ask || key.Key == policy.AllKeys) {
		err = errors.New("expected the fingerprint or the keygrip of one key")
	}
	return key, err
}

// sign explains the use of a key.
func (x *explainer) sign() error {
	key, err := keyOf(x.Target)
	if err != nil {
		return err
	}
	x.Target = key.Key
	set := map[policy.Agent]string{policy.SSHAgent: toolchain.SSH, policy.GPGAgent: "gpg"}[key.Agent()]
	if !slices.ContainsFunc(x.Policy.UnixSockets, func(s policy.UnixSocket) bool { return s.Agent == key.Agent() }) {
		if x.hasWholeAgent(key.Agent()) {
			return nil
		}
		x.refuse(nil, x.WrittenKey(toolchainsKey), set, "no rule lets a session use your %s", key.Agent())
		if x.HasToolchain(set) {
			x.refuse(nil, "", "", "no socket of your %s is known, or sessions could replace it", key.Agent())
		}
		return nil
	}
	entry, listed := policy.FindSigningKey(x.Policy.SigningKeys, key.Key)
	switch {
	case listed:
		x.allow(&DecidingRule{Origin: entry.Origin}, "the key %s may be used by %s", display.Quote(key.Key),
			entry.Origin)
		if entry.Ask {
			x.Hint = "each use is a question to you"
		}
		return nil
	case x.takesKeyAway(key.Key):
		x.refuse(nil, "", "", "no setting lets a session use the key %s", display.Quote(key.Key))
		x.Hint = fmt.Sprintf("your own settings allow it; the project's file %s takes it away",
			display.Quote(x.ProjectFile()))
		return nil
	}
	x.refuse(nil, x.WrittenKey(keysKey), key.Key, "no setting lets a session use the key %s", display.Quote(key.Key))
	x.Hint = "whoever may use a key can sign anything and log in with it; with \"ask:\" before it, you are asked"
	return nil
}

// hasWholeAgent explains that an agent is granted with all it can do.
func (x *explainer) hasWholeAgent(agent policy.Agent) bool {
	path := x.AgentSocket(agent)
	if path == "" {
		return false
	}
	real := x.Resolve(path).Path
	i := slices.IndexFunc(x.Policy.UnixSockets, func(s policy.UnixSocket) bool { return s.Path == real })
	if i < 0 {
		return false
	}
	granted := x.Policy.UnixSockets[i].Origin
	x.allow(&DecidingRule{Path: real, Origin: granted}, "the whole %s is granted by %s", agent, granted)
	return true
}

// takesKeyAway reports whether the project's file takes a key away.
func (x *explainer) takesKeyAway(key string) bool {
	alone := x.WithoutProject()
	if alone == nil {
		return false
	}
	_, had := policy.FindSigningKey(alone.Policy.SigningKeys, key)
	return had
}
