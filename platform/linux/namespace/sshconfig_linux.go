package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	sshDir = "/etc/ssh"
	// maxSSHIncludes, in files, and maxSSHConfig, in bytes for each, bound the
	// work. Real configurations have a few small files.
	maxSSHIncludes = 64
	maxSSHConfig   = 256 << 10
)

// copySSHConfig mounts copies that belong to this user over the files that
// ssh's system-wide configuration includes. ssh does not start if such a file
// belongs to anybody but root and the user (readconf.c, read_config_file_depth).
// In a user namespace with one id, root's files belong to "nobody".
func copySSHConfig() error {
	files := foreignIncludes()
	if len(files) == 0 {
		return nil
	}
	copies, err := newTmpfs()
	if err != nil {
		return err
	}
	defer unix.Close(copies)
	var covered, names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || len(content) > maxSSHConfig {
			continue // ssh cannot read it either, or it is not a configuration
		}
		name := strconv.Itoa(len(covered))
		if err := writeAt(copies, name, content); err != nil {
			return err
		}
		covered, names = append(covered, file), append(names, name)
	}
	if err := unix.MountSetattr(copies, "", unix.AT_EMPTY_PATH,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make copies read-only: %w", err)
	}
	trees, err := cloneFiles(copies, names)
	defer closeTrees(trees)
	if err != nil {
		return err
	}
	for i, file := range covered {
		if err := cover(trees[i], file); err != nil {
			return err
		}
	}
	return nil
}

// foreignIncludes lists the real paths of included files that belong to another
// user.
func foreignIncludes() []string {
	var files []string
	seen := map[string]bool{}
	pending := []string{sshDir + "/ssh_config"}
	for depth := 0; len(pending) > 0 && depth < maxSSHIncludes; depth++ {
		content, err := os.ReadFile(pending[0])
		pending = pending[1:]
		if err != nil {
			continue
		}
		for _, name := range sshIncludes(string(content)) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(sshDir, name)
			}
			matches, err := filepath.Glob(name)
			if err != nil {
				continue
			}
			for _, match := range matches {
				real, err := filepath.EvalSymlinks(match)
				if err != nil || seen[real] || len(files) >= maxSSHIncludes {
					continue
				}
				seen[real] = true
				pending = append(pending, real)
				var stat unix.Stat_t
				if unix.Stat(real, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFREG &&
					int(stat.Uid) != os.Geteuid() {
					files = append(files, real)
				}
			}
		}
	}
	return files
}

// newTmpfs makes a small file system in memory that is not mounted on a path
// yet.
func newTmpfs() (int, error) {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make tmpfs: %w", err)
	}
	defer unix.Close(context)
	for _, option := range [][2]string{{"mode", "755"}, {"size", "16m"}} {
		if err := unix.FsconfigSetString(context, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("make tmpfs: option %s: %w", option[0], err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, fmt.Errorf("make tmpfs: %w", err)
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC,
		unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make tmpfs: %w", err)
	}
	return fd, nil
}

func writeAt(dir int, name string, content []byte) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("write copy: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write copy: %w", err)
	}
	return nil
}

// cloneFiles copies the mount of a file system that has no path yet, once for
// each of its files, as a mount of that file alone. The caller closes them. The
// file system is mounted on a directory meanwhile, because a mount without a
// path can only be copied since Linux 6.15.
func cloneFiles(files int, names []string) (trees []int, err error) {
	const place = "/etc"
	if err := unix.MoveMount(files, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("mount copies: %w", err)
	}
	defer func() {
		if unmountErr := unix.Unmount(place, unix.MNT_DETACH); unmountErr != nil {
			err = errors.Join(err, fmt.Errorf("unmount copies: %w", unmountErr))
		}
	}()
	for _, name := range names {
		tree, err := unix.OpenTree(files, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return trees, fmt.Errorf("open copy: %w", err)
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func closeTrees(trees []int) {
	for _, tree := range trees {
		unix.Close(tree)
	}
}

// cover mounts a copy of a file over the file at a path.
func cover(tree int, path string) error {
	err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mount copy: on %s: %w", path, err)
	}
	return nil
}
