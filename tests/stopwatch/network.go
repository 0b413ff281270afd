//go:build linux

package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A connection's first byte tells the server of tests/bench what to send.
const (
	askNothing = 'n'
	askBytes   = 'b'
)

const (
	// connects is how many connections are measured.
	connects = 60
	// patience bounds a connection: a peer that hangs must not hang the bench.
	patience = 30 * time.Second
)

// network measures connections to a server and what one of them carries. If
// the environment names a proxy, it asks that for a tunnel, even to localhost.
func network(address string, bytes int64) error {
	var took []time.Duration
	for range connects {
		begun := time.Now()
		connection, err := dial(address)
		if err != nil {
			return err
		}
		took = append(took, time.Since(begun))
		_, err = connection.Write([]byte{askNothing})
		_ = connection.Close()
		if err != nil {
			return err
		}
	}
	slices.Sort(took)
	fmt.Printf("connect %d\n", took[len(took)/2].Nanoseconds())
	connection, err := dial(address)
	if err != nil {
		return err
	}
	defer connection.Close()
	begun := time.Now()
	if _, err := connection.Write([]byte{askBytes}); err != nil {
		return err
	}
	// A buffer of a usual size; nothing but the socket is measured.
	body := io.LimitReader(connection, bytes)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, 128<<10))
	if err == nil && n != bytes {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("%d of %d bytes arrived: %w", n, bytes, err)
	}
	fmt.Printf("download %d\n", time.Since(begun).Nanoseconds())
	return nil
}

// dial connects to a server, by the proxy of the environment if there is one.
func dial(address string) (net.Conn, error) {
	connection, err := tunnel(address)
	if err != nil {
		return nil, err
	}
	return connection, connection.SetDeadline(time.Now().Add(patience))
}

func tunnel(address string) (net.Conn, error) {
	proxy := os.Getenv("HTTPS_PROXY")
	if proxy == "" {
		return net.DialTimeout("tcp", address, patience)
	}
	by, err := url.Parse(proxy)
	if err != nil {
		return nil, err
	}
	connection, err := net.DialTimeout("tcp", by.Host, patience)
	if err != nil {
		return nil, err
	}
	_ = connection.SetDeadline(time.Now().Add(patience))
	request := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if by.User != nil {
		password, _ := by.User.Password()
		token := base64.StdEncoding.EncodeToString([]byte(by.User.Username() + ":" + password))
		request += "Proxy-Authorization: Basic " + token + "\r\n"
	}
	if _, err := io.WriteString(connection, request+"\r\n"); err != nil {
		_ = connection.Close()
		return nil, err
	}
	// The server says nothing before it is asked, so no byte of it is read here.
	answer := textproto.NewReader(bufio.NewReader(connection))
	status, err := answer.ReadLine()
	if err == nil {
		_, err = answer.ReadMIMEHeader()
	}
	if fields := strings.Fields(status); err == nil && (len(fields) < 2 || fields[1] != strconv.Itoa(200)) {
		err = fmt.Errorf("the proxy says %q", status)
	}
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	return connection, nil
}
