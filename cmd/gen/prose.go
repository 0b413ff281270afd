//go:build unix

package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unwrap joins the lines of each paragraph, so that every artefact can wrap to
// its own width.
func unwrap(text string) string {
	paragraphs := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

// goDocLink is a link of a Go doc comment: [Name], [*Name], [pkg.Name]. It does
// not match JSON's [] and [string].
var goDocLink = regexp.MustCompile(`\[\*?((?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// wordPattern matches words that may be Go identifiers.
var wordPattern = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Z]\w*)?`)

// prose turns a doc comment into text for readers who do not know the Go names.
// The Go name at its start becomes the name on the wire, links lose their
// brackets, and error codes and constants become their numbers.
func (p *Package) prose(doc, goName, outside string) string {
	doc = goDocLink.ReplaceAllString(doc, "$1")
	if rest, ok := strings.CutPrefix(doc, goName); ok && goName != "" {
		switch {
		case strings.HasPrefix(rest, ": "):
			doc = upperFirst(rest[2:])
		case strings.HasPrefix(rest, " "):
			return "`" + outside + "`" + p.numbers(rest)
		}
	}
	return p.numbers(doc)
}

// numbers replaces the names of error codes and constants by their values.
func (p *Package) numbers(text string) string {
	return wordPattern.ReplaceAllStringFunc(text, func(word string) string {
		for _, c := range p.Codes {
			if c.GoName == word {
				return c.Value
			}
		}
		if value, ok := p.Consts[word]; ok {
			return value
		}
		return word
	})
}

func upperFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[size:]
}

// wrap breaks the lines of text at spaces, so that each has at most width
// characters if possible.
func wrap(text string, width int) []string {
	var lines []string
	for _, long := range strings.Split(text, "\n") {
		line := ""
		for _, word := range strings.Fields(long) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// valueProse explains an enum's value next to the value. It therefore drops the
// comment's subject: "Terminal is the user's own terminal" becomes "The user's
// own terminal".
func valueProse(p *Package, v *EnumValue) string {
	text := p.prose(v.Doc, v.GoName, v.Value)
	text = strings.TrimPrefix(text, "`"+v.Value+"` ")
	text = strings.TrimPrefix(text, "is ")
	return upperFirst(text)
}

// fieldProse explains a field next to its name. It drops the subject before "is"
// and "are": "PID is the leader's process id" becomes "The leader's process id".
// Before other verbs the subject becomes the JSON name.
func fieldProse(p *Package, f *Field) string {
	text := p.prose(f.Doc, f.GoName, f.Name)
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(text, "`"+f.Name+"`"+verb); ok {
			return upperFirst(rest)
		}
	}
	return text
}

// plainText is text without Markdown.
func plainText(text string) string { return strings.ReplaceAll(text, "`", "") }
