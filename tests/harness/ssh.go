package harness

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os/exec"
	"testing"

	"golang.org/x/crypto/ssh"
)

// ServeSSH serves this machine's files over ssh, to a user's key, until the test
// ends. It returns the host's key, as known hosts have it, and its port on
// 127.0.0.1.
func ServeSSH(t testing.TB, user ssh.PublicKey, env []string) (host, port string) {
	t.Helper()
	hostKey, _ := NewSSHKey(t)
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if string(key.Marshal()) != string(user.Marshal()) {
				return nil, errors.New("another key")
			}
			return &ssh.Permissions{}, nil
		},
	}
	config.AddHostKey(hostKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serveConnection(connection, config, env)
		}
	}()
	_, port, err = net.SplitHostPort(listener.Addr().String())
	Must(t, err)
	return string(ssh.MarshalAuthorizedKey(hostKey.PublicKey())), port
}

// NewSSHKey makes a key of ssh, and its file.
func NewSSHKey(t testing.TB) (ssh.Signer, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	Must(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	Must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	Must(t, err)
	return signer, string(pem.EncodeToMemory(block))
}

// serveConnection runs the commands that a client asks for.
func serveConnection(connection net.Conn, config *ssh.ServerConfig, env []string) {
	defer connection.Close()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		channel, requests, err := offer.Accept()
		if err != nil {
			return
		}
		go func() {
			defer channel.Close()
			for request := range requests {
				var line struct{ Text string }
				if request.Type != "exec" || ssh.Unmarshal(request.Payload, &line) != nil {
					_ = request.Reply(request.Type == "env", nil)
					continue
				}
				_ = request.Reply(true, nil)
				command := exec.Command("/bin/sh", "-c", line.Text)
				command.Env, command.Stdin, command.Stdout, command.Stderr = env, channel, channel, channel.Stderr()
				_ = command.Run()
				status := struct{ Code uint32 }{uint32(command.ProcessState.ExitCode())}
				_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(&status))
				return
			}
		}()
	}
}
