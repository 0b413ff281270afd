//go:build unix

package control

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
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

// A command for which a sandbox has no room has not run: that of a link can run
// elsewhere. Nothing else that was not executed can, and what may have run cannot.
func TestFailure(t *testing.T) {
	t.Parallel()
	full := &spawn.NotExecutedError{Cause: "resource temporarily unavailable", Exhausted: true}
	missing := &spawn.NotExecutedError{Cause: "no such file or directory", Missing: true}
	for name, c := range map[string]struct {
		err                              error
		link                             bool
		refused, absent, unknown, failed bool
	}{
		"no room, by a link":      {err: &spawn.Error{Attempt: "execute", Cause: full}, link: true, refused: true},
		"no room, by exec --join": {err: &spawn.Error{Attempt: "execute", Cause: full}, failed: true},
		"missing, by a link":      {err: &spawn.Error{Attempt: "execute", Cause: missing}, link: true, failed: true},
		"it may have run":         {err: platform.ErrSilentInit, link: true, unknown: true},
		"the group has ended":     {err: spawn.ErrGroupEnded, link: true, refused: true, absent: true},
		"no such sandbox":         {err: spawn.ErrNoSuchSandbox, link: true, refused: true, absent: true},
		"anything else":           {err: errors.New("x"), link: true, refused: true},
	} {
		got := failure(c.err, c.link)
		if (got.Refused != "") != c.refused || got.Absent != c.absent || (got.Unknown != "") != c.unknown ||
			(got.NotExecuted != nil) != c.failed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if !spawn.Silent(platform.ErrSilentInit) || spawn.Silent(full) {
		t.Error("it is not known who is silent")
	}
}

// bounded is a connection that sends what is not too long.
type bounded struct {
	most int
	sent []reply
}

func (b *bounded) Send(message any, _ ...*os.File) error {
	text, err := json.Marshal(message)
	if err != nil || len(text) >= b.most {
		return usersocket.ErrTooLong
	}
	b.sent = append(b.sent, message.(reply))
	return nil
}

// How a command has ended arrives, however much there is to say of it.
func TestSendShort(t *testing.T) {
	t.Parallel()
	long := reply{Said: strings.Repeat("x", 2000), Ended: &ended{
		Code: 7, Denied: []Denied{{Line: "a"}, {Line: "b"}}, More: 3,
	}}
	roomy, tight := &bounded{most: 1 << 20}, &bounded{most: 1000}
	if err := errors.Join(sendShort(roomy, long), sendShort(tight, long)); err != nil {
		t.Fatal(err)
	}
	if got := roomy.sent[0]; got.Said != long.Said || len(got.Ended.Denied) != 2 {
		t.Errorf("control: %+v", got)
	}
	got := tight.sent[0]
	if got.Said != tooMuch || got.Ended.Code != 7 || len(got.Ended.Denied) != 0 || got.Ended.More != 5 {
		t.Errorf("%+v of %+v", got.Ended, got)
	}
}
