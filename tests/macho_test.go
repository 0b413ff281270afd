package tests

import (
	"debug/macho"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// wantedOfMacOS are the functions of macOS's libSystem that this program binds
// in addition to Go's. If one is missing, the binary has lost its sandbox; one
// more has not been reviewed.
var wantedOfMacOS = []string{
	"_getattrlist", "_proc_pidinfo", "_sandbox_check", "_sandbox_free_error", "_sandbox_init_with_parameters",
}

// Builds the program for a Mac, and reads its imports from the file.
func TestMacBinaries_ImportWhatTheyMust(t *testing.T) {
	t.Parallel()
	harness.Once(t, "it reads a file that the compiler has made")
	harness.Binary(t) // so that the cached result of this test depends on the sources, which only the compiler reads
	suspicious := regexp.MustCompile(`^_(sandbox_|proc_pid|getattrlist|csops|mach_task|task_for)`)
	for i, arch := range []string{"arm64", "amd64"} {
		if !harness.Turn(t, i, 2) {
			continue
		}
		out := filepath.Join(t.TempDir(), arch)
		build := exec.Command("go", "build", "-trimpath", "-o", out, "../cmd/sandbox-sidecar")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=darwin", "GOARCH="+arch)
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build for %s: %v\n%s", arch, err, output)
		}
		file, err := macho.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		symbols, err := file.ImportedSymbols()
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := file.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		var bound []string
		for _, symbol := range symbols {
			if suspicious.MatchString(symbol) {
				bound = append(bound, symbol)
			}
		}
		slices.Sort(bound)
		if !slices.Equal(bound, wantedOfMacOS) {
			t.Errorf("%s: imports %v, want %v", arch, bound, wantedOfMacOS)
		}
		for _, library := range libraries {
			// The frameworks are those of crypto/x509.
			if library != "/usr/lib/libSystem.B.dylib" &&
				!regexp.MustCompile(`^/System/Library/Frameworks/|^/usr/lib/libresolv`).MatchString(library) {
				t.Errorf("%s: needs %s", arch, library)
			}
		}
		if info, err := os.Stat(out); err == nil {
			t.Logf("%s: %d imports, of which %d are ours, from %v; %d bytes", arch, len(symbols), len(bound), libraries,
				info.Size())
		}
	}
}
