//go:build unix

package control

import (
	"os"
	"testing"
)

// A terminal of the user's is refused among the streams of a command, and so is
// what is no command.
func TestJoin_IsChecked(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	argv := [][]byte{[]byte("true")}
	good := []*os.File{null, null, null}
	for name, c := range map[string]struct {
		asked join
		files []*os.File
		ok    bool
	}{
		"streams":              {join{Argv: argv, Dir: []byte("/")}, good, true},
		"a terminal is wanted": {join{Argv: argv, Dir: []byte("/"), Terminal: &size{80, 24}}, nil, true},
		"both":                 {join{Argv: argv, Dir: []byte("/"), Terminal: &size{80, 24}}, good, false},
		"neither":              {join{Argv: argv, Dir: []byte("/")}, nil, false},
		"two streams":          {join{Argv: argv, Dir: []byte("/")}, good[:2], false},
		"a terminal comes":     {join{Argv: argv, Dir: []byte("/")}, []*os.File{null, null, terminal}, false},
		"no command":           {join{Dir: []byte("/")}, good, false},
		"a relative directory": {join{Argv: argv, Dir: []byte("x")}, good, false},
	} {
		if _, err := c.asked.check(c.files); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
