package seccomp

import (
	"cmp"
	"fmt"
	"slices"
)

// Filtering says what a filter does besides what every session needs.
type Filtering struct {
	// Offline refuses all sockets but Unix sockets.
	Offline bool `json:"offline"`
	// Sockets sends connect(2) and bind(2) to the supervisor, and refuses Unix
	// sockets for datagrams.
	Sockets bool `json:"sockets"`
	// Observed are the calls that the supervisor inspects before the kernel
	// carries them out or refuses them.
	Observed Observed `json:"observed,omitempty"`
	// Priorities sends calls that change the priority of other processes to the
	// supervisor, and those that ask whether a process exists. If it is false,
	// the first are refused.
	Priorities bool `json:"priorities,omitempty"`
	// Isolated adds calls that use the network to the observed ones. It is for
	// sessions whose network has nothing but a loopback interface.
	Isolated bool `json:"isolated,omitempty"`
	// Hosts sends connect(2) to the supervisor, which reaches hosts for the
	// session.
	Hosts bool `json:"hosts,omitempty"`
	// Shared is for a session with Hosts and Sockets that has no network
	// namespace of its own. If it is Offline, too, only sockets of TCP can be
	// made.
	Shared bool `json:"shared,omitempty"`
	// Localhost, with Sockets, is for a session with the network whose supervisor
	// decides which services of this machine it reaches by TCP.
	Localhost bool `json:"localhost,omitempty"`
}

// Observed names a set of calls. Each set includes the one before it.
type Observed string

const (
	// ObservedNone is the empty set.
	ObservedNone Observed = ""
	// ObservedCreations are calls that create a name, or put another file in the
	// place of one. A program's execution is among them, which tells that the
	// stage is done.
	ObservedCreations Observed = "creations"
	// ObservedNamed adds calls that change files, run programs, send signals and
	// use the network, and those file opens for reading that namedRules describe.
	// No other call changes a file; see changeRules.
	ObservedNamed Observed = "some"
	// ObservedAll adds all file opens.
	ObservedAll Observed = "all"
)

// rulesFor returns all rules of a filter. The rules of one call are evaluated
// in this order.
func rulesFor(f Filtering) []rule {
	rules := f.observationRules()
	if f.Sockets {
		rules = append(rules, mediationRules...)
	} else if f.Hosts && (f.Observed == ObservedNone || !f.Isolated) {
		rules = append(rules, hostsRule) // otherwise observationRules have it
	}
	if f.Shared {
		rules = append(rules, sharedRules()...)
	}
	if f.Localhost {
		rules = append(rules, localhostRules()...)
	}
	rules = append(rules, baseRules...)
	rules = append(rules, priorityRules(f.Priorities)...)
	if f.Priorities && (f.Observed == ObservedNone || f.Observed == ObservedCreations) {
		rules = append(rules, existenceRules()...) // otherwise changingCalls have them
	}
	if f.Observed.SeesChanges() {
		rules = append(rules, changeRules()...)
	}
	switch {
	case f.Offline && f.Shared:
		return append(rules, sharedSocketRules(f.Observed != ObservedNone)...)
	case f.Offline && f.Observed != ObservedNone:
		return append(rules, observedOfflineRules...)
	case f.Offline:
		return append(rules, offlineRules...)
	case f.Observed.SeesChanges() && !f.Isolated:
		return append(rules, askedSocketRules()...)
	}
	return append(rules, socketRules...)
}

// Supervised reports whether the filter needs a supervisor.
func (f Filtering) Supervised() bool {
	return f.Sockets || f.Hosts || f.Priorities || f.Observed != ObservedNone
}

// SupervisedCalls lists, without repetition, the calls for which the filter
// asks the supervisor in at least one case.
func (f Filtering) SupervisedCalls() []string {
	var calls []string
	for _, rule := range rulesFor(f) {
		if rule.do == actionNotify && !slices.Contains(calls, rule.call) {
			calls = append(calls, rule.call)
		}
	}
	return calls
}

// Filter makes the program for an architecture, given by Go's name. It is a
// pure function. An error means that the architecture is not known.
//
// The program kills a process that makes a call of another architecture than
// this one and its 32-bit predecessor: there the numbers mean other calls.
func Filter(goarch string, filtering Filtering) (Program, error) {
	return assemble(goarch, rulesFor(filtering))
}

func assemble(goarch string, rules []rule) (Program, error) {
	m, err := machineOf(goarch)
	if err != nil {
		return nil, err
	}
	b := &builder{}
	native, compat := b.label(), b.label()
	b.loadArch()
	b.ifEqual(m.native.audit, native, next)
	b.ifEqual(m.compat.audit, compat, next)
	b.answer(uint32(actionKill))
	b.place(native)
	b.loadNr()
	if m.x32 {
		// No rule knows the numbers of x32 calls. Current distributions build
		// their kernels without x32.
		known := b.label()
		b.ifAny(x32Bit, next, known)
		b.answer(uint32(refuseENOSYS))
		b.place(known)
	}
	if err := b.dispatch(m.native, rules); err != nil {
		return nil, err
	}
	b.place(compat)
	b.loadNr()
	if err := b.dispatch(m.compat, rules); err != nil {
		return nil, err
	}
	return b.build()
}

// dispatch writes the rules for one architecture. The number of the call is
// loaded already. Every path ends in a return.
func (b *builder) dispatch(a *arch, rules []rule) error {
	type group struct {
		start label
		rules []rule
	}
	var groups []*group
	var branches []branch
	byCall := map[string]*group{}
	answers := map[Action]label{}
	answer := func(do Action) label {
		if _, known := answers[do]; !known {
			answers[do] = b.label()
		}
		return answers[do]
	}
	for _, rule := range rules {
		known, named := numbersOf(rule.call)
		if !named {
			return fmt.Errorf("filter system calls: %s has no number", rule.call)
		}
		number := a.number(known)
		if number == none {
			continue
		}
		g := byCall[rule.call]
		if g == nil {
			g = &group{start: b.label()}
			byCall[rule.call] = g
			if len(rule.when) == 0 {
				branches = append(branches, branch{uint32(number), answer(rule.do)})
				continue
			}
			groups = append(groups, g)
			branches = append(branches, branch{uint32(number), g.start})
		}
		g.rules = append(g.rules, rule)
	}
	slices.SortFunc(branches, func(x, y branch) int { return cmp.Compare(x.number, y.number) })
	for i := 1; i < len(branches); i++ {
		if branches[i-1].number == branches[i].number {
			return fmt.Errorf("filter system calls: two calls have the number %d", branches[i].number)
		}
	}
	b.search(branches, answer(actionAllow))
	for _, g := range groups {
		b.place(g.start)
		for _, rule := range g.rules {
			b.rule(a, rule, answer(rule.do))
		}
		if last := g.rules[len(g.rules)-1]; len(last.when) > 0 {
			b.answer(uint32(actionAllow))
		}
	}
	for _, do := range []Action{
		actionAllow, actionNotify, refuseEPERM, refuseEACCES, refuseENOSYS,
		refuseEPROTONOSUPPORT, refuseEOPNOTSUPP, refuseEAFNOSUPPORT,
	} {
		if l, used := answers[do]; used {
			b.place(l)
			b.answer(uint32(do))
		}
	}
	return nil
}

// rule jumps to the answer if every condition of the rule holds, and goes on
// behind it if one fails.
func (b *builder) rule(a *arch, r rule, answer label) {
	if len(r.when) == 0 {
		b.jump(answer)
		return
	}
	fails, last := b.label(), len(r.when)-1
	for _, condition := range r.when[:last] {
		holds := b.label()
		b.test(a, condition, holds, fails)
		b.place(holds)
	}
	b.test(a, r.when[last], answer, fails)
	b.place(fails)
}

// branch leads from the number of a call to its rules, or to its answer.
type branch struct {
	number uint32
	to     label
}

// leafBranches are compared one after the other. Halving them would not save an
// instruction.
const leafBranches = 3

// search finds the loaded number among sorted branches by halving. When the
// kernel installs a filter it runs it once for every call number, up to the
// first instruction that reads an argument (seccomp_cache_prepare, Linux 5.11).
// A chain of comparisons makes that twice as slow.
func (b *builder) search(branches []branch, other label) {
	if len(branches) <= leafBranches {
		for _, found := range branches {
			b.ifEqual(found.number, found.to, next)
		}
		b.jump(other)
		return
	}
	half := len(branches) / 2
	upper := b.label()
	b.ifAtLeast(branches[half].number, upper, next)
	b.search(branches[:half], other)
	b.place(upper)
	b.search(branches[half:], other)
}

// test jumps to yes if the condition holds, and to no otherwise.
func (b *builder) test(a *arch, c condition, yes, no label) {
	switch mask := c.maskOn(a); {
	case c.stack:
		for _, r := range a.stacks {
			other := b.label()
			b.ifEqual64(c.arg, r.mask, r.bits, yes, other)
			b.place(other)
		}
		b.jump(no)
	case c.anyBit:
		b.ifAny64(c.arg, mask, yes, no)
	default:
		b.ifEqual64(c.arg, mask, c.equals, yes, no)
	}
}
