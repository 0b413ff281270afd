package compile

import (
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const keysKey = "signing_keys"

// keysOf reads the entries of one layer. An entry that is wrong does not count.
func keysOf(s *settings, r *reporter) []policy.SigningKey {
	from := s.from[keysKey]
	list := []policy.SigningKey{}
	for i, text := range s.values.SigningKeys {
		at := from.element(i)
		key, err := policy.ParseSigningKey(text)
		if err != nil {
			r.add(from.file, at, document.SeverityError, keysKey, "%s: %v; the entry does not count",
				display.Quote(text), err)
			continue
		}
		key.Origin = from.policy(keysKey, at)
		list = append(list, key)
	}
	return list
}

// chooseSigningKeys are the keys of agents that sessions may use: all, unless a
// file says otherwise. After a mistake nobody knows which keys were meant.
func chooseSigningKeys(l layers, r *reporter) []policy.SigningKey {
	list := []policy.SigningKey{{Key: policy.AllKeys, Origin: l.user.originOf(keysKey)}}
	if l.user.sets(keysKey) {
		list = keysOf(&l.user, r)
	}
	for _, state := range l.states {
		for _, key := range []string{keysKey, document.KeyOf(l.kind, keysKey)} {
			if state.Good != nil && state.Good.Unclear(key) || state.Good == nil && state.Problem != nil {
				return nil
			}
		}
	}
	if l.projectSets(keysKey) {
		list = policy.MeetSigningKeys(list, keysOf(l.project, r))
		l.tightened.values.SigningKeys = keyTexts(list)
		l.decide(keysKey)
	}
	return list
}

func keyTexts(list []policy.SigningKey) []string {
	texts := []string{}
	for _, key := range list {
		texts = append(texts, key.String())
	}
	return texts
}

// filtered puts a filter before agents that are granted as a whole, if a list
// chooses keys: it could not hold there otherwise.
func filtered(view fsView, sockets []socket, keys []policy.SigningKey) []socket {
	if !policy.ChoosesKeys(keys) {
		return sockets
	}
	sockets = slices.Clone(sockets)
	named := view.agentsNamedBySSH()
	for i := range sockets {
		if slices.ContainsFunc(named, func(g grant) bool { return g.path == sockets[i].path }) {
			sockets[i].agent, sockets[i].inPlace = policy.SSHAgent, true
		}
		for _, agent := range []policy.Agent{policy.SSHAgent, policy.GPGAgent} {
			path, _ := view.agentSocket(agent)
			if path != "" && sockets[i].path != "" && view.Resolve(path).Path == sockets[i].path {
				sockets[i].agent = agent
			}
		}
	}
	return sockets
}

// signingKeys takes the keys away that the file does not list.
func (b bounding) signingKeys(s *settings) {
	if !s.sets(keysKey) {
		return
	}
	from := s.originOf(keysKey)
	b.bounds.keys = &from
	b.policy.SigningKeys = policy.MeetSigningKeys(b.policy.SigningKeys, keysOf(s, b.reporter))
	b.setSockets(filtered(b.fsView, b.evaluation.sockets, b.policy.SigningKeys))
	b.decides(s, keysKey, keyTexts(b.policy.SigningKeys))
}

// signingKeys asks for keys that the user's own settings refuse, or ask about.
func (b *asker) signingKeys() {
	if !b.projects(keysKey) {
		return
	}
	usedNow, usedAlone := policy.SigningKeysOf(b.e.policy.SigningKeys), policy.SigningKeysOf(b.alone.policy.SigningKeys)
	for i, text := range b.e.user.values.SigningKeys {
		key, err := policy.ParseSigningKey(text)
		if err != nil {
			continue
		}
		now, _ := usedNow.Find(key.Key)
		was, had := usedAlone.Find(key.Key)
		if now.Key != key.Key || had && (!was.Ask || now.Ask) {
			continue
		}
		whose := "the key " + display.Quote(key.Key)
		if key.Key == policy.AllKeys {
			whose = "every key of your agents"
		}
		b.add(keysKey, text, b.e.user.from[keysKey].element(i), "sessions may sign and log in with %s", whose)
	}
	if every, had := usedAlone.Find(policy.AllKeys); !had || every.Ask {
		return // if the project has "*", that was asked for
	}
	// Every key may be used already, but for those that the user is asked about. The
	// project's list need not name them.
	var unasked []string
	for _, was := range b.alone.policy.SigningKeys {
		if now, has := usedNow.Find(was.Key); was.Ask && has && !now.Ask && now.Key != was.Key {
			unasked = append(unasked, display.Quote(was.Key))
		}
	}
	if len(unasked) > 0 {
		b.addKey(keysKey, "sessions may sign and log in with %s without a question", strings.Join(unasked, ", "))
	}
}
