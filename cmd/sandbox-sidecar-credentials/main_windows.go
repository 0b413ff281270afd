package main

import (
	"fmt"
	"os"
)

// main says where the program runs. There is no sandbox on Windows itself.
func main() {
	fmt.Fprintln(os.Stderr, "sandbox-sidecar-credentials: Windows is supported inside WSL2 only")
	fmt.Fprintln(os.Stderr, "sandbox-sidecar-credentials: hint: install it in your WSL2 distribution")
	os.Exit(1)
}
