package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// Member is a key with its value as JSON.
type Member struct{ Key, Text string }

// ErrEmpty is AddBlock's error for a file that holds nothing but comments.
var ErrEmpty = errors.New("it is empty")

// AddBlock adds keys to the "terminal.sandbox" block of a settings file and
// changes no other byte of it. It fails if the file is wrong, or says already
// whether the sandbox is on.
func AddBlock(data []byte, platform string, members []Member) ([]byte, error) {
	block, problem := Decode(data, platform, Editor)
	switch {
	case problem != nil:
		return nil, fmt.Errorf("line %d: %s", problem.Line, problem.Message)
	case block.FirstError != nil:
		return nil, fmt.Errorf("line %d: %s", block.FirstError.Line, block.FirstError.Message)
	case block.Empty:
		return nil, ErrEmpty
	}
	for _, key := range []string{"enabled", "mode", KeyOf(KindTool, "enabled"), KeyOf(KindTerminal, "enabled")} {
		if span, set := block.Spans[key]; set {
			return nil, fmt.Errorf("line %d says already whether the sandbox is on", span.At.Line)
		}
	}
	text := data
	ended := bytes.HasSuffix(text, []byte("\n"))
	mark := data[:len(data)-len(bytes.TrimPrefix(data, []byte("\ufeff")))]
	if text = text[len(mark):]; !ended {
		text = append(bytes.Clone(text), '\n') // as in Decode
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	if err := addBlock(&root, members, block); err != nil {
		return nil, err
	}
	text = root.Pack()
	if !ended {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	changed := append(bytes.Clone(mark), text...)
	if again, problem := Decode(changed, platform, Editor); problem != nil || again.Spans["enabled"].At.Line == 0 {
		return nil, errors.New("it has a form that cannot be changed")
	}
	return changed, nil
}

// addBlock adds the keys that are not there, at the deepest object that is.
func addBlock(root *hujson.Value, members []Member, block *Block) error {
	at := root
	path := []string{"terminal", "sandbox"}
	for i, name := range path {
		below := lastMember(at, name)
		object, is := at.Value.(*hujson.Object)
		switch {
		case !is:
			return errors.New("it has another form")
		case below == nil:
			var keys []string
			for _, m := range members {
				keys = append(keys, quoteJSON(m.Key)+": "+m.Text)
			}
			return addMember(object, path[i:], "{ "+strings.Join(keys, ", ")+" }")
		}
		at = below
	}
	object, is := at.Value.(*hujson.Object)
	if !is {
		return errors.New("it has another form")
	}
	for _, m := range members {
		if _, set := block.Spans[m.Key]; set {
			continue
		}
		if err := addMember(object, []string{m.Key}, m.Text); err != nil {
			return err
		}
	}
	return nil
}
