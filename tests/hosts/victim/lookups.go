//go:build linux

package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// ask NAME TYPE asks the session's resolver over TCP, and prints the answer.
func ask(args []string) error {
	kinds := map[string]dnsmessage.Type{
		"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "TXT": dnsmessage.TypeTXT, "MX": dnsmessage.TypeMX,
		"PTR": dnsmessage.TypePTR, "HTTPS": 65, "CNAME": dnsmessage.TypeCNAME,
	}
	name, err := dnsmessage.NewName(args[0] + ".")
	if err != nil {
		return err
	}
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: name, Type: kinds[args[1]],
		Class: dnsmessage.ClassINET,
	}}}
	packed, err := m.Pack()
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", "198.18.0.2:53")
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(framed(packed)); err != nil {
		return err
	}
	answer, err := readFramed(conn)
	if err != nil {
		return err
	}
	if err := m.Unpack(answer); err != nil {
		return err
	}
	fmt.Print(strings.TrimPrefix(m.RCode.String(), "RCode"))
	for _, a := range m.Answers {
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			fmt.Print(" ", netip.AddrFrom4(body.A))
		case *dnsmessage.AAAAResource:
			fmt.Print(" ", netip.AddrFrom16(body.AAAA))
		case *dnsmessage.TXTResource:
			fmt.Print(" ", strings.Join(body.TXT, ""))
		case *dnsmessage.MXResource:
			fmt.Print(" ", body.MX)
		case *dnsmessage.PTRResource:
			fmt.Print(" ", body.PTR)
		}
	}
	fmt.Println()
	return nil
}
