package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// tree is a document of nested objects. It is written without comments, and with
// its keys sorted.
type tree struct {
	root  map[string]any
	write func(any) ([]byte, error)
}

func (t *tree) text() ([]byte, error) { return t.write(t.root) }

func (t *tree) names() []string {
	var list []string
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, below := range v {
				list = append(list, name)
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		}
	}
	walk(t.root)
	return list
}

func (t *tree) leaves() []leaf {
	var list []leaf
	var walk func(value any, path []string, set func(string))
	walk = func(value any, path []string, set func(string)) {
		path = slices.Clone(path)
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name], append(path, name), func(made string) { v[name] = made })
			}
		case []any:
			for i := range v {
				walk(v[i], append(path, strconv.Itoa(i)), func(made string) { v[i] = made })
			}
		case string:
			list = append(list, leaf{path: path, value: v, set: set})
		case nil, bool:
		default:
			list = append(list, leaf{path: path})
		}
	}
	walk(t.root, nil, nil)
	return list
}

var errNoObject = errors.New("expected an object")

func readJSON(data []byte) (document, error) {
	t := &tree{write: func(root any) ([]byte, error) {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err := encoder.Encode(root)
		return out.Bytes(), err
	}}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&t.root); err != nil {
		return nil, unreadable("JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, unreadable("JSON")
	}
	return t.checked()
}

func readYAML(data []byte) (document, error) {
	t := &tree{write: yaml.Marshal}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&t.root); err != nil {
		return nil, unreadable("YAML")
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return t.checked()
}

func readTOML(data []byte) (document, error) {
	t := &tree{write: toml.Marshal}
	if err := toml.Unmarshal(data, &t.root); err != nil {
		return nil, unreadable("TOML")
	}
	return t.checked()
}

// checked refuses what the walk of leaves does not know, such as keys that are no
// texts.
func (t *tree) checked() (document, error) {
	if t.root == nil {
		return nil, errNoObject
	}
	var known func(value any) bool
	known = func(value any) bool {
		switch v := value.(type) {
		case map[string]any:
			for _, below := range v {
				if !known(below) {
					return false
				}
			}
		case []any:
			return !slices.ContainsFunc(v, func(below any) bool { return !known(below) })
		case map[any]any, []byte:
			return false
		}
		return true
	}
	if !known(t.root) {
		return nil, errors.New("a key that is no text")
	}
	return t, nil
}

// unreadable is the error of a parser, without its own words: they quote the text.
func unreadable(format string) error { return errors.New("cannot be read as " + format) }
