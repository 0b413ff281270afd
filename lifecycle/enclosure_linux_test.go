package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func init() { helpers["blow"] = blow }

// blow enters an enclosure, lets chains run in it that no look can catch, and strikes once, or not at all where args say so. It says whether
// anybody is left.
func blow(args []string) {
	var e enclosure
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	if err := e.enter(); err != nil {
		panic(err)
	}
	for range 4 {
		if err := helper("respawn", "100000", "100000", "setsid").Start(); err != nil {
			panic(err)
		}
	}
	for range 20 { // until links have ended and left their successors to us
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			panic(err)
		}
	}
	if args[0] == "strike" {
		e.kill()
	}
	left := true
	for deadline := time.Now().Add(time.Second); left && time.Now().Before(deadline); {
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		left = !errors.Is(err, unix.ECHILD)
	}
	fmt.Println("somebody is left:", left)
	e.kill()
}

// What an enclosure promises is kept by the one blow, without anybody who looks; without it the chains go on.
func TestEnclosure_OneBlowIsEnough(t *testing.T) {
	t.Parallel()
	if err := testKeepers(t).encloses; err != nil {
		harness.Lack(t, "enclosures", err.Error())
	}
	for what, want := range map[string]string{"strike": "somebody is left: false\n", "control": "somebody is left: true\n"} {
		command := helper("blow", what)
		command.Stdin = strings.NewReader("")
		if out, err := command.Output(); err != nil || string(out) != want {
			t.Errorf("%s: %q, %v", what, out, err)
		}
	}
}

// One call kills the enclosed, however fast they fork, and nobody else of the same user.
func TestKeeper_KillsTheEnclosedAtOneBlow(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	if k.encloses != nil {
		harness.Lack(t, "enclosures", k.encloses.Error())
	}
	bystander := helper("wait")
	bystander.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}()
	for range 5 {
		group := k.newGroup(nil)
		group.Enclose()
		pids := startIn(t, group, helper("respawn", "100000", "100000", "setsid"))
		if killed, err := group.Kill(soon(t)); err != nil || killed == 0 {
			t.Errorf("%d killed: %v", killed, err)
		}
		mustBeGone(t, pids)
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	}
	if !running(bystander.Process.Pid) {
		t.Error("a process outside was killed")
	}
}

// Outside of an enclosure the blow would strike everybody.
func TestEnclosure_StrikesFromInsideOnly(t *testing.T) {
	t.Parallel()
	(&enclosure{}).kill()
	(&enclosure{thread: -1}).kill()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- (&enclosure{}).enter()
	}()
	if err := <-done; err == nil {
		t.Error("a thread that is not the main one can enter")
	}
}

// Every Landlock domain denies links and renames between directories that does not say otherwise.
func TestKeeper_TheEnclosedRenameAndLinkAsOthersDo(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	if k.encloses != nil {
		harness.Lack(t, "enclosures", k.encloses.Error())
	}
	group := k.newGroup(nil)
	group.Enclose()
	process, err := group.Start("/bin/sh", []string{"sh", "-c", "mkdir a b && : >a/x && ln a/x b/y && ln -s x a/z && ln b/y a/again"},
		&os.ProcAttr{Dir: t.TempDir(), Files: []*os.File{nil, nil, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := process.Wait(false); err != nil || status.ExitStatus() != 0 {
		t.Errorf("%v, %v", status, err)
	}
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}
