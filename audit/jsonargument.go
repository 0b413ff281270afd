package audit

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// part is a string of a JSON document.
type part struct {
	start, end int
	value      string
}

// level is an object or array that is open.
type level struct {
	object bool
	key    string // of an object: the one whose value comes; "" if a key comes
	isKey  bool
	secret string // the name that makes all of it secret; "" if none does
	list   []part // the strings of an array, which may be a command
}

// json redacts a JSON document. It returns false if the text is none.
func (j *judge) json(text string, depth int) (string, bool) {
	if depth > maxDepth || !json.Valid([]byte(text)) {
		return "", false
	}
	var changed []part
	put := func(p part, value string) {
		if value != p.value {
			p.value = j.expand(value)
			changed = append(changed, p)
		}
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	open := []*level{{}}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", false
		}
		top := open[len(open)-1]
		end := int(decoder.InputOffset())
		switch token := token.(type) {
		case json.Delim:
			switch token {
			case '{', '[':
				inner := &level{object: token == '{', isKey: token == '{', secret: top.secret}
				if top.object && token == '[' && meaningOf(top.key) == strong {
					inner.secret = top.key
				}
				top.isKey = top.object
				open = append(open, inner)
			default:
				if len(top.list) > 0 && top.secret == "" {
					values := make([]string, len(top.list))
					for i, p := range top.list {
						values[i] = strings.ReplaceAll(p.value, mark, "\ufffd")
					}
					for i, value := range j.command(values, depth+1) {
						put(top.list[i], value)
					}
				}
				open = open[:len(open)-1]
			}
		case string:
			p := part{start: literal(text, end), end: end, value: token}
			switch {
			case top.object && top.isKey:
				top.key, top.isKey = token, false
			case top.object:
				top.isKey = true
				value := strings.ReplaceAll(token, mark, "\ufffd")
				if meaningOf(top.key) >= weak && !isPlain(top.key, value) || top.secret != "" {
					put(p, redacted)
				} else {
					put(p, j.argument("", value, depth+1))
				}
			case top.secret != "":
				put(p, redacted)
			default:
				top.list = append(top.list, p)
			}
		case json.Number:
			if top.object && meaningOf(top.key) == strong && !isPlain(top.key, token.String()) {
				put(part{start: end - len(token.String()), end: end}, redacted)
			}
			top.isKey = top.object
		default:
			top.isKey = top.object
		}
	}
	return replace(text, changed), true
}

// replace puts strings in the place of those that a document has.
func replace(text string, changed []part) string {
	slices.SortFunc(changed, func(a, b part) int { return a.start - b.start })
	var out strings.Builder
	done := 0
	for _, p := range changed {
		encoded, err := json.Marshal(p.value)
		if err != nil {
			encoded = []byte(`"` + redacted + `"`)
		}
		out.WriteString(text[done:p.start])
		out.Write(encoded)
		done = p.end
	}
	out.WriteString(text[done:])
	return out.String()
}

// literal is where the string starts that ends at end.
func literal(text string, end int) int {
	for i := end - 2; i >= 0; i-- {
		if text[i] != '"' {
			continue
		}
		escapes := 0
		for i-escapes-1 >= 0 && text[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
	return 0
}
