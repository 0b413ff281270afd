package platform

// Alarm reports that something happened to a protected path.
type Alarm struct {
	Kind AlarmKind
	// Path is absolute.
	Path string
	// Why says, of AlarmStored, which command of git would put it in place.
	Why string
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
	// AlarmStored: the path itself is the same, but git holds new content for it.
	AlarmStored AlarmKind = "protected_stored"
)

// Watch is what a Watcher watches, beside the protected paths, and whom it tells.
type Watch struct {
	// Raise is called for each alarm.
	Raise func(Alarm)
	// Refs are directories in which git keeps refs and indexes; see also
	// Watcher.Refs. Touched is called whenever something in one may have changed,
	// but not for what is in a directory below. It must not block.
	Refs    []string
	Touched func()
}

// Watcher watches protected paths and raises alarms.
type Watcher interface {
	// Refs watches more directories, as Watch.Refs does; those that are watched
	// already may be among them. It reports whether one is new.
	Refs(dirs []string) bool
	// Close checks the paths once more, which may raise alarms, and stops. No
	// alarm is raised after it has returned. Closing twice is harmless.
	Close()
}
