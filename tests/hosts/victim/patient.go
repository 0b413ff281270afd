//go:build linux

package main

import (
	"context"
	"net"
	"time"
)

// The world's DNS clients give up after a second, so that the tests of silent
// servers are short. The victim's wait longer: on a busy machine an answered
// question may take a second, too.
func init() {
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := net.DialTimeout(network, address, patience)
			if udp, ok := conn.(*net.UDPConn); ok {
				return patient{udp}, err
			}
			return conn, err
		},
	}
}

// patient is a socket for which the resolver's deadlines are too short.
type patient struct{ *net.UDPConn }

func (p patient) SetDeadline(time.Time) error {
	return p.UDPConn.SetDeadline(time.Now().Add(patience))
}
