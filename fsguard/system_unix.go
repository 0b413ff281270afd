//go:build unix

package fsguard

import "syscall"

// systemStat is the system's own description of a file.
type systemStat = syscall.Stat_t
