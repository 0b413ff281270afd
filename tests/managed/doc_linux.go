// Package managed tests the settings of an organisation on the real binary. Its
// directory is mounted over /etc in a mount namespace of each program.
package managed
