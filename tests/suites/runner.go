//go:build linux

package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// runner runs commands outside and inside.
type runner struct {
	ctx     context.Context
	sidecar string
	limit   time.Duration
	inside  bool
	// home is a home directory of its own, with the project in it.
	home, project string
}

// settings are the defaults, and the toolchain that the tests of Go need.
const settings = `{"terminal": {"sandbox": {"enabled": true, "toolchains": ["go"]}}}`

// prepare makes a home that no default opens.
func (r *runner) prepare(sidecar string) error {
	path, err := filepath.Abs(sidecar)
	if err != nil {
		return err
	}
	base, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp(base, "suites-")
	if err != nil {
		return err
	}
	r.sidecar, r.home, r.project = path, home, filepath.Join(home, "project")
	config := filepath.Join(home, ".config", "sandbox-sidecar")
	return errors.Join(os.MkdirAll(config, 0o700), os.Mkdir(r.project, 0o700),
		os.WriteFile(filepath.Join(config, "settings.json"), []byte(settings), 0o600))
}

func (r *runner) remove() { os.RemoveAll(r.home) }

// command runs a command line in a directory, as gently as possible, and
// returns what it printed. That it fails is no error.
func (r *runner) command(dir string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.limit)
	defer cancel()
	// The project is where the results are written; the directory may be another.
	line := append([]string{"/bin/sh", "-c", `cd "$0" && exec nice "$@"`, dir}, argv...)
	if r.inside {
		line = append([]string{r.sidecar, "exec", "--project", r.project, "--"}, line...)
	}
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Dir = r.project
	command.Env = []string{
		"HOME=" + r.home, "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8",
		"USER=tester", "SHELL=/bin/bash", "TERM=xterm", "TMPDIR=/tmp", "GOTOOLCHAIN=local", "GOPROXY=off",
		"GOFLAGS=-mod=readonly", "CGO_ENABLED=0",
	}
	command.WaitDelay = 10 * time.Second
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return "", fmt.Errorf("takes longer than %s (inside: %t):\n%s", r.limit, r.inside, tail(output))
	}
	if command.ProcessState == nil {
		return "", err
	}
	return string(output), nil
}

func tail(output []byte) []byte { return output[max(0, len(output)-2000):] }

// pythonModules are those that ask the system for something.
var pythonModules = strings.Fields(`test_epoll test_eintr test_fcntl test_fork1 test_genericpath test_glob
	test_httpservers test_ioctl test_logging test_mmap test_openpty test_os test_pathlib
	test_poll test_popen test_posix test_posixpath test_pty test_pwd test_resource test_select test_selectors
	test_shutil test_signal test_site test_socket test_socketserver test_stat test_subprocess test_syslog test_tempfile
	test_threadsignals test_tty test_urllib2_localnet test_venv test_wait3 test_wait4
	test_asyncio`)

// junit is what Python's test runner writes.
type junit struct {
	Suites []struct {
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Skipped *struct{} `xml:"skipped"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func runPython(r *runner, module string) (results, error) {
	file := filepath.Join(r.project, "results.xml")
	os.Remove(file)
	output, err := r.command(r.project, "/usr/bin/python3.11", "-m", "test", "--junit-xml", file, "--timeout",
		strconv.Itoa(int(r.limit.Seconds())-10), module)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("no results (is libpython3.11-testsuite installed?):\n%s", tail([]byte(output)))
	}
	return parsePython(data)
}

func parsePython(data []byte) (results, error) {
	var all junit
	if err := xml.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	ended := results{}
	for _, suite := range all.Suites {
		for _, test := range suite.Cases {
			switch {
			case test.Name == "": // a part of a test, which then is not listed
			case test.Failure != nil || test.Error != nil:
				ended[test.Name] = "failed"
			case test.Skipped != nil:
				ended[test.Name] = "skipped"
			default:
				ended[test.Name] = "ok"
			}
		}
	}
	return ended, nil
}

var goPackages = strings.Fields(`os os/exec os/signal os/user net net/http syscall io/fs path/filepath internal/poll
	internal/syscall/unix log/syslog`)

// runGo compiles a package's tests outside, once, and runs them.
func runGo(r *runner, pkg string) (results, error) {
	binary := filepath.Join(r.project, strings.ReplaceAll(pkg, "/", "-")+".test")
	if _, err := os.Stat(binary); err != nil {
		inside := r.inside
		r.inside = false
		output, err := r.command(r.project, "go", "test", "-c", "-o", binary, pkg)
		r.inside = inside
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(binary); err != nil {
			return nil, fmt.Errorf("compile: %s", output)
		}
	}
	root, err := r.command(r.project, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	output, err := r.command(filepath.Join(strings.TrimSpace(root), "src", pkg), binary, "-test.v", "-test.short")
	if err != nil {
		return nil, err
	}
	return parseGo(output), nil
}

var goResult = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)

func parseGo(output string) results {
	ended := results{}
	for _, match := range goResult.FindAllStringSubmatch(output, -1) {
		ended[match[2]] = map[string]string{"PASS": "ok", "FAIL": "failed", "SKIP": "skipped"}[match[1]]
	}
	return ended
}
