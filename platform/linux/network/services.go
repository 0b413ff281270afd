package network

import (
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// services are the names of services that SRV records have below a host (RFC
// 2782). Others are not asked outside: a session could put data into them.
var services = []string{
	"_autodiscover", "_caldav", "_caldavs", "_carddav", "_carddavs", "_etcd-client", "_etcd-client-ssl",
	"_etcd-server", "_etcd-server-ssl", "_gc", "_grpclb", "_http", "_https", "_imap", "_imaps", "_jmap",
	"_kerberos", "_kerberos-adm", "_kpasswd", "_ldap", "_ldaps", "_matrix", "_matrix-fed", "_minecraft", "_mongodb",
	"_mumble", "_mysql", "_nats", "_nfs", "_ntp", "_pop3", "_pop3s", "_postgresql", "_puppet", "_rabbitmq",
	"_redis", "_sieve", "_sip", "_sips", "_ssh", "_stun", "_stuns", "_submission", "_submissions", "_turn",
	"_turns", "_x-puppet", "_xmpp-client", "_xmpp-server", "_xmpps-client", "_xmpps-server",
}

// transports are what such a service is reached by.
var transports = []string{"_tcp", "_udp", "_tls"}

// texts are the names below which a host has TXT records (RFC 8552).
var texts = []string{"_acme-challenge", "_dmarc", "_mta-sts", "_atproto", "_dnslink", "_mongodb._tcp"}

// owner is the host that a name belongs to, as example.org for
// _sip._tcp.example.org. It is the name itself if that begins with no known
// service.
func owner(name string, kind dnsmessage.Type) string {
	switch kind {
	case dnsmessage.TypeSRV:
		service, rest, _ := strings.Cut(name, ".")
		transport, host, found := strings.Cut(rest, ".")
		if found && slices.Contains(services, service) && slices.Contains(transports, transport) {
			return host
		}
	case dnsmessage.TypeTXT:
		for _, prefix := range texts {
			if host, is := strings.CutPrefix(name, prefix+"."); is {
				return host
			}
		}
	}
	return name
}
