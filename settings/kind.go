package settings

// Kind is a kind of session, as the setting apply_to tells them apart.
type Kind string

const (
	// KindTerminal is a terminal the user types into.
	KindTerminal Kind = "terminal"
	// KindTool is a command the agent runs.
	KindTool Kind = "tool"
)

// kinds is a set of kinds.
type kinds struct{ terminal, tool bool }

func (k kinds) has(kind Kind) bool {
	if kind == KindTerminal {
		return k.terminal
	}
	// An unknown kind is treated as the stricter one.
	return k.tool
}

func (k kinds) union(other kinds) kinds {
	return kinds{terminal: k.terminal || other.terminal, tool: k.tool || other.tool}
}

func (k kinds) applyTo() ApplyTo {
	switch k {
	case kinds{terminal: true, tool: true}:
		return ApplyToBoth
	case kinds{terminal: true}:
		return ApplyToTerminal
	case kinds{tool: true}:
		return ApplyToTool
	default:
		return ApplyToNeither
	}
}

// restrictedKinds is what one layer restricts: nothing unless it is enabled,
// whatever apply_to says.
func restrictedKinds(enabled bool, applyTo ApplyTo) kinds {
	if !enabled {
		return kinds{}
	}
	return kinds{
		terminal: applyTo == ApplyToBoth || applyTo == ApplyToTerminal,
		tool:     applyTo == ApplyToBoth || applyTo == ApplyToTool,
	}
}
