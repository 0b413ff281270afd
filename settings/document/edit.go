package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// AddEntry adds an entry to a list of a settings file and changes no other byte
// of it: comments, order and layout are the user's. If the file does not have
// the list, it gets one of base and the entry, because a list replaces that of
// the layers below.
func AddEntry(data []byte, platform, key, entry string, base []string) ([]byte, error) {
	mark := data[:len(data)-len(bytes.TrimPrefix(data, []byte("\ufeff")))]
	data = data[len(mark):]
	list := append(append([]string{}, base...), entry)
	if scan(data).empty {
		if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
			data = append(bytes.Clone(data), '\n') // a comment would swallow what follows
		}
		return slices.Concat(mark, data, []byte(newFile(key, list))), nil
	}
	if _, problem := Decode(data, platform, Editor); problem != nil {
		return nil, errors.New(problem.Message)
	}
	text, err := edited(data, func(root *hujson.Value) error { return editRoot(root, platform, key, entry, list) })
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(mark), text...), nil
}

// edited is a settings file after a change of its value.
func edited(data []byte, change func(*hujson.Value) error) ([]byte, error) {
	mark := data[:len(data)-len(bytes.TrimPrefix(data, []byte("\ufeff")))]
	data = data[len(mark):]
	// As in Decode: a comment may be the last line, without a newline.
	text, ended := data, bytes.HasSuffix(data, []byte("\n"))
	if !ended {
		text = append(bytes.Clone(data), '\n')
	}
	value, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	if err := change(&value); err != nil {
		return nil, err
	}
	text = value.Pack()
	if !ended {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	if windows := bytes.Count(data, []byte("\r\n")); windows > 0 && windows == bytes.Count(data, []byte("\n")) {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	return append(bytes.Clone(mark), text...), nil
}

func newFile(key string, list []string) string {
	block, end := "", ""
	if kind, name := SplitKey(key); kind != "" {
		block, end, key = quoteJSON(string(kind))+": { ", " }", name
	}
	return "{\n  \"terminal\": {\n    \"sandbox\": {\n      " + block + quoteJSON(key) + ": " + listText(list) + end +
		"\n    }\n  }\n}\n"
}

// editRoot adds to the list that counts: the one in the platform's block if
// there is one, else the base's.
func editRoot(root *hujson.Value, platform, key, entry string, list []string) error {
	path := append([]string{"terminal", "sandbox"}, strings.Split(key, ".")...)
	found := lastMember(root, PlatformBlock(platform))
	block := found
	for i, name := range path {
		if i == len(path)-1 && lastMember(found, "mode") == nil {
			block = nil
		}
		found = lastMember(found, name)
	}
	if found != nil {
		return extend(found, entry, list)
	}
	at := root
	if block != nil {
		at = block // a mode there overrides the list of the whole file
	}
	for i, name := range path {
		object, is := at.Value.(*hujson.Object)
		if !is {
			return fmt.Errorf("%s is no object", strings.Join(path[:i], "."))
		}
		below := lastMember(at, name)
		if below == nil || below.Value.Kind() == 'n' && i < len(path)-1 {
			if below != nil {
				return fmt.Errorf("%s is null", strings.Join(path[:i+1], "."))
			}
			return addMember(object, path[i:], listText(list))
		}
		at = below
	}
	return extend(at, entry, list)
}

// lastMember is the value of an object's last member of a name, which is the
// one that counts; nil if there is none.
func lastMember(of *hujson.Value, name string) *hujson.Value {
	if of == nil {
		return nil
	}
	object, is := of.Value.(*hujson.Object)
	if !is {
		return nil
	}
	for i := len(object.Members) - 1; i >= 0; i-- {
		if memberName(object.Members[i]) == name {
			return &object.Members[i].Value
		}
	}
	return nil
}

// extend adds an entry to a list. A null becomes a list.
func extend(value *hujson.Value, entry string, list []string) error {
	if value.Value.Kind() == 'n' {
		fresh, err := hujson.Parse([]byte(listText(list)))
		if err != nil {
			return err
		}
		value.Value = fresh.Value
		return nil
	}
	array, is := value.Value.(*hujson.Array)
	if !is {
		return errors.New("expected an array of strings")
	}
	element := hujson.Value{Value: hujson.String(entry)}
	if len(array.Elements) == 0 {
		element.BeforeExtra, array.AfterExtra = array.AfterExtra, nil
		array.Elements = append(array.Elements, element)
		return nil
	}
	last := &array.Elements[len(array.Elements)-1]
	element.BeforeExtra, array.AfterExtra = between(array.AfterExtra, array.Elements[0].BeforeExtra)
	if last.AfterExtra != nil { // there is a comma after the last
		element.AfterExtra = []byte{}
	}
	array.Elements = append(array.Elements, element)
	return nil
}

// addMember adds a member that leads by names to a value.
func addMember(object *hujson.Object, names []string, text string) error {
	unit, indent, lines := "  ", "", false
	if len(object.Members) > 0 {
		indent, lines = lineStart(object.Members[0].Name.BeforeExtra)
		if strings.HasPrefix(indent, "\t") {
			unit = "\t"
		}
	}
	for i := len(names) - 1; i > 0; i-- {
		inner := quoteJSON(names[i]) + ": " + text
		if !lines {
			text = "{" + inner + "}"
			continue
		}
		deep := indent + strings.Repeat(unit, i)
		text = "{\n" + deep + inner + "\n" + strings.TrimSuffix(deep, unit) + "}"
	}
	value, err := hujson.Parse([]byte(text))
	if err != nil {
		return err
	}
	value.BeforeExtra = []byte(" ")
	member := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(names[0])}, Value: value}
	if len(object.Members) == 0 {
		member.Name.BeforeExtra, object.AfterExtra = object.AfterExtra, nil
	} else {
		last := &object.Members[len(object.Members)-1].Value
		member.Name.BeforeExtra, object.AfterExtra = between(object.AfterExtra, object.Members[0].Name.BeforeExtra)
		if last.AfterExtra != nil {
			member.Value.AfterExtra = []byte{}
		}
	}
	object.Members = append(object.Members, member)
	return nil
}

// between splits the text in front of a closing bracket: into the part in front
// of a new last entry, comments included, and the rest. first is the text in
// front of the first entry. It shows whether entries have lines of their own.
func between(tail, first hujson.Extra) (before, after hujson.Extra) {
	comments := bytes.TrimRight(tail, " \t\r\n")
	after = tail[len(comments):]
	indent, lines := lineStart(first)
	if !lines {
		if bytes.Contains(comments, []byte("//")) {
			return append(bytes.Clone(comments), '\n'), after
		}
		return append(bytes.Clone(comments), ' '), after
	}
	return append(bytes.Clone(comments), "\n"+indent...), after
}

// lineStart is the white space at the beginning of an entry's line. It is false
// if the entry stands on the line of the bracket.
func lineStart(before hujson.Extra) (indent string, begins bool) {
	at := bytes.LastIndexByte(before, '\n')
	if at < 0 {
		return "", false
	}
	line := before[at+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]), true
}

func listText(list []string) string {
	var entries []string
	for _, entry := range list {
		entries = append(entries, quoteJSON(entry))
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

func quoteJSON(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %q: %v", text, err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
