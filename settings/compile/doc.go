// Package compile makes a policy of settings.
//
// An [Input] is the settings at one moment, in layers, and how the machine is
// asked. [New] returns a [Snapshot] of it, and [Snapshot.Compile] the policy for
// one kind of session. A project's file may tighten the user's settings; unless
// the user trusts it, it cannot loosen them. What the organisation requires bounds
// the result.
//
// Each key of a single value is a row of one table, and each family of keys has a
// file: how its entries are read, what user and project choose together, what
// the organisation leaves, what a trusted file asks for. [Reasons] tell explainers
// what a policy was made of.
//
// The package reads no settings file and keeps none. See
// docs/design/settings-pipeline.md.
package compile
