//go:build !unix

package fsguard

// systemStat is empty on this system.
type systemStat struct{}
