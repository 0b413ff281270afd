package settings_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
)

// exampleStore is a store over one settings file in a directory of its own.
func exampleStore(content string) (*settings.Store, func()) {
	dir, err := os.MkdirTemp("", "settings")
	if err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(dir, "settings.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		log.Fatal(err)
	}
	store, err := settings.Open(settings.Options{UserPath: file, Home: dir, Platform: "linux", Once: true})
	if err != nil {
		log.Fatal(err)
	}
	return store, func() {
		store.Close()
		os.RemoveAll(dir)
	}
}

// From the bytes of a settings file to the policy for an agent's tool.
func Example() {
	store, remove := exampleStore(`{
		"terminal": {"sandbox": {"enabled": true, "allow_network": false, "typo": 1}}
	}`)
	defer remove()
	compiled := store.Snapshot("").Compile(settings.KindTool)
	fmt.Println("restricted:", compiled.Policy.Restricted)
	fmt.Println("network:", compiled.Policy.Network.Allowed)
	for _, d := range compiled.Diagnostics {
		fmt.Println(d.Diagnostic)
	}
	// Output:
	// restricted: true
	// network: false
	// 2:69: error: typo: unknown setting
}

// Why an access is refused, and which setting would allow it.
func Example_why() {
	store, remove := exampleStore(`{"terminal": {"sandbox": {"enabled": true}}}`)
	defer remove()
	x, err := explain.Why(store.Snapshot(""), settings.KindTool, explain.Read, "/")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(x.Allowed, x.Reason)
	fmt.Printf("%s: %q\n", x.Key, x.Value)
	// Output:
	// false no rule lets a session read "/"
	// additional_read_only_paths: "/"
}
