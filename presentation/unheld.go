package presentation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// holding says what has to hold for a key of the settings to do what it says.
type holding struct {
	// protection is the one that the key asks for; "" if the key holds wherever
	// sessions start, as it only grants, or is no matter of the kernel.
	protection string
	// apart: the protection has other keys, too, and spawn.Outcome.Unheld says
	// whether this one holds.
	apart bool
	// partly: the key means no more than the protection if that is degraded.
	partly bool
	// confined: the key has no protection, and holds in each sandboxed session, but
	// in no other.
	confined bool
}

// asks reports whether there are sessions in which the key does not hold.
func (h holding) asks() bool { return h.protection != "" || h.confined }

// holdings are those of all keys.
var holdings = map[string]holding{
	"enabled":                     {},
	"mode":                        {}, // the keys that it sets count
	"apply_to":                    {},
	"system_paths.executable":     {protection: "execute"},
	"system_paths.read_only":      {protection: "filesystem"},
	"system_paths.read_write":     {protection: "filesystem"},
	"additional_executable_paths": {},
	"additional_read_only_paths":  {},
	"additional_read_write_paths": {},
	"allow_network":               {protection: "network"},
	"allowed_hosts":               {protection: "network_hosts"},
	"denied_hosts":                {confined: true}, // a session that cannot tell hosts apart reaches none
	"localhost":                   {protection: "network", apart: true},
	"allowed_env_vars":            {},
	"allowed_unix_sockets":        {protection: "unix_sockets"},
	"signing_keys":                {protection: "unix_sockets"}, // else the agent itself can be asked
	"credentials":                 {protection: "hidden_paths"}, // else a file of one may be read
	"protected_paths":             {protection: "protected_paths"},
	"hidden_paths":                {protection: "hidden_paths"},
	"parent_repository":           {protection: "filesystem"},
	"temporary_files":             {protection: "temporary_files"},
	"limits.processes":            {protection: "limits", apart: true},
	"limits.memory":               {protection: "limits", apart: true},
	"limits.cpu_weight":           {protection: "limits", apart: true},
	"limits.connections":          {confined: true}, // the sidecar counts those that it makes
	"toolchains":                  {},
	"toolchain_caches":            {protection: "toolchain_caches"},
	"shell":                       {},
	"on_unavailable":              {},
	"on_denied":                   {protection: "denials", partly: true},
	"process_tracking":            {protection: "process_tracking"},
	"audit":                       {}, // a session that cannot be noted says so, or does not start
	"audit_required":              {},
	"audit_argv":                  {},
}

// Unheld is what settings ask for and a session does not have.
type Unheld struct {
	// Keys are those that somebody wrote, as they are written, in the order of the
	// reference.
	Keys []string
	// Partly: a part of the protection holds.
	Partly bool
	// Why says what does not hold, and Fix what the user can do; Fix may be "".
	Why, Fix string
}

// UnheldKeys are the keys that somebody wrote and that do not hold in a session
// with that outcome, together if they ask for the same protection. Of a session
// that the settings leave without a sandbox there are none.
func UnheldKeys(written []policy.Origin, restricted bool, outcome spawn.Outcome) []Unheld {
	if !restricted {
		return nil
	}
	var list []Unheld
	at := map[string]int{} // in list, by protection
	protections := outcome.Protections()
	for _, from := range written {
		asked := holdings[from.Key]
		if !asked.asks() || asked.heldIn(from.Key, protections, outcome) {
			continue
		}
		i, known := at[asked.protection]
		if !known {
			row := protections[asked.protection]
			one := Unheld{
				Why: row.Detail, Fix: row.Fix,
				Partly: !asked.apart && protocol.ProtectionStatus(row.Status) == protocol.Degraded,
			}
			if !outcome.Confined {
				one.Why = "the session is not sandboxed"
			}
			i, list = len(list), append(list, one)
			at[asked.protection] = i
		}
		list[i].Keys = append(list[i].Keys, nameIn(from))
	}
	return list
}

// heldIn reports whether the key holds in a session with that outcome and these
// protections. A protection that nobody reports does not.
func (h holding) heldIn(key string, protections spawn.Protections, outcome spawn.Outcome) bool {
	row, reported := protections[h.protection]
	switch {
	case h.confined:
		return outcome.Confined
	case !reported:
		return false
	case h.apart:
		return !slices.Contains(outcome.Enforcement.Unheld, key)
	case row.NotRequested:
		return true
	}
	switch protocol.ProtectionStatus(row.Status) {
	case protocol.Enforced:
		return true
	case protocol.Degraded:
		return h.partly
	default:
		return false
	}
}

// nameIn is a key as it is written, which may be in the block for one kind. What
// a mode sets has its own name.
func nameIn(from policy.Origin) string {
	if from.Entry == "" && strings.HasSuffix(from.Written, "."+from.Key) {
		return from.Written
	}
	return from.Key
}

// Names are the keys, quoted, for a line.
func (u Unheld) Names() string { return `"` + strings.Join(u.Keys, `", "`) + `"` }

// Warning is one line that names the keys first.
func (u Unheld) Warning() string {
	extent := "not enforced"
	if u.Partly {
		extent = "not fully enforced"
	}
	warning := fmt.Sprintf("%s %s here: %s", u.Names(), extent, u.Why)
	if u.Fix != "" {
		warning += "; fix: " + u.Fix
	}
	return warning
}

// UnheldWarnings are the lines of UnheldKeys.
func UnheldWarnings(written []policy.Origin, restricted bool, outcome spawn.Outcome) []string {
	var warnings []string
	for _, one := range UnheldKeys(written, restricted, outcome) {
		warnings = append(warnings, one.Warning())
	}
	return warnings
}
