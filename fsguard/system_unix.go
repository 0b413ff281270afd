//go:build unix

package fsguard

import "syscall"

// systemStat is what the system says of a file.
type systemStat = syscall.Stat_t
