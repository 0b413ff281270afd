//go:build !unix

package fsguard

// systemStat is nothing here.
type systemStat struct{}
