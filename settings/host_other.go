//go:build !linux && !darwin

package settings

import "io/fs"

const hostPlatform = "windows"

const watchAncestors = false

func signatureOf(info fs.FileInfo) signature {
	return signature{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
}

// private always fails: the owner of a file cannot be told here.
func private(fs.FileInfo) error { return errNotPrivate }

// deafFileSystem never knows.
func deafFileSystem(string) string { return "" }
