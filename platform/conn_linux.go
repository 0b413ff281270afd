package platform

import "golang.org/x/sys/unix"

// receiveFlags sets close-on-exec on receipt, so that no process started
// meanwhile inherits the descriptor.
const receiveFlags = unix.MSG_CMSG_CLOEXEC
