package main

import (
	"regexp"
	"slices"
	"strings"
)

var where = regexp.MustCompile(`(?i)(?:([\w'-]+)[^\w\s]*\s+)?\bwhere\b(?:\s+([\w'-]+))?`)

// These words make the "where" after them a place: a noun of a place ("the
// directory where"), a preposition ("from where") or a verb of knowing ("shows
// where").
var beforePlace = strings.Fields(`
	address addresses column directories directory end file files folder line lines location machine page place
	places point points position section spot start table
	about at from of on to
	and ask asks decide decides find finds found knew know known knows learn learns no not say says see seen
	show shows tell tells`)

// saysWhereForIf guesses whether a comment line says "where" and means "if":
// it does unless the word before is one of beforePlace, or the word after is
// "to" ("where to put it").
func saysWhereForIf(comment string) bool {
	for _, match := range where.FindAllStringSubmatch(comment, -1) {
		if !slices.Contains(beforePlace, strings.ToLower(match[1])) && match[2] != "to" {
			return true
		}
	}
	return false
}
