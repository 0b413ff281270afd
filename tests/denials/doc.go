// Package denials holds what is told of refusals: that it is so, that the
// setting which is suggested allows just this, and that nobody can make it more
// than an editor can bear.
package denials
