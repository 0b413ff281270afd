//go:build linux

package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/net/websocket"
)

// web answers every request with where it arrived. At /key is the hash of the key
// that came. At /echo is a WebSocket, and
// at /stream a call as gRPC makes them: both sides send at once, and the status
// comes as a trailer.
func web(where string, visits *journal) http.Handler {
	mux := http.NewServeMux()
	visited := func(then http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			visits.write("%s %s", where, r.Host)
			then.ServeHTTP(w, r)
		})
	}
	mux.Handle("/", visited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello from %s\n", where)
	})))
	mux.Handle("/key", visited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "key %x\n", sha256.Sum256([]byte(keyOf(r))))
	})))
	mux.Handle("/echo", visited(websocket.Server{Handler: func(c *websocket.Conn) { _, _ = io.Copy(c, c) }}))
	mux.Handle("/stream", visited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		both := http.NewResponseController(w)
		_ = both.Flush()
		for in := bufio.NewScanner(r.Body); in.Scan(); {
			fmt.Fprintf(w, "%s from %s\n", in.Text(), where)
			_ = both.Flush()
		}
		w.Header().Set("Grpc-Status", "0")
	})))
	return mux
}

// keyOf is the key by which a request signs in.
func keyOf(r *http.Request) string {
	if _, password, is := r.BasicAuth(); is {
		return password
	}
	if _, token, is := strings.Cut(r.Header.Get("Authorization"), " "); is {
		return token
	}
	return r.Header.Get("X-Api-Key")
}

// startTLS speaks as mail servers do: in plain text first, and by TLS when the
// client wishes.
func startTLS(c net.Conn, certificate tls.Certificate) {
	fmt.Fprint(c, "220 world\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || strings.TrimSpace(line) != "STARTTLS" {
		return
	}
	fmt.Fprint(c, "220 go ahead\r\n")
	secure := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}})
	fmt.Fprint(secure, "hello from tls\n")
	secure.Close()
}

// serveSSH runs the commands of everybody who connects. The host's key is in the
// directory, as known hosts have it.
func serveSSH(listener net.Listener, dir string, visits *journal) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return err
	}
	line := "[allowed.example]:2222,[evil.example]:2222 " + string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	if err := os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(line), 0o644); err != nil {
		return err
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	go accept(listener, func(c net.Conn) {
		visits.write("ssh")
		_, channels, requests, err := ssh.NewServerConn(c, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for opened := range channels {
			if channel, requests, err := opened.Accept(); err == nil {
				go runSSH(channel, requests, dir)
			}
		}
	})
	return nil
}

// handOver lets a program serve a connection, if there is such a program.
func handOver(c net.Conn, program string) {
	file, err := c.(*net.TCPConn).File()
	if err != nil {
		return
	}
	defer file.Close()
	command := exec.Command(program)
	command.Stdin, command.Stdout = file, file
	_ = command.Run()
}

// runSSH runs the command that a channel asks for.
func runSSH(channel ssh.Channel, requests <-chan *ssh.Request, dir string) {
	defer channel.Close()
	for request := range requests {
		var wanted struct{ Command string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &wanted) != nil {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		command := exec.Command("/bin/sh", "-c", wanted.Command)
		command.Dir = dir
		command.Stdout, command.Stderr = channel, channel.Stderr()
		in, err := command.StdinPipe()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(in, channel)
			in.Close()
		}()
		status := struct{ Status uint32 }{0}
		var exit *exec.ExitError
		if errors.As(command.Run(), &exit) {
			status.Status = uint32(exit.ExitCode())
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}
