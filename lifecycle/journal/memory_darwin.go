package journal

// makeMemoryFile makes a file without a name, locked and opened twice.
func makeMemoryFile() (*journalFile, error) { return makeUnnamedFile() }
