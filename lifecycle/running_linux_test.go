package lifecycle

// running reports whether a process has this pid and is no zombie.
func running(pid int) bool {
	entry, err := findProcess(pid)
	return err == nil && !entry.dead
}

func runKeeper() int { return RunKeeper() }
