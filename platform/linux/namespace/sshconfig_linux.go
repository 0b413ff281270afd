package namespace

import (
	"errors"
	"fmt"
	"io"
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
	files := foreignIncludes(sshDir + "/ssh_config")
	defer func() {
		for _, file := range files {
			unix.Close(file.place)
		}
	}()
	if len(files) == 0 {
		return nil
	}
	copies, err := newTmpfs()
	if err != nil {
		return err
	}
	defer unix.Close(copies)
	var names []string
	for i, file := range files {
		name := strconv.Itoa(i)
		if err := writeAt(copies, name, file.content); err != nil {
			return err
		}
		names = append(names, name)
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
	for i, file := range files {
		// A file that was removed meanwhile cannot be covered.
		if err := moveMount(trees[i], file.place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cover %s by its copy: %w", file.path, err)
		}
	}
	return nil
}

// include is a file of ssh's configuration. What is judged, read and covered is
// the file that was opened, wherever its path leads by then.
type include struct {
	path    string
	place   int // opened with O_PATH
	content []byte
	foreign bool // it belongs to another user
}

var errNoConfig = errors.New("no regular file, or too large for a configuration of ssh")

// openInclude opens and reads a file by its real path. It follows no symlink,
// waits for nobody, and reads no more than maxSSHConfig. The caller closes the
// place.
func openInclude(real string) (include, error) {
	place, err := openPlain(real)
	if err != nil {
		return include{}, err
	}
	found := include{path: real, place: place}
	if err := found.read(); err != nil {
		unix.Close(place)
		return include{}, fmt.Errorf("read %s: %w", real, err)
	}
	return found, nil
}

func (i *include) read() error {
	var stat unix.Stat_t
	if err := unix.Fstat(i.place, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size > maxSSHConfig {
		return errNoConfig
	}
	// O_NONBLOCK: another program may hold a lease on the file.
	file, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(i.place), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	// The read needs the limit too: the file may grow meanwhile.
	if i.content, err = io.ReadAll(io.LimitReader(file, maxSSHConfig+1)); err != nil {
		return err
	}
	if len(i.content) > maxSSHConfig {
		return errNoConfig
	}
	i.foreign = int(stat.Uid) != os.Geteuid()
	return nil
}

// foreignIncludes opens the files that a configuration includes, at any depth,
// and that belong to another user. The caller closes their places. What cannot be
// read is left out: ssh cannot read it either, or it is no configuration.
func foreignIncludes(config string) []include {
	var files []include
	seen := map[string]bool{}
	var pending [][]byte
	open := func(name string, included bool) {
		real, err := filepath.EvalSymlinks(name)
		if err != nil || seen[real] || len(seen) > maxSSHIncludes {
			return
		}
		seen[real] = true
		found, err := openInclude(real)
		if err != nil {
			return
		}
		pending = append(pending, found.content)
		if included && found.foreign {
			files = append(files, found)
			return
		}
		unix.Close(found.place)
	}
	open(config, false)
	for len(pending) > 0 {
		content := pending[0]
		pending = pending[1:]
		for _, name := range sshIncludes(string(content)) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(sshDir, name)
			}
			matches, err := filepath.Glob(name)
			if err != nil {
				continue
			}
			for _, match := range matches {
				open(match, true)
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
