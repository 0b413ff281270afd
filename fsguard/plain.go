package fsguard

import (
	"errors"
	"io/fs"
	"strconv"
)

// ReadPlain reads a regular file up to a number of bytes, and one more if it has
// more. It fails if a symlink is on the way. So what was decided about a real path
// holds for what is read, whoever changes the path in between.
func ReadPlain(path string, most int) ([]byte, error) {
	return readPlain(path, strconv.AppendInt(nil, int64(most), 10))
}

var errNotRegular = errors.New("not a regular file")

var readPlain = Define("read plain", func(path string, most []byte) ([]byte, error) {
	bound, err := strconv.Atoi(string(most))
	if err != nil {
		return nil, err
	}
	file, err := openForReading(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer file.Close()
	read, err := readOpen(file, bound)
	if err == nil && !read.Before.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	return read.Data, err
})
