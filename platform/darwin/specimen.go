package darwin

import (
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// specimen is a profile that has a rule of every form that profiles of sessions
// may have. If a compiler takes it, it takes theirs.
func specimen() Profile {
	const dir = "/private/tmp/sandbox-sidecar"
	there := Name{Path: dir, Exists: dir}
	missing := Name{Path: dir + "/missing", Exists: dir}
	online := Scene{
		Plan: Plan{
			Tag: "sandbox-sidecar", Network: true, Everything: true,
			Fingerprint: lifecycle.SessionFingerprint{ID: "specimen", Dir: dir},
		},
		Protected: []Name{there, missing}, Fixed: []Name{there}, Closed: []Name{there},
		Pinned: []Name{there, missing}, Sockets: []string{dir},
		Terminal: specimenTerminal, WorkDir: dir,
	}
	for access := policy.Read; access <= policy.Read|policy.Write|policy.Execute|policy.Device; access++ {
		for _, isDir := range []bool{true, false} {
			online.Grants = append(online.Grants, ResolvedGrant{
				Real: Real{Path: dir, Dir: isDir}, Access: access, Private: true,
			})
		}
	}
	offline := online
	offline.Network, offline.Proxy = false, 1
	untagged := Scene{}
	return online.Profile().and(offline.Profile()).and(untagged.Profile())
}

// specimenTerminal is in the place of the terminal in which a try types.
const specimenTerminal = "/dev/ttys000"

// and adds the rules of forms that p does not have. The default is p's.
func (p Profile) and(other Profile) Profile {
	has := map[string]bool{}
	for _, rule := range ruleLines(p.Text) {
		has[rule.form()] = true
	}
	for _, rule := range ruleLines(other.Text) {
		if form := rule.form(); !has[form] && rule.operations[0] != "default" {
			has[form] = true
			p.Text += strings.ReplaceAll(rule.String(), `(param "`, `(param "OTHER_`) + "\n"
		}
	}
	parameters := p.Parameters
	for i := 0; i+1 < len(other.Parameters); i += 2 {
		if key := "OTHER_" + other.Parameters[i]; strings.Contains(p.Text, `(param "`+key+`")`) {
			parameters = append(parameters[:len(parameters):len(parameters)], key, other.Parameters[i+1])
		}
	}
	p.Parameters = parameters
	return p
}
