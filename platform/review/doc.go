// Package review finds what has changed, while a session ran, among the files
// that programs outside of the sandbox act upon without asking.
package review
