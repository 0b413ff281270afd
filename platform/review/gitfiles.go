package review

import (
	"io/fs"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

const whyWaits = "git outside would wait for it"

// maxGitDirs bounds the directories of a repository that are searched.
const maxGitDirs = 2000

// gitFiles adds what is in repositories and is neither a regular file nor a
// directory, if it is new: git outside writes through a symlink, wherever it
// leads, and waits for a FIFO. The observer refuses that, and a program with two
// threads may win a race against it.
func (w *search) gitFiles() {
	for _, dir := range w.gitDirs {
		w.gitFilesIn(dir)
	}
}

func (w *search) gitFilesIn(repository string) {
	queue := []string{repository}
	for searched := 0; len(queue) > 0; searched++ {
		if searched == maxGitDirs || w.over() {
			w.missed = true
			return
		}
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

func (w *search) strange(path string) {
	info, err := fsguard.Lstat(path)
	switch {
	case err != nil || info.Mode().IsRegular() || !w.isNew(info):
	case info.Mode().Type() == fs.ModeSymlink:
		target, _ := w.leads(path)
		w.list.add(path, Created, reason{why: "git writes through it to " + display.Quote(target), group: links})
	default:
		w.list.add(path, Created, reason{why: whyWaits})
	}
}
