package outbound

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

const (
	allowedName = "allowed.example"
	evilName    = "evil.example"
	// nginx is what tests/prerequisites unpacks: installed, its package would
	// start a service.
	nginx = "/var/cache/sandbox-sidecar-tests/nginx/usr/sbin/nginx"
)

// realServer serves both names at one address.
type realServer struct {
	at string
	// single is true if it has one certificate for all names. Then whatever it
	// answers counts as the name in the hello.
	single bool
}

// realServers starts the servers of five implementations. The directory has
// their certificates.
func realServers(t *testing.T) (all map[string]realServer, dir string) {
	t.Helper()
	harness.RequirePrograms(t, "openssl", "gnutls-serv", "bssl-tool")
	if _, err := os.Stat(nginx); err != nil {
		harness.Skip(t, "nginx", err.Error())
	}
	dir = t.TempDir()
	pairs := map[string]tls.Certificate{}
	for _, name := range []string{allowedName, evilName} {
		pairs[name] = certify(t, dir, name)
	}
	port := func() string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		harness.Must(t, err)
		defer listener.Close()
		return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	}
	ours := []string{port(), port(), port(), port()}
	harness.Must(t, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(strings.ReplaceAll(`
daemon off; master_process off; pid DIR/pid; events {}
http { access_log off; ssl_protocols TLSv1.2 TLSv1.3; client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f;
uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
server { listen 127.0.0.1:`+ours[3]+` ssl default_server; server_name allowed.example;
 ssl_certificate DIR/allowed.example.pem; ssl_certificate_key DIR/allowed.example.key; return 200 "hello"; }
server { listen 127.0.0.1:`+ours[3]+` ssl; server_name evil.example;
 ssl_certificate DIR/evil.example.pem; ssl_certificate_key DIR/evil.example.key; return 200 "evil"; } }
`, "DIR", dir)), 0o600))
	all = map[string]realServer{"Go": {at: goServer(t, pairs)}}
	for i, server := range []struct{ name, line string }{
		{"OpenSSL", "openssl s_server -www -quiet -accept 127.0.0.1:PORT -cert allowed.example.pem -key allowed.example.key " +
			"-servername evil.example -cert2 evil.example.pem -key2 evil.example.key"},
		{"GnuTLS", "gnutls-serv --http --quiet -p PORT --x509certfile allowed.example.pem --x509keyfile " +
			"allowed.example.key --x509certfile evil.example.pem --x509keyfile evil.example.key"},
		{"BoringSSL", "bssl-tool server -loop -www -accept PORT -cert allowed.example.pem -key allowed.example.key"},
		{"nginx", nginx + " -e stderr -p . -c nginx.conf"},
	} {
		words := strings.Fields(strings.ReplaceAll(server.line, "PORT", ours[i]))
		command := exec.Command(words[0], words[1:]...)
		command.Dir = dir
		var output bytes.Buffer // read after the end alone
		command.Stdout, command.Stderr = &output, &output
		harness.Must(t, command.Start())
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
			if t.Failed() {
				t.Logf("%s: %.2000s", server.name, output.String())
			}
		})
		at := "127.0.0.1:" + ours[i]
		harness.Eventually(t, server.name, func() bool {
			conn, err := net.Dial("tcp", at)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
		all[server.name] = realServer{at: at, single: server.name == "BoringSSL"}
	}
	return all, dir
}

// certify makes a certificate for a name, in files of that name.
func certify(t *testing.T, dir, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	template.Subject.CommonName = name
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	harness.Must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	harness.Must(t, err)
	for end, block := range map[string]*pem.Block{
		"pem": {Type: "CERTIFICATE", Bytes: raw}, "key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		harness.Must(t, os.WriteFile(filepath.Join(dir, name+"."+end), pem.EncodeToMemory(block), 0o600))
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// goServer serves with crypto/tls.
func goServer(t *testing.T, pairs map[string]tls.Certificate) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, found := pairs[h.ServerName]
			if !found {
				pair = pairs[allowedName]
			}
			return &pair, nil
		},
	})
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 1024))
				_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")
			}()
		}
	}()
	return listener.Addr().String()
}

// dialed is a connection to a server, by way of a relay or not. refused has what
// that refused.
func (s realServer) dialed(t *testing.T, relayed bool) (conn *net.TCPConn, refused chan *Refusal) {
	t.Helper()
	there, err := net.Dial("tcp", s.at)
	harness.Must(t, err)
	_ = there.SetDeadline(time.Now().Add(time.Minute))
	refused = make(chan *Refusal, 1)
	if !relayed {
		close(refused)
		t.Cleanup(func() { there.Close() })
		return there.(*net.TCPConn), refused
	}
	conn, inner := pipe(t)
	judge := &Judge{Rules: rules(t, allowedName), To: Target{Name: allowedName, Port: 443}}
	go func() { refused <- Relay(inner, there.(*net.TCPConn), judge) }()
	return conn, refused
}

// reached is the name that a server takes from a form, by the certificate that it
// answers with; "" if it takes none. asked is the name that the form is made with.
func (s realServer) reached(t *testing.T, relayed bool, form form, asked string) (name string, refusal *Refusal) {
	t.Helper()
	conn, refused := s.dialed(t, relayed)
	defer conn.Close()
	go func() { // a server may answer before it has read all
		_, _ = conn.Write(form.make(asked))
		_ = conn.CloseWrite()
	}()
	answer, _ := io.ReadAll(conn)
	conn.Close()
	switch {
	case s.single && bytes.Contains(answer, []byte(allowedName)):
		name = asked
	case bytes.Contains(answer, []byte(evilName)):
		name = evilName
	case bytes.Contains(answer, []byte(allowedName)):
		name = allowedName
	}
	return name, <-refused
}

// No form reaches another name than the allowed one at any server. The controls:
// without the relay some server takes it, and with the allowed name it passes if
// every server reads it alike.
func TestServers_NoFormReachesAnotherName(t *testing.T) {
	t.Parallel()
	servers, _ := realServers(t)
	breaches, table := 0, map[string][]string{}
	var guard sync.Mutex
	var running sync.WaitGroup
	for server, s := range servers {
		running.Go(func() {
			for name, form := range forms {
				direct, _ := s.reached(t, false, form, evilName)
				through, refusal := s.reached(t, true, form, evilName)
				passed, refused := s.reached(t, true, form, allowedName)
				guard.Lock()
				if direct == evilName {
					table[name] = append(table[name], server)
				}
				if through != "" || refusal == nil {
					breaches++
					t.Errorf("%s, %s: reached %q, reported %+v", server, name, through, refusal)
				}
				if form.passes != (refused == nil) || passed == evilName ||
					form.passes && direct != "" && passed != allowedName {
					t.Errorf("%s, %s: with the allowed name: reached %q, reported %+v", server, name, passed, refused)
				}
				guard.Unlock()
			}
		})
	}
	running.Wait()
	for name, form := range forms {
		slices.Sort(table[name])
		t.Logf("%-28s without the relay: %v", name, table[name])
		if len(table[name]) == 0 && !form.untaken {
			t.Errorf("control: no server takes %s", name)
		}
	}
	t.Logf("%d forms, %d servers, %d reached another name", len(forms), len(servers), breaches)
}

// second reports whether a server answers a second hello as one.
func (s realServer) second(t *testing.T, relayed bool, first, second []byte) (taken bool, refusal *Refusal) {
	t.Helper()
	conn, refused := s.dialed(t, relayed)
	defer conn.Close()
	_, _ = conn.Write(first)
	answer := make([]byte, 64<<10)
	n := 0
	for n < recordHeader+randomAt+randomLength {
		read, err := conn.Read(answer[n:])
		if n += read; err != nil {
			return false, nil // the server has taken nothing
		}
	}
	_, _ = conn.Write(second)
	_ = conn.CloseWrite()
	rest, _ := io.ReadAll(conn)
	conn.Close()
	all := slices.Concat(answer[:n], rest)
	hellos := 0
	for len(all) > recordHeader+messageHeader { // records, in the clear as far as the second hello
		length := min(len(all), recordHeader+int(binary.BigEndian.Uint16(all[3:])))
		if all[0] == recordHandshake && all[recordHeader] == messageServer {
			hellos++
		}
		all = all[length:]
	}
	return hellos > 1, <-refused
}

// asksAgain returns a hello of TLS 1.3 without a key share, for which a server
// asks for another, and that with a name.
func asksAgain() (first []byte, second func(name string) []byte) {
	base := clientHello(&tls.Config{CurvePreferences: []tls.CurveID{tls.X25519}})
	share := []byte{0, 51, 0, 38, 0, 36, 0, 29, 0, 32} // key_share, with one of x25519
	at := bytes.Index(base, share)
	without := slices.Concat(base[:at], base[at+len(share)+32:])
	return extended(without, extension(51, 0, 0), serverName(allowedName)), func(name string) []byte {
		again := extended(base, serverName(name))
		again[2] = 3 // the version 3.3, as clients send it now
		return again
	}
}

// A second hello is for the server of the first, or does not reach it. The
// control is that with the same name every server takes it, and that some take
// another one.
func TestServers_ASecondHelloReachesNoOtherName(t *testing.T) {
	t.Parallel()
	servers, _ := realServers(t)
	var takes []string
	for server, s := range servers {
		first, second := asksAgain()
		good, evil := second(allowedName), second(evilName)
		alerted := slices.Concat(record(recordAlert, 3, 3, []byte{1, 90}), evil)
		for _, test := range []struct {
			name          string
			first, second []byte
			passes        bool
		}{
			{"after a HelloRetryRequest", first, good, true},
			{"after a HelloRetryRequest, another name", first, evil, false},
			{"after a HelloRetryRequest, another name, in pieces", first, records(evil, 40), false},
			{"after a HelloRetryRequest, another name, after an alert", first, alerted, false},
			{"after the server's messages", hello12(allowedName), hello12(evilName), false},
		} {
			direct, _ := s.second(t, false, test.first, test.second)
			through, refusal := s.second(t, true, test.first, test.second)
			if test.passes != through || test.passes != (refusal == nil) {
				t.Errorf("%s, %s: taken: %v, reported %+v", server, test.name, through, refusal)
			}
			if test.passes && !direct {
				t.Errorf("control: %s, %s: not taken", server, test.name)
			}
			if direct && !test.passes {
				takes = append(takes, server+" "+test.name)
			}
		}
	}
	slices.Sort(takes)
	t.Logf("without the relay: %s", strings.Join(takes, "; "))
	if len(takes) == 0 {
		t.Error("control: no server takes another name in a second hello")
	}
}

// tlsClients connect to 127.0.0.1:%p as allowed.example.
var tlsClients = map[string]string{
	"curl": "curl -sS -m 60 --cacert %d/allowed.example.pem --connect-to ::127.0.0.1:%p https://allowed.example/",
	"openssl": "{ printf 'GET / HTTP/1.0\\r\\n\\r\\n'; } | openssl s_client -quiet -verify_return_error -CAfile " +
		"%d/allowed.example.pem -connect 127.0.0.1:%p -servername allowed.example",
	"openssl, TLS 1.2": "{ printf 'GET / HTTP/1.0\\r\\n\\r\\n'; } | openssl s_client -tls1_2 -quiet -verify_return_error " +
		"-CAfile %d/allowed.example.pem -connect 127.0.0.1:%p -servername allowed.example",
	"gnutls-cli": "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | gnutls-cli --x509cafile %d/allowed.example.pem " +
		"--sni-hostname allowed.example --verify-hostname allowed.example -p %p 127.0.0.1",
	"gnutls-cli, 3.0": "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | gnutls-cli --priority NORMAL:%SSL3_RECORD_VERSION " +
		"--x509cafile %d/allowed.example.pem --sni-hostname allowed.example --verify-hostname allowed.example -p %p 127.0.0.1",
	"bssl-tool": "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | bssl-tool client -grease -ech-grease -root-certs " +
		"%d/allowed.example.pem -server-name allowed.example -connect 127.0.0.1:%p",
	"git": "! git -c http.sslCAInfo=%d/allowed.example.pem -c http.curloptResolve=+allowed.example:%p:127.0.0.1 " +
		"ls-remote https://allowed.example:%p/x 2>&1 | grep 'unable to access' | grep -v 'recv error'",
	"node": `node -e 'require("https").get({host: "127.0.0.1", port: %p, servername: "allowed.example",
		ca: require("fs").readFileSync("%d/allowed.example.pem"), headers: {host: "allowed.example"}},
		(r) => r.on("data", (d) => console.log(d.toString()))).on("error", (e) => { console.log(e); process.exit(1) })'`,
	"python": `/usr/bin/python3 -c 'import socket, ssl
c = ssl.create_default_context(cafile="%d/allowed.example.pem")
s = c.wrap_socket(socket.create_connection(("127.0.0.1", %p)), server_hostname="allowed.example")
s.sendall(b"GET / HTTP/1.0\r\n\r\n"); print(s.recv(100))'`,
}

// Every ordinary client reaches the allowed name at every server.
func TestServers_OrdinaryClientsReachTheAllowedName(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "curl", "openssl", "gnutls-cli", "bssl-tool", "git", "node")
	servers, dir := realServers(t)
	for server, s := range servers {
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		harness.Must(t, err)
		defer listener.Close()
		judge := &Judge{Rules: rules(t, allowedName), To: Target{Name: allowedName, Port: 443}}
		var relays sync.WaitGroup
		var mu sync.Mutex
		var refusals []string
		relays.Go(func() {
			for {
				conn, err := listener.AcceptTCP()
				if err != nil {
					return
				}
				there, err := net.Dial("tcp", s.at)
				if err != nil {
					t.Errorf("%s: %v", server, err)
					conn.Close()
					return
				}
				relays.Go(func() {
					if refusal := Relay(conn, there.(*net.TCPConn), judge); refusal != nil {
						mu.Lock()
						refusals = append(refusals, refusal.Target+": "+refusal.Greeting)
						mu.Unlock()
					}
				})
			}
		})
		port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
		for client, line := range tlsClients {
			line = strings.NewReplacer("%p", port, "%d", dir).Replace(line)
			command := exec.CommandContext(t.Context(), "timeout", "60", "/bin/sh", "-c", line)
			command.Env = []string{"PATH=" + harness.SearchPath, "HOME=" + dir}
			output, err := command.CombinedOutput()
			// Some servers end without a close_notify, which not every client takes.
			if err != nil && !strings.Contains(string(output), "200 OK") {
				t.Errorf("%s at %s: %v: %s", client, server, err, output)
			}
		}
		pool := x509.NewCertPool()
		text, err := os.ReadFile(filepath.Join(dir, allowedName+".pem"))
		harness.Must(t, err)
		pool.AppendCertsFromPEM(text)
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{ServerName: allowedName, RootCAs: pool})
		if err != nil {
			t.Errorf("Go at %s: %v", server, err)
		} else {
			conn.Close()
		}
		// The control: another name is refused.
		evil := &tls.Config{ServerName: evilName, RootCAs: pool}
		if _, err := tls.Dial("tcp", listener.Addr().String(), evil); err == nil {
			t.Errorf("control: %s answered to another name", server)
		}
		listener.Close()
		relays.Wait()
		if want := []string{evilName + ":443: "}; !slices.Equal(refusals, want) {
			t.Errorf("%s: refused %q, want %q", server, refusals, want)
		}
	}
}
