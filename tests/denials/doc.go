// Package denials tests the reports of denials: that each is reported, that the
// suggested setting allows just that, and that no session can flood an editor.
package denials
