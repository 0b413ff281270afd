package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// guardFileSystems lets this binary, run again, wait for file systems that may
// not answer.
func guardFileSystems() {
	fsguard.SetHelper(func(files []*os.File) error {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		path, argv := again("fsguard")()
		process, err := lifecycle.Start(path, argv, &os.ProcAttr{
			Dir: "/", Env: lifecycle.SmallRuntime, Files: append([]*os.File{null, null, null}, files...),
			// A key's signal is not for it.
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			return err
		}
		go func() { _, _ = process.Wait(false) }() // it ends with us, or is killed by somebody
		return nil
	})
}

// workingDir is os.Getwd, which looks at what PWD names, too, and so would wait
// for its file system.
func workingDir() (string, error) {
	dir, err := unix.Getwd()
	if err == nil && (fsguard.Kind(dir) != "" || fsguard.Kind(os.Getenv("PWD")) != "") {
		return dir, nil
	}
	return os.Getwd()
}
