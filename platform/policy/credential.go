package policy

import "strings"

// Credential is a secret that a session uses without having it. One of Variable,
// File and Command is set.
type Credential struct {
	// Name is its key in the settings.
	Name string `json:"name"`
	// Hosts are where the secret is sent, in the form of hosts.ParseCredential. If
	// there are none, the session has neither the secret nor a placeholder.
	Hosts []string `json:"hosts"`
	// Variable is one of the environment.
	Variable string `json:"variable,omitempty"`
	// File is a real path, and Format the path as it was named, which says what the
	// file holds.
	File   string `json:"file,omitempty"`
	Format string `json:"format,omitempty"`
	// Command prints the secret. As is the variable that has its placeholder.
	Command []string `json:"command,omitempty"`
	As      string   `json:"as,omitempty"`
	Origin  Origin   `json:"origin"`
}

// WithoutCredentials leaves the variables of credentials out of an environment of
// "NAME=value" entries, and returns their names.
func (p *Policy) WithoutCredentials(environ []string) (kept, withheld []string) {
	if len(p.Credentials) == 0 {
		return environ, nil
	}
	secret := map[string]bool{}
	for _, c := range p.Credentials {
		if c.Variable != "" {
			secret[c.Variable] = true
		}
		if c.As != "" {
			secret[c.As] = true
		}
	}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); secret[name] {
			withheld = append(withheld, name)
			continue
		}
		kept = append(kept, entry)
	}
	return kept, withheld
}
