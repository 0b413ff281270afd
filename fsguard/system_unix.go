//go:build unix

package fsguard

import "syscall"

// systemStat is the system's own description of a file.
type systemStat = syscall.Stat_t

// onlyDirectory is a flag with which nothing but a directory is opened.
const onlyDirectory = syscall.O_DIRECTORY
