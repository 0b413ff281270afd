package platform

// Alarm reports that something happened to a protected path.
type Alarm struct {
	Kind AlarmKind
	// Path is absolute.
	Path string
}

// AlarmKind is what happened, as notifications name it.
type AlarmKind string

const (
	// AlarmCreated: a protected path that did not exist was created. Nothing
	// could prevent that.
	AlarmCreated AlarmKind = "protected_created"
	// AlarmReplaced: the path was replaced, moved or removed. Either a program
	// outside the sandbox did it, so the new file there is not protected; or
	// the session did, on a machine that does not prevent it.
	AlarmReplaced AlarmKind = "protected_replaced"
	// AlarmWritten: the session wrote to it, on a machine that does not prevent
	// it.
	AlarmWritten AlarmKind = "protected_written"
	// AlarmRefused: a change was attempted and denied.
	AlarmRefused AlarmKind = "protected_write"
)

// Watcher watches protected paths and raises alarms.
type Watcher interface {
	// Close checks the paths once more, which may raise alarms, and stops. No
	// alarm is raised after it has returned. Closing twice is harmless.
	Close()
}
