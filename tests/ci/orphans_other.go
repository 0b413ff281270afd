//go:build !linux

package main

import "syscall"

// adoptOrphans does nothing: the system has no such thing.
func adoptOrphans() error { return nil }

// endWithParent does nothing, either.
func endWithParent() *syscall.SysProcAttr { return nil }
