package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// guardFileSystems makes fsguard wait for file systems that may not answer in a
// helper process: this binary, run again.
func guardFileSystems() {
	fsguard.SetHelper(func(files []*os.File) error {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		path, argv := reexec("fsguard")()
		process, err := lifecycle.Start(path, argv, &os.ProcAttr{
			Dir: "/", Env: lifecycle.SmallRuntime, Files: append([]*os.File{null, null, null}, files...),
			// Keys such as Ctrl-C must not signal it.
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			return err
		}
		go func() { _, _ = process.Wait(false) }() // it ends with this process, or is killed
		return nil
	})
}

// workingDir is os.Getwd, except on file systems that may not answer: os.Getwd
// also stats $PWD, and would wait for it.
func workingDir() (string, error) {
	dir, err := unix.Getwd()
	if err == nil && (fsguard.Kind(dir) != "" || fsguard.Kind(os.Getenv("PWD")) != "") {
		return dir, nil
	}
	return os.Getwd()
}
