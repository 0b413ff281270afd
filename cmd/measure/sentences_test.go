package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSentences_AreThoseOfProse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       []string // line:words
	}{
		{"two", "One two three four. Five six seven\neight nine ten!", []string{"1:4", "1:6"}},
		{"second line", "\nOne two three four.\nFive six seven eight?", []string{"2:4", "3:4"}},
		{"no end", "One two three four\n\nfive six seven eight", []string{"1:4", "3:4"}},
		{"label", "One two three.", nil},
		{"heading", "# One two three four five\n\nOne two three four\n---\n", nil},
		{"code block", "```go\nOne two three four.\n```\n\n    one two three four\n", nil},
		{"code span", "Run `go test ./...` and see. Then `make a` or\n`make b` again.", []string{"1:4", "1:5"}},
		{"abbreviation", "Take one, e.g. The third of them.", []string{"1:7"}},
		{"version", "It needs 5.13 or later. 4 of them.", []string{"1:5"}},
		{"file name", "Write main.go and sum.go at once.", []string{"1:6"}},
		{"link", "See [the page of\nit](https://example.org/a.b c) now.", []string{"1:6"}},
		{"image", "![One two three four](a.png)", nil},
		{"list", "- one two three four\n  five\n- six seven eight nine\n1. a b c d", []string{"1:5", "3:4", "4:4"}},
		{"item with code", "- one two three four\n\n  five six seven eight\n", []string{"1:4", "3:4"}},
		{
			"table", "| a | b |\n|---|:-:|\n| one two three four | `|` five six seven |",
			[]string{"3:4 cell", "3:4 cell"},
		},
		{"quote", "> [!NOTE]\n> One two three\n> four.", []string{"2:4"}},
		{"hidden", "<!-- one two\nthree four -->\nOne two three four.", []string{"3:4"}},
		{"tags", "<p align=\"center\">One two three four.</p>", []string{"1:4"}},
		{"reference", "[one]: two three four five", nil},
		{"dash", "One – two = three + four.", []string{"1:4"}},
		{"emphasis", "**One two three four.** Five six seven eight.", []string{"1:4", "1:4"}},
	} {
		var got []string
		for _, s := range measureMarkdown(source{"x.md", []byte(test.text)}).sentences {
			text := fmt.Sprintf("%d:%d", s.line, s.words)
			if s.cell {
				text += " cell"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// words is a sentence of n words.
func words(n int) string { return "A" + strings.Repeat(" b", n-1) + "." }

func TestLongSentences_NameWhatMustBeShortened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		words []int
		want  []string // the start of each finding
	}{
		{"all short", []int{30, 30, 30}, nil},
		{"one of ten over 30", []int{31, 5, 5, 5, 5, 5, 5, 5, 5, 5}, nil},
		{
			"one of nine over 30",
			[]int{5, 31, 5, 5, 5, 5, 5, 5, 5},
			[]string{"x.md:3: sentence of 31 words, and only one in ten may have more than 30"},
		},
		{
			"two of ten, the longer is named",
			[]int{31, 45, 5, 5, 5, 5, 5, 5, 5, 5},
			[]string{"x.md:3: sentence of 45 words, and only"},
		},
		{"over 45", []int{
			46, 5, 5, 5, 5, 5, 5, 5, 5, 5,
		}, []string{"x.md:1: sentence of 46 words, at most 45: split it"}},
	} {
		var text strings.Builder
		for _, n := range test.words {
			text.WriteString(words(n) + "\n\n")
		}
		got := longSentences(measureMarkdown(source{"x.md", []byte(text.String())}))
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
