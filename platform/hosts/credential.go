package hosts

import (
	"errors"
	"fmt"
)

// Errors of ParseCredential, in words for the user.
var (
	errByName = errors.New("a credential goes to the name of a host: certificates are not for addresses")
	errOwn    = errors.New("a credential does not go to this machine")
)

// otherProtocols are ports whose servers speak no HTTP, with what they speak (IANA,
// Service Name and Transport Protocol Port Number Registry).
var otherProtocols = map[uint16]string{
	21: "FTP", 22: "SSH", 23: "Telnet", 25: "SMTP", 53: "DNS", 110: "POP3", 143: "IMAP", 389: "LDAP", 465: "SMTP",
	587: "SMTP", 636: "LDAP", 853: "DNS", 989: "FTP", 990: "FTP", 993: "IMAP", 995: "POP3", 1433: "SQL Server",
	1521: "Oracle's protocol", 3306: "MySQL's protocol", 3389: "RDP", 5432: "PostgreSQL's protocol", 5671: "AMQP",
	5672: "AMQP", 6379: "Redis' protocol", 6380: "Redis' protocol", 8883: "MQTT", 9092: "Kafka's protocol",
	11211: "memcached's protocol", 27017: "MongoDB's protocol",
}

// ParseCredential reads an entry of a credential's hosts: a name, or *.NAME for all
// names below it. :PORT behind it is another port than 443. The error says in words
// what is wrong with it.
func ParseCredential(text string) (Pattern, error) {
	p, err := parse(text)
	if p.port == 0 {
		p.port = httpsPort
	}
	switch other := otherProtocols[p.port]; {
	case err != nil:
		return Pattern{}, err
	case p.addresses.IsValid():
		return Pattern{}, errByName
	case p.name == localName:
		return Pattern{}, errOwn
	case p.below && anybodys(p.name):
		return Pattern{}, errAnybodys
	case p.port == 80:
		return Pattern{}, errors.New("port 80 is not encrypted: anybody on the way would read the secret")
	case other != "":
		return Pattern{}, fmt.Errorf("port %d speaks %s: secrets are put into HTTP alone", p.port, other)
	}
	return p, nil
}

// Domain is the name of which the pattern holds some names or all; "" for addresses.
func (p Pattern) Domain() string { return p.name }
