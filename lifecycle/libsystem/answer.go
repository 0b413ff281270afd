package libsystem

import "encoding/binary"

// fullPath parses getattrlist's answer: its own length, an attrreference_t with
// the text's offset from itself and its length including the final NUL, and the
// text.
func fullPath(answer []byte) (string, bool) {
	const header, reference = 4, 8
	if len(answer) < header+reference {
		return "", false
	}
	offset := int64(int32(binary.LittleEndian.Uint32(answer[header:]))) + header
	length := int64(binary.LittleEndian.Uint32(answer[header+4:]))
	if offset < header+reference || length < 2 || offset+length > int64(len(answer)) {
		return "", false
	}
	text := answer[offset : offset+length-1]
	return string(text), text[0] == '/'
}
