package harness

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// templates holds, by name, the directories that Template has made.
var templates struct {
	sync.Mutex // guards made; held while one is made
	made       map[string]string
}

// Template is a path at which fill has made something once in a test process: a
// file or a directory that tests copy and do not change. fill calls no Template. If
// it ends its test, the next one calls it again. Main removes what it made.
func Template(t testing.TB, name string, fill func(path string)) string {
	t.Helper()
	templates.Lock()
	defer templates.Unlock()
	if path := templates.made[name]; path != "" {
		return path
	}
	built, err := builtDir()
	Must(t, err)
	dir, err := os.MkdirTemp(built, "template-")
	Must(t, err)
	path := filepath.Join(dir, "it")
	fill(path)
	if templates.made == nil {
		templates.made = map[string]string{}
	}
	templates.made[name] = path
	return path
}
