package service

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/authority"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/formats"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/opener"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/placeholder"
)

// preparation makes of an order what the session gets.
type preparation struct {
	order credentials.Order
	given credentials.Given
	made  opener.Config
	names []string // of hosts
	files int      // in the order's directory
}

// prepare reads the secrets and makes the placeholders. What cannot be used is
// withheld; an error is about all of them.
func prepare(order credentials.Order) (opener.Config, credentials.Given, error) {
	p := &preparation{order: order}
	p.given.Variables = map[string]string{}
	for _, wanted := range order.Wanted {
		if err := p.add(wanted); err != nil {
			p.given.Withheld = append(p.given.Withheld, credentials.Withheld{
				Name: wanted.Name, Variable: wanted.Variable, File: wanted.File, Why: err.Error(),
			})
		}
	}
	p.signVariables()
	if len(p.names) > 0 {
		var err error
		if p.made.Authority, err = authority.New(p.names); err != nil {
			return opener.Config{}, credentials.Given{}, err
		}
		if err := p.trust(); err != nil {
			return opener.Config{}, credentials.Given{}, err
		}
	}
	return p.made, p.given, nil
}

var (
	errNoHosts = errors.New("no host may have it")
	errNotFile = errors.New("not a regular file")
)

func (p *preparation) add(wanted credentials.Wanted) error {
	patterns, rules, err := credentials.ParseHosts(wanted.Hosts)
	switch {
	case err != nil:
		return err
	case len(patterns) == 0:
		return errNoHosts
	}
	var found []*opener.Secret
	switch {
	case wanted.Variable != "" && wanted.Value == "":
		return nil
	case wanted.Variable != "":
		fake, err := placeholder.Of(wanted.Value)
		if err != nil {
			return err
		}
		p.given.Variables[wanted.Variable] = fake
		found = []*opener.Secret{{Name: wanted.Name, Placeholder: fake, Value: wanted.Value}}
	case wanted.File != "":
		if found, err = p.hide(wanted); err != nil {
			return err
		}
	case len(wanted.Command) > 0:
		fake := rand.Text() + rand.Text() // its form is not known before its first use
		p.given.Variables[wanted.As] = fake
		found = []*opener.Secret{{Name: wanted.Name, Placeholder: fake, Fetch: fetched(wanted.Command, p.order.Env)}}
	default:
		return errors.New("it names no variable, file or command")
	}
	for _, s := range found {
		within := s.Belongs
		s.Belongs = func(name string, port uint16) bool {
			return rules.Name(name, port) && (within == nil || within(name, port))
		}
	}
	if len(found) == 0 {
		return nil
	}
	p.made.Secrets = append(p.made.Secrets, found...)
	for _, pattern := range patterns {
		p.names = append(p.names, pattern.Domain())
		p.given.Hosts = append(p.given.Hosts, pattern.String())
	}
	return nil
}

// hide makes the session's own copy of a file.
func (p *preparation) hide(wanted credentials.Wanted) ([]*opener.Secret, error) {
	data, err := read(wanted.File)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	type key struct {
		value string
		inURL int
	}
	known := map[key]string{}
	var kept []*opener.Secret
	text, found, err := formats.Hide(formats.KindOf(wanted.Format), data, func(s formats.Secret) (string, error) {
		at := key{s.Value, s.InURL}
		if fake := known[at]; fake != "" {
			return fake, nil
		}
		make := placeholder.Of
		if s.InURL > 0 {
			make = func(secret string) (string, error) { return placeholder.InURL(secret, s.InURL) }
		}
		fake, err := make(s.Value)
		known[at] = fake
		return fake, err
	})
	if err != nil {
		return nil, err
	}
	pairs := map[string]*opener.SigningKey{} // by what their names begin with
	seen := map[string]bool{}
	for _, s := range found {
		fake := known[key{s.Value, s.InURL}]
		secret := &opener.Secret{Name: wanted.Name, Placeholder: fake, Value: s.Value, Belongs: at(s.Host)}
		if !seen[fake] {
			seen[fake] = true
			kept = append(kept, secret)
		}
		section, name, _ := cutLast(s.Name, ".")
		if pairs[section] == nil {
			pairs[section] = &opener.SigningKey{}
		}
		switch name {
		case "aws_access_key_id":
			pairs[section].ID = secret
		case "aws_secret_access_key":
			pairs[section].Key = secret
		}
	}
	for _, pair := range pairs {
		if pair.ID != nil && pair.Key != nil {
			// The copies that are kept get the hosts of the credential.
			for _, secret := range kept {
				if secret.Placeholder == pair.ID.Placeholder {
					pair.ID = secret
				}
				if secret.Placeholder == pair.Key.Placeholder {
					pair.Key = secret
				}
			}
			p.made.SigningKeys = append(p.made.SigningKeys, *pair)
		}
	}
	source, err := p.write(text)
	if err != nil {
		return nil, err
	}
	p.given.Files = append(p.given.Files, credentials.File{Path: wanted.File, Source: source})
	return kept, nil
}

// at limits a secret to where its file says that it belongs; nil if it does not say.
func at(host string) func(string, uint16) bool {
	if host == "" {
		return nil
	}
	name, digits, is := strings.Cut(host, ":")
	return func(to string, port uint16) bool {
		return to == name && (!is || digits == strconv.Itoa(int(port)))
	}
}

func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return "", text, false
}

// read reads a regular file that a user has written.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, plain(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, plain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNotFile
	}
	data, err := io.ReadAll(io.LimitReader(file, formats.MaxBytes+1))
	if err != nil {
		return nil, plain(err)
	}
	return data, nil
}

// plain is an error without the path, which is said beside it.
func plain(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// write puts a file into the session's directory.
func (p *preparation) write(data []byte) (path string, err error) {
	path = filepath.Join(p.order.Dir, "file"+strconv.Itoa(p.files))
	p.files++
	if err := os.WriteFile(path, data, 0o400); err != nil {
		return "", fmt.Errorf("write a copy: %w", plain(err))
	}
	return path, nil
}

// signVariables finds the key of AWS in variables.
func (p *preparation) signVariables() {
	var pair opener.SigningKey
	for _, s := range p.made.Secrets {
		switch s.Placeholder {
		case p.given.Variables["AWS_ACCESS_KEY_ID"]:
			pair.ID = s
		case p.given.Variables["AWS_SECRET_ACCESS_KEY"]:
			pair.Key = s
		}
	}
	if pair.ID != nil && pair.Key != nil {
		p.made.SigningKeys = append(p.made.SigningKeys, pair)
	}
}
