package platform

// receiveFlags is 0: macOS cannot set close-on-exec on receipt.
const receiveFlags = 0
