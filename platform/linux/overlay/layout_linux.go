package overlay

const (
	// socketName is the holder's socket, in the directory of the overlays.
	socketName = "socket"
	// mountName is what the holder mounts the overlay on, in the directory of a
	// cache.
	mountName = "mount"
)

var cacheDirs = []string{upperName, workName, mountName, emptyName}
