package main

import "path"

// project is what one directory measures.
type project struct {
	gos []goFile
	mds []mdFile
}

func measure(dir string) (project, error) {
	all, err := sources(dir)
	if err != nil {
		return project{}, err
	}
	var p project
	for _, s := range all {
		if path.Ext(s.name) == ".md" {
			p.mds = append(p.mds, measureMarkdown(s))
		} else if file, ok := measureGo(s); ok {
			p.gos = append(p.gos, file)
		}
	}
	return p, nil
}
