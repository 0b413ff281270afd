package review

import (
	"io/fs"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

const (
	whyFollowed = "git outside would follow it"
	whyWaits    = "git outside would wait for it"
)

// gitFiles adds what is in the directories of repositories and is neither a
// regular file nor a directory, if a session made it. The observer refuses that,
// and a program with two threads may win a race against it.
func (w *search) gitFiles() {
	for _, dir := range w.gitDirs {
		queue := []string{dir}
		for len(queue) > 0 && !w.over() {
			at := queue[0]
			queue = queue[1:]
			for _, entry := range w.entries(at) {
				path := filepath.Join(at, entry.Name)
				switch {
				case entry.Type.IsDir():
					// Objects are too many to list. git never writes to one that is
					// there.
					if filepath.Base(at) != "objects" || len(entry.Name) != len("00") {
						queue = append(queue, path)
					}
				case !entry.Type.IsRegular():
					w.strange(path)
				}
			}
		}
	}
}

func (w *search) strange(path string) {
	info, err := fsguard.Lstat(path)
	switch {
	case err != nil || info.Mode().IsRegular() || !w.isNew(info):
	case info.Mode().Type() == fs.ModeSymlink:
		w.list.add(path, Created, reason{why: whyFollowed})
	default:
		w.list.add(path, Created, reason{why: whyWaits})
	}
}
