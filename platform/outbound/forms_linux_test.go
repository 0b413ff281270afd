package outbound

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"slices"
)

// extended adds extensions to a hello, in records that are as long as they may
// be.
func extended(first []byte, more ...[]byte) []byte {
	message := slices.Clone(first[recordHeader:])
	at := messageHeader + 2 + randomLength
	at += 1 + int(message[at])
	at += 2 + int(binary.BigEndian.Uint16(message[at:]))
	at += 1 + int(message[at])
	message = slices.Concat(append([][]byte{message}, more...)...)
	binary.BigEndian.PutUint16(message[at:], uint16(len(message)-at-2))
	size := len(message) - messageHeader
	message[1], message[2], message[3] = byte(size>>16), byte(size>>8), byte(size)
	return records(append(slices.Clone(first[:recordHeader]), message...), maxRecord)
}

// hello12 is a hello whose answer has the certificate in the clear.
func hello12(name string) []byte {
	return clientHello(&tls.Config{ServerName: name, MaxVersion: tls.VersionTLS12})
}

// form is a way to send a hello.
type form struct {
	make func(name string) []byte
	// passes is true if it passes with an allowed name.
	passes bool
	// untaken is true if none of our servers need take it.
	untaken bool
}

func version(major, minor byte) func(string) []byte {
	return func(name string) []byte {
		first := hello12(name)
		first[1], first[2] = major, minor
		return first
	}
}

func before(more ...[]byte) func(string) []byte {
	return func(name string) []byte { return append(slices.Concat(more...), hello12(name)...) }
}

func in(size int) func(string) []byte {
	return func(name string) []byte { return records(hello12(name), size) }
}

func with(more func(name string) [][]byte) func(string) []byte {
	return func(name string) []byte { return extended(hello12(name), more(name)...) }
}

var (
	warning = record(recordAlert, 3, 1, []byte{1, 90}) // user_canceled
	spec    = record(recordCipher, 3, 3, []byte{1})
)

// forms are ways to send a hello. Each is sent with both names.
var forms = map[string]form{
	"usual":                    {make: in(maxRecord), passes: true},
	"record version 0.0":       {make: version(0, 0)},
	"record version 2.1":       {make: version(2, 1)},
	"record version 3.0":       {make: version(3, 0), passes: true},
	"record version 3.3":       {make: version(3, 3), passes: true},
	"record version 3.4":       {make: version(3, 4)},
	"record version 3.255":     {make: version(3, 255)},
	"record version 4.1":       {make: version(4, 1)},
	"record version 15.255":    {make: version(15, 255)},
	"record version 16.0":      {make: version(16, 0), untaken: true},
	"a warning before":         {make: before(warning)},
	"three warnings before":    {make: before(warning, warning, warning)},
	"a warning of version 2.1": {make: before(record(recordAlert, 2, 1, []byte{1, 90}))},
	"a warning of level 0":     {make: before(record(recordAlert, 3, 1, []byte{0, 90})), untaken: true},
	"a change_cipher_spec":     {make: before(spec)},
	"both before":              {make: before(spec, warning), untaken: true},
	"data before":              {make: before(record(recordData, 3, 3, []byte("data"))), untaken: true},
	"a heartbeat before":       {make: before(record(24, 3, 2, []byte{1, 0, 0})), untaken: true},
	"a HelloRequest before":    {make: before(record(recordHandshake, 3, 1, []byte{0, 0, 0, 0})), untaken: true},
	"an empty record before":   {make: before(record(recordHandshake, 3, 1, nil))},
	"records of 1 byte":        {make: in(1), passes: true},
	"records of 50 bytes":      {make: in(50), passes: true},
	"a warning in between": {make: func(name string) []byte {
		parts := records(hello12(name), 100)
		return slices.Concat(parts[:recordHeader+100], warning, parts[recordHeader+100:])
	}},
	"two hellos in two records": {make: func(name string) []byte {
		return append(hello12(name), hello12(evilName)...)
	}},
	"two hellos in one record": {make: func(name string) []byte {
		return record(recordHandshake, 3, 1, append(hello12(name)[recordHeader:], hello12(evilName)[recordHeader:]...))
	}},
	"two extensions": {make: func(name string) []byte {
		return extended(hello12(""), serverName(allowedName), serverName(name))
	}, untaken: true},
	"two names in one extension": {make: func(name string) []byte {
		return extended(hello12(""), serverName(allowedName, name))
	}, untaken: true},
	"a name with NUL": {make: func(name string) []byte {
		return extended(hello12(""), serverName(name+"\x00.allowed.example"))
	}, untaken: true},
	"the hello of SSL 2": {make: func(name string) []byte {
		data := ssl2Hello(3, 3, 4, 0, 32)
		data = append(data, 0, 0xc0, 0x2b, 0, 0xc0, 0x2c, 0, 0xc0, 9, 0, 0, 0xff)
		return append(data, slices.Concat(bytes.Repeat([]byte{7}, 32), hello12(name))...)
	}, untaken: true},
	"GREASE": {make: with(func(string) [][]byte {
		return [][]byte{extension(0x3a3a), extension(0xcaca, 0)}
	}), passes: true},
	"ECH": {make: with(func(string) [][]byte {
		return [][]byte{extension(extensionECH, slices.Concat([]byte{0, 0, 1, 0, 1, 9}, counted(2, make([]byte, 32)),
			counted(2, make([]byte, 200)))...)}
	}), passes: true},
	"ECH without a name": {make: func(name string) []byte {
		return extended(hello12(""), extension(extensionECH, slices.Concat([]byte{0, 0, 1, 0, 1, 9},
			counted(2, make([]byte, 32)), counted(2, append([]byte(name), make([]byte, 200)...)))...))
	}, untaken: true},
	"60 KiB before the name": {make: func(name string) []byte {
		return extended(hello12(""), extension(21, make([]byte, 60<<10)...), serverName(name))
	}, passes: true},
	"64 KiB before the name": {make: func(name string) []byte {
		first := hello12("")
		return extended(first, extension(21, make([]byte, 0xffff-len(first)-30)...), serverName(name))
	}},
}
