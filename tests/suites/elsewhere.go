//go:build !linux

package main

import "log"

func main() { log.Fatal("suites: only on Linux") }
