package lifecycle

// running reports whether a process has this pid and is no zombie.
func running(pid int) bool {
	entry, err := findProcess(pid)
	return err == nil && !entry.dead
}

// roles are what the program is started as to hold a session.
var roles = map[string]func() int{"subreaper": RunSubreaper, "domain-killer": RunDomainKiller}
