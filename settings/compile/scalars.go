package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
)

const (
	networkKey         = "allow_network"
	localhostKey       = "localhost"
	temporaryKey       = "temporary_files"
	cachesKey          = "toolchain_caches"
	processesKey       = "limits.processes"
	memoryKey          = "limits.memory"
	weightKey          = "limits.cpu_weight"
	connectionsKey     = "limits.connections"
	onUnavailableKey   = "on_unavailable"
	onDeniedKey        = "on_denied"
	processTrackingKey = "process_tracking"
	auditKey           = "audit"
	auditRequiredKey   = "audit_required"
	auditArgvKey       = "audit_argv"
)

// scalar is a key of a single value. The steps of an evaluation ask its row in
// the table: what an untrusted project and the organisation may make of the
// value, what a trusted project's value opens, and what a policy has of it.
type scalar struct {
	key string
	// strict is the value that a project and the organisation may choose; nil if
	// there is none.
	strict any
	// order are the values from the loosest to the strictest, if there are more
	// than two.
	order []string
	// lower is a, with the lower limit of both; nil if the key is no limit.
	lower func(a, b policy.Limits) policy.Limits
	// opens says what a value opens that is not strict, or a higher limit. %v is
	// the value.
	opens string
	// apply adds the value to a policy; nil if a family of keys does.
	apply func(p *policy.Policy, merged document.Sandbox)
	// useless says why the user's value has no effect; "" if it has. It may be
	// nil.
	useless func(e *evaluation) string

	// ofUser: an untrusted project has no say.
	ofUser bool
	// platform is the only one on which the key has an effect; "" if it has on
	// all.
	platform string
	// bound and ask replace what strict and lower say about the organisation's
	// value and about a trusted project's.
	bound func(b bounding, s *settings)
	ask   func(b *asker)
}

// scalars is the table of keys with a single value. enabled and apply_to, which
// are judged together, have restrict instead.
var scalars = []scalar{
	{
		key: networkKey, strict: false, bound: bounding.network,
		opens: "sessions may reach the network, and send there what they can read",
	},
	{
		key: localhostKey, order: localhostOrder, ask: (*asker).localhost,
		useless: (*evaluation).uselessLocalhost,
	},
	{key: parentKey, order: parentOrder, ask: (*asker).parent},
	{
		key: temporaryKey, strict: document.TemporaryFilesPrivate,
		opens: "sessions may read and change the temporary files of your other programs",
	},
	{
		key: cachesKey, strict: document.ToolchainCachesPrivate,
		opens: "programs outside run and build with what sessions write to the caches of toolchains",
	},
	{
		key: processesKey, opens: "a session may have %v processes and threads",
		lower: func(a, b policy.Limits) policy.Limits {
			a.Processes = min(a.Processes, b.Processes)
			return a
		},
	},
	{
		key: memoryKey, opens: "a session may have %v of memory",
		lower: func(a, b policy.Limits) policy.Limits {
			a.Memory = a.Memory.Lower(b.Memory)
			return a
		},
	},
	{
		key: weightKey, opens: "a session's share of a busy processor may be %v, compared with 100",
		lower: func(a, b policy.Limits) policy.Limits {
			a.CPUWeight = min(a.CPUWeight, b.CPUWeight)
			return a
		},
	},
	{
		key: connectionsKey, opens: "a session may have %v connections to hosts at a time",
		lower: func(a, b policy.Limits) policy.Limits {
			a.Connections = min(a.Connections, b.Connections)
			return a
		},
	},
	{key: onUnavailableKey, strict: document.OnUnavailableRefuse, ask: (*asker).onUnavailable},
	{
		key: onDeniedKey, ofUser: true, bound: bounding.onDenied, ask: (*asker).onDenied,
		apply: func(p *policy.Policy, merged document.Sandbox) { p.OnDenied = onDenied[*merged.OnDenied] },
	},
	{
		key: processTrackingKey, strict: document.ProcessTrackingSeatbelt, ofUser: true, platform: "darwin",
		ask: (*asker).processTracking,
		apply: func(p *policy.Policy, merged document.Sandbox) {
			p.TrackBySandbox = *merged.ProcessTracking == document.ProcessTrackingSeatbelt
		},
	},
	{
		key: auditKey, ofUser: true, bound: bounding.audit,
		useless: func(e *evaluation) string {
			if *e.user.values.Audit == document.AuditJournal && e.host.Platform != "linux" {
				return `there is no journal of systemd here; use "file"`
			}
			return ""
		},
	},
	{
		key: auditRequiredKey, strict: true, ofUser: true,
		useless: func(e *evaluation) string {
			if *e.user.values.AuditRequired && !e.policy.Audit.On() {
				return `has no effect while "audit" is "off"`
			}
			return ""
		},
	},
	{
		key: auditArgvKey, ofUser: true, bound: bounding.auditArgv,
		apply: func(p *policy.Policy, merged document.Sandbox) {
			p.Audit.ProgramOnly = *merged.AuditArgv == document.AuditArgvProgram
		},
	},
}

// ScalarKeys are the keys that have a single value and decide about a policy, in
// the order in which they are shown.
func ScalarKeys() []string {
	keys := []string{modeKey, enabledKey, applyToKey}
	for _, row := range scalars {
		if row.platform == "" {
			keys = append(keys, row.key)
		}
	}
	return keys
}

// IsScalar reports whether a key has a single value, and decides about a policy.
func IsScalar(key string) bool { return slices.Contains(ScalarKeys(), key) }

// keysOfUser are the keys of a single value in which an untrusted project has no
// say.
func keysOfUser() (keys []string) {
	for _, row := range scalars {
		if row.ofUser {
			keys = append(keys, row.key)
		}
	}
	return keys
}

// isStrict reports whether values have the strict value of the key.
func (row scalar) isStrict(values *document.Sandbox) bool {
	v, set := document.KeyNamed(row.key).Get(values)
	return set && v.Elem().Interface() == row.strict
}

// isStricter reports whether one value of a key with an order is stricter than
// another.
func (row scalar) isStricter(one, other *document.Sandbox) bool {
	rank := func(values *document.Sandbox) int {
		v, set := document.KeyNamed(row.key).Get(values)
		if !set {
			return -1
		}
		return slices.Index(row.order, v.Elem().String())
	}
	return row.order != nil && rank(one) > rank(other)
}

// hasEffect reports whether the key has an effect on a platform.
func (row scalar) hasEffect(platform string) bool {
	return row.platform == "" || row.platform == platform
}

// isStrict reports whether a key has its strict value: because the user or the
// project says so, or, forced, the organisation.
func (l layers) isStrict(key string) (strict, forced bool) {
	row := scalars[slices.IndexFunc(scalars, func(row scalar) bool { return row.key == key })]
	forced = slices.ContainsFunc(l.bounds, func(bound settings) bool { return row.isStrict(&bound.values) })
	both := l.values()
	return forced || row.isStrict(&both), forced
}

// tightenScalars takes over what an untrusted project's file tightens, and
// returns the limits that are left.
func (l layers) tightenScalars() policy.Limits {
	limits := limitsOf(l.base.Limits)
	for _, row := range scalars {
		switch {
		case row.ofUser || !l.projectSets(row.key):
		case row.lower != nil:
			if both := row.lower(limits, limitsOf(l.project.values.Limits)); both != limits {
				limits = both
				l.take(row.key)
			}
		case row.isStricter(&l.project.values, &l.base):
			l.take(row.key)
		case row.isStrict(&l.project.values) && !row.isStrict(&l.base):
			l.take(row.key)
		}
	}
	return limits
}

// scalars applies the keys of a single value.
func (b bounding) scalars(s *settings) {
	for _, row := range scalars {
		switch {
		case !row.hasEffect(b.fsView.host.Platform):
		case row.bound != nil:
			row.bound(b, s)
		case !s.sets(row.key):
		case row.lower != nil:
			if both := row.lower(b.policy.Limits, limitsOf(s.values.Limits)); both != b.policy.Limits {
				b.policy.Limits = both
				b.takes(s, row.key)
			}
		case row.isStrict(&s.values), row.isStricter(&s.values, &b.merged):
			b.takes(s, row.key)
		}
	}
}

// applyScalars adds to the policy what depends on nothing but a value.
func (e *evaluation) applyScalars() {
	for _, row := range scalars {
		if row.apply != nil && row.hasEffect(e.host.Platform) {
			row.apply(&e.policy, e.merged)
		}
	}
	e.policy.Limits.Origin = e.originOf(processesKey)
}

// scalars asks for the keys of a single value.
func (b *asker) scalars() {
	for _, row := range scalars {
		if row.ask != nil {
			row.ask(b)
			continue
		}
		looser := row.isStrict(&b.alone.merged) && !row.isStrict(&b.e.merged)
		if limits := b.e.policy.Limits; row.lower != nil {
			looser = row.lower(limits, b.alone.policy.Limits) != limits
		}
		if looser && row.opens != "" {
			b.addKey(row.key, "%s", strings.ReplaceAll(row.opens, "%v", fmt.Sprint(b.e.valueOf(row.key))))
		}
	}
}

// valueOf is the value of a key that is set.
func (e *evaluation) valueOf(key string) any {
	value, set := document.KeyNamed(key).Get(&e.merged)
	if !set {
		panic("BUG(sandbox-sidecar): no value of " + key)
	}
	return value.Elem().Interface()
}

// Switch is a key of a single value, with the value that counts and its origin.
type Switch struct {
	Key string
	// Value is JSON.
	Value  string
	Origin policy.Origin
}

// switches lists the keys that decide about a policy beside its lists.
func (e *evaluation) switches(kind document.Kind) []Switch {
	var list []Switch
	add := func(key string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %s: %v", key, err))
		}
		list = append(list, Switch{Key: key, Value: string(text), Origin: e.originOf(key)})
	}
	if mode := e.merged.Mode; mode != nil {
		add("mode", *mode)
	}
	add(enabledKey, *e.merged.Enabled)
	add(applyToKey, *e.merged.ApplyTo)
	for _, row := range scalars {
		switch {
		case row.platform != "": // it decides about no policy of sandboxed sessions
		case row.key == onUnavailableKey: // whose default depends on the kind
			add(row.key, e.onUnavailable(kind))
		default:
			add(row.key, e.valueOf(row.key))
		}
	}
	return list
}

// limitsOf are the limits of a layer, which were decoded before. One that is
// not set is zero.
func limitsOf(l *document.Limits) policy.Limits {
	var limits policy.Limits
	if l == nil {
		return limits
	}
	if l.Processes != nil {
		limits.Processes = *l.Processes
	}
	if l.CPUWeight != nil {
		limits.CPUWeight = *l.CPUWeight
	}
	if l.Connections != nil {
		limits.Connections = *l.Connections
	}
	if l.Memory != nil {
		bytes, percent, valid := document.ParseMemory(*l.Memory)
		if !valid {
			panic("BUG(sandbox-sidecar): " + memoryKey + " is " + *l.Memory)
		}
		limits.Memory = policy.Memory{Bytes: bytes, Percent: percent}
	}
	return limits
}

// requireProtected reports whether nothing starts on a machine that cannot
// protect the paths. That needs an explicit setting: as a default it would leave
// tools without any sandbox in most containers.
func (e *evaluation) requireProtected() bool {
	if e.bounds.protects {
		return true
	}
	set := e.merged.OnUnavailable
	return set != nil && *set == document.OnUnavailableRefuse && len(e.policy.Protected) > 0
}

// onUnavailable is the stricter of what the user and the project say for the
// kind.
func (e *evaluation) onUnavailable(kind document.Kind) policy.OnUnavailable {
	strictest := document.DefaultOnUnavailable(kind)
	if e.merged.OnUnavailable != nil {
		strictest = *e.merged.OnUnavailable
	}
	if strictest == document.OnUnavailableWarn {
		return policy.Warn
	}
	return policy.Refuse
}

// onUnavailable asks for each kind, because the default depends on it.
func (b *asker) onUnavailable() {
	for _, kind := range b.e.kinds() {
		if b.e.onUnavailable(kind) == policy.Warn && b.alone.onUnavailable(kind) == policy.Refuse {
			b.addKey(onUnavailableKey, "%ss start without a sandbox if the machine has none", kind)
		}
	}
}

// onDenied is the setting in the policy's words.
var onDenied = map[document.OnDenied]policy.OnDenied{
	document.OnDeniedReport: policy.Report, document.OnDeniedAsk: policy.Ask, document.OnDeniedIgnore: policy.Ignore,
}

// onDenied takes over what the file says. A question lets the user allow what
// was refused, so only the organisation can want one.
func (b bounding) onDenied(s *settings) {
	switch v := s.values.OnDenied; {
	case v != nil && *v != document.OnDeniedAsk:
		b.takes(s, onDeniedKey)
	case v == nil && *b.merged.OnDenied == document.OnDeniedAsk && managed.Holds(b.fileOf(s)):
		b.bounds.from[onDeniedKey] = origin{file: b.fileOf(s)}
		b.origins[onDeniedKey], b.merged.OnDenied = b.fileOf(s), new(document.OnDeniedReport)
	}
}

func (b *asker) onDenied() {
	if b.e.policy.OnDenied != b.alone.policy.OnDenied {
		b.addKey(onDeniedKey, "%s", map[policy.OnDenied]string{
			policy.Ignore: "denials are no longer reported to you",
			policy.Ask:    "sessions can make your editor ask you for permissions",
			policy.Report: "denials are reported to you, but you are not asked",
		}[b.e.policy.OnDenied])
	}
}

func (b *asker) processTracking() {
	if was := *b.alone.merged.ProcessTracking; *b.e.merged.ProcessTracking != was {
		b.addKey(processTrackingKey, "on macOS, processes are tracked in another way than your own settings say (%q)",
			was)
	}
}

// takes takes the value of a key over from the file.
func (b bounding) takes(s *settings, key string) {
	k := document.KeyNamed(key)
	if v, set := k.Get(&s.values); set {
		k.Set(&b.merged, v)
	}
	b.decides(s, key, nil)
}
