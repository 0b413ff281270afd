package platform

// Alarm tells that something happened to a protected path.
type Alarm struct {
	Kind AlarmKind
	// Path is absolute.
	Path string
}

// AlarmKind is what happened, as notifications name it.
type AlarmKind string

const (
	// AlarmCreated: a protected path that did not exist does now. Nothing could
	// prevent that.
	AlarmCreated AlarmKind = "protected_created"
	// AlarmReplaced: it was replaced, moved or removed by a program outside,
	// which takes the protection off what stands there now; or by the session,
	// where it is not prevented.
	AlarmReplaced AlarmKind = "protected_replaced"
	// AlarmWritten: it was written where that is not prevented.
	AlarmWritten AlarmKind = "protected_written"
	// AlarmRefused: a change was tried and refused.
	AlarmRefused AlarmKind = "protected_write"
)

// Watcher is a look-out for alarms.
type Watcher interface {
	// Close looks a last time, which may raise alarms, and ends it. No alarm is
	// raised after it has returned. Closing twice is harmless.
	Close()
}
