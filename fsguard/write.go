package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file whole. After a crash either the old content or the new
// one is there. A symlink in its place is replaced, not followed.
func Replace(path string, data []byte, mode fs.FileMode) error {
	return write(opReplace, path, data, mode, replace)
}

// ReplaceSoon is Replace that does not wait for a local disk. After a crash of the
// machine the file may be empty. It is for what can be done without.
func ReplaceSoon(path string, data []byte, mode fs.FileMode) error {
	return write(opReplace, path, data, mode, func(path string, data []byte, mode fs.FileMode) error {
		return rename(path, data, mode, false)
	})
}

// Create makes a file that does not exist: otherwise the error is fs.ErrExist.
// It follows no symlink in the file's place. If the data cannot be written,
// there is no file.
func Create(path string, data []byte, mode fs.FileMode) error {
	return write(opCreate, path, data, mode, create)
}

func write(
	op operation, path string, data []byte, mode fs.FileMode, local func(string, []byte, fs.FileMode) error,
) error {
	if !anyRemote() {
		return local(path, data, mode)
	}
	at, err := real(path, false)
	if err != nil {
		return err
	}
	remote := remoteOf(at)
	if remote == nil {
		return local(at, data, mode)
	}
	_, err = remote.call(request{Op: op, Path: text(at), Data: data, Mode: mode})
	return err
}

func replace(path string, data []byte, mode fs.FileMode) error {
	if err := rename(path, data, mode, true); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// rename writes a file beside another, and renames it to that.
func rename(path string, data []byte, mode fs.FileMode, sync bool) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // already gone if all went well
	_, err = temp.Write(data)
	if mode != 0o600 {
		err = errors.Join(err, temp.Chmod(mode))
	}
	if sync {
		err = errors.Join(err, temp.Sync())
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func create(path string, data []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}
