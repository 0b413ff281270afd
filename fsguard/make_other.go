//go:build !unix

package fsguard

import "io/fs"

func othersDirectory(fs.FileInfo) bool { return false }
