package overlay

// mountName is what the holder mounts the overlay on, in the directory of a
// cache.
const mountName = "mount"

var cacheDirs = []string{upperName, workName, mountName, emptyName}
