package stage

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCanary_MustBeListedBeforeAndRefusedAfter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := proveBefore(&Canary{Path: dir}); err != nil {
		t.Error(err)
	}
	if err := proveBefore(&Canary{Path: dir + "/gone"}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a canary that does not exist: %v", err)
	}
	if err := proveAfter(&Canary{Path: dir}); err == nil {
		t.Error("a canary that can still be listed proves a sandbox")
	}
	if err := proveAfter(&Canary{Path: dir + "/gone"}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a canary that is gone proves a sandbox: %v", err)
	}
}
