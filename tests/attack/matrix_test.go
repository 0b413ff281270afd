//go:build linux

package attack

import (
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

var (
	matrixFile = flag.String("matrix", "", "file to write the matrix of attacks to")
	tallyFile  = flag.String("tally", "", "file to write to how many attacks each cell of the matrix has, as JSON")
	onlyAs     = flag.String("as", "", "attack only as this account")
	onlyUnder  = flag.String("under", "", "attack only in this circumstance, and without a sandbox, which "+
		"is the control")
	share = flag.Int("share", 0, "carry out only the attacks of which the number, divided by the flag shares, "+
		"leaves this")
	shares = flag.Int("shares", 1, "see the flag share")
)

// attackFiles are the files of the directory "attacks": one attack each. The
// first line names the attempt and the rule that must stop it. The keys:
//
//	stops: the protection that must stop it, by its name in a spawn reply;
//	  "always" if it does not depend on the kernel
//	holds: "degraded" if that status is enough to stop it
//	refusal: a pattern of the output in that case
//	refusal_tree: the pattern if file_tree is enforced, where a read-only mount
//	  answers first; by default the same
//	target: a file in the project with the id of the process that is attacked; it
//	  must still run after the attack
//	settings: keys for the sandboxed session, as JSON; $OUTSIDE, $HOME and
//	  $PROJECT are expanded
//	needs: "root" if an ordinary user could not do it anyway, programs, and
//	  keys of machineHas, blank-separated
//	kind: "terminal" for an attack from one
//	way: the number of its row in docs/design/what-runs-outside.md
//	review: a pattern of the review's messages; an attack that has its effect
//	  and is named there is no hole
//	program: a path in the project to which the sidecar's program is copied,
//	  and from where it is started
//
// The sections are scripts for bash in the project. "prepare" and "cleanup" run
// outside. "attack" runs in the session, where "victim" is the hostile program.
// "harm" runs outside and succeeds if the attack has had its effect: $OUTPUT is
// a file with the session's output, $CHECKS how often to check. Processes
// that "prepare" leaves in its process group are killed.
func attackFiles(t testing.TB) []harness.CaseFile {
	t.Helper()
	return harness.CaseFiles(t, "attacks",
		[]string{
			"stops", "holds", "refusal", "refusal_tree", "target", "settings", "needs", "kind", "way",
			"review", "program",
		},
		[]string{"prepare", "attack", "harm", "cleanup"})
}

// account has the rights of a sidecar and of the scripts outside.
type account struct {
	name       string
	credential *syscall.Credential // nil: those of the test
}

// accounts are the test's own user and, for root, an ordinary one too.
func accounts() []account {
	if os.Geteuid() != 0 {
		return []account{{name: "user"}}
	}
	const nobody = 65534
	all := []account{{name: "root"}, {name: "user", credential: &syscall.Credential{Uid: nobody, Gid: nobody}}}
	return slices.DeleteFunc(all, func(as account) bool { return *onlyAs != "" && *onlyAs != as.name })
}

// circumstance is how an attack is sandboxed.
type circumstance struct {
	name      string
	sandboxed bool
	wrap      string // an action of the victim that starts the sidecar
}

func circumstances() []circumstance {
	all := []circumstance{
		{name: "unsandboxed"},
		{name: "sandboxed", sandboxed: true},
		{name: "no namespaces", sandboxed: true, wrap: "without-namespaces"},
	}
	return slices.DeleteFunc(all, func(c circumstance) bool {
		return *onlyUnder != "" && *onlyUnder != c.name && c.sandboxed
	})
}

// Carries out every file of the directory "attacks". Each must have its effect
// without a sandbox, and none if the reply calls the protection enforced.
func TestAttacks(t *testing.T) {
	t.Parallel()
	harness.Once(t, "root attacks as an ordinary user too")
	harness.RequireSandbox(t)
	var mu sync.Mutex // guards cells
	cells := map[string]string{}
	files := slices.DeleteFunc(attackFiles(t), func(file harness.CaseFile) bool {
		return file.Number%*shares != *share
	})
	shared := &sidecars{t: t, all: map[string]*harness.Editor{}}
	t.Run("all", func(t *testing.T) {
		for _, file := range files {
			for i, as := range accounts() {
				if !harness.Turn(t, file.Number+i, len(accounts())) {
					continue
				}
				t.Run(file.Name+"/"+as.name, func(t *testing.T) {
					t.Parallel()
					if missing := lacks(file, as); missing == "root" {
						return
					} else if missing != "" {
						harness.Skip(t, missing, "not there")
					}
					for _, c := range circumstances() {
						attack := fileAttack{file: file, as: as, wrap: c.wrap, sandboxed: c.sandboxed, shared: shared}
						cell := attack.carryOut(t)
						mu.Lock()
						cells[file.Name+as.name+c.name] = cell
						mu.Unlock()
					}
				})
			}
		}
	})
	if *matrixFile != "" {
		harness.Must(t, os.WriteFile(*matrixFile, []byte(matrix(t, files, cells)), 0o644))
	}
	if *tallyFile != "" {
		counts, err := json.Marshal(tally(maps.Values(cells)))
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(*tallyFile, counts, 0o644))
	}
}

func tally(cells iter.Seq[string]) map[string]int {
	counts := map[string]int{}
	for cell := range cells {
		counts[cell]++
	}
	return counts
}

// machineHas are features that attacks need of a kernel. A kernel may be built
// without them, may lack their modules, or may be configured to refuse them.
var machineHas = map[string]func(account) bool{
	// Since Linux 6.2 it can be switched off for all but root.
	"tiocsti": func(as account) bool {
		value, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti")
		return err != nil || strings.TrimSpace(string(value)) != "0" || as.name == "root"
	},
	"user_namespaces": func(as account) bool {
		command := exec.Command("unshare", "--user", "true")
		command.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential}
		return command.Run() == nil
	},
	"vsock": func(account) bool { return hasSocket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"mptcp": func(account) bool { return hasSocket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP) },
}

func hasSocket(family, kind, protocol int) bool {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// lacks is what an account lacks for an attack; "" for nothing.
func lacks(file harness.CaseFile, as account) string {
	for _, need := range strings.Fields(file.Key("needs")) {
		if need == "root" {
			if as.name != "root" {
				return "root"
			}
			continue
		}
		if has, known := machineHas[need]; known {
			if !has(as) {
				return need
			}
			continue
		}
		if _, err := exec.LookPath(filepath.Join("/usr/bin", need)); err != nil {
			return need
		}
	}
	return ""
}

// matrix is the table that "make attack" prints: one line for each attack.
func matrix(t testing.TB, files []harness.CaseFile, cells map[string]string) string {
	var b strings.Builder
	var columns []string
	for _, as := range accounts() {
		for _, c := range circumstances() {
			columns = append(columns, as.name+" "+c.name)
		}
	}
	fmt.Fprintf(&b, "%-28s", "attack")
	for _, column := range columns {
		fmt.Fprintf(&b, " %-18s", column)
	}
	b.WriteString("\n")
	counts := map[string]int{}
	line := func(file harness.CaseFile, count int) {
		fmt.Fprintf(&b, "%-28s", file.Name)
		for _, as := range accounts() {
			for _, c := range circumstances() {
				cell := cells[file.Name+as.name+c.name]
				if cell == "" {
					cell = "-"
				}
				counts[cell] += count
				fmt.Fprintf(&b, " %-18s", cell)
			}
		}
		b.WriteString("\n")
	}
	for _, file := range files {
		line(file, 1)
	}
	b.WriteString("\nWhat a session writes and programs outside run (docs/design/what-runs-outside.md):\n")
	for _, way := range waysOut(t) {
		fmt.Fprintf(&b, "\n%s  %s\n", way.number, way.title)
		for _, file := range files {
			if file.Key("way") == way.number {
				line(file, 0)
			}
		}
	}
	b.WriteString("\n")
	for _, cell := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%4d %s\n", counts[cell], meanings[cell])
	}
	return b.String()
}

// The cells of the matrix.
const (
	cellWorks   = "works"
	cellStopped = "stopped"
	cellSaid    = "open, said"
	// cellReported is about what programs outside act on.
	cellReported = "reported"
	cellHole     = "HOLE"
	cellNone     = "-"
)

var meanings = map[string]string{
	cellWorks:    cellWorks + ": has its effect without a sandbox, which is the control",
	cellStopped:  cellStopped + ": has no effect in the sandbox",
	cellSaid:     cellSaid + ": has its effect, and the reply said that this protection is not enforced",
	cellReported: cellReported + ": has its effect, and the review names it when the session ends",
	cellHole:     cellHole + ": has its effect although the reply says that it is stopped",
	cellNone:     cellNone + ": only root could, or was not tried",
}
