//go:build unix

package proc

import (
	"os"
	"sync"
)

// own are the children that this process has started itself and waits for. A
// process has one set of children, whatever trackers it has.
var own children

// children are recorded on every system, although only Linux gives this process
// other children beside them.
type children struct {
	starting sync.RWMutex // held for reading while one is started
	pids     sync.Map     // process ids of those not yet waited for
}

// start is os.StartProcess.
func (c *children) start(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	c.starting.RLock()
	defer c.starting.RUnlock()
	process, err := os.StartProcess(path, argv, attr)
	if err == nil {
		c.pids.Store(process.Pid, nil)
	}
	return process, err
}

// ended forgets a child that was waited for.
func (c *children) ended(pid int) { c.pids.Delete(pid) }
