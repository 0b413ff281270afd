package fsguard

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Lacks never calls missing what can be found, and lists a directory once.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	for _, path := range []string{"there", "closed", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "there", "dangling": "none"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	names := NewNames()
	for i := range worthListing {
		if path := fmt.Sprintf("%s/none%d", dir, i); names.Lacks(path) != (i == worthListing-1) {
			t.Errorf("after %d names: %v", i+1, names.Lacks(path))
		}
	}
	for name, want := range map[string]bool{
		"there": false, "link": false, "link/x": false, "there/x": false, "dangling": false, "THERE": !ignoresCase(dir),
		"none/x/y": true, ".": false,
	} {
		if path := filepath.Join(dir, name); names.Lacks(path) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if err := os.WriteFile(dir+"/late", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !names.Lacks(dir+"/late") || NewNames().Lacks(dir+"/late") {
		t.Error("a directory is listed more than once, or too early")
	}

	if err := os.Chmod(closed, 0o300); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(closed, 0o700)
	_, failure := os.ReadDir(closed)
	for name, want := range map[string]bool{
		"closed": failure == nil, "empty": true, "absent": true, "there/x/y": true,
	} {
		names, lacks := NewNames(), false
		for i := range 2 * worthListing {
			lacks = names.Lacks(fmt.Sprintf("%s/%s/%d", dir, name, i))
		}
		if lacks != want {
			t.Errorf("names in %s: %v", name, lacks)
		}
	}
}

func ignoresCase(dir string) bool {
	_, err := os.Lstat(dir + "/THERE")
	return err == nil
}
