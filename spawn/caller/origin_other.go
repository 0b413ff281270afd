//go:build unix && !(linux && (amd64 || arm64))

package caller

import (
	"os"
	"os/signal"
)

var origins origin

type origin struct{}

// join has signals told to a channel, and package signal send them to caught.
func (origin) join(numbers []os.Signal, caught chan os.Signal, to chan<- Signal) (leave func()) {
	signal.Notify(caught, numbers...)
	return guess(caught, to)
}
