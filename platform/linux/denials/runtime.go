package denials

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// hugePages is what the runtimes of Go and others read at the start of each
// program (runtime/os_linux.go, getHugePageSize), and go on without.
const hugePages = "/sys/kernel/mm/transparent_hugepage"

// Unasked reports whether a path is read by programs' runtimes for themselves:
// nobody has asked for that, so nobody is told, or asked.
func ReadByRuntime(path string) bool { return policy.Contains(hugePages, path) }
