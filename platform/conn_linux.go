package platform

import "golang.org/x/sys/unix"

// receiveFlags keep a descriptor that is being received out of processes that
// are being started.
const receiveFlags = unix.MSG_CMSG_CLOEXEC
