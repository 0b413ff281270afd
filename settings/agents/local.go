package agents

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// Service is a service that a variable of an agent names by an address.
type Service struct {
	// Variable is the variable's name, and Host the service as an entry of
	// allowed_hosts.
	Variable, Host string
	// Inside is the variable's value in sessions without the network, if the
	// service is one of this machine; else "".
	Inside string
	// Obeys says what carries out there what whoever connects says, so that it
	// is not opened; "" if nothing known does.
	Obeys string
}

// Local reports whether the service is one of this machine.
func (s Service) Local() bool { return s.Inside != "" }

// Services are those that the values of some variables name, such as
// ANTHROPIC_BASE_URL=http://127.0.0.1:8080. A value that is no such address names
// none.
func Services(names []string, getenv func(string) string) []Service {
	var list []Service
	for _, name := range names {
		address, err := url.Parse(getenv(name))
		if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Hostname() == "" {
			continue
		}
		digits := address.Port()
		if digits == "" {
			digits = map[string]string{"http": "80", "https": "443"}[address.Scheme]
		}
		port, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || port == 0 {
			continue
		}
		s := Service{Variable: name, Host: address.Hostname() + ":" + digits}
		if isLocal(address.Hostname()) {
			s.Host, s.Obeys = hosts.LocalEntry(uint16(port)), risks.Obeying[uint16(port)]
			address.Host = hosts.HostName + ":" + digits
			s.Inside = address.String()
		}
		list = append(list, s)
	}
	return list
}

func isLocal(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
