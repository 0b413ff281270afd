//go:build !linux && !darwin

package settings

import "io/fs"

const hostPlatform = "windows"

const watchAncestors = false

func signatureOf(info fs.FileInfo) signature {
	return signature{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
}
