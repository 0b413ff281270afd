package resolve

// maxOnce bounds what Once keeps, in bytes. A session can make the files large
// that are read.
const maxOnce = 4 << 20

// Once returns a machine that answers as f does, and that asks f once what a file
// or a directory holds, also if that is an error. So all who ask see the same, as
// with [View.Entry]. Answers that do not fit in a bound are asked for each time.
// forget drops the answers, and from then on f is asked each time. Before that the
// machine is no good for several goroutines. An answer must not be changed.
func Once(f FS) (once FS, forget func()) {
	left := maxOnce
	files, forgetFiles := askOnce(f.ReadFile, &left, func(data []byte) int { return len(data) })
	names, forgetNames := askOnce(f.ReadDir, &left, sizeOfNames)
	dirs, forgetDirs := askOnce(f.Dirs, &left, sizeOfNames)
	modes, forgetModes := askOnce(f.Modes, &left, func(list Modes) (size int) {
		for _, entry := range list.Entries {
			size += len(entry.Name) + overhead
		}
		return size
	})
	once = f
	once.ReadFile, once.ReadDir, once.Dirs, once.Modes = files, names, dirs, modes
	return once, func() {
		forgetFiles()
		forgetNames()
		forgetDirs()
		forgetModes()
	}
}

// overhead is what an answer or a name takes beside its text, about.
const overhead = 32

func sizeOfNames(names []string) (size int) {
	for _, name := range names {
		size += len(name) + overhead
	}
	return size
}

// askOnce keeps the answers of one call while there is room left.
func askOnce[A any](
	ask func(path string) (A, error), left *int, sizeOf func(A) int,
) (once func(path string) (A, error), forget func()) {
	type kept struct {
		answer A
		err    error
	}
	known := map[string]kept{}
	return func(path string) (A, error) {
		if before, is := known[path]; is {
			return before.answer, before.err
		}
		answer, err := ask(path)
		if size := len(path) + overhead + sizeOf(answer); known != nil && size <= *left {
			*left -= size
			known[path] = kept{answer, err}
		}
		return answer, err
	}, func() { known = nil }
}
