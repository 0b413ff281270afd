package main

import (
	"cmp"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// project is what one directory measures.
type project struct {
	name string
	gos  []goFile
	mds  []mdFile
}

func measure(dir string) (project, error) {
	all, err := sources(dir)
	if err != nil {
		return project{}, err
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return project{}, err
	}
	p := project{name: filepath.Base(full)}
	for _, s := range all {
		if path.Ext(s.name) == ".md" {
			p.mds = append(p.mds, measureMarkdown(s))
		} else if file, ok := measureGo(s); ok {
			p.gos = append(p.gos, file)
		}
	}
	return p, nil
}

// lineSums are the numbers of Go lines.
type lineSums struct {
	code, over, comments, commentsOver, where int
	commentWidths                             []int
}

func (p project) sumLines() lineSums {
	var s lineSums
	for _, file := range p.gos {
		s.code += file.code
		for _, l := range file.lines {
			if l.width() > mostColumns {
				s.over++
			}
			if !l.comment {
				continue
			}
			s.comments++
			s.commentWidths = append(s.commentWidths, l.width())
			if l.width() > mostCommentColumns {
				s.commentsOver++
			}
			if saysWhereForIf(l.text) {
				s.where++
			}
		}
	}
	return s
}

// readme is the file that is shown first, or an empty one.
func (p project) readme() mdFile {
	for _, file := range p.mds {
		if strings.EqualFold(file.name, "README.md") {
			return file
		}
	}
	return mdFile{}
}

// packages are the files of each directory, without tests.
func (p project) packages() map[string][]goFile {
	dirs := map[string][]goFile{}
	for _, file := range p.gos {
		if !file.test {
			dirs[path.Dir(file.name)] = append(dirs[path.Dir(file.name)], file)
		}
	}
	return dirs
}

// largest is the directory of the package with the most files.
func (p project) largest() (dir string, files int) {
	dirs := p.packages()
	if len(dirs) == 0 {
		return "", 0
	}
	dir = slices.MaxFunc(slices.Sorted(maps.Keys(dirs)), func(a, b string) int {
		return cmp.Compare(len(dirs[a]), len(dirs[b]))
	})
	return dir, len(dirs[dir])
}

// shape is the lines of each file and of each function, without tests.
func (p project) shape() (files, functions []int) {
	for _, file := range p.gos {
		if !file.test {
			files = append(files, file.lines[len(file.lines)-1].number)
			functions = append(functions, file.functions...)
		}
	}
	return files, functions
}
