package seccomp

import "slices"

// model answers as the table of rules says, without a program.
type model struct {
	machine
	nativeRules, compatRules map[int32][]rule
}

func modelOf(m machine, filtering Filtering) model {
	byNumber := func(a *arch) map[int32][]rule {
		rules := map[int32][]rule{}
		for _, rule := range rulesFor(filtering) {
			if number := numberOn(a, rule.call); number != none {
				rules[int32(number)] = append(rules[int32(number)], rule)
			}
		}
		return rules
	}
	return model{machine: m, nativeRules: byNumber(m.native), compatRules: byNumber(m.compat)}
}

func (m model) answer(d *seccompData) Action {
	a, rules := m.native, m.nativeRules
	switch {
	case d.arch == m.native.audit && m.x32 && d.nr&x32Bit != 0:
		return refuseENOSYS
	case d.arch == m.native.audit:
	case d.arch == m.compat.audit:
		a, rules = m.compat, m.compatRules
	default:
		return actionKill
	}
	for _, rule := range rules[d.nr] {
		if rule.holds(a, d) {
			return rule.do
		}
	}
	return actionAllow
}

func (r rule) holds(a *arch, d *seccompData) bool {
	for _, c := range r.when {
		arg := d.args[c.arg]
		masked := arg & c.maskOn(a)
		switch {
		case c.stack && !slices.ContainsFunc(a.stacks, func(r region) bool { return arg&r.mask == r.bits }),
			!c.stack && c.anyBit && masked == 0,
			!c.stack && !c.anyBit && masked != c.equals:
			return false
		}
	}
	return true
}
