package document

// enum is implemented by the string types that allow only some values. The
// decoder asks for the list, so that a new value is added in one place.
type enum interface{ Values() []string }

// Values are all that the key allows.
func (Mode) Values() []string {
	return []string{string(ModeStrict), string(ModeStandard), string(ModeRelaxed), string(ModeOff)}
}

// Values are all that the key allows.
func (ApplyTo) Values() []string {
	return []string{string(ApplyToTerminal), string(ApplyToTool), string(ApplyToBoth), string(ApplyToNeither)}
}

// Values are all that the key allows.
func (Localhost) Values() []string {
	return []string{string(LocalhostOwn), string(LocalhostAll), string(LocalhostNone)}
}

// Values are all that the key allows.
func (ParentRepository) Values() []string {
	return []string{string(ParentRead), string(ParentGit), string(ParentOff)}
}

// Values are all that the key allows.
func (TemporaryFiles) Values() []string {
	return []string{string(TemporaryFilesPrivate), string(TemporaryFilesShared)}
}

// Values are all that the key allows.
func (ToolchainCaches) Values() []string {
	return []string{string(ToolchainCachesPrivate), string(ToolchainCachesShared)}
}

// Values are all that the key allows.
func (OnUnavailable) Values() []string {
	return []string{string(OnUnavailableRefuse), string(OnUnavailableWarn)}
}

// Values are all that the key allows.
func (OnDenied) Values() []string {
	return []string{string(OnDeniedReport), string(OnDeniedAsk), string(OnDeniedIgnore)}
}

// Values are all that the key allows.
func (ProcessTracking) Values() []string {
	return []string{string(ProcessTrackingAuto), string(ProcessTrackingSeatbelt)}
}

// Values are all that the key allows.
func (Audit) Values() []string {
	return []string{string(AuditOff), string(AuditFile), string(AuditJournal)}
}

// Values are all that the key allows.
func (AuditArgv) Values() []string {
	return []string{string(AuditArgvRedacted), string(AuditArgvProgram)}
}
