package git

import (
	"bytes"
	"encoding/binary"
)

// gitlinks lists the paths in an index that are repositories of their own, at
// most most (gitformat-index(5)). wide says that the repository uses SHA-256. Of
// a split index it sees only what changed since the split.
func gitlinks(index []byte, wide bool, most int) []string {
	const header, stat = 12, 40
	if len(index) < header || string(index[:4]) != "DIRC" {
		return nil
	}
	version, left := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	hash := 20
	if wide {
		hash = 32
	}
	var list []string
	var path []byte
	for rest := index[header:]; left > 0 && len(list) < most; left-- {
		fixed := stat + hash + 2
		if len(rest) < fixed {
			return list
		}
		mode, flags := binary.BigEndian.Uint32(rest[24:]), binary.BigEndian.Uint16(rest[fixed-2:])
		if version >= 3 && flags&0x4000 != 0 {
			fixed += 2
		}
		start, kept := fixed, 0
		if version >= 4 {
			strip, n := offset(rest[min(fixed, len(rest)):])
			if n == 0 || strip > len(path) {
				return list
			}
			start, kept = fixed+n, len(path)-strip
		}
		if start > len(rest) {
			return list
		}
		end := bytes.IndexByte(rest[start:], 0)
		if end < 0 {
			return list
		}
		path = append(path[:kept], rest[start:start+end]...)
		if mode&0o170000 == 0o160000 {
			list = append(list, string(path))
		}
		next := start + end + 1
		if version < 4 {
			next = (start + end + 8) &^ 7 // one to eight NULs
		}
		if next > len(rest) {
			return list
		}
		rest = rest[next:]
	}
	return list
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
