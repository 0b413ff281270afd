package denials

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// hugePages is read by the runtimes of Go and others at the start of each
// program (runtime/os_linux.go, getHugePageSize). They run without it.
const hugePages = "/sys/kernel/mm/transparent_hugepage"

// ReadByRuntime reports whether language runtimes read a path for themselves.
// No user has asked for that access, so its denial is neither reported nor
// asked about.
func ReadByRuntime(path string) bool { return policy.Contains(hugePages, path) }
