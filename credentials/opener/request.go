package opener

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
)

// authentication are the headers in which secrets belong, in their canonical form.
// The name of each says what it is for, so no host publishes it.
var authentication = []string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Private-Token", "Job-Token", "Deploy-Token",
	"X-Auth-Token", "X-Access-Token", "X-Vault-Token", "X-Jfrog-Art-Api", "X-Nuget-Apikey", "Circle-Token",
	"X-Figma-Token", "X-Shopify-Access-Token", "X-Subscription-Token", "X-Amz-Security-Token",
}

// parameters are those of addresses in which secrets belong, by hosts.
var parameters = map[string][]string{
	"generativelanguage.googleapis.com": {"key"},
	"maps.googleapis.com":               {"key"},
	"www.googleapis.com":                {"key"},
	"gitlab.com":                        {"private_token", "access_token"},
}

// refusal is why a request does not leave.
type refusal struct {
	status int
	event  credentials.Event
}

func (k *connection) refuse(status int, kind credentials.EventKind, s *Secret, format string, args ...any) *refusal {
	e := credentials.Event{Kind: kind, Host: k.target(), Why: fmt.Sprintf(format, args...)}
	if s != nil {
		e.Credential = s.Name
	}
	return &refusal{status, e}
}

// admit checks a request, and puts secrets in the place of their placeholders. used
// are those of them.
func (o *Opener) admit(k *connection, r *http.Request) (used []*Secret, refused *refusal) {
	if refused := k.malformed(r); refused != nil {
		return nil, refused
	}
	take := func(s *Secret, where string) (string, *refusal) {
		if !s.Belongs(k.name, k.port) {
			return "", k.refuse(http.StatusForbidden, credentials.Elsewhere, s, "sent in %s", where)
		}
		value, err := s.value(r.Context())
		if err != nil {
			return "", k.refuse(http.StatusBadGateway, credentials.Unavailable, s, "%v", err)
		}
		if !slices.Contains(used, s) {
			used = append(used, s)
		}
		return value, nil
	}
	key, signature := o.signed(r)
	for name, values := range r.Header {
		if key != nil && name == "Authorization" {
			continue
		}
		for i, value := range values {
			s := o.find.in(value)
			basic, decoded := basicOf(value)
			if s == nil && decoded {
				s = o.find.in(basic)
			}
			if s == nil {
				continue
			}
			var put func(string) string
			if slices.Contains(authentication, name) && len(values) == 1 {
				s, put = o.authenticate(s, value, basic, decoded)
			}
			if put == nil {
				return nil, o.misplaced(k, s, "the header "+name)
			}
			secret, refused := take(s, "the header "+name)
			if refused != nil {
				return nil, refused
			}
			r.Header[name][i] = put(secret)
		}
	}
	query, refused := o.query(k, r.URL.RawQuery, take)
	if refused != nil {
		return nil, refused
	}
	r.URL.RawQuery = query
	for _, path := range []string{r.URL.Path, r.URL.EscapedPath()} {
		if s := o.find.in(path); s != nil {
			return nil, o.misplaced(k, s, "the path")
		}
	}
	if key == nil {
		return used, nil
	}
	if _, refused := take(key.Key, "a signature"); refused != nil {
		return nil, refused
	}
	if err := k.sign(r, key, signature); err != nil {
		return nil, k.refuse(http.StatusForbidden, credentials.Misplaced, key.Key,
			"used to sign a request that cannot be signed: %v", err)
	}
	return used, nil
}

func (o *Opener) misplaced(k *connection, s *Secret, where string) *refusal {
	if !s.Belongs(k.name, k.port) {
		return k.refuse(http.StatusForbidden, credentials.Elsewhere, s, "sent in %s", where)
	}
	return k.refuse(http.StatusForbidden, credentials.Misplaced, s, "sent in %s and not to sign in", where)
}

// malformed refuses what hosts read in different ways. net/http is the one parser:
// what it has read is written anew.
func (k *connection) malformed(r *http.Request) *refusal {
	host, port := r.Host, ""
	if at := strings.LastIndexByte(host, ':'); at >= 0 {
		host, port = host[:at], host[at+1:]
	}
	samePort := port == strconv.Itoa(int(k.port)) || port == "" && k.port == 443
	switch {
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace, r.Method == "PRI":
		return k.refuse(http.StatusMethodNotAllowed, credentials.Malformed, nil, "the method %s is refused", r.Method)
	case !strings.EqualFold(strings.TrimSuffix(host, "."), k.name), !samePort:
		return k.refuse(http.StatusMisdirectedRequest, credentials.Malformed, nil, "it is for another host")
	case r.URL.IsAbs() && (r.URL.Scheme != "https" || !strings.EqualFold(r.URL.Host, r.Host)), r.URL.User != nil:
		return k.refuse(http.StatusMisdirectedRequest, credentials.Malformed, nil, "its address is for another host")
	case len(r.TransferEncoding) > 0 && r.Header.Get("Content-Length") != "":
		return k.refuse(http.StatusBadRequest, credentials.Malformed, nil, "it has two lengths")
	}
	return nil
}

// basicOf decodes the value of a header for Basic authentication (RFC 7617).
func basicOf(value string) (decoded string, is bool) {
	scheme, rest, is := strings.Cut(value, " ")
	if !is || !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
	return string(data), err == nil
}

// authenticate finds the secret whose placeholder is the whole of a word in a
// header of authentication, and how its value is put there. put is nil if there
// is none, and found is any then.
func (o *Opener) authenticate(any *Secret, value, basic string, isBasic bool) (found *Secret, put func(string) string) {
	if isBasic {
		encode := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
		name, password, _ := strings.Cut(basic, ":")
		if s := o.find.is(password); s != nil && o.find.in(name) == nil {
			return s, func(secret string) string { return encode(name + ":" + secret) }
		}
		if s := o.find.is(name); s != nil && o.find.in(password) == nil {
			return s, func(secret string) string { return encode(secret + ":" + password) }
		}
		return any, nil
	}
	scheme, token := "", value
	if before, after, is := strings.Cut(value, " "); is {
		scheme, token = before+" ", after
	}
	s := o.find.is(token)
	if s == nil || o.find.in(scheme) != nil {
		return any, nil
	}
	return s, func(secret string) string { return scheme + secret }
}

// query puts secrets into the parameters of an address.
func (o *Opener) query(
	k *connection, raw string, take func(*Secret, string) (string, *refusal),
) (made string, refused *refusal) {
	parts := strings.Split(raw, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(value)
		if err != nil {
			plain = value
		}
		key, err := url.QueryUnescape(name)
		if err != nil {
			key = name
		}
		s := o.find.in(part)
		for _, text := range []string{plain, key} {
			if s == nil {
				s = o.find.in(text)
			}
		}
		if s == nil {
			continue
		}
		where := "the parameter " + strconv.Quote(key)
		if o.find.is(plain) != s || !slices.Contains(parameters[k.name], key) {
			if o.find.in(key) != nil {
				where = "the name of a parameter"
			}
			return "", o.misplaced(k, s, where)
		}
		secret, refused := take(s, where)
		if refused != nil {
			return "", refused
		}
		parts[i] = name + "=" + url.QueryEscape(secret)
	}
	return strings.Join(parts, "&"), nil
}
