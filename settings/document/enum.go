package document

// enum is implemented by the string types that allow only some values. The
// decoder asks for the list, so that a new value is added in one place.
type enum interface{ Values() []string }

func (ApplyTo) Values() []string {
	return []string{string(ApplyToTerminal), string(ApplyToTool), string(ApplyToBoth), string(ApplyToNeither)}
}

func (OnUnavailable) Values() []string {
	return []string{string(OnUnavailableRefuse), string(OnUnavailableWarn)}
}

func (OnDenied) Values() []string {
	return []string{string(OnDeniedReport), string(OnDeniedAsk), string(OnDeniedIgnore)}
}

func (ProcessTracking) Values() []string {
	return []string{string(ProcessTrackingAuto), string(ProcessTrackingSeatbelt)}
}
