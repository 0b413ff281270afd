package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// memory of most machines, in MiB. The initial root file system is unpacked
	// into it.
	memory = 1024
	// boots is how often a machine is started that dies before its first
	// result: software emulation crashes a guest now and then.
	boots = 3
)

// machine is a kernel to boot with what it needs.
type machine struct {
	kernel kernel
	fetched
	// cache is a directory for what machines have in common.
	cache string
	// share of shares are the attacks that the first context carries out; the
	// next context takes the next share.
	share, shares int
	// timeout bounds one boot with all suites, so that a kernel that hangs does
	// not block the others.
	timeout time.Duration
	// missing are the protections that are known not to be enforced; see
	// expected.missing.
	missing string
	// logs is a directory for the machine's messages and results.
	logs string
}

// boot runs a machine to its end. An error of one machine is part of its
// outcome: the others' results stay worth reading.
func (m machine) boot(ctx context.Context) outcome {
	o := outcome{kernel: m.kernel, version: m.version}
	start := time.Now()
	for o.boots = 1; ; o.boots++ {
		complaints, runErr := m.emulate(ctx)
		if ctx.Err() != nil {
			o.err = ctx.Err()
			return o
		}
		o.emulator = strings.TrimSpace(complaints)
		if runErr != nil {
			o.emulator = strings.TrimSpace(runErr.Error() + " " + complaints)
		}
		results, err := os.Open(m.log("results"))
		if err != nil {
			o.err = errors.New(o.emulator)
			return o
		}
		o.guest = guest{}
		err = o.guest.read(results)
		results.Close()
		o.wall = time.Since(start)
		if err != nil {
			o.err = fmt.Errorf("read results: %w", err)
			return o
		}
		if o.guest.ended || o.boots == boots || len(o.guest.runs) > 0 {
			return o
		}
	}
}

func (m machine) log(kind string) string { return filepath.Join(m.logs, m.kernel.name+"."+kind) }

// emulate always emulates the processor, because not every user may use
// hardware virtualisation.
func (m machine) emulate(ctx context.Context) (complaints string, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	arch := m.kernel.architecture()
	emulator, err := exec.LookPath(arch.emulator)
	if err != nil {
		return "", err
	}
	initrd, err := m.ownInitrd(ctx)
	if err != nil {
		return "", err
	}
	defer os.Remove(initrd)
	var suites []string
	for _, s := range m.kernel.suites {
		suites = append(suites, s.order(m.shares > 1))
	}
	cmdline := []string{
		"console=" + arch.console, "sidecar.port=" + arch.port, "quiet", "panic=-1",
		// Mitigations would only make it slower: nothing attacks this kernel's
		// memory.
		"mitigations=off", "init_on_alloc=0", m.kernel.cmdline,
		"sidecar.missing=" + m.missing, "sidecar.without=" + strings.Join(m.kernel.without, ","), "sidecar.suites=" +
			strings.Join(suites, ","), fmt.Sprintf("sidecar.share=%d/%d", m.share, m.shares),
	}
	args := slices.Concat(arch.flags, []string{
		"-accel", "tcg,thread=multi", "-m",
		strconv.Itoa(max(memory, m.kernel.memory)), "-smp", "1", "-nodefaults", "-no-user-config",
		"-no-reboot", "-display",
		"none",
		"-kernel", m.image, "-initrd", initrd, "-append", strings.Join(cmdline, " "),
	})
	if arch.console != arch.port {
		args = append(args, "-serial", "file:"+m.log("console"))
	}
	command := exec.CommandContext(ctx, emulator, append(args, "-serial", "file:"+m.log("results"))...)
	var out bytes.Buffer
	command.Stderr = &out
	err = command.Run()
	return out.String(), err
}

// common is the file system of every machine of an architecture, without
// modules.
func (m machine) common(arch architecture) string {
	return filepath.Join(m.cache, "initrd-"+arch.name+".cpio")
}

// ownInitrd is the file system with this kernel's modules in it.
func (m machine) ownInitrd(ctx context.Context) (path string, err error) {
	dir, err := os.MkdirTemp("", "sidecar-modules-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // it becomes the root directory too
		return "", err
	}
	if err := os.CopyFS(filepath.Join(dir, "modules"), os.DirFS(m.modules)); err != nil {
		return "", err
	}
	common, err := os.Open(m.common(m.kernel.architecture()))
	if err != nil {
		return "", err
	}
	defer common.Close()
	path = m.log("cpio")
	return path, toFile(path, func(w io.Writer) error {
		if _, err := io.Copy(w, common); err != nil {
			return err
		}
		return pack(ctx, dir, w)
	})
}
