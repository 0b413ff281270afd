package platform

// receiveFlags are none: macOS cannot mark descriptors while it receives them.
const receiveFlags = 0
