// Package service is what sandbox-sidecar-credentials does: it has the secrets
// of one session, and serves the connections on which that uses them.
package service

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/opener"
)

// Run serves a sidecar until that ends the channel. The error says what the sidecar
// has done wrong; nil if it has ended.
func Run(channel *credentials.Channel) error {
	first, files, err := channel.Receive()
	closeAll(files)
	if err != nil || first.Order == nil {
		return errors.Join(err, errors.New("there is no order"))
	}
	made, given, err := prepare(*first.Order)
	if err != nil {
		return err
	}
	made.Report = func(e credentials.Event) { _ = channel.Send(credentials.Message{Event: &e}) }
	opened := opener.New(made)
	defer opened.Close()
	if err := channel.Send(credentials.Message{Given: &given}); err != nil {
		return err
	}
	var serving sync.WaitGroup
	for {
		m, files, err := channel.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil // with all that is open
		case err != nil:
			return err
		case m.Connection == nil:
			closeAll(files)
			return errors.New("the sidecar has said something unexpected")
		}
		c := *m.Connection
		client, host, err := connections(files)
		if err != nil {
			return err
		}
		serving.Go(func() {
			opened.Serve(client, host, c.Name, c.Port)
			_ = channel.Send(credentials.Message{Ended: c.Number})
		})
	}
}

// connections takes over both connections.
func connections(files []*os.File) (client, host net.Conn, err error) {
	defer closeAll(files)
	if client, err = net.FileConn(files[0]); err != nil {
		return nil, nil, fmt.Errorf("take over a connection: %w", err)
	}
	if host, err = net.FileConn(files[1]); err != nil {
		client.Close()
		return nil, nil, fmt.Errorf("take over a connection: %w", err)
	}
	return client, host, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
