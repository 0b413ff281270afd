package agent

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// maxLine is the longest line of the protocol, its end included (the Assuan
	// manual, "Server responses").
	maxLine = 1002
	// maxData bounds what the agent may send for one request.
	maxData = 256 << 10
)

// Errors in the form that GnuPG shows: the source GPG Agent (4) and the code.
const (
	errForbidden = "ERR 67109115 Forbidden <sandbox>"
	errSyntax    = "ERR 67109140 Syntax error <sandbox>"
	errNoAgent   = "ERR 67108941 No agent running <sandbox>"
)

// refusedCommands names commands of a gpg-agent that are not passed on.
var refusedCommands = map[string]string{
	"KEYWRAP_KEY": "export or import a secret key", "EXPORT_KEY": "export a secret key",
	"IMPORT_KEY": "import a secret key",
	"PKDECRYPT":  "decrypt", "DELETE_KEY": "delete a secret key", "GENKEY": "make a key",
	"PASSWD":         "change a passphrase",
	"GET_PASSPHRASE": "ask the user for a passphrase", "GET_CONFIRMATION": "ask the user to confirm something",
	"PRESET_PASSPHRASE": "remember a passphrase", "CLEAR_PASSPHRASE": "forget a passphrase", "GETEVENTCOUNTER": "",
	"GET_SECRET": "give out a secret", "PUT_SECRET": "keep a secret",
	"GETVAL": "give out a value", "PUTVAL": "keep a value",
	"KEYTOCARD": "move a secret key to a card", "LEARN": "read a card", "SCD": "use a card", "KEYATTR": "change a key",
	"KEYTOTPM": "move a secret key to a TPM", "MARKTRUSTED": "trust a certificate", "LISTTRUSTED": "", "ISTRUSTED": "",
	"KILLAGENT": "end", "RELOADAGENT": "read its configuration again",
	"UPDATESTARTUPTTY": "use another terminal", "HELP": "",
}

// What clients send of these is passed on only in these forms. They are compiled
// when a session first needs them: every stage starts with this package, too.
var (
	aKeygrip = pattern(`^[0-9A-Fa-f]{40}$`)
	aNonce   = pattern(`^-- +[0-9A-Za-z]{1,64}$`) // it names a cache, and is left out
	aVersion = pattern(`^[0-9.]{1,16}$`)
	aList    = pattern(`^--list(=[0-9]{1,6})?$`)
	aHash    = pattern(`^(?:--hash=[a-z0-9-]{1,16}|[0-9]{1,3}) +(?:[0-9A-Fa-f]{2}){16,64}$`)
)

func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// ListenGPG makes the socket at a path, for the gpg-agent at another. description
// is what its question for a passphrase says; options are those of the agent's
// connections. Nothing of either comes from the session.
func ListenGPG(path, agent, description string, options []string, session Session) (*Filter, error) {
	f := newFilter(agent, session)
	f.converse = func(client net.Conn) { f.serveGPG(client, description, options) }
	return f, f.listen(path)
}

// assuan is a connection whose messages are lines.
type assuan struct {
	net.Conn
	lines *bufio.Reader
}

func newAssuan(c net.Conn) *assuan { return &assuan{c, bufio.NewReaderSize(c, maxLine)} }

// line returns the next line without its end.
func (a *assuan) line() (string, error) {
	line, err := a.lines.ReadSlice('\n')
	if err != nil {
		return "", err // also of a line that is too long
	}
	return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
}

func (a *assuan) send(lines ...string) error {
	for _, line := range lines {
		if len(line) >= maxLine || strings.ContainsAny(line, "\r\n") {
			return errors.New("a line that is none")
		}
	}
	_, err := a.Write([]byte(strings.Join(lines, "\n") + "\n"))
	return err
}

// ask sends a request and returns the answer: lines of data and of status, and
// the last one, which is OK or ERR.
func (a *assuan) ask(request string) ([]string, error) {
	if err := a.send(request); err != nil {
		return nil, err
	}
	var answer []string
	for size := 0; size <= maxData; {
		line, err := a.line()
		if err != nil {
			return nil, err
		}
		size += len(line) + 1
		switch word, _, _ := strings.Cut(line, " "); {
		case word == "OK" || word == "ERR":
			return append(answer, line), nil
		case word == "D" || word == "S":
			answer = append(answer, line)
		case word == "INQUIRE":
			// Sessions are never asked for anything.
			if err := a.send("CAN"); err != nil {
				return nil, err
			}
		case word == "" || word[0] == '#':
		default:
			return nil, errors.New("the agent answers something else")
		}
	}
	return nil, errors.New("an answer of too many bytes")
}

func (f *Filter) serveGPG(c net.Conn, description string, options []string) {
	client := newAssuan(c)
	conn, err := f.dial()
	if err != nil {
		_ = client.send(errNoAgent)
		return
	}
	if !f.keep(conn) {
		return
	}
	defer f.drop(conn)
	agent := newAssuan(conn)
	if greeting, err := agent.line(); err != nil || !strings.HasPrefix(greeting, "OK") {
		_ = client.send(errNoAgent)
		return
	}
	for _, option := range options { // it may not know some
		if _, err := agent.ask("OPTION " + option); err != nil {
			return
		}
	}
	if client.send("OK the agent of the sandbox, which lists keys and signs") != nil {
		return
	}
	talk := &gpgTalk{f: f, c: c, agent: agent, description: description}
	for {
		line, err := client.line()
		if err != nil {
			return
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		command, rest := strings.ToUpper(word), strings.TrimSpace(rest)
		if command == "" || command[0] == '#' {
			continue
		}
		if command == "BYE" {
			_ = client.send("OK")
			return
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			rest = unreadable
		}
		answer, err := talk.answer(command, rest)
		if err != nil || client.send(answer...) != nil {
			return
		}
	}
}

// gpgTalk is one client's conversation with the agent.
type gpgTalk struct {
	f           *Filter
	c           net.Conn // to the client
	agent       *assuan
	description string
	grip        string // of the key that was chosen; "" if none was
}

// answer is the answer to a command. An error ends the conversation.
func (g *gpgTalk) answer(command, rest string) ([]string, error) {
	requests, known := translate(command, rest, g.description)
	switch command {
	case "RESET", "SIGKEY", "SETKEY":
		g.grip = ""
	case "PKSIGN":
		if g.grip == "" || requests == nil {
			return []string{errSyntax}, nil
		}
		use := Use{Key: g.grip, Purpose: "to sign", Comment: func() string { return "" }}
		if !g.f.mayUse(g.c, use) {
			return []string{errForbidden}, nil
		}
		// The key is named again, so that it is the one that was judged.
		requests = append([]string{"SIGKEY " + g.grip}, requests...)
	}
	switch {
	case !known:
		g.refuse(command)
		return []string{errForbidden}, nil
	case requests == nil:
		return []string{errSyntax}, nil
	}
	answer := []string{"OK"}
	for _, request := range requests {
		var err error
		if answer, err = g.agent.ask(request); err != nil {
			return nil, err
		}
		if strings.HasPrefix(answer[len(answer)-1], "ERR") {
			break
		}
	}
	if (command == "SIGKEY" || command == "SETKEY") && strings.HasPrefix(answer[len(answer)-1], "OK") {
		g.grip = strings.ToUpper(strings.TrimPrefix(requests[0], command+" "))
	}
	return answer, nil
}

// refuse reports a command that may not pass, unless it is of no interest.
func (g *gpgTalk) refuse(command string) {
	what, listed := refusedCommands[command]
	if !listed {
		what = "do what is not known"
	}
	if what != "" {
		g.f.session.Refused(what + " (gpg-agent)")
	}
}

// unreadable is the rest of a line with control characters: no form allows it.
const unreadable = "\x00"

// translate returns what to ask the agent for a client's command: nothing if the
// answer is OK, nil if the command is malformed. known is false if the command
// may not pass.
func translate(command, rest, description string) (requests []string, known bool) {
	one := func(fits bool, request string) ([]string, bool) {
		if !fits {
			return nil, true
		}
		return []string{request}, true
	}
	words := strings.Fields(rest)
	switch command {
	case "NOP", "END", "CAN":
		if rest != "" {
			return nil, true
		}
		return []string{}, true
	case "SETKEYDESC":
		// The description is the filter's: a session could lie to the user.
		if rest == unreadable {
			return nil, true
		}
		return []string{}, true
	case "RESET":
		return one(rest == "", "RESET")
	case "OPTION":
		// Others name terminals, displays and variables of what asks for the
		// passphrase, outside of the sandbox. They are the filter's, too.
		if rest == unreadable {
			return nil, true
		}
		name, value, _ := strings.Cut(strings.ReplaceAll(strings.TrimPrefix(rest, "--"), " ", ""), "=")
		if name == "agent-awareness" {
			return one(aVersion().MatchString(value), "OPTION agent-awareness="+value)
		}
		return []string{}, true
	case "GETINFO":
		return one(rest == "version" || rest == "s2k_count", "GETINFO "+rest)
	case "HAVEKEY":
		list := len(words) == 1 && aList().MatchString(words[0])
		return one(list || areKeygrips(words), "HAVEKEY "+strings.Join(words, " "))
	case "KEYINFO":
		if len(words) == 1 && aList().MatchString(words[0]) {
			return []string{"KEYINFO --list"}, true
		}
		fallthrough
	case "READKEY", "SIGKEY", "SETKEY":
		words = withoutOptions(command, words)
		return one(len(words) == 1 && areKeygrips(words), command+" "+strings.Join(words, ""))
	case "SETHASH":
		return one(aHash().MatchString(rest), "SETHASH "+rest)
	case "PKSIGN":
		if rest != "" && !aNonce().MatchString(rest) {
			return nil, true
		}
		return []string{"SETKEYDESC " + description, "PKSIGN"}, true
	}
	return nil, false
}

func areKeygrips(words []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool {
		return !aKeygrip().MatchString(word)
	})
}

// ignored are options of commands that say how to answer. They are left out, once
// each: the answer without them is one that clients understand, too.
var ignored = map[string][]string{
	"KEYINFO": {"--data", "--ssh-fpr", "--with-ssh", "--"}, "READKEY": {"--no-data", "--"},
	"SIGKEY": {"--another", "--"}, "SETKEY": {"--another", "--"},
}

// withoutOptions returns the words of a command behind those. Others stay, and
// are no keygrips.
func withoutOptions(command string, words []string) []string {
	options := slices.Clone(ignored[command])
	for len(words) > 0 {
		i := slices.Index(options, words[0])
		if i < 0 {
			return words
		}
		if words = words[1:]; options[i] == "--" {
			return words
		}
		options = slices.Delete(options, i, i+1)
	}
	return words
}

// Description is the text of a question for a passphrase, in the form of the
// protocol.
func Description(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c == ' ':
			b.WriteByte('+')
		case c > 0x20 && c < 0x7f && c != '%' && c != '+':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
		if b.Len() > maxLine/2 {
			break
		}
	}
	return b.String()
}
