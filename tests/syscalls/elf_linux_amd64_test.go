package syscalls

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// call32 is a system call of i386 (asm/unistd_32.h).
type call32 struct {
	number uint32
	args   [3]uint32
	// onResult passes the result of the call before as the first argument.
	onResult bool
}

// elf32 is a static program for 32-bit x86, put together by hand so that no C
// compiler is needed. It makes system calls by int 0x80. It exits with 0, or
// with the number of the last call's error. Memory at elfData holds the given
// words, for arguments that are pointers.
func elf32(calls []call32, data []uint32) []byte {
	var code bytes.Buffer
	move := func(opcode byte, value uint32) { // mov register, value
		code.WriteByte(opcode)
		code.Write(binary.LittleEndian.AppendUint32(nil, value))
	}
	for _, call := range calls {
		if call.onResult {
			code.Write([]byte{0x89, 0xc3}) // mov ebx, eax
		} else {
			move(0xbb, call.args[0]) // ebx
		}
		move(0xb8, call.number)        // eax
		move(0xb9, call.args[1])       // ecx
		move(0xba, call.args[2])       // edx
		code.Write([]byte{0xcd, 0x80}) // int 0x80
	}
	code.Write([]byte{
		0x31, 0xdb, // xor ebx, ebx
		0x85, 0xc0, // test eax, eax
		0x79, 0x04, // jns +4
		0x89, 0xc3, // mov ebx, eax
		0xf7, 0xdb, // neg ebx
	})
	move(0xb8, 1)                     // eax: exit
	code.Write([]byte{0xcd, 0x80})    // int 0x80
	if code.Len() > elfData-elfCode { // the words would overwrite the code
		panic("the program is too long")
	}
	image := make([]byte, elfData-elfBase)
	copy(image[elfCode-elfBase:], code.Bytes())
	for _, w := range data {
		image = binary.LittleEndian.AppendUint32(image, w)
	}
	header := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...) // 32 bits, little-endian, version 1
	for _, half := range []uint16{2, 3} {                               // executable, i386
		header = binary.LittleEndian.AppendUint16(header, half)
	}
	for _, word := range []uint32{1, elfCode, 52, 0, 0} { // version, entry, program headers, sections, flags
		header = binary.LittleEndian.AppendUint32(header, word)
	}
	for _, half := range []uint16{52, 32, 1, 0, 0, 0} { // sizes and counts of headers
		header = binary.LittleEndian.AppendUint16(header, half)
	}
	size := uint32(len(image))
	for _, word := range []uint32{1, 0, elfBase, elfBase, size, size, 7, 0x1000} { // load all of it
		header = binary.LittleEndian.AppendUint32(header, word)
	}
	copy(image, header)
	return image
}

const (
	elfBase = 0x08048000
	elfCode = elfBase + 0x100
	elfData = elfBase + 0x200
)

// program32 writes such a program into the project.
func (s *scene) program32(t testing.TB, name string, calls []call32, data ...uint32) string {
	t.Helper()
	path := filepath.Join(s.World.Project, name)
	harness.WriteProgram(t, path, string(elf32(calls, data)))
	return path
}
