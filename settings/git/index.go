package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the names of git's objects
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
)

// entry is one of an index. Its path is valid until the next one is read.
type entry struct {
	mode uint32
	id   []byte // of the object
	path []byte
}

// gitlinks lists the paths in an index that are repositories of their own, at
// most most; see entries.
func gitlinks(index []byte, wide bool, most int) []string {
	var list []string
	for one := range entries(index, wide) {
		if len(list) >= most {
			break
		}
		if one.mode&0o170000 == 0o160000 {
			list = append(list, string(one.path))
		}
	}
	return list
}

// entries are those of an index (gitformat-index(5)), up to the first that cannot
// be read. wide says that the repository uses SHA-256. Of a split index it is
// only what changed since the split.
func entries(index []byte, wide bool) iter.Seq[entry] {
	const header, stat = 12, 40
	hash := 20
	if wide {
		hash = 32
	}
	return func(yield func(entry) bool) {
		if len(index) < header || string(index[:4]) != "DIRC" {
			return
		}
		version, left := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
		var path []byte
		for rest := index[header:]; left > 0; left-- {
			fixed := stat + hash + 2
			if len(rest) < fixed {
				return
			}
			one := entry{mode: binary.BigEndian.Uint32(rest[24:]), id: rest[stat : stat+hash]}
			if flags := binary.BigEndian.Uint16(rest[fixed-2:]); version >= 3 && flags&0x4000 != 0 {
				fixed += 2
			}
			start, kept := fixed, 0
			if version >= 4 {
				strip, n := offset(rest[min(fixed, len(rest)):])
				if n == 0 || strip > len(path) {
					return
				}
				start, kept = fixed+n, len(path)-strip
			}
			if start > len(rest) {
				return
			}
			end := bytes.IndexByte(rest[start:], 0)
			if end < 0 {
				return
			}
			path = append(path[:kept], rest[start:start+end]...)
			one.path = path
			if !yield(one) {
				return
			}
			next := start + end + 1
			if version < 4 {
				next = (start + end + 8) &^ 7 // one to eight NULs
			}
			if next > len(rest) {
				return
			}
			rest = rest[next:]
		}
	}
}

// isBlob reports whether an object is a file's content (gitformat-object: the
// hash of its kind, size and bytes).
func isBlob(id, content []byte) bool {
	whole := append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...)
	if len(id) == sha256.Size {
		sum := sha256.Sum256(whole)
		return bytes.Equal(sum[:], id)
	}
	sum := sha1.Sum(whole) //nolint:gosec // the names of git's objects
	return bytes.Equal(sum[:], id)
}

// offset decodes a number as git's varint.c does, and says how many bytes it
// takes; 0 if there is none.
func offset(text []byte) (value, n int) {
	for n < len(text) && n < 5 {
		c := text[n]
		if n > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		n++
		if c&0x80 == 0 {
			return value, n
		}
	}
	return 0, 0
}
