// Never read: every build names one of the <release>.mod files beside this one (-modfile), but the
// go command wants a go.mod to find the module's root.
module testbed/istio

go 1.26.0
