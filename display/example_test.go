package display_test

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// A file name can neither end the line nor become a link.
func ExampleQuote() {
	fmt.Println("changed: " + display.Quote("notes\n[click](command:quit)"))
	// Output: changed: "notes\n[click]\x28command:quit)"
}
