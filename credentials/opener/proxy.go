package opener

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
)

// serve answers one request.
func (o *Opener) serve(w http.ResponseWriter, r *http.Request) {
	k, _ := r.Context().Value(connectionKey{}).(*connection)
	switch {
	case k == nil:
		panic(http.ErrAbortHandler)
	case k.failed != nil:
		answer(w, http.StatusBadGateway, fmt.Sprintf("%s is not reached: %v", k, k.failed))
		return
	}
	used, refused := o.admit(k, r)
	if refused != nil {
		o.report(refused.event)
		answer(w, refused.status, refused.event.String())
		return
	}
	for _, s := range used {
		o.report(credentials.Event{Kind: credentials.Used, Credential: s.Name, Host: k.target()})
	}
	// A host may answer while the body is still coming, and want all of it.
	// HTTP/2 has no such choice, and says so.
	_ = http.NewResponseController(w).EnableFullDuplex()
	if r.ProtoMajor == 1 {
		// A client that has ended its half still waits for the answer.
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		defer context.AfterFunc(k.over, cancel)()
		r = r.WithContext(ctx)
	}
	k.proxy.ServeHTTP(w, r)
}

// answer is a refusal as text. The connection stays: some clients lose the text if
// it ends.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, "sandbox-sidecar: "+text)
}

// proxyFor copies the requests of one client's connection to the one connection to
// its host, and the answers back.
func (o *Opener) proxyFor(k *connection) http.Handler {
	const piece, window, expect = 64 << 10, 4 << 20, 5 * time.Second
	http2 := k.outer != nil && k.outer.ConnectionState().NegotiatedProtocol == "h2"
	transport := &http.Transport{
		DialTLSContext: k.dial, DisableCompression: true, MaxIdleConnsPerHost: 1, Protocols: protocols(http2),
		ExpectContinueTimeout: expect, WriteBufferSize: piece, ReadBufferSize: piece,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize: 1 << 20, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window,
		},
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, BufferPool: &pieces, ErrorLog: o.server.ErrorLog,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", k.String(), k.String()
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as admit has checked it
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, is := r.In.Header[name]; is {
					r.Out.Header[name] = values
				}
			}
			if _, is := r.In.Header["User-Agent"]; !is {
				r.Out.Header["User-Agent"] = nil // or net/http adds its own
			}
			narrow(r.Out.Header)
		},
		ModifyResponse: func(response *http.Response) error {
			o.mask(k, response)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errEnded) || k.hasEnded() {
				panic(http.ErrAbortHandler) // as the host itself has done
			}
			answer(w, http.StatusBadGateway, fmt.Sprintf("%s has not answered: %v", k, err))
		},
	}
}

// narrow leaves of the encodings that a client accepts those that can be read.
func narrow(header http.Header) {
	values, is := header["Accept-Encoding"]
	if !is {
		return
	}
	delete(header, "Accept-Encoding")
	if accepted := strings.ToLower(strings.Join(values, ",")); strings.Contains(accepted, "gzip") ||
		strings.Contains(accepted, "*") {
		header.Set("Accept-Encoding", "gzip")
	}
}

var pieces bufferPool

type bufferPool struct{ pool sync.Pool }

const bufferSize = 128 << 10

func (p *bufferPool) Get() []byte {
	if kept, is := p.pool.Get().(*[bufferSize]byte); is {
		return kept[:]
	}
	return make([]byte, bufferSize)
}

func (p *bufferPool) Put(buffer []byte) { p.pool.Put((*[bufferSize]byte)(buffer)) }
