package settings

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
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
			if target.Err != nil || !target.Exists || granted.at(target.Path).Has(policy.Read) {
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

// ProxyNoteName names the note for Store.FirstTime.
const ProxyNoteName = "proxy-password"

// ProxyNote tells that sessions get the password of a proxy; "" if they do not.
// It is worth telling once.
func (c *Compiled) ProxyNote() string {
	if len(c.proxies) == 0 || !c.Policy.Restricted {
		return ""
	}
	return "sandboxed sessions get the password of your proxy, in " + strings.Join(c.proxies, ", ")
}
