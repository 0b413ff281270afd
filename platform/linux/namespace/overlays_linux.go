package namespace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay/message"
)

// mount mounts copies of the holder's overlays over the caches, and proves by
// the paths that they are there. It follows no symlink. Without an overlay the
// session would write the real cache, so any error is one of the session.
func (o *Overlays) mount() error {
	mounts, err := message.Clone(o.Dir, o.Paths)
	defer func() {
		for _, fd := range mounts {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	for i, path := range o.Paths {
		if err := mountOver(path, mounts[i]); err != nil {
			return fmt.Errorf("mount overlay: %s: %w", path, err)
		}
	}
	return nil
}

var errNotOverlay = errors.New("the path does not lead to the overlay")

// mountOver mounts a mount on a path.
func mountOver(path string, mount int) error {
	place, err := openPlain(path)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	const byDescriptor = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	if err := unix.MoveMount(mount, "", place, "", byDescriptor); err != nil {
		return err
	}
	found, err := openPlain(path)
	if err != nil {
		return err
	}
	defer unix.Close(found)
	var got, want unix.Stat_t
	if err := errors.Join(unix.Fstat(found, &got), unix.Fstat(mount, &want)); err != nil {
		return err
	}
	if got.Dev != want.Dev || got.Ino != want.Ino {
		return errNotOverlay
	}
	return nil
}
