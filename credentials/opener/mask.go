package opener

import (
	"bytes"
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"strings"
)

// mask puts placeholders in the place of secrets in an answer that a program would
// show. It is a courtesy and no boundary: a host that wants to can return a secret
// in a form that nobody finds.
func (o *Opener) mask(k *connection, response *http.Response) {
	var pairs []pair
	for _, s := range o.config.Secrets {
		if s.Value == "" || !s.Belongs(k.name, k.port) {
			continue
		}
		for _, values := range response.Header {
			for i, value := range values {
				values[i] = strings.ReplaceAll(value, s.Value, s.Placeholder)
			}
		}
		if len(s.Value) == len(s.Placeholder) {
			pairs = append(pairs, pair{[]byte(s.Value), []byte(s.Placeholder)})
		}
	}
	if len(pairs) == 0 || response.StatusCode == http.StatusSwitchingProtocols || !isText(response.Header) {
		return
	}
	switch strings.ToLower(response.Header.Get("Content-Encoding")) {
	case "", "identity":
		response.Body = &masked{from: response.Body, closer: response.Body, pairs: pairs}
	case "gzip":
		response.Header.Del("Content-Encoding")
		response.Header.Del("Content-Length")
		response.ContentLength = -1
		response.Body = &masked{from: &unzipped{from: response.Body}, closer: response.Body, pairs: pairs}
	}
}

// isText reports whether an answer is text that programs show or keep.
func isText(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return false
	}
	for _, end := range []string{"json", "xml", "javascript", "x-www-form-urlencoded"} {
		if strings.HasSuffix(kind, end) {
			return true
		}
	}
	return strings.HasPrefix(kind, "text/")
}

// unzipped reads what a body in gzip holds. Its header is read when it comes.
type unzipped struct {
	from   io.Reader
	reader *gzip.Reader
}

func (u *unzipped) Read(p []byte) (int, error) {
	if u.reader == nil {
		reader, err := gzip.NewReader(u.from)
		if err != nil {
			return 0, err
		}
		u.reader = reader
	}
	return u.reader.Read(p)
}

// pair is a secret and its placeholder, which is as long.
type pair struct{ secret, placeholder []byte }

// masked is a body in which secrets are replaced. Of what has come it holds back
// only an end that could be the beginning of a secret.
type masked struct {
	from   io.Reader
	closer io.Closer
	pairs  []pair
	ready  []byte // what can be passed on
	held   []byte
	buffer []byte
	err    error
}

func (m *masked) Close() error { return m.closer.Close() }

func (m *masked) Read(p []byte) (int, error) {
	for len(m.ready) == 0 && m.err == nil {
		m.fill()
	}
	if len(m.ready) == 0 {
		return 0, m.err
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// fill reads once.
func (m *masked) fill() {
	const piece = 32 << 10
	if m.buffer == nil {
		longest := 0
		for _, pair := range m.pairs {
			longest = max(longest, len(pair.secret))
		}
		m.buffer = make([]byte, longest+piece)
	}
	kept := copy(m.buffer, m.held)
	n, err := m.from.Read(m.buffer[kept : kept+piece])
	data := m.buffer[:kept+n]
	m.err = err
	back := 0
	for _, pair := range m.pairs {
		replaceAll(data, pair)
	}
	if err == nil {
		for _, pair := range m.pairs {
			back = max(back, beginning(data, pair.secret))
		}
	}
	m.held = append(m.held[:0], data[len(data)-back:]...)
	m.ready = data[:len(data)-back]
}

func replaceAll(data []byte, pair pair) {
	for {
		at := bytes.Index(data, pair.secret)
		if at < 0 {
			return
		}
		copy(data[at:], pair.placeholder)
		data = data[at+len(pair.secret):]
	}
}

// beginning is the length of the longest end of the data with which a secret begins,
// short of all of it.
func beginning(data, secret []byte) int {
	for n := min(len(secret)-1, len(data)); n > 0; n-- {
		if bytes.Equal(data[len(data)-n:], secret[:n]) {
			return n
		}
	}
	return 0
}
