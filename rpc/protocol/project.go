package protocol

// ProjectStatus answers what a project's settings file asks for beyond the
// user's own settings, and whether it is trusted. An editor shows this before
// it asks the user for trust.
var ProjectStatus = Request[ProjectParams, Project]{"project/status", ToSidecar}

// ProjectTrust trusts a project's settings file with the content that it has
// now: it then counts as it is written. Any change of the content makes it
// untrusted again. What cannot be trusted is refused with
// CodeProjectNotTrusted.
var ProjectTrust = Request[ProjectTrustParams, Project]{"project/trust", ToSidecar}

// ProjectUntrust takes the trust back: the file can only tighten then.
var ProjectUntrust = Request[ProjectParams, Project]{"project/untrust", ToSidecar}

// ProjectParams names a project.
type ProjectParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
}

// ProjectTrustParams names a project and the content that its user has seen.
type ProjectTrustParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
	// Digest is the one that came with what the user was shown. If the file is
	// another by now, nothing is trusted. Without it the content of this moment
	// is.
	Digest string `json:"digest,omitempty"`
}

// Project is how a project's settings file stands.
type Project struct {
	// ProjectDir is the project's real path, which is what is trusted.
	ProjectDir string `json:"projectDir"`
	// File is the project's settings file.
	File string `json:"file"`
	// Exists is false where there is no such file.
	Exists bool `json:"exists"`
	// Trusted is true where the file counts as it is written; else it can only
	// tighten.
	Trusted bool `json:"trusted"`
	// Digest is the SHA-256 of the file's bytes in hexadecimal digits; empty
	// where it could not be read.
	Digest string `json:"digest"`
	// Asks is what the file asks for beyond the user's own settings; where it
	// is trusted, what that has opened.
	Asks []Ask `json:"asks"`
	// Problem is why the file cannot be trusted as it is now.
	Problem string `json:"problem,omitempty"`
	// Message says how the file stands, in one line that is fit to be shown as
	// it is, as plain text. The file's name is quoted and escaped in it.
	Message string `json:"message"`
}

// Ask is one thing that a project's file asks for beyond the user's own
// settings.
type Ask struct {
	// Key is the settings key.
	Key string `json:"key"`
	// Value is the entry of a list, or the key's value as JSON.
	Value string `json:"value"`
	// Opens says in one sentence what trusting the project opens by it.
	Opens string `json:"opens"`
	// Line is 1-based.
	Line int `json:"line"`
	// Column is 1-based, in bytes.
	Column int `json:"column"`
	// Message says all of this in one line that is fit to be shown as it is, as
	// plain text: the line, the key, the value and what it opens. Values are
	// quoted, escaped and shortened in it.
	Message string `json:"message"`
}
