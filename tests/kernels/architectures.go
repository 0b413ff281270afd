package main

// architecture is a kind of machine to emulate.
type architecture struct {
	// name is Debian's, and Go's.
	name     string
	emulator string
	flags    []string
	// console and port are the serial ports for the kernel's messages and for
	// results.
	console, port string
}

var amd64 = architecture{
	name: "amd64", emulator: "qemu-system-x86_64", flags: []string{
		"-cpu", "max", "-M",
		"pc",
	}, console: "ttyS0", port: "ttyS1",
}

// arm64 has one serial port for both; lines of results are those that are JSON.
// The processor is an old one, because the pointer authentication of new ones
// is slow to emulate.
var arm64 = architecture{
	name: "arm64", emulator: "qemu-system-aarch64", flags: []string{
		"-cpu", "cortex-a72", "-M",
		"virt",
	}, console: "ttyAMA0", port: "ttyAMA0",
}
