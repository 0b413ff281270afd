package compile

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// In a company the network is behind a proxy whose certificate the company
// signs. Programs find both by variables. The variables pass by default, and
// the certificates that they name are readable.

// certificatesKey is the built-in origin of such grants.
const certificatesKey = "certificates"

// maxCertificates bounds the files of a directory of certificates. Debian's has
// 280 entries.
const maxCertificates = 512

// certificateGrants are the files that variables of certificates name, as far as
// sessions get the variables and granted does not open them already. A variable
// grants a file that holds certificates and nothing secret, or a directory with
// nothing but such files. refusals say which do not count.
func certificateGrants(view fsView, environment policy.Environment, granted outside) (list []grant, refusals []string) {
	for _, name := range document.CertificateVariables {
		value := view.host.Env[name]
		if value == "" || !environment.Allows(name) {
			continue
		}
		for _, path := range filepath.SplitList(value) {
			if !filepath.IsAbs(path) {
				continue // it is another file in each directory
			}
			target := view.Resolve(path)
			_, hidden := granted.index.HiddenAt(target.Path)
			if target.Err != nil || !target.Exists || hidden || granted.at(target.Path).Has(policy.Read) {
				continue
			}
			if why := view.noCertificates(target.Path, target.Mode); why != "" {
				refusals = append(refusals, fmt.Sprintf("%s names %s, which is not granted: %s", name,
					display.Quote(path), why))
				continue
			}
			list = append(list, grant{path: target.Path, links: target.Links, request: request{
				text: path, access: policy.Read,
				origin: policy.Origin{
					File: policy.OriginBuiltIn, Key: certificatesKey, Reason: "the variable " + name + " names it",
				},
			}})
		}
	}
	return list, refusals
}

// noCertificates says why a path must not be granted as certificates; "" if
// nothing speaks against it.
func (v fsView) noCertificates(path string, mode fs.FileMode) string {
	if why := v.sensitive.Holds(path); why != "" {
		return "that is " + why
	}
	if !mode.IsDir() {
		return v.noCertificateFile(path, mode)
	}
	names, err := v.FS.ReadDir(path)
	switch {
	case err != nil:
		return "it cannot be listed"
	case len(names) == 0:
		return "it is empty"
	case len(names) > maxCertificates:
		return "it holds too many files"
	}
	for _, name := range names {
		entry := v.Entry(filepath.Join(path, name))
		if entry.Mode&fs.ModeSymlink != 0 {
			continue // the grant does not open what it leads to
		}
		if entry.Err != nil || v.noCertificateFile(filepath.Join(path, name), entry.Mode) != "" {
			return "it also holds " + display.Quote(name)
		}
	}
	return ""
}

// noCertificateFile is noCertificates for what is no directory.
func (v fsView) noCertificateFile(path string, mode fs.FileMode) string {
	if !mode.IsRegular() {
		return "it is no regular file"
	}
	data, err := v.FS.ReadFile(path)
	switch {
	case err != nil:
		return "it cannot be read"
	case bytes.Contains(data, []byte("PRIVATE KEY")):
		return "it holds a private key"
	case !bytes.Contains(data, []byte("-----BEGIN ")) || !bytes.Contains(data, []byte("CERTIFICATE-----")):
		return "it holds no certificates"
	}
	return ""
}

// proxyPasswords are the variables that sessions get with the password of a
// proxy.
func proxyPasswords(env map[string]string, environment policy.Environment) []string {
	var names []string
	for _, name := range document.ProxyVariables {
		if !environment.Allows(name) {
			continue
		}
		address, err := url.Parse(env[name])
		if err != nil || address.User == nil {
			continue
		}
		if _, set := address.User.Password(); set {
			names = append(names, name)
		}
	}
	return names
}

// secretRegistries are the variables of registries that sessions do not get, as
// their values may hold a secret.
func secretRegistries(env map[string]string, environment policy.Environment) (names []string) {
	for _, name := range environment.Bare {
		if value := env[name]; value != "" {
			_, dropped := environment.Filter([]string{name + "=" + value})
			names = append(names, dropped...)
		}
	}
	return names
}

// notReached is why a variable on the list does not arrive.
const notReached = "not passed, as its socket is not granted"

// markUnreached finds the variables that the settings pass and that name only
// sockets which no session may use. Sessions do without these variables.
func markUnreached(
	view fsView, environment policy.Environment, variables []Variable, granted []socket,
) (notes []Note) {
	env := view.host.Env
	for _, d := range policy.Daemons {
		if !environment.Allows(d.Name) {
			continue
		}
		sockets, known := d.Sockets(env[d.Name], func(name string) string { return env[name] })
		reached := slices.ContainsFunc(sockets, func(s policy.UnixSocket) bool {
			return slices.ContainsFunc(granted, func(g socket) bool {
				return g.abstract == s.Abstract && (s.Path == "" || g.path == view.Resolve(s.Path).Path)
			})
		})
		if !known || reached {
			continue
		}
		for i, v := range variables {
			if v.Pattern == d.Name {
				variables[i].Origin.Reason = notReached
			}
		}
		key, value := socketsKey, "$"+d.Name
		if i := slices.IndexFunc(toolchain.All, func(t toolchain.Toolchain) bool {
			return t.Keys == policy.SSHAgent && d.Name == "SSH_AUTH_SOCK"
		}); i >= 0 {
			key, value = toolchainsKey, toolchain.All[i].Name
		} else if len(sockets) == 0 {
			continue // no setting helps
		} else if sockets[0].Path != env[d.Name] {
			value = socket{grant: grant{path: sockets[0].Path}, abstract: sockets[0].Abstract}.named()
		}
		notes = append(notes, Note{
			Name: "unreached-" + d.Name,
			Text: fmt.Sprintf("%s is not passed: its socket is not granted; add %s to %q", d.Name,
				display.Quote(value), key),
		})
	}
	return notes
}
