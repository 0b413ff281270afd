//go:build !unix

package fsguard

// systemStat is empty on this system.
type systemStat struct{}

// onlyDirectory is a flag with which nothing but a directory is opened.
const onlyDirectory = 0
