package libsystem

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributeList is struct attrlist (sys/attr.h).
type attributeList struct {
	bitmapCount uint16
	_           uint16
	common      uint32
	volume      uint32
	directory   uint32
	file        uint32
	fork        uint32
}

const (
	attributeBitmaps  = 5          // ATTR_BIT_MAP_COUNT
	attributeFullPath = 0x08000000 // ATTR_CMN_FULLPATH
	noFollow          = 0x00000001 // FSOPT_NOFOLLOW
	noFollowAny       = 0x00000800 // FSOPT_NOFOLLOW_ANY: no component may be a symlink
)

// RealPath is a file's path as the kernel spells it, which is the only spelling
// that a Seatbelt rule matches. It has the letter case and the Unicode form of
// the disk, and goes through firmlinks (/Users, not
// /System/Volumes/Data/Users). The file itself is not opened. If a component of
// the path is a symlink, the error wraps ELOOP.
func RealPath(path string) (string, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return "", fmt.Errorf("find real path of %q: %w", path, err)
	}
	list := attributeList{bitmapCount: attributeBitmaps, common: attributeFullPath}
	// The answer is its own length, the text's offset and length, and the text
	// of at most PATH_MAX bytes.
	buffer := make([]byte, 4+8+unix.PathMax)
	result, _, errno := syscall6(libc_getattrlist_stub_address, uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(&list)),
		uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), noFollow|noFollowAny, 0)
	runtime.KeepAlive(name)
	if int32(result) != 0 {
		return "", fmt.Errorf("find real path of %q: %w", path, errno)
	}
	real, ok := fullPath(buffer)
	if !ok {
		return "", fmt.Errorf("find real path of %q: unexpected answer of the kernel", path)
	}
	return real, nil
}
