package agent

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	grip = "5C9E027F6F534FF59047F3F6B7E676A7B9EF8BA6"
	// otherGrip is a key that may not be used.
	otherGrip = "0000000000000000000000000000000000000001"
)

// gpgScene is an agent that notes what it is asked, and a filter before it.
type gpgScene struct {
	socket string
	filter *Filter

	mu             sync.Mutex
	asked, refused []string
	uses           []string // keys
}

// newGPGScene has an agent whose answers are those of a function; nil: OK.
func newGPGScene(t *testing.T, answer func(request string) string) *gpgScene {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &gpgScene{socket: filepath.Join(dir, "filter")}
	listener, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if answer == nil {
		answer = func(string) string { return "OK\n" }
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, answer(""))
				for lines := bufio.NewScanner(c); lines.Scan(); {
					s.mu.Lock()
					s.asked = append(s.asked, lines.Text())
					s.mu.Unlock()
					fmt.Fprint(c, answer(lines.Text()))
				}
			}()
		}
	}()
	s.filter, err = ListenGPG(s.socket, filepath.Join(dir, "agent"), "why", []string{"display=:7"}, Session{
		Refused: func(what string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused = append(s.refused, what)
		},
		MayUse: func(_ context.Context, use Use) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.uses = append(s.uses, use.Key)
			return use.Key != otherGrip
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.filter.Close)
	return s
}

// says sends lines and returns all that comes until the filter ends the
// connection.
func (s *gpgScene) says(t *testing.T, text string) string {
	t.Helper()
	c, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	go fmt.Fprint(c, text)
	var got []byte
	buffer := make([]byte, 4096)
	for {
		n, err := c.Read(buffer)
		got = append(got, buffer[:n]...)
		if err != nil {
			return string(got)
		}
	}
}

func (s *gpgScene) noted() (asked, refused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.refused)
}

// Each command, what the agent is asked for it, and whether it is refused.
func TestGPG_ListsAndSignsAndNothingElse(t *testing.T) {
	t.Parallel()
	refuses := map[string]bool{"do what is not known": true}
	for _, what := range refusedCommands {
		refuses[what] = what != ""
	}
	hash := strings.Repeat("0a", 32)
	for command, want := range map[string]string{
		"RESET": "RESET", "reset": "RESET", "GETINFO version": "GETINFO version", "NOP": "", "# export": "", "": "",
		"SIGKEY " + grip: "SIGKEY " + grip, "SIGKEY --another -- " + grip: "SIGKEY " + grip,
		"SIGKEY --x -- " + grip: "malformed", "SIGKEY --another --another " + grip: "malformed",
		"SIGKEY -- --another " + grip: "malformed", "SIGKEY " + grip + " --another": "malformed",
		"SIGKEY\t" + grip: "do what is not known", "SIGKEY \t" + grip: "malformed",
		"SIGKEY " + grip + "\x00": "malformed",
		"SIGKEY " + grip + "\r":   "malformed", "SIGKEY " + grip + "00": "malformed", "RESET x": "malformed",
		"NOP x": "malformed", "SETKEYDESC a\x00b": "malformed", "OPTION display=:9\x01": "malformed",
		"READKEY --no-data " + grip: "READKEY " + grip, "READKEY --format=ssh " + grip: "malformed",
		"HAVEKEY " + grip + " " + grip: "HAVEKEY " + grip + " " + grip,
		"HAVEKEY --list=1000":          "HAVEKEY --list=1000",
		"KEYINFO --list":               "KEYINFO --list",
		"KEYINFO --data " + grip:       "KEYINFO " + grip, "READKEY -- " + grip: "READKEY " + grip,
		"SETHASH 8 " + hash: "SETHASH 8 " + hash, "SETHASH --hash=sha256 " + hash: "SETHASH --hash=sha256 " + hash,
		"PKSIGN": "malformed", "SETKEYDESC lie": "",
		"OPTION agent-awareness=2.1.0": "OPTION agent-awareness=2.1.0",
		// What asks for a passphrase runs outside: its variables are no session's.
		"OPTION putenv=DBUS_SESSION_BUS_ADDRESS=unixexec:path=/bin/sh": "", "OPTION display=:9": "",
		"OPTION ttyname=/dev/tty1":     "",
		"OPTION allow-pinentry-notify": "", "OPTION --lc-ctype = x": "",
		"OPTION pinentry-mode=loopback": "", "OPTION agent-awareness=x y": "malformed", "SIGKEY": "malformed",
		"SIGKEY x": "malformed", "HAVEKEY": "malformed", "HAVEKEY --list --x": "malformed",
		"SETHASH --inquire": "malformed",
		"SETHASH 8 0":       "malformed", "GETINFO socket_name": "malformed", "GETINFO pid": "malformed",
		"READKEY --card 1":   "malformed",
		"EXPORT_KEY " + grip: "export a secret key", "KEYWRAP_KEY --export": "export or import a secret key",
		"export_key " + grip: "export a secret key", "PKDECRYPT": "decrypt", "DELETE_KEY " +
			grip: "delete a secret key",
		"IMPORT_KEY": "import a secret key", "GENKEY": "make a key", "PASSWD " + grip: "change a passphrase",
		"SCD RANDOM 4":           "use a card",
		"GET_PASSPHRASE a X X X": "ask the user for a passphrase", "PRESET_PASSPHRASE x -1": "remember a passphrase",
		"KEYTOCARD": "move a secret key to a card", "KILLAGENT": "end", "X\x00EXPORT_KEY": "do what is not known",
		"D data": "do what is not known", "EXPORT_KEY\t" + grip: "do what is not known",
	} {
		s := newGPGScene(t, nil)
		got := s.says(t, command+"\r\nBYE\n")
		asked, refused := s.noted()
		if len(asked) == 0 || asked[0] != "OPTION display=:7" {
			t.Fatalf("%q: the filter's own options: %q", command, asked)
		}
		switch passed := strings.Join(asked[1:], "|"); {
		case want == "malformed":
			if passed != "" || len(refused) > 0 || !strings.Contains(got, "ERR") {
				t.Errorf("%q: asked %q, refused %q, answered %q", command, passed, refused, got)
			}
		case !refuses[want]:
			if passed != want || len(refused) > 0 || strings.Contains(got, "ERR") {
				t.Errorf("%q: asked %q, refused %q, answered %q", command, passed, refused, got)
			}
		default:
			if passed != "" || len(refused) != 1 || refused[0] != want+" (gpg-agent)" ||
				!strings.Contains(got, "Forbidden") {
				t.Errorf("%q: asked %q, refused %q, answered %q", command, passed, refused, got)
			}
		}
	}
}

// A signature is by the key that was judged, whatever was chosen before.
func TestGPG_ChosenKeys(t *testing.T) {
	t.Parallel()
	const signs = "SIGKEY " + grip + "|SETKEYDESC why|PKSIGN"
	const first, second = "SIGKEY " + grip, "SIGKEY " + otherGrip
	lower := strings.ToLower(grip)
	for said, want := range map[string]struct{ asked, uses string }{
		first + "\nPKSIGN":                                     {first + "|" + signs, grip},
		"sigkey " + lower + "\npksign -- nonce":                {"SIGKEY " + lower + "|" + signs, grip},
		"SETKEY " + grip + "\nPKSIGN":                          {"SETKEY " + grip + "|" + signs, grip},
		second + "\nPKSIGN":                                    {second, otherGrip},
		first + "\n" + second + "\nPKSIGN":                     {first + "|" + second, otherGrip},
		first + "\nSIGKEY --another " + otherGrip + "\nPKSIGN": {first + "|" + second, otherGrip},
		first + "\nRESET\nPKSIGN":                              {first + "|RESET", ""},
		first + " " + otherGrip + "\nPKSIGN":                   {"", ""},
		first + "\nPKSIGN --hash=sha1":                         {first, ""},
		first + "\nPKSIGN -- a b":                              {first, ""},
		first + "\nPKSIGN \x00":                                {first, ""},
	} {
		s := newGPGScene(t, nil)
		got := s.says(t, said+"\nBYE\n")
		asked, _ := s.noted()
		s.mu.Lock()
		uses := strings.Join(s.uses, "|")
		s.mu.Unlock()
		if passed := strings.Join(asked[1:], "|"); passed != want.asked || uses != want.uses ||
			(uses == otherGrip) != strings.Contains(got, "Forbidden") {
			t.Errorf("%q: asked %q, judged %q, answered %q", said, passed, uses, got)
		}
	}
}

// What the agent answers is passed on, and a refused command ends nothing.
func TestGPG_Answers(t *testing.T) {
	t.Parallel()
	s := newGPGScene(t, func(request string) string {
		switch request {
		case "PKSIGN":
			return "# a remark\nINQUIRE PASSPHRASE\nS PROGRESS x\nD %25 signature\n"
		case "CAN":
			return "OK\n"
		case "RESET":
			return "ERR 1 no\n"
		}
		return "OK fine\n"
	})
	got := s.says(t, "EXPORT_KEY\nSIGKEY "+grip+"\nPKSIGN\nRESET\nBYE\n")
	_, rest, _ := strings.Cut(got, "\n")
	if want := errForbidden + "\nOK fine\nS PROGRESS x\nD %25 signature\nOK\nERR 1 no\nOK\n"; rest != want {
		t.Errorf("answered %q", rest)
	}
}

// An agent that lies, and a client that floods, lose the connection.
func TestGPG_HostilePeers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nonsense": "HELLO\n", "too long": "D " + strings.Repeat("x", maxLine) + "\n",
		"too much": strings.Repeat("D "+strings.Repeat("x", 900)+"\n", maxData/900+1) + "OK\n",
	} {
		s := newGPGScene(t, func(request string) string {
			if request == "RESET" {
				return answer
			}
			return "OK\n"
		})
		if got := s.says(t, "RESET\n"); strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
	s := newGPGScene(t, nil)
	if got := s.says(t, strings.Repeat("x", 1<<20)); strings.Count(got, "\n") > 1 {
		t.Errorf("a long line: %q", got)
	}
	s = newGPGScene(t, func(string) string { return "ERR 1 busy\n" })
	if got := s.says(t, "RESET\n"); got != errNoAgent+"\n" {
		t.Errorf("a refused greeting: %q", got)
	}
	// One that hangs holds up neither another client nor the end.
	hangs := make(chan bool, 2)
	s = newGPGScene(t, func(request string) string {
		if request == "RESET" {
			hangs <- true
			return ""
		}
		return "OK\n"
	})
	ended := make(chan string, 1)
	go func() { ended <- s.says(t, "RESET\n") }()
	<-hangs
	if got := s.says(t, "NOP\nBYE\n"); strings.Count(got, "OK\n") != 2 {
		t.Errorf("another client: %q", got)
	}
	s.filter.Close()
	if got := <-ended; strings.Count(got, "\n") != 1 {
		t.Errorf("an agent that hangs has answered: %q", got)
	}
}

func TestGPG_NoAgent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := &gpgScene{socket: filepath.Join(dir, "filter")}
	if s.filter, err = ListenGPG(s.socket, filepath.Join(dir, "none"), "", nil, Session{}); err != nil {
		t.Fatal(err)
	}
	defer s.filter.Close()
	if got := s.says(t, ""); got != errNoAgent+"\n" {
		t.Errorf("%q", got)
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	if got := Description("a b\n%+ü"); got != "a+b%0A%25%2B%C3%BC" {
		t.Error(got)
	}
	if got := Description(strings.Repeat("\n", 5000)); len(got) > maxLine {
		t.Error(len(got))
	}
}
