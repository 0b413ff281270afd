package usersocket

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end.
type peer struct {
	uid, pid int
	lives    *os.File // a pidfd, if the kernel has them for peers; free closes it
}

func peerOf(fd int) (peer, error) {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return peer{}, err
	}
	who := peer{uid: int(credentials.Uid), pid: int(credentials.Pid)}
	if lives, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
		who.lives = os.NewFile(uintptr(lives), "peer")
	} else if !errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.5
		return peer{}, fmt.Errorf("find the peer: %w", err)
	}
	return who, nil
}

// free refuses a process of a session. It has more filters of system calls than
// this one. In a container every process may have some. If the peer has ended, its
// number may be that of another process by now.
func (p peer) free() error {
	if p.lives != nil {
		defer p.lives.Close()
	}
	theirs, err := filters(strconv.Itoa(p.pid))
	if err != nil {
		return err
	}
	if p.lives != nil {
		if err := unix.PidfdSendSignal(int(p.lives.Fd()), 0, nil, 0); errors.Is(err, unix.ESRCH) {
			return errors.New("the peer has ended")
		}
	}
	ours, err := filters("self")
	if err != nil {
		return err
	}
	if theirs > ours {
		return errors.New("the peer is in a session")
	}
	return nil
}

// filters counts the filters of a process. Before Linux 5.9 it only tells
// whether there is one.
func filters(pid string) (int, error) {
	file, err := os.Open("/proc/" + pid + "/status")
	if err != nil {
		return 0, fmt.Errorf("find the filters of a process: %w", err)
	}
	defer file.Close()
	values := map[string]int{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if key != "Seccomp" && key != "Seccomp_filters" {
			continue
		}
		if values[key], err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
			return 0, fmt.Errorf("find the filters of a process: %w", err)
		}
	}
	if count, known := values["Seccomp_filters"]; known {
		return count, nil
	}
	mode, known := values["Seccomp"]
	if !known {
		return 0, errors.New("find the filters of a process: the kernel does not tell")
	}
	return mode, lines.Err()
}
