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

// start is os.StartProcess, with the limits that the third argument sets
// meanwhile.
func (c *children) start(
	path string, argv []string, attr *os.ProcAttr, limited func(start func() error) error,
) (process *os.Process, err error) {
	c.starting.RLock()
	defer c.starting.RUnlock()
	err = limited(func() (err error) {
		process, err = os.StartProcess(path, argv, attr)
		return err
	})
	if err == nil {
		c.pids.Store(process.Pid, nil)
	}
	return process, err
}

// ended forgets a child that was waited for.
func (c *children) ended(pid int) { c.pids.Delete(pid) }
