package document

// Kind is a kind of session, as the setting apply_to distinguishes them.
type Kind string

const (
	// KindTerminal is a terminal that the user types into.
	KindTerminal Kind = "terminal"
	// KindTool is a command that the agent runs.
	KindTool Kind = "tool"
)

// Other is the other kind.
func (k Kind) Other() Kind {
	if k == KindTerminal {
		return KindTool
	}
	return KindTerminal
}

// Kinds is a set of kinds.
type Kinds struct{ Terminal, Tool bool }

// Has reports whether the set holds the kind.
func (k Kinds) Has(kind Kind) bool {
	if kind == KindTerminal {
		return k.Terminal
	}
	// An unknown kind is treated as the stricter one.
	return k.Tool
}

// Union returns the kinds of both sets.
func (k Kinds) Union(other Kinds) Kinds {
	return Kinds{Terminal: k.Terminal || other.Terminal, Tool: k.Tool || other.Tool}
}

// ApplyTo returns the value of the key apply_to that means this set.
func (k Kinds) ApplyTo() ApplyTo {
	switch k {
	case Kinds{Terminal: true, Tool: true}:
		return ApplyToBoth
	case Kinds{Terminal: true}:
		return ApplyToTerminal
	case Kinds{Tool: true}:
		return ApplyToTool
	default:
		return ApplyToNeither
	}
}

// RestrictedKinds is what one layer restricts: nothing unless it is enabled,
// whatever apply_to says.
func RestrictedKinds(enabled bool, applyTo ApplyTo) Kinds {
	if !enabled {
		return Kinds{}
	}
	return Kinds{
		Terminal: applyTo == ApplyToBoth || applyTo == ApplyToTerminal,
		Tool:     applyTo == ApplyToBoth || applyTo == ApplyToTool,
	}
}
