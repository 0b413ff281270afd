package darwin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// tryProfile compiles a profile in a process that is discarded, and tries there
// what only a try can show. The error is a *rejection if the compiler is to
// blame; after any other the profile may be good.
type tryProfile func(context.Context, Profile) (Typing, error)

// rejection is why a compiler did not take a profile.
type rejection struct {
	cause string
	// hung: it did not answer in time. So does a machine that is busy, so this is
	// not kept, and no session is refused for it alone.
	hung bool
}

func (r *rejection) Error() string { return r.cause }

// Finding is what is known of the compiler of one macOS.
type Finding struct {
	Dialect Dialect `json:"dialect"`
	// Faults are what the compiler did not take.
	Faults []Fault `json:"faults,omitempty"`
	// Refusal is why no session may start; empty if sessions may.
	Refusal string `json:"refusal,omitempty"`
	// Untried is why nothing is known; empty if the profile was tried.
	Untried string `json:"untried,omitempty"`
}

// Fault is what a compiler did not take.
type Fault struct {
	// Line is the line of the profile.
	Line string `json:"line"`
	// LeftOut is what is left out of the line; empty if it is the whole line.
	LeftOut string `json:"leftOut,omitempty"`
	// Cause is how the compiler ended.
	Cause string `json:"cause"`

	hung bool // the cause is that it did not answer
}

// String names what is left out.
func (f Fault) String() string {
	if f.LeftOut == "" {
		return fmt.Sprintf("%s: %s", f.Line, f.Cause)
	}
	return fmt.Sprintf("%s in %s: %s", f.LeftOut, f.Line, f.Cause)
}

// maxFaults bounds what is looked for in one profile. A compiler that takes less
// is not one that the profile was written for.
const maxFaults = 12

// learn finds out what the compiler of a macOS does not take of a profile, and
// whether a profile without it loosens nothing. Each try halves the lines that
// may be to blame.
func learn(ctx context.Context, p Profile, version int, try tryProfile) Finding {
	var finding Finding
	for range maxFaults {
		left := p.In(finding.Dialect)
		typing, err := try(ctx, left)
		var rejected *rejection
		switch {
		case err == nil:
			finding.Dialect.Typing = typing
			return finding.judged(p, version)
		case !errors.As(err, &rejected):
			return untried(p, version, err)
		}
		fault, without, err := halve(ctx, left, try)
		if err != nil {
			if errors.As(err, &rejected) && !rejected.hung {
				finding.Refusal = "macOS takes no profile of the sandbox: " + rejected.cause
				return finding
			}
			return untried(p, version, err)
		}
		finding.Faults = append(finding.Faults, fault)
		finding.Dialect = finding.Dialect.with(without)
	}
	finding.Refusal = fmt.Sprintf("macOS does not take %d parts of the sandbox's profile", maxFaults)
	return finding
}

// judged refuses what is open in a dialect.
func (f Finding) judged(p Profile, version int) Finding {
	f.Refusal = ""
	open := f.Dialect.loosens(p.Text, version)
	if len(open) == 0 {
		return f
	}
	f.Refusal = "macOS does not take a rule that the sandbox needs: " + open[0]
	// What is left out of a line is the cause only if the line itself is not.
	for _, whole := range []bool{true, false} {
		i := slices.IndexFunc(f.Faults, func(fault Fault) bool {
			return (fault.LeftOut == "") == whole && fault.concerns(open[0], f.Dialect)
		})
		if i >= 0 {
			f.Refusal += ": " + f.Faults[i].Cause
			break
		}
	}
	return f
}

// concerns reports whether the fault is one of that line. Parts of both may be left
// out in the dialect.
func (f Fault) concerns(line string, d Dialect) bool {
	rule, _ := parseRule(line)
	if f.LeftOut == "" {
		other, _ := parseRule(f.Line)
		return d.strip(other).String() == d.strip(rule).String()
	}
	return slices.ContainsFunc(strings.Split(f.LeftOut, ", "), func(part string) bool {
		return slices.Contains(rule.symbols(), part)
	})
}

// untried is the finding if a profile could not be tried.
func untried(p Profile, version int, cause error) Finding {
	finding := Finding{Untried: cause.Error()}
	if d := suspects(p.Text, version); d.loosens(p.Text, version) == nil {
		finding.Dialect = d
	}
	return finding
}

// with is the dialect that leaves out what both do.
func (d Dialect) with(other Dialect) Dialect {
	return Dialect{
		Operations: slices.Concat(d.Operations, other.Operations),
		Modifiers:  slices.Concat(d.Modifiers, other.Modifiers),
		Lines:      slices.Concat(d.Lines, other.Lines),
	}
}

// halve finds the first line of a profile that the compiler does not take, and
// what has to be left out for it.
func halve(ctx context.Context, p Profile, try tryProfile) (Fault, Dialect, error) {
	trial := &trial{ctx: ctx, whole: p, try: try}
	for line := range strings.Lines(p.Text) {
		if strings.HasPrefix(line, "(") {
			trial.lines = append(trial.lines, strings.TrimSuffix(line, "\n"))
		}
	}
	// The version and the default come first, and belong to every profile.
	good, bad := trial.base(), len(trial.lines)
	if why, err := trial.rejects(trial.lines[:good]...); err != nil || why != nil {
		if err != nil {
			return Fault{}, Dialect{}, err
		}
		return trial.narrow(trial.lines[:good-1], trial.lines[good-1], why, true)
	}
	var why *rejection
	for bad-good > 0 {
		middle := (good + bad) / 2
		rejected, err := trial.rejects(trial.lines[:middle+1]...)
		switch {
		case err != nil:
			return Fault{}, Dialect{}, err
		case rejected != nil:
			bad, why = middle, rejected
		default:
			good = middle + 1
		}
	}
	if bad == len(trial.lines) {
		return Fault{}, Dialect{}, errors.New("the compiler took a profile that it had rejected")
	}
	before, line := trial.lines[:trial.base()], trial.lines[bad]
	if why.hung {
		// So does a machine that is busy for a moment. The line would be left out
		// for as long as the sidecar lives.
		again, err := trial.rejects(slices.Concat(before, []string{line})...)
		if err != nil {
			return Fault{}, Dialect{}, err
		}
		if again == nil {
			return Fault{}, Dialect{}, errors.New("the compiler took a line for which it had not answered before")
		}
	}
	return trial.narrow(before, line, why, false)
}

// trial tries parts of a profile.
type trial struct {
	ctx   context.Context
	whole Profile
	lines []string
	try   tryProfile
}

// base is how many lines belong to every profile.
func (t *trial) base() int { return min(2, len(t.lines)) }

// rejects tries a profile of these lines, and returns why the compiler does not
// take it; nil if it does.
func (t *trial) rejects(lines ...string) (rejected *rejection, err error) {
	if err := t.ctx.Err(); err != nil {
		return nil, fmt.Errorf("find out what macOS does not take: %w", err)
	}
	p := Profile{Text: strings.Join(lines, "\n") + "\n", Parameters: t.whole.Parameters}
	_, err = t.try(t.ctx, p)
	if errors.As(err, &rejected) {
		return rejected, nil
	}
	return nil, err
}

// narrow finds out what of a line has to be left out. The lines before it are
// good. If the line is needed, it may not be left out as a whole.
func (t *trial) narrow(before []string, line string, why *rejection, needed bool) (Fault, Dialect, error) {
	rule, ok := parseRule(line)
	if !ok {
		return Fault{}, Dialect{}, why
	}
	fault, d := Fault{Line: line, Cause: why.cause, hung: why.hung}, Dialect{}
	plain := rule
	plain.rest = slices.DeleteFunc(slices.Clone(rule.rest), expression.isModifier)
	if len(plain.rest) < len(rule.rest) {
		rejected, err := t.rejects(slices.Concat(before, []string{plain.String()})...)
		if err != nil {
			return Fault{}, Dialect{}, err
		}
		if rejected == nil {
			for _, part := range rule.rest {
				if part.isModifier() {
					d.Modifiers = append(d.Modifiers, part.shape(true))
				}
			}
			fault.LeftOut = strings.Join(d.Modifiers, ", ")
			return fault, d, nil
		}
	}
	if needed {
		return Fault{}, Dialect{}, why
	}
	for _, operation := range rule.operations {
		rejected, err := t.rejects(slices.Concat(before, []string{"(deny " + operation + ")"})...)
		if err != nil {
			return Fault{}, Dialect{}, err
		}
		if rejected != nil {
			d.Operations = append(d.Operations, operation)
		}
	}
	if d.Operations != nil {
		fault.LeftOut = strings.Join(d.Operations, ", ")
		return fault, d, nil
	}
	d.Lines = []string{rule.form()}
	return fault, d, nil
}
