package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// Why a settings file is not written.
var (
	// ErrChanged: it is not what it was when the change was proposed.
	ErrChanged = errors.New("it has changed meanwhile, so nothing was written: try again")
	// ErrReadOnly: its owner may not write it.
	ErrReadOnly = errors.New("it is read-only, so nothing was written")
)

// content is that of a file, which may not exist.
type content struct {
	Exists bool   `json:"exists"`
	Data   []byte `json:"data,omitempty"`
}

func (c content) sum() [sha256.Size]byte { return sha256.Sum256(c.Data) }

// digest is the SHA-256 in hexadecimal digits; "absent" if there is no file.
func (c content) digest() string {
	if !c.Exists {
		return "absent"
	}
	sum := c.sum()
	return hex.EncodeToString(sum[:])
}

// change is what was in a file, and what is there now.
type change struct{ Before, After content }

// entry is what to add to a list of a file. Base is what the list holds by the
// layers below.
type entry struct {
	Key, Value string
	Base       []string
}

// order is what to do with a file of a directory.
type order struct {
	Name, Platform string
	Project        bool     // the directory is a project's, and Name is in its .zed
	Add            *entry   // nil: Put is put in the file's place
	Drop           *entry   // what Add makes needless; nil: nothing
	Put            *content // what exists not is removed
	Expect         string   // digest of what must be there; "": anything
	Dry            bool     // nothing is written
}

// carryOut does what the order says in a directory.
func (o order) carryOut(dir string) (change, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return change{}, err
	}
	answer, err := changeFile(dir, text)
	if err != nil {
		// A helper process may have done it, whose errors are only text.
		for _, known := range []error{ErrChanged, ErrReadOnly} {
			if err.Error() == known.Error() {
				err = known
			}
		}
		return change{}, err
	}
	var done change
	err = json.Unmarshal(answer, &done)
	return done, err
}

// changeFile changes a file in a directory, and returns what it was and is.
// Sessions can write a project, so that no symlink out of it is followed.
var changeFile = fsguard.Define("change settings", func(path string, data []byte) ([]byte, error) {
	var o order
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	var done change
	root, err := os.OpenRoot(path)
	if err == nil {
		defer root.Close()
		done, err = o.below(root)
	}
	if o.Dry && errors.Is(err, fs.ErrNotExist) {
		done, err = o.of(content{})
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(done)
})

// below changes the file in the directory, or in .zed of it, which it makes.
func (o order) below(root *os.Root) (change, error) {
	if !o.Project {
		return o.in(root)
	}
	if !o.Dry {
		if err := root.Mkdir(".zed", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return change{}, err
		}
	}
	dir, err := root.OpenRoot(".zed")
	if err != nil {
		return change{}, err
	}
	defer dir.Close()
	return o.in(dir)
}

// of is the change of a content.
func (o order) of(before content) (change, error) {
	switch {
	case o.Expect != "" && before.digest() != o.Expect:
		return change{}, ErrChanged
	case o.Add == nil:
		return change{before, *o.Put}, nil
	}
	data, err := document.AddEntry(before.Data, o.Platform, o.Add.Key, o.Add.Value, o.Add.Base)
	if err == nil && o.Drop != nil {
		data, err = document.DropEntry(data, o.Platform, o.Drop.Key, o.Drop.Value, o.Add.Key)
	}
	return change{before, content{true, data}}, err
}

// read returns what is in the file, and its mode.
func (o order) read(dir *os.Root) (content, fs.FileMode, error) {
	info, err := dir.Lstat(o.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return content{}, 0o644, nil
	case err != nil:
		return content{}, 0, err
	case !info.Mode().IsRegular():
		return content{}, 0, textfile.ErrNotRegular
	case info.Size() > textfile.MaxSize:
		return content{}, 0, textfile.ErrTooLarge
	case info.Mode().Perm()&0o200 == 0:
		return content{}, 0, ErrReadOnly
	}
	data, err := dir.ReadFile(o.Name)
	return content{true, data}, info.Mode().Perm(), err
}

// in changes the file in an open directory. It is replaced in one step, if it is
// still what was read just before that.
func (o order) in(dir *os.Root) (change, error) {
	before, mode, err := o.read(dir)
	if err != nil {
		return change{}, err
	}
	done, err := o.of(before)
	if err != nil || o.Dry {
		return done, err
	}
	same := func() error {
		now, _, err := o.read(dir)
		if err == nil && now.digest() != before.digest() {
			err = ErrChanged
		}
		return err
	}
	if !done.After.Exists {
		if err := same(); err != nil {
			return change{}, err
		}
		return done, dir.Remove(o.Name)
	}
	temp := o.Name + ".sandbox-sidecar"
	_ = dir.Remove(temp) // left by a process that was killed halfway
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return change{}, err
	}
	defer func() { _ = dir.Remove(temp) }() // already gone if all went well
	_, err = file.Write(done.After.Data)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close(), same()); err != nil {
		return change{}, err
	}
	return done, dir.Rename(temp, o.Name)
}
