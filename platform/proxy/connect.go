package proxy

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
)

// Connect connects two streams to a host through the proxy that a variable of
// Environ names, until the host ends the connection. It is for ssh's
// ProxyCommand (ssh_config(5)).
func Connect(in io.Reader, out io.Writer, env func(string) string, host, port string) error {
	at, err := url.Parse(env("HTTPS_PROXY"))
	if err != nil || at.Host == "" || at.User == nil {
		return errors.New("connect by proxy: HTTPS_PROXY names no proxy of a session")
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		return fmt.Errorf("connect to the proxy: %w", err)
	}
	defer conn.Close()
	credentials := base64.StdEncoding.EncodeToString([]byte(at.User.String()))
	target := net.JoinHostPort(host, port)
	if strings.ContainsAny(target, " \r\n") {
		return fmt.Errorf("connect by proxy: %q is no host", target)
	}
	_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		target, target, credentials)
	if err != nil {
		return fmt.Errorf("ask the proxy: %w", err)
	}
	answer := bufio.NewReader(conn)
	line, err := answer.ReadString('\n')
	if err != nil {
		return fmt.Errorf("ask the proxy: %w", err)
	}
	if fields := strings.Fields(line); len(fields) < 2 || fields[1] != "200" {
		return fmt.Errorf("connect to %s: %s", target, strings.TrimSpace(line))
	}
	for line != "\r\n" {
		if line, err = answer.ReadString('\n'); err != nil {
			return fmt.Errorf("ask the proxy: %w", err)
		}
	}
	go func() {
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(out, answer)
	return err
}
