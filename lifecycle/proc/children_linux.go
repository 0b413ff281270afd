package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ChildrenOf lists the children of all threads of a process, because the kernel
// gives an orphan to any of them. The pid may be "self".
func ChildrenOf(pid string) ([]int, error) {
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	var children []int
	for _, thread := range threads {
		list, err := os.ReadFile("/proc/" + pid + "/task/" + thread.Name() + "/children")
		if err != nil {
			return nil, fmt.Errorf("list children: %w", err)
		}
		for field := range bytes.FieldsSeq(list) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, pid)
			}
		}
	}
	return children, nil
}
