// Package document reads and edits the text of settings files.
//
// [Decode] turns the bytes of one file into a [Block]: the "terminal.sandbox"
// object with the position of each value, and a [Diagnostic] for each mistake.
// [AddEntry] adds one entry to a list and keeps every other byte. Nothing here
// touches the file system.
package document
